//! From rows to columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use printable::Hexadecimal;
use profile::{Code, FunctionKey, Origin, Profile};

use crate::column::{Column, Table};
use crate::gather::Part;
use crate::keys::Keys;
use crate::options::Options;

/// The tables of a part.
pub fn tables(
    profile: &Profile,
    keys: &mut Keys<'_>,
    options: &Options,
    service: &str,
    part: &Part,
) -> [Table; 4] {
    let common = Common {
        host: (&*options.host).into(),
        service: service.into(),
        version: (&*options.version).into(),
    };
    [
        samples(profile, &common, part),
        stacks(keys, part),
        functions(profile, part),
        codes(profile, keys, &common, part),
    ]
}

struct Common {
    host: Arc<str>,
    service: Arc<str>,
    version: Arc<str>,
}

impl Common {
    fn columns(&self, rows: usize) -> Vec<(&'static str, Column)> {
        let column = |text: &Arc<str>| Column::Text(vec![text.clone(); rows]);
        vec![
            ("host", column(&self.host)),
            ("service", column(&self.service)),
            ("version", column(&self.version)),
        ]
    }
}

/// Text of a profile. What is not UTF-8 is replaced.
fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

fn hexadecimal(bytes: &[u8]) -> Arc<str> {
    Hexadecimal(bytes).to_string().into()
}

/// A number of a profile as a signed one. None is that large.
fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn large(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn samples(profile: &Profile, common: &Common, part: &Part) -> Table {
    let keys = || part.samples.keys();
    let mut texts: BTreeMap<profile::StringId, Arc<str>> = BTreeMap::new();
    let mut shared =
        |id: profile::StringId| texts.entry(id).or_insert_with(|| text(profile.text(id))).clone();
    let mut columns = common.columns(part.samples.len());
    let event = |event| profile.event(event).name;
    columns.extend([
        (
            "window_start",
            Column::Time(keys().map(|key| key.window.saturating_mul(1_000_000)).collect()),
        ),
        ("event", Column::Text(keys().map(|key| shared(event(key.event))).collect())),
        ("function_key", Column::Number(keys().map(|key| key.function).collect())),
        ("code_key", Column::Number(keys().map(|key| key.code).collect())),
        ("tier", Column::Text(keys().map(|key| shared(key.tier)).collect())),
        ("generation", Column::Small(keys().map(|key| small(key.generation)).collect())),
        ("stack_key", Column::Number(keys().map(|key| key.stack).collect())),
        ("sample_count", Column::Number(part.samples.values().map(|row| row.count).collect())),
        ("weight", Column::Number(part.samples.values().map(|row| row.weight).collect())),
    ]);
    Table { name: "samples", columns }
}

fn stacks(keys: &Keys<'_>, part: &Part) -> Table {
    let functions = |stack| -> Vec<i64> {
        keys.functions_of(stack).into_iter().map(u64::cast_signed).collect()
    };
    let lists = part.stacks.values().map(|&stack| functions(stack));
    Table {
        name: "stacks",
        columns: vec![
            ("stack_key", Column::Number(part.stacks.keys().copied().collect())),
            ("function_keys", Column::List(lists.collect())),
        ],
    }
}

fn origin(origin: Origin) -> Arc<str> {
    match origin {
        Origin::Native => "native",
        Origin::Kernel => "kernel",
        Origin::Runtime => "runtime",
        Origin::Other => "unknown",
    }
    .into()
}

fn functions(profile: &Profile, part: &Part) -> Table {
    // Different names of a profile may be the same when cleaned.
    let mut rows: BTreeMap<i64, FunctionKey> = BTreeMap::new();
    for &id in &part.functions {
        let key = FunctionKey::of(profile, profile.function(id));
        rows.insert(key.id().cast_signed(), key);
    }
    let keys = || rows.values();
    let lineage = |key: &FunctionKey| key.without_place().id().cast_signed();
    Table {
        name: "functions",
        columns: vec![
            ("function_key", Column::Number(rows.keys().copied().collect())),
            ("lineage_key", Column::Number(keys().map(lineage).collect())),
            ("origin", Column::Text(keys().map(|key| origin(key.origin)).collect())),
            ("name", Column::Text(keys().map(|key| text(&key.name)).collect())),
            ("file", Column::Text(keys().map(|key| text(&key.file)).collect())),
            ("start_line", Column::Small(keys().map(|key| small(key.place.0)).collect())),
            ("start_column", Column::Small(keys().map(|key| small(key.place.1)).collect())),
            ("runtime", Column::Text(keys().map(|key| text(&key.version.runtime)).collect())),
            (
                "runtime_build_id",
                Column::Text(keys().map(|key| hexadecimal(&key.version.build_id)).collect()),
            ),
            (
                "source_hash",
                Column::Text(keys().map(|key| hexadecimal(&key.version.source)).collect()),
            ),
        ],
    }
}

fn codes(profile: &Profile, keys: &mut Keys<'_>, common: &Common, part: &Part) -> Table {
    // Several compilations may have the same code.
    let mut rows: BTreeMap<i64, (&Code, i64)> = BTreeMap::new();
    for (&id, is_compiled) in &part.codes {
        let (code, compilations) = rows.entry(keys.code(id)).or_insert((profile.code(id), 0));
        *compilations = compilations.saturating_add((*is_compiled).into());
        // That of which the code can be had.
        if code.module.is_none() {
            *code = profile.code(id);
        }
    }
    let codes = || rows.values().map(|(code, _)| *code);
    let module = |code: &Code| code.module.map(|module| profile.module(module));
    let name = |code: &Code| {
        let path = module(code).map(|module| profile.text(module.path)).unwrap_or_default();
        text(path.rsplit(|&byte| byte == b'/').next().unwrap_or_default())
    };
    let build_id = |code: &Code| {
        hexadecimal(module(code).map(|module| module.build_id.as_slice()).unwrap_or_default())
    };
    let mut columns = common.columns(rows.len());
    columns.extend([
        ("code_key", Column::Number(rows.keys().copied().collect())),
        (
            "function_key",
            Column::Number(codes().map(|code| keys.function(code.function)).collect()),
        ),
        ("tier", Column::Text(codes().map(|code| text(profile.text(code.tier))).collect())),
        ("size", Column::Number(codes().map(|code| large(code.size)).collect())),
        ("compilations", Column::Number(rows.values().map(|row| row.1).collect())),
        ("module", Column::Text(codes().map(name).collect())),
        ("build_id", Column::Text(codes().map(build_id).collect())),
        (
            "module_address",
            Column::Number(codes().map(|code| code.module_address.cast_signed()).collect()),
        ),
    ]);
    Table { name: "codes", columns }
}

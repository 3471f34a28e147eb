//! What is in the tables of a profile that is known.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use profile::{
    About, Builder, Code, CodeId, CodeSource, Frame, Function, FunctionKey, FunctionKind, Listing,
    Profile, SampleRow, Source, stack_id,
};
use profile_parquet::{Error, Exported, Options, OutputFile, files};

/// Every code is this one, at another address, with a call to something outside of it.
struct Calls;

impl CodeSource for Calls {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let address = 0x1000 * u64::from(code.0 + 1);
        let distance = i64::try_from(0x9000 - address - 5).expect("near");
        let mut bytes = vec![0xe8];
        bytes.extend(i32::try_from(distance).expect("near").to_le_bytes());
        bytes.extend([0xc3]);
        Some(Listing { address, machine: 62, bytes, lines: Vec::new() })
    }

    fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        None
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        None
    }
}

const SECOND: u64 = 1_000_000_000;
/// 2026-11-25 23:50:00 UTC, in seconds since 1970.
const EVENING: i64 = 1_795_650_600;

/// `main` calls `hot`, which is compiled three times: before midnight twice, to the same code, and once behind it.
fn made() -> Profile {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(7, b"a/b");
    let thread = builder.thread(process, 7, b"a/b");
    let [main, hot] = [&b"main"[..], b"hot"].map(|name| builder.string(name));
    let main = builder.function(Function::new(main, FunctionKind::Native));
    let hot = builder.function(Function::new(hot, FunctionKind::Jitted));
    let caller = builder.frame(Frame::new(main));
    let caller = builder.stack(None, caller);
    for (loaded, tier) in [(0, &b"quick"[..]), (300, b"quick"), (900, b"best")] {
        let mut code = Code::new(hot, 6);
        code.process = Some(process);
        code.loaded = Some(loaded * SECOND);
        code.tier = builder.string(tier);
        let code = builder.code(code);
        let mut frame = Frame::new(hot);
        frame.code = Some(code);
        let frame = builder.frame(frame);
        let stack = builder.stack(Some(caller), frame);
        for time in (0..=loaded / 300).map(|time| (loaded + time) * SECOND) {
            builder.sample(SampleRow { time, thread, event, weight: 10, stack });
        }
    }
    builder.sample(SampleRow { time: 1, thread, event, weight: 10, stack: caller });
    let mut about = About::default();
    about.to_utc = Some(EVENING * 1_000_000_000);
    builder.about(about);
    builder.finish()
}

fn reader(file: &OutputFile) -> SerializedFileReader<Bytes> {
    SerializedFileReader::new(Bytes::from(file.content.clone())).expect("a Parquet file")
}

fn rows(exported: &Exported, table: &str, part: &str) -> Vec<Row> {
    let path = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let wanted = |name: &str| name.starts_with(&format!("{table}/")) && name.contains(part);
    let file = exported.files.iter().find(|file| wanted(&path(&file.path)));
    let file = file.unwrap_or_else(|| panic!("no {table} of {part}"));
    reader(file).get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect()
}

fn field<'r>(row: &'r Row, name: &str) -> &'r Field {
    row.get_column_iter().find(|(column, _)| *column == name).expect("a column").1
}

fn number(row: &Row, name: &str) -> i64 {
    match field(row, name) {
        Field::Int(number) => (*number).into(),
        Field::Long(number) | Field::TimestampMicros(number) => *number,
        other => panic!("{name}: {other:?}"),
    }
}

fn text(row: &Row, name: &str) -> String {
    match field(row, name) {
        Field::Str(text) => text.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn samples_are_counted_by_window_and_divided_at_midnight() {
    let exported = files(&made(), &mut Calls, &Options::new("host 1")).expect("tables");
    let paths: BTreeSet<String> = exported
        .files
        .iter()
        .map(|file| {
            file.path.to_str().expect("UTF-8").rsplit_once('-').expect("a name").0.to_owned()
        })
        .collect();
    let mut expected = BTreeSet::new();
    for table in ["samples", "stacks", "functions", "codes"] {
        for (day, time) in [("2026-11-25", "20261125T235000Z"), ("2026-11-26", "20261126T000000Z")]
        {
            expected.insert(format!("{table}/date={day}/service=a%2Fb/host%201-{time}"));
        }
    }
    assert_eq!(paths, expected);
    assert_eq!((exported.samples, exported.rows), (8, 4));
    // Samples at 0 s of `main` and of the first code; at 300 s and 301 s of the second; at 900 s to 903 s of the third.
    let counted = |part| -> BTreeMap<(String, i64), (i64, i64, i64)> {
        let rows = rows(&exported, "samples", part);
        rows.iter()
            .map(|row| {
                let key = (text(row, "tier"), number(row, "generation"));
                let window = number(row, "window_start") / 1_000_000 - EVENING;
                (key, (window, number(row, "sample_count"), number(row, "weight")))
            })
            .collect()
    };
    let before = [
        ((String::new(), 0), (0, 1, 10)),
        (("quick".to_owned(), 1), (0, 1, 10)),
        (("quick".to_owned(), 2), (0, 2, 20)),
    ];
    assert_eq!(counted("2026-11-25"), BTreeMap::from(before));
    assert_eq!(counted("2026-11-26"), BTreeMap::from([(("best".to_owned(), 3), (600, 4, 40))]));
    // The same recording has the same files; another part of it has others.
    let again = files(&made(), &mut Calls, &Options::new("host 1")).expect("tables");
    for (one, other) in exported.files.iter().zip(&again.files) {
        assert_eq!((&one.path, &one.content), (&other.path, &other.content));
    }
    let mut options = Options::new("host 1");
    options.selection.times = Some(0..SECOND);
    let part = files(&made(), &mut Calls, &options).expect("tables");
    let is_in_part = |file: &OutputFile| part.files.iter().any(|of_part| of_part.path == file.path);
    assert!(!exported.files.iter().any(is_in_part));
}

#[test]
fn keys_of_all_tables_join() {
    let profile = made();
    let exported = files(&profile, &mut Calls, &Options::new("host")).expect("tables");
    let keys: Vec<u64> =
        profile.functions().iter().map(|it| FunctionKey::of(&profile, it).id()).collect();
    for day in ["2026-11-25", "2026-11-26"] {
        let all = |table, column: &str| -> BTreeSet<i64> {
            rows(&exported, table, day).iter().map(|row| number(row, column)).collect()
        };
        let expected = keys.iter().map(|key| key.cast_signed()).collect();
        assert_eq!(all("functions", "function_key"), expected);
        let mut codes = all("codes", "code_key");
        codes.insert(0);
        assert!(all("samples", "code_key").is_subset(&codes));
        assert_eq!(all("samples", "stack_key"), all("stacks", "stack_key"));
        assert!(all("samples", "stack_key").contains(&stack_id(&keys).cast_signed()));
        for row in rows(&exported, "stacks", day) {
            let Field::ListInternal(list) = field(&row, "function_keys") else { panic!("{row:?}") };
            let list = list.elements().iter().map(|element| match element {
                Field::Long(key) => key.cast_unsigned(),
                other => panic!("{other:?}"),
            });
            let id = stack_id(&list.collect::<Vec<u64>>()).cast_signed();
            assert_eq!(id, number(&row, "stack_key"));
        }
    }
    // The calls are at other addresses, and lead to the same place: the two first compilations have the same code.
    let compiled = |day| -> Vec<(String, i64)> {
        let rows = rows(&exported, "codes", day);
        rows.iter().map(|row| (text(row, "tier"), number(row, "compilations"))).collect()
    };
    assert_eq!(compiled("2026-11-25"), [("quick".to_owned(), 2)]);
    assert_eq!(compiled("2026-11-26"), [("best".to_owned(), 1)]);
}

#[test]
fn a_recording_without_utc_needs_a_time() {
    let mut profile = made();
    profile.about.to_utc = None;
    let mut options = Options::new("host");
    assert!(matches!(files(&profile, &mut Calls, &options), Err(Error::NoTime)));
    options.to_utc = Some(0);
    options.service = Some("shop".to_owned());
    let exported = files(&profile, &mut Calls, &options).expect("tables");
    assert!(exported.files.iter().all(|file| {
        file.path.to_str().expect("UTF-8").contains("/date=1970-01-01/service=shop/host-")
    }));
}

/// What is written of a fleet has the names that the documentation has.
#[test]
fn columns_are_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/fleet.md");
    let docs = std::fs::read_to_string(docs).expect("docs/fleet.md");
    let exported = files(&made(), &mut Calls, &Options::new("host")).expect("tables");
    let mut columns = BTreeSet::new();
    for file in &exported.files {
        for field in reader(file).metadata().file_metadata().schema().get_fields() {
            let row = format!("| `{}` |", field.name());
            assert!(docs.contains(&row), "docs/fleet.md has no {row} of {:?}", file.path);
            columns
                .insert((file.path.components().next().map(|it| it.as_os_str().to_owned()), row));
        }
    }
    assert!(columns.len() > 30, "{columns:?}");
}

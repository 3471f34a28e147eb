//! The tables of a profile, as columns.

use printable::Hexadecimal;
use profile::{
    Activities, Code, EventId, Frame, FunctionKey, FunctionKind, ModuleKind, Profile, Selection,
    UnnamedRuns,
};
use serde_json::{Map, Value, json};

use crate::columns::Columns;
use crate::text::shown;

/// The profile as the page reads it.
pub fn bytes(profile: &Profile, unnamed: &[String]) -> Vec<u8> {
    let mut columns = Columns::default();
    let start = profile.samples().times().first().copied().unwrap_or_default();
    let texts: Vec<_> = profile.strings().iter().map(shown).collect();
    columns.text("string.text", texts.iter().map(AsRef::as_ref));
    origins(profile, &mut columns);
    code(profile, start, &mut columns);
    samples(profile, start, &mut columns);
    let missing = &profile.missing;
    let causes: Vec<_> = missing.iter().map(|row| shown(row.cause.as_bytes())).collect();
    columns.u32("missing.path", missing.iter().map(|row| row.path.0));
    columns.text("missing.cause", causes.iter().map(AsRef::as_ref));
    columns.u64("missing.samples", missing.iter().map(|row| row.samples));
    let unnamed: Vec<_> = unnamed.iter().map(|line| shown(line.as_bytes())).collect();
    columns.text("unnamed.line", unnamed.iter().map(AsRef::as_ref));
    columns.finish(about(profile, start))
}

fn about(profile: &Profile, start: u64) -> Map<String, Value> {
    let about = &profile.about;
    let command: Vec<_> = about.command.iter().map(|word| shown(word)).collect();
    let utc = about.to_utc.map(|add| i128::from(start).saturating_add(add.into()));
    let kinds: Vec<&str> = FunctionKind::ALL.iter().map(|kind| kind.name()).collect();
    let value = json!({
        "recording": shown(&about.recording),
        "host": shown(&about.host),
        "machine": shown(&about.machine),
        "command": command,
        // A double has room for microseconds until the year 2255.
        "startUtc": utc.and_then(|utc| i64::try_from(utc / 1000).ok()),
        "frequency": about.frequency,
        "ofFleet": about.of_fleet,
        "kinds": kinds,
        "activities": activities(profile),
    });
    match value {
        Value::Object(about) => about,
        _ => Map::new(),
    }
}

/// Activities of more events than these are left out.
const MOST_EVENTS: u32 = 32;

/// What was done: in all samples, and then in those of each event.
fn activities(profile: &Profile) -> Vec<Vec<(&'static str, u64)>> {
    let events = u32::try_from(profile.events().len()).unwrap_or(u32::MAX);
    let events = (0..events.min(MOST_EVENTS)).map(|event| Some(EventId(event)));
    [None]
        .into_iter()
        .chain(events)
        .map(|event| {
            let mut selection = Selection::default();
            selection.event = event;
            let samples = selection.of(profile).count() as u64;
            Activities::of(profile, selection.of(profile)).parts(samples)
        })
        .collect()
}

fn origins(profile: &Profile, columns: &mut Columns) {
    let processes = profile.processes();
    columns.u32("process.pid", processes.iter().map(|row| row.pid));
    columns.u32("process.name", processes.iter().map(|row| row.name.0));
    let threads = profile.threads();
    columns.u32("thread.process", threads.iter().map(|row| row.process.0));
    columns.u32("thread.tid", threads.iter().map(|row| row.tid));
    columns.u32("thread.name", threads.iter().map(|row| row.name.0));
    let modules = profile.modules();
    let kind = |kind| match kind {
        ModuleKind::File => 0,
        ModuleKind::Image => 1,
        ModuleKind::Kernel => 2,
    };
    columns.u32("module.kind", modules.iter().map(|row| kind(row.kind)));
    columns.u32("module.path", modules.iter().map(|row| row.path.0));
    let build_ids = modules.iter().map(|row| Hexadecimal(&row.build_id).to_string());
    let build_ids: Vec<String> = build_ids.collect();
    columns.text("module.build_id", build_ids.iter().map(String::as_str));
    columns.u32("event.name", profile.events().iter().map(|row| row.name.0));
}

fn code(profile: &Profile, start: u64, columns: &mut Columns) {
    let kind = |kind| FunctionKind::ALL.iter().position(|&each| each == kind);
    let kind = |it| kind(it).and_then(|place| u32::try_from(place).ok()).unwrap_or_default();
    let functions = profile.functions();
    columns.u32("function.name", functions.iter().map(|row| row.name.0));
    columns.u32("function.file", functions.iter().map(|row| row.file.0));
    columns.u32("function.line", functions.iter().map(|row| row.line));
    columns.u32("function.column", functions.iter().map(|row| row.column));
    columns.u32("function.kind", functions.iter().map(|row| kind(row.kind)));
    let keys = functions.iter().map(|row| FunctionKey::of(profile, row).id());
    let keys: Vec<String> = keys.map(|id| format!("{id:016x}")).collect();
    columns.text("function.key", keys.iter().map(String::as_str));

    let codes = profile.codes();
    let address = |row: &Code| match row.process {
        Some(_) => row.address,
        None => row.module_address,
    };
    let since_start = |time: Option<u64>| match time {
        // Below 2^53 of these for 104 days.
        Some(time) if time >= start => time.saturating_sub(start) as f64,
        Some(time) => -(start.saturating_sub(time) as f64),
        None => f64::NAN,
    };
    columns.u32("code.function", codes.iter().map(|row| row.function.0));
    columns.u32("code.symbol", codes.iter().map(|row| row.symbol.0));
    columns.u32("code.tier", codes.iter().map(|row| row.tier.0));
    columns.u32("code.generation", codes.iter().map(|row| row.generation));
    columns.u32("code.process?", codes.iter().map(|row| optional(row.process.map(|id| id.0))));
    columns.u32("code.address_high", codes.iter().map(|row| high(address(row))));
    columns.u32("code.address_low", codes.iter().map(|row| low(address(row))));
    columns.u64("code.size", codes.iter().map(|row| row.size));
    columns.f64("code.loaded", codes.iter().map(|row| since_start(row.loaded)));
    columns.f64("code.gone", codes.iter().map(|row| since_start(row.gone)));
    columns.u32("code.module?", codes.iter().map(|row| optional(row.module.map(|id| id.0))));

    let frames = profile.frames();
    columns.u32("frame.function", frames.iter().map(|row| row.function.0));
    columns.u32("frame.code?", frames.iter().map(|row| optional(row.code.map(|id| id.0))));
    columns.u32("frame.module?", frames.iter().map(|row| optional(row.module.map(|id| id.0))));
    columns.u32("frame.address_high", frames.iter().map(|row| high(row.address)));
    columns.u32("frame.address_low", frames.iter().map(|row| low(row.address)));
    columns.u64("frame.offset", frames.iter().map(|row| offset_in_code(profile, row)));
    columns.u32("frame.depth", frames.iter().map(|row| row.depth));
    columns.u32("frame.line", frames.iter().map(|row| row.line));
    columns.u32("frame.column", frames.iter().map(|row| row.column));
}

fn samples(profile: &Profile, start: u64, columns: &mut Columns) {
    let up = |(number, row): (u32, &profile::Stack)| {
        row.parent.map(|parent| number.saturating_sub(parent.0)).unwrap_or_default()
    };
    columns.u32("stack.up", (0..).zip(profile.stacks()).map(up));
    columns.u32("stack.frame", profile.stacks().iter().map(|row| row.frame.0));
    columns.u32("stack.run", UnnamedRuns::of(profile).lengths().iter().copied());
    let samples = profile.samples();
    columns.delta("sample.time", samples.times().iter().map(|time| time.saturating_sub(start)));
    columns.u32("sample.thread", samples.iter().map(|row| row.thread.0));
    columns.u32("sample.event", samples.iter().map(|row| row.event.0));
    columns.u64("sample.weight", samples.iter().map(|row| row.weight));
    columns.u32("sample.stack", samples.stacks().iter().map(|id| id.0));
}

/// The offset of a frame in its code; 0 without one.
pub fn offset_in_code(profile: &Profile, frame: &Frame) -> u64 {
    let code = frame.code.map(|code| profile.code(code));
    let start = code.map(|code| match frame.module {
        Some(_) => code.module_address,
        None => code.address,
    });
    start.map(|start| frame.address.saturating_sub(start)).unwrap_or_default()
}

fn optional(number: Option<u32>) -> u32 {
    number.map(|number| number.saturating_add(1)).unwrap_or_default()
}

fn high(number: u64) -> u32 {
    (number >> 32) as u32
}

fn low(number: u64) -> u32 {
    number as u32
}

//! Runs `perf inject --jit` on a conformance file, and prints what it made of it: the mappings in the new recording, and
//! symbols, code, lines and unwind tables in the object files that it wrote.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use conformance_readers::{address, bytes, hex, print_reading};
use end_to_end::perf::Perf;
use end_to_end::synthetic::Recording;
use end_to_end::tool::output;
use gimli::{EndianSlice, LittleEndian};
use jitdump_conformance::reading::{PID, TIME};
use object::{Object, ObjectSection, ObjectSymbol};
use serde_json::{Value, json};

const FIELDS: [&str; 10] =
    ["time", "pid", "tid", "address", "size", "index", "name", "bytes", "lines", "unwind"];

fn main() -> ExitCode {
    print_reading(of_dump)
}

fn of_dump(path: &Path) -> io::Result<Value> {
    let dir = tempfile::tempdir()?;
    // perf takes files of this name alone, where the process with this id mapped them.
    let dump = dir.path().join(format!("jit-{PID}.dump"));
    fs::copy(path, &dump)?;
    let mut recording = Recording::new();
    recording.comm(PID, "jit", TIME, true);
    recording.map(PID, 0x10_0000, 4096, dump.as_os_str().as_encoded_bytes(), TIME + 1);
    recording.sample(PID, 0x10_0000, TIME + 2);
    recording.round();
    let (data, injected) = (dir.path().join("perf.data"), dir.path().join("injected.data"));
    recording.write(&data);
    let perf = Perf::installed();
    let run =
        output(perf.command().args(["inject", "--jit", "-i"]).arg(&data).arg("-o").arg(&injected));
    if !run.status.success() {
        return Ok(json!({ "fields": FIELDS, "header": null, "events": [] }));
    }
    let injected = fs::read(&injected)?;
    let mut events = Vec::new();
    for mapping in mappings(&injected) {
        let name = Path::new(&mapping.name);
        let index = name
            .file_stem()
            .and_then(|name| name.to_str()?.rsplit('-').next()?.parse::<u64>().ok())
            .filter(|_| mapping.name.contains("/jitted-"));
        if let Some(index) = index {
            events.push(of_object(&mapping, index));
        }
    }
    Ok(json!({ "fields": FIELDS, "header": {}, "events": events }))
}

/// An MMAP2 event.
struct Mapping {
    pid: u32,
    tid: u32,
    address: u64,
    size: u64,
    name: String,
    time: u64,
}

/// The MMAP2 events of a recording, in the order of the file.
fn mappings(file: &[u8]) -> Vec<Mapping> {
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes"));
    let to_usize = |value: u64| usize::try_from(value).expect("a small file");
    // The header names where the events are, and how many bytes they have.
    let (mut at, size) = (to_usize(u64_at(40)), to_usize(u64_at(48)));
    let end = (at + size).min(file.len());
    let mut found = Vec::new();
    while at + 8 <= end {
        let size = usize::from(u16::from_le_bytes([file[at + 6], file[at + 7]]));
        if size < 8 {
            break;
        }
        if u32_at(at) == 10 {
            let name = &file[at + 72..at + size];
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            found.push(Mapping {
                pid: u32_at(at + 8),
                tid: u32_at(at + 12),
                address: u64_at(at + 16),
                size: u64_at(at + 24),
                name: String::from_utf8_lossy(name).into_owned(),
                // The sample id at the end: pid, tid, time.
                time: u64_at(at + size - 8),
            });
        }
        at += size;
    }
    found
}

/// What perf knows of a code: its mapping and its object file.
fn of_object(mapping: &Mapping, index: u64) -> Value {
    let mut event = json!({
        "event": "load",
        "time": mapping.time,
        "pid": mapping.pid,
        "tid": mapping.tid,
        "address": address(mapping.address),
        "size": mapping.size,
        "index": index,
        "name": null,
        "bytes": null,
        "lines": [],
        "unwind": null,
    });
    let Ok(file) = fs::read(&mapping.name) else { return event };
    let Ok(file) = object::File::parse(&*file) else { return event };
    let section = |name: &str| {
        let found = file.section_by_name(name)?;
        Some((found.address(), found.uncompressed_data().ok()?.into_owned()))
    };
    let Some((text_address, text)) = section(".text") else { return event };
    if let Some(symbol) = file.symbols().find(|symbol| symbol.kind() == object::SymbolKind::Text) {
        event["name"] = bytes(symbol.name_bytes().unwrap_or_default());
        event["size"] = json!(symbol.size());
    }
    event["bytes"] = json!(hex(&text));
    if let Some((_, frame)) = section(".eh_frame") {
        let (_, header) = section(".eh_frame_hdr").unwrap_or_default();
        let behind = mapping.size.saturating_sub((text.len() as u64).next_multiple_of(8));
        event["unwind"] = json!({
            "eh_frame": hex(&frame),
            "eh_frame_hdr": hex(&header),
            "mapped_size": behind,
        });
    }
    if let Some((_, lines)) = section(".debug_line") {
        event["lines"] = json!(of_lines(&lines, text_address, mapping.address));
    }
    event
}

/// The rows of a line table of code that is at `base` in the process.
fn of_lines(section: &[u8], text_address: u64, base: u64) -> Vec<Value> {
    let lines = gimli::DebugLine::new(section, LittleEndian);
    let mut found = Vec::new();
    let program: gimli::Result<gimli::IncompleteLineProgram<EndianSlice<'_, LittleEndian>>> =
        lines.program(gimli::DebugLineOffset(0), 8, None, None);
    let Ok(program) = program else { return found };
    let mut rows = program.rows();
    while let Ok(Some((header, row))) = rows.next_row() {
        // The last row has no length.
        if row.end_sequence() {
            continue;
        }
        let file = row.file(header).map(|file| file.path_name());
        let file = match file {
            Some(gimli::AttributeValue::String(file)) => file.slice(),
            _ => b"",
        };
        // The table has the object's addresses.
        let from = row.address().wrapping_sub(text_address).wrapping_add(base);
        found.push(json!({
            "address": address(from),
            "file": bytes(file),
            "line": row.line().map_or(0, std::num::NonZero::get),
        }));
    }
    found
}

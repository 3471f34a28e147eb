//! Reads a conformance file with the crates `jitdump` and `code-log`, and prints the reading.

use std::process::ExitCode;

use conformance_readers::{FIELDS, address, bytes, hex, print_reading};
use jitdump::extension::{FramePointer, InlinedCall};
use jitdump::{CodeEvent, CodeLoad, Dump, End, Endian, LineEntry};
use serde_json::{Value, json};

fn main() -> ExitCode {
    print_reading(|path| {
        let file = std::fs::read(path)?;
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        Ok(if is_log { of_log(&file) } else { of_dump(&file, 0) })
    })
}

fn refused() -> Value {
    json!({ "fields": FIELDS, "header": null, "events": [], "left_out": null, "end": null })
}

fn of_log(memory: &[u8]) -> Value {
    match code_log::snapshot(&memory) {
        Ok(snapshot) => of_dump(&snapshot.bytes, snapshot.torn),
        Err(_) => refused(),
    }
}

fn of_dump(file: &[u8], torn: u64) -> Value {
    let Ok(dump) = Dump::parse(file) else { return refused() };
    let header = dump.header();
    let mut codes = dump.codes();
    let mut events: Vec<Value> = codes
        .by_ref()
        .map(|event| event.map_or_else(|_| json!({ "event": "damage" }), of_event))
        .collect();
    if torn > 0 {
        events.push(json!({ "event": "damage" }));
    }
    let left_out = codes.left_out();
    let end = match codes.end() {
        Some(End::CutOff { .. }) => "cut-off",
        Some(End::Zeros { .. }) => "zeros",
        Some(End::Damaged { .. }) => "damaged",
        Some(End::Complete { .. }) | None => "complete",
    };
    json!({
        "fields": FIELDS,
        "header": {
            "endian": if header.endian == Endian::Little { "little" } else { "big" },
            "version": header.version,
            "machine": header.elf_mach,
            "pid": header.pid,
            "time": header.timestamp,
            "flags": header.flags,
        },
        "events": events,
        "left_out": (left_out.count > 0).then(|| json!({
            "count": left_out.count, "first": left_out.first, "last": left_out.last,
        })),
        "end": end,
    })
}

fn of_event(event: CodeEvent<'_>) -> Value {
    match event {
        CodeEvent::Load(code) => of_load(&code),
        CodeEvent::Move(moved) => json!({
            "event": "move",
            "time": moved.timestamp,
            "pid": moved.pid,
            "tid": moved.tid,
            "old_address": address(moved.old_address),
            "new_address": address(moved.new_address),
            "size": moved.size,
            "index": moved.index,
        }),
        CodeEvent::Close { timestamp } => json!({ "event": "close", "time": timestamp }),
    }
}

fn of_line(line: LineEntry<'_>) -> Value {
    json!({
        "address": address(line.address),
        "file": bytes(line.file),
        "line": line.line,
        "column": line.column,
    })
}

fn of_call(call: InlinedCall<'_>) -> Value {
    let ranges = call.ranges.map(|range| [address(range.start), address(range.end)]);
    json!({
        "parent": call.parent,
        "name": bytes(call.name),
        "file": bytes(call.file),
        "line": call.line,
        "column": call.column,
        "ranges": ranges.collect::<Vec<_>>(),
    })
}

fn of_load(code: &CodeLoad<'_>) -> Value {
    json!({
        "event": "load",
        "time": code.timestamp,
        "pid": code.pid,
        "tid": code.tid,
        "address": address(code.address),
        "size": code.size,
        "index": code.index,
        "name": bytes(code.name),
        "bytes": (!code.is_without_bytes()).then(|| hex(code.bytes)),
        "lines": code.lines().map(of_line).collect::<Vec<_>>(),
        "ir_lines": code.ir_lines().map(of_line).collect::<Vec<_>>(),
        "inlined": code.inlined().map(of_call).collect::<Vec<_>>(),
        "unwind": code.unwind().map(|unwind| json!({
            "eh_frame": hex(unwind.eh_frame),
            "eh_frame_hdr": hex(unwind.eh_frame_hdr),
            "mapped_size": unwind.mapped_size,
        })),
        "kind": code.kind().name().to_lowercase().replace(' ', "-"),
        "tier": code.tier().map(bytes),
        "died": code.died(),
        "frame_pointer": code.frame_pointer().map(|kept| match kept {
            FramePointer::Prologue => "prologue",
            FramePointer::Throughout => "throughout",
        }),
    })
}

//! Reads a conformance file with the crate `linux-perf-data`, as samply does, and prints the reading.
//!
//! The crate returns records. As in samply, lines belong to the LOAD of their address, and unwind tables to the next one.

use std::collections::HashMap;
use std::process::ExitCode;

use conformance_readers::{address, bytes, hex, print_reading};
use linux_perf_data::Endianness;
use linux_perf_data::jitdump::{JitDumpReader, JitDumpRecord};
use serde_json::{Value, json};

const FIELDS: [&str; 15] = [
    "header", "damage", "move", "close", "time", "pid", "tid", "address", "size", "index", "name",
    "bytes", "lines", "columns", "unwind",
];

fn main() -> ExitCode {
    print_reading(|path| Ok(of_dump(&std::fs::read(path)?)))
}

fn of_dump(file: &[u8]) -> Value {
    let Ok(mut reader) = JitDumpReader::new(file) else {
        return json!({ "fields": FIELDS, "header": null, "events": [] });
    };
    let header = reader.header();
    let header = json!({
        "endian": if reader.endian() == Endianness::LittleEndian { "little" } else { "big" },
        "version": header.version,
        "machine": header.elf_machine_arch,
        "pid": header.pid,
        "time": header.timestamp,
        "flags": header.flags,
    });
    let mut lines: HashMap<u64, Vec<Value>> = HashMap::new();
    let mut unwind = Value::Null;
    let mut events: Vec<Value> = Vec::new();
    loop {
        let raw = match reader.next_record() {
            Ok(Some(raw)) => raw,
            Ok(None) => break,
            Err(_) => {
                events.push(json!({ "event": "damage" }));
                break;
            }
        };
        let time = raw.timestamp;
        match raw.parse() {
            Ok(JitDumpRecord::CodeLoad(load)) => events.push(json!({
                "event": "load",
                "time": time,
                "pid": load.pid,
                "tid": load.tid,
                "address": address(load.code_addr),
                "size": load.code_bytes.len(),
                "index": load.code_index,
                "name": bytes(&load.function_name.as_slice()),
                "bytes": hex(&load.code_bytes.as_slice()),
                "lines": lines.remove(&load.code_addr).unwrap_or_default(),
                "unwind": unwind.take(),
            })),
            Ok(JitDumpRecord::CodeMove(moved)) => events.push(json!({
                "event": "move",
                "time": time,
                "pid": moved.pid,
                "tid": moved.tid,
                "old_address": address(moved.old_code_addr),
                "new_address": address(moved.new_code_addr),
                "size": moved.code_size,
                "index": moved.code_index,
            })),
            Ok(JitDumpRecord::CodeDebugInfo(info)) => {
                let line = |entry: &linux_perf_data::jitdump::JitCodeDebugInfoEntry<'_>| {
                    json!({
                        "address": address(entry.code_addr),
                        "file": bytes(&entry.file_path.as_slice()),
                        "line": entry.line,
                        "column": entry.column,
                    })
                };
                lines.insert(info.code_addr, info.entries.iter().map(line).collect());
            }
            Ok(JitDumpRecord::CodeClose) => events.push(json!({ "event": "close", "time": time })),
            Ok(JitDumpRecord::CodeUnwindingInfo(info)) => {
                unwind = json!({
                    "eh_frame": hex(&info.eh_frame.as_slice()),
                    "eh_frame_hdr": hex(&info.eh_frame_hdr.as_slice()),
                    "mapped_size": info.mapped_size,
                });
            }
            Ok(JitDumpRecord::Other(_)) => {}
            Err(_) => events.push(json!({ "event": "damage" })),
        }
    }
    json!({ "fields": FIELDS, "header": header, "events": events })
}

//! The listing as JSON: one object per line. `--help` describes the fields.

use std::borrow::Cow;

use jitdump::extension::{FramePointer, InlinedCall};
use jitdump::{CodeEvent, CodeLoad, Dump, End, Endian, RecordClock};
use serde::Serialize;

use crate::Result;
use crate::text::Out;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'a> {
    Header {
        version: u32,
        endian: &'static str,
        machine: u32,
        pid: u32,
        time: u64,
        flags: u64,
        clock: &'static str,
        debug_address_bias: u64,
    },
    Load {
        offset: u64,
        time: u64,
        pid: u32,
        tid: u32,
        address: String,
        size: u64,
        index: u64,
        name: Cow<'a, str>,
        lines: Vec<Line<'a>>,
        unwind: Option<Unwind>,
        #[serde(flatten)]
        more: Option<More<'a>>,
    },
    Move {
        offset: u64,
        time: u64,
        pid: u32,
        tid: u32,
        old_address: String,
        new_address: String,
        size: u64,
        index: u64,
    },
    Close {
        time: u64,
    },
    Entry {
        offset: u64,
        line: u64,
        address: String,
        size: u64,
        name: Cow<'a, str>,
    },
    Error {
        offset: u64,
        cause: String,
    },
    LeftOut {
        count: u64,
        first: u64,
        last: u64,
    },
    End {
        how: &'static str,
        offset: u64,
    },
}

#[derive(Serialize)]
struct Line<'a> {
    address: String,
    file: Cow<'a, str>,
    line: u32,
    column: u32,
}

/// Fields that only dumps of this project have.
#[derive(Serialize)]
struct More<'a> {
    kind: &'static str,
    tier: Option<Cow<'a, str>>,
    died: Option<u64>,
    lean: bool,
    frame_pointer: Option<&'static str>,
    ir_lines: Vec<Line<'a>>,
    inlined: Vec<Inlined<'a>>,
}

#[derive(Serialize)]
struct Inlined<'a> {
    parent: Option<u32>,
    name: Cow<'a, str>,
    file: Cow<'a, str>,
    line: u32,
    column: u32,
    ranges: Vec<[String; 2]>,
}

#[derive(Serialize)]
struct Unwind {
    eh_frame_size: usize,
    eh_frame_hdr_size: usize,
    mapped_size: u64,
}

fn address(address: u64) -> String {
    format!("{address:#x}")
}

/// Prints the content of a jitdump.
pub fn jitdump(dump: &Dump<'_>, out: &mut Out) -> Result<()> {
    let header = dump.header();
    let mut codes = dump.codes();
    let quirks = *codes.quirks();
    let first = Event::Header {
        version: header.version,
        endian: match header.endian {
            Endian::Little => "little",
            Endian::Big => "big",
        },
        machine: quirks.machine,
        pid: header.pid,
        time: header.timestamp,
        flags: header.flags,
        clock: match quirks.record_clock {
            RecordClock::Arch => "arch",
            RecordClock::Realtime => "realtime",
            _ => "monotonic",
        },
        debug_address_bias: quirks.debug_addr_bias,
    };
    out.json(&first)?;
    for event in codes.by_ref() {
        out.json(&event.map_or_else(of_error, of_code))?;
    }
    let left_out = codes.left_out();
    if left_out.count > 0 {
        let jitdump::extension::LeftOut { count, first, last } = left_out;
        out.json(&Event::LeftOut { count, first, last })?;
    }
    let (how, offset) = match codes.end() {
        Some(End::CutOff { offset, .. }) => ("cut-off", offset),
        Some(End::Zeros { offset }) => ("zeros", offset),
        Some(End::Damaged { offset }) => ("damaged", offset),
        Some(End::Complete { offset }) => ("complete", offset),
        None => ("complete", dump.data().len() as u64),
    };
    out.json(&Event::End { how, offset })
}

fn of_error<'a>(error: jitdump::Error) -> Event<'a> {
    Event::Error { offset: error.offset, cause: error.kind.to_string() }
}

fn of_code(event: CodeEvent<'_>) -> Event<'_> {
    match event {
        CodeEvent::Load(code) => of_load(&code),
        CodeEvent::Move(moved) => Event::Move {
            offset: moved.offset,
            time: moved.timestamp,
            pid: moved.pid,
            tid: moved.tid,
            old_address: address(moved.old_address),
            new_address: address(moved.new_address),
            size: moved.size,
            index: moved.index,
        },
        CodeEvent::Close { timestamp } => Event::Close { time: timestamp },
    }
}

fn of_load<'a>(code: &CodeLoad<'a>) -> Event<'a> {
    let line = |line: jitdump::LineEntry<'a>| Line {
        address: address(line.address),
        file: String::from_utf8_lossy(line.file),
        line: line.line,
        column: line.column,
    };
    Event::Load {
        offset: code.offset,
        time: code.timestamp,
        pid: code.pid,
        tid: code.tid,
        address: address(code.address),
        size: code.size,
        index: code.index,
        name: String::from_utf8_lossy(code.name),
        lines: code.lines().map(line).collect(),
        unwind: code.unwind().map(|unwind| Unwind {
            eh_frame_size: unwind.eh_frame.len(),
            eh_frame_hdr_size: unwind.eh_frame_hdr.len(),
            mapped_size: unwind.mapped_size,
        }),
        more: code.tail().map(|_| More {
            kind: code.kind().name(),
            tier: code.tier().map(String::from_utf8_lossy),
            died: code.died(),
            lean: code.is_without_bytes(),
            frame_pointer: code.frame_pointer().map(|kept| match kept {
                FramePointer::Prologue => "prologue",
                FramePointer::Throughout => "throughout",
            }),
            ir_lines: code.ir_lines().map(line).collect(),
            inlined: code.inlined().map(of_call).collect(),
        }),
    }
}

fn of_call(call: InlinedCall<'_>) -> Inlined<'_> {
    Inlined {
        parent: call.parent,
        name: String::from_utf8_lossy(call.name),
        file: String::from_utf8_lossy(call.file),
        line: call.line,
        column: call.column,
        ranges: call.ranges.map(|range| [address(range.start), address(range.end)]).collect(),
    }
}

/// Prints the content of a perf map.
pub fn perf_map(bytes: &[u8], out: &mut Out) -> Result<()> {
    for entry in perf_map::entries(bytes) {
        let event = match entry {
            Ok(entry) => Event::Entry {
                offset: entry.offset,
                line: entry.line,
                address: address(entry.address),
                size: entry.size,
                name: String::from_utf8_lossy(entry.name),
            },
            Err(error) => Event::Error { offset: error.offset, cause: error.cause.to_string() },
        };
        out.json(&event)?;
    }
    // If the last line lacks its newline, the next write would continue it.
    let how = if bytes.last().is_none_or(|&last| last == b'\n') { "complete" } else { "cut-off" };
    out.json(&Event::End { how, offset: bytes.len() as u64 })
}

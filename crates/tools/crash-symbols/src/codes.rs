//! The codes in a stream.

use std::ops::Range;

use code_image::jitdump::{Converter, LineTable};
use code_image::{Target, whole_frames};
use jitdump::{CodeEvent, CodeLoad, Dump};

use crate::registers::Machine;

/// A code, with all that is said of it.
#[derive(Debug)]
pub(crate) struct KnownCode {
    pub(crate) range: Range<u64>,
    /// When it was announced: of several codes at an address, the last one counts.
    time: u64,
    pub(crate) name: String,
    /// Ascending by address.
    lines: Vec<Line>,
    calls: Vec<Call>,
    /// An `.eh_frame` with absolute addresses; empty if there is none.
    pub(crate) frames: Vec<u8>,
}

/// A source line, from an address on.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) address: u64,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// An inlined call.
#[derive(Debug)]
struct Call {
    parent: Option<u32>,
    name: String,
    file: String,
    line: u32,
    ranges: Vec<Range<u64>>,
}

/// A function at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionAt<'c> {
    pub(crate) name: &'c str,
    /// File and line, if they are known.
    pub(crate) place: Option<(&'c str, u32)>,
}

/// All codes of a stream.
#[derive(Debug)]
pub(crate) struct KnownCodes {
    codes: Vec<KnownCode>,
    pub(crate) machine: Option<Machine>,
}

impl KnownCodes {
    /// The codes of a jitdump, as far as it is not damaged.
    pub(crate) fn new(dump: &[u8]) -> Self {
        let Ok(dump) = Dump::parse(dump) else { return Self { codes: Vec::new(), machine: None } };
        let machine = u16::try_from(dump.codes().quirks().machine).unwrap_or(0);
        let target = Target::new(machine, dump.header().endian);
        let loads = dump.codes().filter_map(|event| match event {
            Ok(CodeEvent::Load(load)) => Some(load),
            _ => None,
        });
        let codes = loads.map(|load| KnownCode::new(&load, target)).collect();
        Self { codes, machine: Machine::from_elf(machine) }
    }

    pub(crate) fn at(&self, address: u64) -> Option<&KnownCode> {
        let here = self.codes.iter().filter(|code| code.range.contains(&address));
        here.max_by_key(|code| code.time)
    }

    /// Number of codes.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl KnownCode {
    fn new(load: &CodeLoad<'_>, target: Target) -> Self {
        let range = load.address..load.end();
        let mut lines: Vec<Line> = load
            .lines()
            .map(|line| Line { address: line.address, file: text(line.file), line: line.line })
            .collect();
        // A stable sort: of several lines at one address, the last one applies.
        lines.sort_by_key(|line| line.address);
        let calls = load.inlined().map(|call| Call {
            parent: call.parent,
            name: text(call.name),
            file: text(call.file),
            line: call.line,
            ranges: call.ranges.collect(),
        });
        let calls = calls.collect();
        let mut converter = Converter::new(target.machine.into());
        let frames =
            converter.convert(load, load.address, range.clone(), LineTable::Source, |code| {
                whole_frames(target, code).to_vec()
            });
        Self { range, time: load.timestamp, name: text(load.name), lines, calls, frames }
    }

    /// The functions at an address, the outermost first, which is the code's own.
    pub(crate) fn functions_at(&self, address: u64) -> Vec<FunctionAt<'_>> {
        let mut chain = Vec::new();
        // A call comes before those that were inlined into it.
        let covers = |call: &Call| call.ranges.iter().any(|range| range.contains(&address));
        let mut next = self.calls.iter().rposition(covers);
        while let Some(call) = next.and_then(|next| self.calls.get(next).map(|call| (next, call))) {
            chain.push(call.1);
            // A parent that comes later would make a circle.
            let parent = call.1.parent.and_then(|parent| usize::try_from(parent).ok());
            next = parent.filter(|parent| *parent < call.0);
        }
        let line = self.line_at(address).map(|line| (line.file.as_str(), line.line));
        let mut functions = Vec::new();
        let mut name = self.name.as_str();
        for call in chain.iter().rev() {
            functions.push(FunctionAt { name, place: place(&call.file, call.line) });
            name = &call.name;
        }
        let line = line.and_then(|(file, line)| place(file, line));
        functions.push(FunctionAt { name, place: line });
        functions
    }

    /// The line at an address.
    pub(crate) fn line_at(&self, address: u64) -> Option<&Line> {
        let behind = self.lines.partition_point(|line| line.address <= address);
        self.lines.get(behind.checked_sub(1)?)
    }
}

fn place(file: &str, line: u32) -> Option<(&str, u32)> {
    (!file.is_empty() && line != 0).then_some((file, line))
}

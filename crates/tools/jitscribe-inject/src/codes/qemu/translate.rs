//! Writes maps and dumps of QEMU's as jitdumps with the guest's functions and lines.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::{ControlFlow, Range};

use code_timeline::AddressSpaceId;
use jitdump::{
    CodeEvent, CodeLoad, DumpFile, IoSink, Load, NewPosition, Quirks, SourcePositionsBuilder,
    WriteError, Writer, WriterConfig,
};

use super::guest_files::{GuestFiles, GuestPlace};
use super::names::{Block, Instruction, MapBlocks, guest_address};
use crate::files::{SourceFile, content};

/// A new jitdump, in a file without a name.
#[derive(Debug)]
pub struct Translated {
    /// The file.
    pub file: SourceFile,
    /// Number of codes that lie in a file of the guest's. If there is none, the recording does not have the guest's files.
    pub in_files: usize,
}

/// The process whose code is translated.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Its memory.
    pub space: AddressSpaceId,
    /// Its id.
    pub pid: u32,
}

/// Writes the code of a perf map, without bytes and with the time 0, except where `is_taken`. The guest's files are those
/// that are mapped at `time`.
///
/// # Errors
/// If the file cannot be written.
pub fn translate_map(
    map: &MapBlocks<'_>,
    guest: Guest,
    time: u64,
    files: &mut GuestFiles<'_>,
    is_taken: impl Fn(&Range<u64>) -> bool,
) -> io::Result<Translated> {
    let endian = jitdump::Endian::NATIVE;
    let config = WriterConfig { endian, machine: 0, pid: guest.pid, timestamp: 0, flags: 0 };
    let mut output = Output::new(&config)?;
    let is_usable = |host: &Range<u64>| {
        host.end.saturating_sub(host.start) <= content::LARGEST_CODE && !is_taken(host)
    };
    for other in map.others.iter().filter(|other| is_usable(&other.host)) {
        output.code(0, guest.pid, &other.host, other.name, &[], &[])?;
    }
    for block in map.blocks.iter().filter(|block| is_usable(&block.host)) {
        for part in parts(block, guest.space, time, files) {
            output.in_files += usize::from(part.rows.iter().any(|(_, place)| place.is_some()));
            output.code(0, guest.pid, &part.host, &part.name(), &[], &part.rows)?;
        }
    }
    output.finish()
}

/// Writes the code of a jitdump. The dump has the guest address of a block only, so lines are there if `map` has the block, too. Damage is passed to
/// `damaged`. `None` if the dump's code is not named by guest addresses.
///
/// # Errors
/// If the dump cannot be read, or the file cannot be written.
pub fn translate_dump(
    dump: &mut DumpFile<SourceFile>,
    quirks: Quirks,
    map: Option<&MapBlocks<'_>>,
    guest: Guest,
    time_of: impl Fn(u64) -> u64,
    files: &mut GuestFiles<'_>,
    mut damaged: impl FnMut(jitdump::Error),
) -> io::Result<Option<Translated>> {
    /// Number of codes among which there is one of guest code.
    const FIRST: usize = 16;

    let mut first = 0;
    let mut is_guest = false;
    dump.for_each_code(quirks, |event| {
        if let Ok(CodeEvent::Load(load)) = event {
            first += 1;
            is_guest = guest_address(load.name).is_some();
        }
        if is_guest || first == FIRST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if !is_guest {
        return Ok(None);
    }
    let mut output = Output::new(&WriterConfig::from(dump.header()))?;
    let mut failed = None;
    dump.for_each_code(quirks, |event| {
        let load = match event {
            Ok(CodeEvent::Load(load)) => load,
            // QEMU moves no code.
            Ok(_) => return ControlFlow::Continue(()),
            Err(error) => {
                damaged(error);
                return ControlFlow::Continue(());
            }
        };
        let time = time_of(load.timestamp);
        match output.load(&load, map, guest, time, files) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or_else(|| output.finish().map(Some), Err)
}

/// The host code of a part of a block that is in one function.
struct FunctionPart {
    host: Range<u64>,
    first: Instruction,
    /// By offset from the beginning of the host code.
    rows: Vec<(u64, Option<GuestPlace>)>,
}

impl FunctionPart {
    fn name(&self) -> Vec<u8> {
        match self.rows.first() {
            Some((_, Some(place))) => place.function.clone(),
            _ => format!("guest-{:#x}", self.first.guest).into_bytes(),
        }
    }

    fn has(&self, place: Option<&GuestPlace>) -> bool {
        let last = self.rows.last().and_then(|(_, place)| place.as_ref());
        match (last, place) {
            (None, None) => true,
            (Some(last), Some(place)) if last.has_symbol == place.has_symbol => {
                !last.has_symbol || last.function == place.function
            }
            _ => false,
        }
    }
}

fn parts(
    block: &Block,
    space: AddressSpaceId,
    time: u64,
    files: &mut GuestFiles<'_>,
) -> Vec<FunctionPart> {
    let mut parts: Vec<FunctionPart> = Vec::new();
    for &instruction in &block.instructions {
        let at = instruction.host;
        let place = files.place(space, instruction.guest, time);
        match parts.last_mut() {
            Some(part) if part.has(place.as_ref()) => {
                part.rows.push((at.saturating_sub(part.host.start), place));
            }
            last => {
                if let Some(last) = last {
                    last.host.end = at;
                }
                let rows = vec![(0, place)];
                parts.push(FunctionPart { host: at..block.host.end, first: instruction, rows });
            }
        }
    }
    parts
}

/// The jitdump that is written.
struct Output {
    writer: Writer<IoSink<BufWriter<File>>>,
    positions: SourcePositionsBuilder,
    codes: u64,
    in_files: usize,
}

impl Output {
    fn new(config: &WriterConfig) -> io::Result<Self> {
        let sink = IoSink(BufWriter::new(tempfile::tempfile()?));
        let writer = Writer::new(sink, config).map_err(failed)?;
        let positions = SourcePositionsBuilder::default();
        Ok(Self { writer, positions, codes: 0, in_files: 0 })
    }

    /// Writes a code of a dump.
    fn load(
        &mut self,
        load: &CodeLoad<'_>,
        map: Option<&MapBlocks<'_>>,
        guest: Guest,
        time: u64,
        files: &mut GuestFiles<'_>,
    ) -> io::Result<()> {
        let host = load.address..load.end();
        let Some(address) = guest_address(load.name) else {
            return self.code(load.timestamp, load.pid, &host, load.name, load.bytes, &[]);
        };
        let place = files.place(guest.space, address, time);
        self.in_files += usize::from(place.is_some());
        let name = place.as_ref().map_or(load.name, |place| &place.function);
        // The map has no times: the block may be that of other guest code, translated later to the same place.
        let is_same = |block: &&Block| {
            block.instructions.first().is_some_and(|first| first.guest == address)
                && block.host.end <= host.end
        };
        let block = map.and_then(|map| map.at(load.address)).filter(is_same);
        let rows: Vec<(u64, Option<GuestPlace>)> = block
            .map_or(&[][..], |block| &block.instructions)
            .iter()
            .map(|it| {
                (it.host.saturating_sub(host.start), files.place(guest.space, it.guest, time))
            })
            .collect();
        self.code(load.timestamp, load.pid, &host, name, load.bytes, &rows)
    }

    /// Writes a code with these positions. A code whose name cannot be written is left out.
    fn code(
        &mut self,
        timestamp: u64,
        pid: u32,
        host: &Range<u64>,
        name: &[u8],
        bytes: &[u8],
        rows: &[(u64, Option<GuestPlace>)],
    ) -> io::Result<()> {
        if name.contains(&0) {
            return Ok(());
        }
        self.positions.clear();
        let mut last = None;
        for (offset, place) in rows {
            let position = place.as_ref().and_then(|place| add(place, &mut self.positions));
            if position != last
                && let Ok(offset) = u32::try_from(*offset)
            {
                self.positions.row(offset, position);
                last = position;
            }
        }
        if !self.positions.is_empty() {
            let written = self.writer.source_positions(timestamp, host.start, &self.positions);
            written.map_err(failed)?;
        }
        self.codes += 1;
        let size = host.end.saturating_sub(host.start);
        let load = Load {
            pid,
            tid: pid,
            vma: host.start,
            code_addr: host.start,
            code_index: self.codes,
            name,
            code: bytes,
            padding: &[],
            missing: size.saturating_sub(bytes.len() as u64),
        };
        self.writer.load(timestamp, &load).map_err(failed)
    }

    fn finish(self) -> io::Result<Translated> {
        let mut buffered = self.writer.into_sink().0;
        buffered.flush()?;
        let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Translated { file: SourceFile::new(file), in_files: self.in_files })
    }
}

/// Adds the position of a place, with those of the calls that were inlined there. `None` if nothing is known of the source.
fn add(place: &GuestPlace, to: &mut SourcePositionsBuilder) -> Option<u32> {
    let mut caller = None;
    for frame in place.frames.iter().rev() {
        if caller.is_none() && frame.line == 0 {
            return None;
        }
        let function = match &*frame.function {
            b"" => &place.function,
            function => function,
        };
        caller = Some(to.position(&NewPosition {
            caller,
            function,
            file: &frame.file,
            function_line: 0,
            function_column: 0,
            line: frame.line,
            column: frame.column,
        }));
    }
    caller
}

fn failed(error: WriteError<io::Error>) -> io::Error {
    match error {
        WriteError::Sink(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

//! The announcer: the codes that are alive, and the scribe to which they are announced.
#![forbid(unsafe_code)]

use std::ffi::CStr;

use code_index::FunctionName;
use code_timeline::moved_code;
use fallible::{Map, Refused, Text, Vec};
use jitdump::{CodeEvent, CodeLoad, CodeMove};
use jitscribe::{Code, Inlined, Line, LoadedCode, Mode, Scribe, Unwind, binding};
use perf_map::Entry;

use crate::function_names::FunctionNames;
use crate::prologue::frame_of;
use crate::tail::FileEntry;
use crate::{owner, sys};

/// The bytes of larger codes are not copied.
const MOST_BYTES: u64 = 4 << 20;
/// A new code may cover existing ones. The search for these skips at most this many codes that reach beyond the new
/// code's end.
const MAX_SKIPPED: usize = 16;

/// `maps`: code from dumps is not announced, nor code from a map if the process also writes a dump.
const VARIABLE: &CStr = c"JITSCRIBE_BRIDGE";

/// An announced code.
#[derive(Clone, Copy, Debug)]
struct LiveCode {
    size: u64,
    /// The scribe's handle.
    raw: u64,
    /// Number of the file that contains it.
    file: usize,
    /// The index of its record in a dump.
    index: Option<u64>,
}

impl LiveCode {
    fn is_of_dump(&self) -> bool {
        self.index.is_some()
    }
}

/// Announces codes, and keeps those that are alive by address.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    scribe: Option<Scribe>,
    alive: Map<u64, LiveCode>,
    /// The address of the code that was last loaded under an index, if it is alive: by file and index.
    indexed: Map<(usize, u64), u64>,
    /// Whether a dump is written. Runtimes that write both a dump and a map describe each code twice.
    has_dump: bool,
    /// Whether code from dumps is left to readers of dumps, such as perf: see [`VARIABLE`]. Read from the environment
    /// once.
    ignores_dumps: Option<bool>,
    bytes: Vec<u8>,
    function_names: FunctionNames,
}

impl Announcer {
    /// Whether a scribe was made.
    pub(crate) fn has_scribe(&self) -> bool {
        self.scribe.is_some()
    }

    /// The scribe, which is created for the first code.
    fn scribe(&mut self) -> Scribe {
        // No perf map: it would be the file that is being read.
        *self
            .scribe
            .get_or_insert_with(|| Scribe::builder().environment().perf_map(Mode::Off).build())
    }

    /// The scribe's own descriptor, which the program does not know about.
    pub(crate) fn log_fd(&self) -> Option<i32> {
        binding::log_fd_number(&self.scribe?)
    }

    /// Records that a dump is written.
    pub(crate) fn set_has_dump(&mut self) {
        self.has_dump = true;
    }

    fn ignores_dumps(&mut self) -> bool {
        *self
            .ignores_dumps
            .get_or_insert_with(|| sys::variable(VARIABLE, |what| what == c"maps").unwrap_or(false))
    }

    /// Announces an entry of the file number `file`. It is left out if memory is exhausted.
    pub(crate) fn add(&mut self, file: usize, entry: FileEntry<'_>) {
        if self.has_dump && self.ignores_dumps() {
            return;
        }
        if let Err(Refused) = fallible::attempt(|| self.add_entry(file, entry)) {
            self.left_out();
        }
    }

    /// Counts in the log that an allocation failed for something that may be a code.
    pub(crate) fn left_out(&self) {
        if let Some(scribe) = self.scribe {
            binding::left_out(&scribe);
        }
    }

    fn add_entry(&mut self, file: usize, entry: FileEntry<'_>) {
        match entry {
            FileEntry::Line(line) => self.line(file, &line),
            FileEntry::Event(CodeEvent::Load(load)) => self.load(file, &load),
            FileEntry::Event(CodeEvent::Move(moved)) => self.moved(file, &moved),
            FileEntry::Event(CodeEvent::Close { .. }) => {}
        }
    }

    /// Unloads all codes of a file that is truncated and rewritten.
    pub(crate) fn forget(&mut self, file: usize) {
        let Some(scribe) = self.scribe else { return };
        self.alive.retain(|_, code| {
            if code.file == file {
                drop(LoadedCode::from_raw(scribe, code.raw));
            }
            code.file != file
        });
        self.indexed.retain(|&(of, _), _| of != file);
    }

    fn line(&mut self, file: usize, line: &Entry<'_>) {
        if line.size == 0 || self.is_of_dump(line) {
            return;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        let has_bytes = copy(line.address, line.size, &mut bytes);
        let mut code = Code::at(line.address, line.size);
        if has_bytes {
            code = Code::new(&bytes).runs_at(line.address);
            if let Some(frame) = frame_of(line.name, &bytes) {
                code = code.unwind(frame);
            }
        }
        self.announce(file, None, &code.named_bytes(line.name));
        self.bytes = bytes;
    }

    fn is_of_dump(&self, line: &Entry<'_>) -> bool {
        self.has_dump
            && self
                .alive
                .get(&line.address)
                .is_some_and(|code| code.is_of_dump() && code.size == line.size)
    }

    fn load(&mut self, file: usize, load: &CodeLoad<'_>) {
        if load.size == 0 {
            return;
        }
        let texts = Texts::of(load);
        let (lines, inlined) = (texts.lines(), texts.inlined());
        let mut code = Code::at(load.address, load.size);
        if !load.is_without_bytes() {
            code = Code::new(load.bytes).runs_at(load.address);
        }
        if let Some(frame) = recorded_unwind(load).or_else(|| frame_of(load.name, load.bytes)) {
            code = code.unwind(frame);
        }
        let tier = load.tier().map(Text::from_utf8_lossy).unwrap_or_default();
        let code = code.named_bytes(load.name).kind(load.kind()).tier(&tier);
        self.announce(file, Some(load.index), &code.lines(&lines).inlined(&inlined));
    }

    fn moved(&mut self, file: usize, moved: &CodeMove) {
        let Some(scribe) = self.scribe else { return };
        // A code that is not alive cannot be moved, because its description is not kept.
        let named = self.indexed.get(&(file, moved.index)).copied();
        let of_file = |address: &u64| {
            self.alive.get(address).is_some_and(|code| code.file == file && code.is_of_dump())
        };
        let put_there = Some(moved.old_address).filter(of_file);
        let Some(address) = moved_code(moved.old_address, named, put_there, Some) else { return };
        // If several codes have the same index, the last one keeps it.
        let index = self.alive.get(&address).and_then(|code| code.index);
        let is_named = index.is_some_and(|of| self.indexed.get(&(file, of)) == Some(&address));
        let Some(alive) = self.remove(address) else { return };
        self.unload_covered(scribe, moved.new_address, alive.size);
        let mut code = LoadedCode::from_raw(scribe, alive.raw);
        code.moved_to_address(moved.new_address);
        let raw = code.into_raw();
        self.insert(scribe, moved.new_address, LiveCode { raw, ..alive }, is_named);
    }

    fn announce(&mut self, file: usize, index: Option<u64>, code: &Code<'_>) {
        let scribe = self.scribe();
        let (address, size) = (code.address, code.size);
        self.unload_covered(scribe, address, size);
        if fallible::so_far().is_err() {
            // Its name, its lines or other parts of it are incomplete.
            return;
        }
        let place = if code.lines.is_empty() { place_in(code.name) } else { None };
        let code = match &place {
            Some(_) => code.lines(place.as_slice()).function(self.function_names.of(code.name)),
            None => *code,
        };
        let raw = scribe.load(&code).into_raw();
        self.insert(scribe, address, LiveCode { size, raw, file, index }, true);
    }

    /// If an allocation for its entries fails, the code is unloaded again: its unload could not be announced later.
    fn insert(&mut self, scribe: Scribe, address: u64, code: LiveCode, is_named: bool) {
        if code.raw == 0 {
            return;
        }
        if let Some(before) = self.remove(address) {
            drop(LoadedCode::from_raw(scribe, before.raw));
        }
        if self.try_insert(address, code, is_named).is_err() {
            self.remove(address);
            drop(LoadedCode::from_raw(scribe, code.raw));
            fallible::refuse();
        }
    }

    fn try_insert(&mut self, address: u64, code: LiveCode, is_named: bool) -> Result<(), Refused> {
        self.alive.try_insert(address, code).map_err(|(refused, _)| refused)?;
        if let Some(index) = code.index.filter(|_| is_named) {
            self.indexed.try_insert((code.file, index), address).map_err(|(refused, _)| refused)?;
        }
        Ok(())
    }

    /// Removes the code at an address.
    fn remove(&mut self, address: u64) -> Option<LiveCode> {
        let code = self.alive.remove(&address)?;
        if let Some(index) = code.index
            && self.indexed.get(&(code.file, index)) == Some(&address)
        {
            self.indexed.remove(&(code.file, index));
        }
        Some(code)
    }

    /// Unloads the codes at these addresses. A code that reaches beyond them may be alive in part.
    fn unload_covered(&mut self, scribe: Scribe, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let is_gone =
            |(&at, code): (&u64, &LiveCode)| at == address || at.saturating_add(code.size) <= end;
        loop {
            let inside = self.alive.range(address..end).take(MAX_SKIPPED);
            let Some(at) = { inside }.find(|&code| is_gone(code)).map(|(&at, _)| at) else {
                return;
            };
            if let Some(gone) = self.remove(at) {
                drop(LoadedCode::from_raw(scribe, gone.raw));
            }
        }
    }
}

/// Where the function begins, if the name says it: the line of all of the code, as no finer ones are known; 0 if only the file is. The name
/// stays as it is, except for tools that show the place beside it.
fn place_in(name: &[u8]) -> Option<Line<'_>> {
    let FunctionName { file, line, column, .. } = FunctionName::placed_of(name)?;
    let path = file.strip_prefix(b"file://").filter(|path| path.starts_with(b"/"));
    Some(Line::new_bytes(0, path.unwrap_or(file), line).column(column))
}

/// Copies the bytes at an address of this process, if they are readable.
fn copy(address: u64, size: u64, bytes: &mut Vec<u8>) -> bool {
    let Some(size) = usize::try_from(size).ok().filter(|_| size <= MOST_BYTES) else {
        return false;
    };
    if bytes.try_reserve(size.saturating_sub(bytes.len())).is_err() {
        return false;
    }
    bytes.resize(size, 0);
    sys::copy_memory(owner::process(), address, bytes)
}

/// What a dump says of how a code is unwound, where its tables are as the scribe takes them: right behind it.
fn recorded_unwind<'a>(load: &CodeLoad<'a>) -> Option<Unwind<'a>> {
    code_image::jitdump::frame_pointer(load).or_else(|| {
        let tables = load.unwind().filter(|tables| tables.eh_frame_offset == 0)?;
        (!tables.eh_frame.is_empty()).then_some(Unwind::EhFrame(tables.eh_frame))
    })
}

/// The lines and inlined calls of a code, as text.
struct Texts<'a> {
    lines: Vec<(jitdump::LineEntry<'a>, u32, usize)>,
    files: Vec<(&'a [u8], Text)>,
    calls: Vec<(jitdump::extension::InlinedCall<'a>, Text, Text, Vec<std::ops::Range<u32>>)>,
}

impl<'a> Texts<'a> {
    fn of(load: &CodeLoad<'a>) -> Self {
        let mut files: Vec<(&[u8], Text)> = Vec::new();
        let mut lines: Vec<_> = load
            .lines()
            .filter_map(|line| {
                let offset = u32::try_from(line.address.checked_sub(load.address)?).ok()?;
                // Most lines belong to the file of the previous line, and nearly all to one of a few files.
                let existing = files.iter().rev().take(8).position(|(file, _)| *file == line.file);
                let file = match existing {
                    Some(back) => files.len() - 1 - back,
                    None => {
                        files.push((line.file, Text::from_utf8_lossy(line.file)));
                        files.len().saturating_sub(1)
                    }
                };
                Some((line, offset, file))
            })
            .collect();
        // V8's lines do not always ascend.
        lines.sort_by_key(|(_, offset, _)| *offset);
        let offset = |address: u64| u32::try_from(address.checked_sub(load.address)?).ok();
        let calls = load.inlined().map(|call| {
            let ranges = call
                .ranges
                .clone()
                .filter_map(|range| Some(offset(range.start)?..offset(range.end)?));
            let (name, file) = (Text::from_utf8_lossy(call.name), Text::from_utf8_lossy(call.file));
            let ranges = ranges.collect();
            (call, name, file, ranges)
        });
        Self { lines, files, calls: calls.collect() }
    }

    fn lines(&self) -> Vec<Line<'_>> {
        let line = |(line, offset, file): &(jitdump::LineEntry<'a>, u32, usize)| {
            let file = self.files.get(*file).map_or("", |(_, text)| text);
            Line::new(*offset, file, line.line).column(line.column)
        };
        self.lines.iter().map(line).collect()
    }

    fn inlined(&self) -> Vec<Inlined<'_>> {
        let inlined = self.calls.iter().map(|(call, name, file, ranges)| {
            Inlined::new(name, ranges)
                .called_from(file, call.line)
                .column(call.column)
                .within(call.parent)
        });
        inlined.collect()
    }
}

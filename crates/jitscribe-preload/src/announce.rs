//! What is announced: the codes that are alive, and the scribe that is told of them.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use jitdump::{CodeEvent, CodeLoad, CodeMove};
use jitscribe::{Code, Inlined, Line, LoadedCode, Scribe, Unwind};
use perf_map::Entry;

use crate::prologue::frame_of;
use crate::tail::Told;
use crate::{fork, sys};

/// Of larger codes the bytes are not copied.
const MOST_BYTES: u64 = 4 << 20;
/// How many codes that reach beyond a new one's end are looked past for those that it covers.
const LOOKED_PAST: usize = 16;

/// `maps`: what dumps tell is not announced, nor what a map tells of a process that writes a dump.
const WHAT: &str = "JITSCRIBE_BRIDGE";

/// A code that was announced.
#[derive(Clone, Copy, Debug)]
struct Alive {
    size: u64,
    /// The scribe's handle.
    raw: u64,
    /// Number of the file that told of it.
    file: usize,
    is_of_dump: bool,
}

/// Announces, and remembers what is alive, by address.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    scribe: Option<Scribe>,
    alive: BTreeMap<u64, Alive>,
    /// Whether a dump is written. Runtimes that write both a dump and a map tell of each code twice.
    has_dump: bool,
    /// Whether what dumps tell is left to who reads them, as perf's recordings are read: see [`WHAT`]. Asked for once.
    leaves_dumps: Option<bool>,
    bytes: Vec<u8>,
}

impl Announcer {
    /// Whether a scribe was made.
    pub(crate) fn has_begun(&self) -> bool {
        self.scribe.is_some()
    }

    /// The scribe, made when the first code comes.
    fn scribe(&mut self) -> Scribe {
        // The map that it could write is the one that it is told of.
        *self.scribe.get_or_insert_with(|| Scribe::builder().environment().no_perf_map().build())
    }

    /// The scribe's own descriptor, which the program does not know.
    pub(crate) fn log_fd(&self) -> Option<i32> {
        use std::os::fd::AsRawFd;
        Some(self.scribe?.log_fd()?.as_raw_fd())
    }

    /// A dump is written.
    pub(crate) fn dump_has_begun(&mut self) {
        self.has_dump = true;
    }

    fn leaves_dumps(&mut self) -> bool {
        *self
            .leaves_dumps
            .get_or_insert_with(|| std::env::var_os(WHAT).is_some_and(|what| what == "maps"))
    }

    /// Announces what file number `file` tells.
    pub(crate) fn tell(&mut self, file: usize, told: Told<'_>) {
        if self.has_dump && self.leaves_dumps() {
            return;
        }
        match told {
            Told::Line(line) => self.line(file, &line),
            Told::Event(CodeEvent::Load(load)) => self.load(file, &load),
            Told::Event(CodeEvent::Move(moved)) => self.moved(&moved),
            Told::Event(CodeEvent::Close { .. }) => {}
        }
    }

    /// Nothing that the file told of holds any more: it begins anew.
    pub(crate) fn forget(&mut self, file: usize) {
        let Some(scribe) = self.scribe else { return };
        self.alive.retain(|_, code| {
            if code.file == file {
                drop(LoadedCode::from_raw(scribe, code.raw));
            }
            code.file != file
        });
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
        self.announce(file, false, &code.named_bytes(line.name));
        self.bytes = bytes;
    }

    fn is_of_dump(&self, line: &Entry<'_>) -> bool {
        self.has_dump
            && self
                .alive
                .get(&line.address)
                .is_some_and(|code| code.is_of_dump && code.size == line.size)
    }

    fn load(&mut self, file: usize, load: &CodeLoad<'_>) {
        if load.size == 0 {
            return;
        }
        let texts = Texts::of(load);
        let (lines, inlined) = (texts.lines(), texts.inlined());
        let mut code = Code::at(load.address, load.size);
        if !load.is_lean() {
            code = Code::new(load.bytes).runs_at(load.address);
        }
        if let Some(frame) = told_frame(load).or_else(|| frame_of(load.name, load.bytes)) {
            code = code.unwind(frame);
        }
        let tier = load.tier().map(String::from_utf8_lossy).unwrap_or_default();
        let code = code.named_bytes(load.name).kind(load.kind()).tier(&tier);
        self.announce(file, true, &code.lines(&lines).inlined(&inlined));
    }

    fn moved(&mut self, moved: &CodeMove) {
        let Some(scribe) = self.scribe else { return };
        let Some(alive) = self.alive.remove(&moved.old_address) else { return };
        self.make_room(scribe, moved.new_address, alive.size);
        let mut code = LoadedCode::from_raw(scribe, alive.raw);
        code.moved_to_address(moved.new_address);
        let raw = code.into_raw();
        self.remember(scribe, moved.new_address, Alive { raw, ..alive });
    }

    fn announce(&mut self, file: usize, is_of_dump: bool, code: &Code<'_>) {
        let scribe = self.scribe();
        let (address, size) = (code.address(), code.size());
        self.make_room(scribe, address, size);
        let raw = scribe.load(code).into_raw();
        self.remember(scribe, address, Alive { size, raw, file, is_of_dump });
    }

    fn remember(&mut self, scribe: Scribe, address: u64, code: Alive) {
        if code.raw != 0
            && let Some(before) = self.alive.insert(address, code)
        {
            drop(LoadedCode::from_raw(scribe, before.raw));
        }
    }

    /// What lay at these addresses is gone. What reaches beyond them may be alive in part.
    fn make_room(&mut self, scribe: Scribe, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let is_gone =
            |(&at, code): (&u64, &Alive)| at == address || at.saturating_add(code.size) <= end;
        loop {
            let mut inside = self.alive.range(address..end).take(LOOKED_PAST);
            let Some(at) = inside.find(|&code| is_gone(code)).map(|(&at, _)| at) else { return };
            if let Some(gone) = self.alive.remove(&at) {
                drop(LoadedCode::from_raw(scribe, gone.raw));
            }
        }
    }
}

/// The bytes at an address of this process, if they are there.
fn copy(address: u64, size: u64, bytes: &mut Vec<u8>) -> bool {
    let Some(size) = usize::try_from(size).ok().filter(|_| size <= MOST_BYTES) else {
        return false;
    };
    if bytes.len() < size && bytes.try_reserve(size - bytes.len()).is_err() {
        return false;
    }
    bytes.resize(size, 0);
    sys::copy_memory(fork::owner(), address, bytes)
}

/// What a dump says of how a code is unwound, where its tables are as the scribe takes them: right behind it.
fn told_frame<'a>(load: &CodeLoad<'a>) -> Option<Unwind<'a>> {
    dumped_code::frame_pointer(load).or_else(|| {
        let tables = load.unwind().filter(|tables| tables.eh_frame_offset == 0)?;
        (!tables.eh_frame.is_empty()).then_some(Unwind::EhFrame(tables.eh_frame))
    })
}

/// What a code's lines and inlined calls say, as text.
struct Texts<'a> {
    lines: Vec<(jitdump::LineEntry<'a>, u32, usize)>,
    files: Vec<(&'a [u8], String)>,
    calls: Vec<(jitdump::extension::InlinedCall<'a>, String, String, Vec<std::ops::Range<u32>>)>,
}

impl<'a> Texts<'a> {
    fn of(load: &CodeLoad<'a>) -> Self {
        let mut files: Vec<(&[u8], String)> = Vec::new();
        let mut lines: Vec<_> = load
            .lines()
            .filter_map(|line| {
                let offset = u32::try_from(line.address.checked_sub(load.address)?).ok()?;
                // Most lines are of the file of the line before, nearly all of one of a few.
                let known = files.iter().rev().take(8).position(|(file, _)| *file == line.file);
                let file = match known {
                    Some(back) => files.len() - 1 - back,
                    None => {
                        files.push((line.file, String::from_utf8_lossy(line.file).into_owned()));
                        files.len() - 1
                    }
                };
                Some((line, offset, file))
            })
            .collect();
        // V8's do not always ascend.
        lines.sort_by_key(|(_, offset, _)| *offset);
        let offset = |address: u64| u32::try_from(address.checked_sub(load.address)?).ok();
        let calls = load.inlined().map(|call| {
            let ranges = call
                .ranges
                .clone()
                .filter_map(|range| Some(offset(range.start)?..offset(range.end)?));
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            let (name, file, ranges) = (text(call.name), text(call.file), ranges.collect());
            (call, name, file, ranges)
        });
        Self { lines, files, calls: calls.collect() }
    }

    fn lines(&self) -> Vec<Line<'_>> {
        let line = |(line, offset, file): &(jitdump::LineEntry<'a>, u32, usize)| Line {
            offset: *offset,
            file: self.files.get(*file).map_or("", |(_, text)| text),
            line: line.line,
            column: line.column,
        };
        self.lines.iter().map(line).collect()
    }

    fn inlined(&self) -> Vec<Inlined<'_>> {
        let inlined = self.calls.iter().map(|(call, name, file, ranges)| Inlined {
            name,
            parent: call.parent,
            file,
            line: call.line,
            column: call.column,
            ranges,
        });
        inlined.collect()
    }
}

//! A perf map or a jitdump that is read as it grows.

use code_index::LogTranslator;
use jitdump::extension::log::FIRST_CHUNK;
use jitdump::{CodeEvent, Dump, HEADER_SIZE, Header};

use crate::file::{FileKind, FilePart, FileStatus, KnownFile};
use crate::file_codes::{FileCodes, Nearest, Space};
use crate::protocol::{Resolved, ResolvedCode, Unknown};
use crate::request_budget::RequestBudget;

/// A dump is given up if more than this is held while the end of a record is missing.
const MOST_HELD: usize = 16 << 20;
/// The largest header of a dump: no writer has a longer one than 40 bytes.
const LONGEST_HEADER: u64 = 4096;
/// How many bytes before the offset are remembered.
const REMEMBERED: usize = 64;
/// How far in the future a time may be before it is another clock's, in nanoseconds.
const AHEAD: u64 = 1_000_000_000;

/// A file, and what was read of it.
#[derive(Debug)]
pub(crate) struct FollowedFile {
    pub(crate) kind: FileKind,
    pub(crate) path: Vec<u8>,
    status: FileStatus,
    parser: Parser,
    offset: u64,
    last: Vec<u8>,
    codes: FileCodes,
    /// Whether times in it are not of `CLOCK_MONOTONIC`, so that only the order of its codes is known.
    has_other_clock: bool,
}

#[derive(Debug)]
enum Parser {
    Map(perf_map::Growing),
    /// A dump whose header is not there yet.
    Head,
    Dump(Box<jitdump::Growing>),
    /// A log in a format of its own, which is translated to a dump.
    Log(Box<(LogTranslator, jitdump::Growing)>),
    /// A file that is none of its kind, or in which there is more than can be held.
    Ignored,
}

impl FollowedFile {
    pub(crate) fn new(kind: FileKind, path: Vec<u8>, status: FileStatus) -> Self {
        let parser = match kind {
            FileKind::PerfMap => Parser::Map(perf_map::Growing::default()),
            FileKind::Jitdump => Parser::Head,
        };
        Self {
            kind,
            path,
            status,
            parser,
            offset: 0,
            last: Vec::new(),
            codes: FileCodes::default(),
            has_other_clock: false,
        }
    }

    pub(crate) fn codes(&self) -> u64 {
        self.codes.len()
    }

    /// Codes for which there was no space.
    pub(crate) fn left_out(&self) -> u64 {
        self.codes.left_out
    }

    /// About how many bytes it takes.
    pub(crate) fn memory(&self) -> u64 {
        let held = match &self.parser {
            Parser::Dump(dump) => dump.held(),
            Parser::Log(log) => log.0.held().saturating_add(log.1.held()),
            _ => 0,
        };
        self.codes.cost().saturating_add((size_of::<Self>() + self.path.len() + held) as u64)
    }

    /// What the next reading needs to know.
    pub(crate) fn known(&self) -> KnownFile {
        KnownFile {
            kind: self.kind,
            path: self.path.clone(),
            status: self.status,
            offset: self.offset,
            last: self.last.clone(),
            is_ignored: matches!(self.parser, Parser::Ignored),
        }
    }

    /// Takes what was read. Returns whether some of it need not be read again.
    pub(crate) fn take(&mut self, part: &FilePart, space: Space, now: u64) -> bool {
        if part.from == 0 {
            *self = Self::new(self.kind, std::mem::take(&mut self.path), part.status);
        } else if part.from != self.offset || part.status.identity != self.status.identity {
            return false;
        }
        self.status = part.status;
        self.codes.begin(space);
        let taken = self.parse(&part.bytes, part.is_cut(), space, now);
        let taken = part.bytes.get(..taken).unwrap_or(&part.bytes);
        self.offset = self.offset.saturating_add(taken.len() as u64);
        self.last.extend_from_slice(taken.split_at(taken.len().saturating_sub(REMEMBERED)).1);
        self.last.drain(..self.last.len().saturating_sub(REMEMBERED));
        // What is held of incomplete records counts, too.
        let is_too_much = match &self.parser {
            Parser::Dump(dump) => dump.held() > MOST_HELD || self.is_larger_than(space),
            Parser::Log(_) => self.is_larger_than(space),
            _ => false,
        };
        if is_too_much {
            self.parser = Parser::Ignored;
        }
        !taken.is_empty() && !matches!(self.parser, Parser::Ignored)
    }

    /// Reads the bytes at the offset, behind which there are more if they are cut. Returns how many of them need not be read again.
    fn parse(&mut self, bytes: &[u8], is_cut: bool, space: Space, now: u64) -> usize {
        let mut start = 0;
        if matches!(self.parser, Parser::Head) {
            let Some(header) = self.begin(bytes) else { return 0 };
            start = header;
        }
        let codes = &mut self.codes;
        match &mut self.parser {
            Parser::Map(map) => {
                // A writer that writes at offsets fills zeros later.
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                let lines = bytes.get(..end).unwrap_or_default();
                if map.try_reserve(lines).is_err() {
                    return 0;
                }
                // What is no line is passed over, as perf does.
                map.take(lines, |entry| {
                    if let Ok(entry) = entry {
                        codes.line(&entry, space);
                    }
                });
                end
            }
            Parser::Dump(dump) => {
                let new = bytes.get(start..).unwrap_or_default();
                if dump.try_reserve(new.len()).is_err() {
                    return start;
                }
                let mut latest = 0;
                let taken = dump.take(new, |event| match event {
                    Ok(CodeEvent::Load(load)) => {
                        latest = latest.max(load.timestamp);
                        codes.load(&load, space);
                    }
                    Ok(CodeEvent::Move(moved)) => codes.moved(&moved, space),
                    Ok(CodeEvent::Close { .. }) | Err(_) => {}
                });
                self.has_other_clock |= latest > now.saturating_add(AHEAD);
                start.saturating_add(taken)
            }
            Parser::Log(log) => {
                let (translator, dump) = &mut **log;
                let mut records = Vec::new();
                translator.take(bytes, &mut records);
                if !is_cut {
                    // What could be said of the last code follows it at once, or never.
                    translator.finish(&mut records);
                }
                if dump.try_reserve(records.len()).is_ok() {
                    dump.take(&records, |event| {
                        if let Ok(CodeEvent::Load(load)) = event {
                            codes.load(&load, space);
                        }
                    });
                }
                bytes.len()
            }
            Parser::Head => 0,
            Parser::Ignored => bytes.len(),
        }
    }

    fn is_larger_than(&self, space: Space) -> bool {
        self.memory() > space.bytes.saturating_add(1 << 20)
    }

    /// Reads the header of a dump. Returns where its records begin; `None` if it is not there yet.
    fn begin(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.len() < HEADER_SIZE as usize || bytes.starts_with(&[0; 4]) {
            return None;
        }
        let beginning = bytes.get(..FIRST_CHUNK).unwrap_or(bytes);
        // A code log is not written in the order of its file. It is read from memory, if at all.
        let is_log = || Dump::parse(beginning).is_ok_and(|dump| dump.log().is_some());
        let header = Header::parse(bytes).ok();
        let header = header.filter(|it| u64::from(it.total_size) <= LONGEST_HEADER && !is_log());
        let Some(header) = header else {
            self.parser = self.begin_log(bytes).unwrap_or(Parser::Ignored);
            return Some(0);
        };
        let growing = jitdump::Growing::new(header);
        let start = usize::try_from(growing.start()).unwrap_or(usize::MAX);
        if start > bytes.len() {
            return None;
        }
        self.has_other_clock = header.arch_timestamp();
        self.codes = FileCodes::of_dump(header);
        self.parser = Parser::Dump(Box::new(growing));
        Some(start)
    }

    /// Reads the beginning of a log in a format of its own; `None` if it is none.
    fn begin_log(&mut self, bytes: &[u8]) -> Option<Parser> {
        let translator = LogTranslator::of(bytes, 0)?;
        let header = Header::parse(&translator.header()).ok()?;
        self.has_other_clock = header.arch_timestamp();
        self.codes = FileCodes::of_dump(header);
        Some(Parser::Log(Box::new((translator, jitdump::Growing::new(header)))))
    }

    /// What is at addresses, which are sorted, each with a time. Fills in what is not known yet.
    pub(crate) fn resolve(
        &self,
        sorted: &[(u64, u64)],
        resolved: &mut [Resolved],
        budget: &mut RequestBudget,
    ) {
        let has_times = self.kind == FileKind::Jitdump && !self.has_other_clock;
        let at =
            |(address, time): &(u64, u64)| (*address, if has_times { *time } else { u64::MAX });
        let timed: Vec<(u64, u64)> = sorted.iter().map(at).collect();
        let mut found = vec![Nearest::default(); timed.len()];
        if !self.codes.find(&timed, &mut found, &mut budget.work) {
            return;
        }
        // Addresses of one code mostly follow each other.
        let mut last = None;
        for (((address, time), nearest), resolved) in timed.iter().zip(found).zip(resolved) {
            if !matches!(resolved, Resolved::Unknown(_)) {
                continue;
            }
            let Some(code) = nearest.code() else { continue };
            let is_gone = code.unloaded != 0 && (!has_times || *time >= code.unloaded);
            if is_gone {
                continue;
            }
            let is_last = |known: &(*const _, _)| std::ptr::eq(known.0, code);
            if !last.as_ref().is_some_and(is_last) {
                last = Some((std::ptr::from_ref(code), self.codes.body(code)));
            }
            let Some((_, Some(body))) = &last else {
                *resolved = Resolved::Unknown(Unknown::Description);
                continue;
            };
            let Some((frames, symbol)) = budget.names(body, code.described(*address)) else {
                *resolved = Resolved::Unknown(Unknown::Description);
                continue;
            };
            *resolved = Resolved::Code(Box::new(ResolvedCode {
                frames,
                symbol,
                address: code.address,
                size: code.size,
                loaded: Some(code.loaded).filter(|_| has_times),
                unloaded: Some(code.unloaded).filter(|unloaded| has_times && *unloaded != 0),
                kind: body.kind.to_owned(),
                tier: body.tier.clone(),
                generation: body.generation,
                image: None,
            }));
        }
    }
}

//! Reads a log as it is written.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::line::{Addresses, Mark, guard, merge_point, operation, part};
use crate::place::without_instruction;
use crate::{Place, Position, Trace, TraceKind};

/// About how many bytes a place takes beside its text.
const OVERHEAD: usize = 128;
/// The most bytes of a line that are held. Operations with longer lists of arguments are cut.
const MAX_LINE: usize = 1 << 16;
/// The most sections within each other.
const MAX_SECTIONS: usize = 64;
/// The most positions of a trace.
const MAX_POSITIONS: usize = 1 << 16;
/// The most guards whose places are held.
const MAX_GUARDS: usize = 1 << 16;
/// The most bytes that places take which are held to share them.
const MAX_TEXTS: usize = 1 << 24;

/// Reads the traces of a log, which is given in parts.
#[derive(Debug, Default)]
pub struct Reader {
    /// The beginning of a line whose end was not given yet.
    line: Vec<u8>,
    /// The open sections.
    sections: Vec<Section>,
    /// Sections within more than [`MAX_SECTIONS`].
    deeper: u64,
    /// A trace whose operations may follow.
    pending: Option<Pending>,
    /// By text.
    places: HashMap<Box<[u8]>, Arc<Place>>,
    /// By guard: where a bridge out of it begins.
    guards: HashMap<u64, Arc<Place>>,
    /// About how many bytes the places take.
    texts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Addresses { time: u64 },
    Operations,
    Other,
}

#[derive(Debug)]
struct Pending {
    /// What its operations are headed by.
    name: Box<[u8]>,
    trace: Trace,
    /// What the offsets of operations count from.
    base: u64,
    /// Whether the current section has its operations.
    is_current: bool,
    /// Whether it has as many positions as are held.
    is_full: bool,
    /// Positions whose address, that of the next operation, is not known yet.
    next: Vec<(u32, Arc<Place>)>,
}

impl Reader {
    /// Takes the next bytes of the log, and gives the traces that are complete.
    pub fn take(&mut self, mut bytes: &[u8], mut give: impl FnMut(Trace)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (rest, behind) = bytes.split_at_checked(end).unwrap_or((bytes, b""));
            bytes = behind.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.take_line(rest, &mut give);
            } else {
                self.hold(rest);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut give);
                self.line = line;
                self.line.clear();
            }
        }
        self.hold(bytes);
    }

    /// Gives a trace whose operations were not there yet, without them. More of the log may be [taken](Self::take) afterwards.
    pub fn finish(&mut self, give: impl FnMut(Trace)) {
        self.emit(give);
    }

    /// Whether there is a trace whose operations were not there yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// About how many bytes it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        let pending = self.pending.as_ref();
        let positions = pending.map_or(0, |pending| pending.trace.positions.capacity());
        let counted =
            positions.saturating_mul(size_of::<Position>()).saturating_add(self.line.capacity());
        counted
            .saturating_add(self.texts)
            .saturating_add(self.guards.len().saturating_mul(OVERHEAD))
    }

    fn hold(&mut self, bytes: &[u8]) {
        let left = MAX_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(bytes.get(..left).unwrap_or(bytes));
    }

    fn take_line(&mut self, line: &[u8], mut give: impl FnMut(Trace)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(mark) = Mark::parse(line) {
            match mark.is_end {
                true => self.end_section(give),
                false => self.begin_section(&mark),
            }
            return;
        }
        match self.sections.last() {
            Some(&Section::Addresses { time }) => {
                if let Some(addresses) = Addresses::parse(line) {
                    self.emit(&mut give);
                    self.pending = self.begin_trace(&addresses, time);
                } else if let (Some(pending), Some((name, address))) =
                    (&mut self.pending, part(line))
                {
                    pending.set(name, address);
                }
            }
            Some(Section::Operations) => self.take_operation(line),
            _ => {}
        }
    }

    fn begin_section(&mut self, mark: &Mark<'_>) {
        if self.sections.len() >= MAX_SECTIONS {
            self.deeper = self.deeper.saturating_add(1);
            return;
        }
        self.sections.push(match mark.name {
            b"jit-backend-addr" => Section::Addresses { time: mark.time },
            name if name.starts_with(b"jit-log-opt-") => Section::Operations,
            _ => Section::Other,
        });
    }

    fn end_section(&mut self, give: impl FnMut(Trace)) {
        if self.deeper > 0 {
            self.deeper = self.deeper.saturating_sub(1);
            return;
        }
        let ended = self.sections.pop();
        if ended == Some(Section::Operations)
            && self.pending.as_ref().is_some_and(|it| it.is_current)
        {
            self.emit(give);
        }
    }

    fn begin_trace(&mut self, addresses: &Addresses<'_>, time: u64) -> Option<Pending> {
        let &Addresses { name, start, end, bootstrap } = addresses;
        let (kind, place) = if name.starts_with(b"Loop ") {
            let open = name.iter().position(|byte| *byte == b'(').map(|at| at.saturating_add(1));
            let text = open.and_then(|open| name.get(open..)?.strip_suffix(b")"));
            (TraceKind::Loop, text.map(|text| self.place(text)))
        } else {
            let from = guard(name.strip_prefix(b"bridge out of ")?)?;
            (TraceKind::Bridge, self.guards.get(&from).cloned())
        };
        let first = bootstrap.unwrap_or(start);
        let trace = Trace { time, kind, range: first..end, place, positions: Vec::new() };
        let (base, next) = (first, Vec::new());
        Some(Pending { name: name.into(), trace, base, is_current: false, is_full: false, next })
    }

    fn take_operation(&mut self, line: &[u8]) {
        let Some(pending) = &mut self.pending else { return };
        if let Some(heading) = line.strip_prefix(b"# ") {
            let behind = heading.strip_prefix(&*pending.name);
            pending.is_current |= behind.is_some_and(|behind| behind.starts_with(b" "));
        }
        if !pending.is_current {
            return;
        }
        if let Some((depth, text)) = merge_point(line) {
            let place = self.place(text);
            if let Some(pending) = &mut self.pending {
                pending.merge_point(depth, place);
            }
        } else if let Some((offset, operation)) = operation(line) {
            pending.operation(offset);
            let place = pending.trace.positions.last().map(|position| &position.place);
            if operation.starts_with(b"guard_")
                && self.guards.len() < MAX_GUARDS
                && let (Some(place), Some(guard)) = (place, guard(operation))
            {
                self.guards.insert(guard, Arc::clone(place));
            }
        }
    }

    /// The place that a text describes.
    fn place(&mut self, text: &[u8]) -> Arc<Place> {
        let text = without_instruction(text);
        if let Some(place) = self.places.get(text) {
            return Arc::clone(place);
        }
        if self.texts > MAX_TEXTS {
            self.places.clear();
            self.guards.clear();
            self.texts = 0;
            // Its positions hold the places that were there until now.
            self.pending.iter_mut().for_each(|pending| pending.is_full = true);
        }
        self.texts = self.texts.saturating_add(text.len().saturating_add(OVERHEAD));
        let place = Arc::new(Place::parse(text));
        self.places.insert(text.into(), Arc::clone(&place));
        place
    }

    fn emit(&mut self, mut give: impl FnMut(Trace)) {
        let Some(Pending { mut trace, .. }) = self.pending.take() else { return };
        let Range { start, end } = trace.range;
        if start >= end {
            return;
        }
        trace.positions.retain(|position| position.address < end);
        // The name of a loop tells where it begins; of a bridge, its first operations do.
        if trace.kind == TraceKind::Bridge || trace.place.is_none() {
            let first = trace.positions.first().map(|position| Arc::clone(&position.place));
            trace.place = first.or(trace.place);
        }
        give(trace);
    }
}

impl Pending {
    /// Takes an address that the log lists below the first line.
    fn set(&mut self, name: &[u8], address: u64) {
        match name {
            b"gc table" => self.base = address,
            b"function" | b"jump target" => self.trace.range.start = address,
            b"end" => self.trace.range.end = address,
            _ => {}
        }
    }

    fn merge_point(&mut self, depth: u32, place: Arc<Place>) {
        let last = self.trace.positions.last().map(|last| (last.depth, &last.place));
        let last = self.next.last().map(|(depth, place)| (*depth, place)).or(last);
        let is_same = last.is_some_and(|last| last == (depth, &place));
        self.is_full |= self.trace.positions.len().saturating_add(self.next.len()) >= MAX_POSITIONS;
        if !is_same && !self.is_full {
            self.next.push((depth, place));
        }
    }

    fn operation(&mut self, offset: u64) {
        let last = self.trace.positions.last().map_or(self.trace.range.start, |last| last.address);
        let address = self.base.saturating_add(offset).max(last);
        let positions =
            self.next.drain(..).map(|(depth, place)| Position { address, depth, place });
        self.trace.positions.extend(positions);
    }
}

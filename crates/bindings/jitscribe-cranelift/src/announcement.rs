//! A compiled function, before it is announced.

use std::ops::Range;

use cranelift_codegen::CompiledCode;
use cranelift_codegen::ir::SourceLoc;
use cranelift_codegen::isa::TargetIsa;
use jitscribe::{Code, Inlined, Kind, Line, LoadedCode, Row, Scribe, Unwind};

use crate::frame::Frame;
use crate::listing::Listing;
use crate::place::{Call, Place};

/// A compiled function, to be announced at the address where it is put.
///
/// It copies what it needs from the compiled code, so the compiler's context can be used for the next function.
/// Creating one costs a few allocations: skip it while [`Scribe::is_on`] returns `false`.
#[derive(Clone, Debug)]
#[must_use = "the code is not announced until it is loaded"]
pub struct Announcement<'a> {
    size: u32,
    name: &'a str,
    kind: Kind,
    tier: &'a str,
    start: Option<Place<'a>>,
    locations: Vec<Location>,
    lines: Vec<Line<'a>>,
    ir_lines: Vec<Line<'a>>,
    calls: Vec<(Call<'a>, Vec<Range<u32>>)>,
    frame: Option<Frame>,
}

/// Source positions, valid from an offset to the next one.
#[derive(Clone, Copy, Debug)]
struct Location {
    offset: u32,
    /// The front end's location; never the default.
    source: Option<SourceLoc>,
    /// Line in the listing.
    listed: Option<u32>,
}

impl<'a> Announcement<'a> {
    /// Creates the announcement of `compiled`, which `isa` compiled.
    pub fn of(isa: &dyn TargetIsa, compiled: &CompiledCode) -> Self {
        Self::new(isa, compiled, |loc| (loc, None))
    }

    /// Like [`Self::of`], for a function whose instructions `listing` has numbered.
    pub fn listed(isa: &dyn TargetIsa, compiled: &CompiledCode, listing: &Listing) -> Self {
        Self::new(isa, compiled, |loc| (listing.source(loc), listing.line(loc)))
    }

    fn new(
        isa: &dyn TargetIsa,
        compiled: &CompiledCode,
        known: impl Fn(SourceLoc) -> (SourceLoc, Option<u32>),
    ) -> Self {
        let mut locations: Vec<Location> = Vec::new();
        for range in compiled.buffer.get_srclocs_sorted() {
            let ascends = locations.last().is_none_or(|last| last.offset < range.start);
            if range.start < range.end && ascends && !range.loc.is_default() {
                let (source, listed) = known(range.loc);
                let source = Some(source).filter(|source| !source.is_default());
                locations.push(Location { offset: range.start, source, listed });
            }
        }
        Self {
            size: compiled.code_info().total_size,
            name: "",
            kind: Kind::Function,
            tier: "",
            start: None,
            locations,
            lines: Vec::new(),
            ir_lines: Vec::new(),
            calls: Vec::new(),
            frame: Frame::of(isa, compiled),
        }
    }

    /// The front end's locations, with the offsets from which they are valid.
    fn sources(&self) -> impl Iterator<Item = (u32, SourceLoc)> {
        self.locations.iter().filter_map(|location| Some((location.offset, location.source?)))
    }

    /// The name that tools should show.
    pub fn named(mut self, name: &'a str) -> Self {
        self.name = name;
        self
    }

    /// The kind of code; by default [`Kind::Function`].
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Name of the compiler's tier: "baseline", "optimised".
    pub fn tier(mut self, tier: &'a str) -> Self {
        self.tier = tier;
        self
    }

    /// The place of the function itself, to which its prologue belongs. By default, the first of the
    /// [`lines`](Self::lines).
    pub fn starts_at(mut self, place: Place<'a>) -> Self {
        self.start = Some(place);
        self
    }

    /// The source lines. `place` maps the source locations that the front end gave its instructions. It is
    /// called in the order of the code, once for each run of instructions with the same location. Where it
    /// returns `None`, and where instructions have no location, the previous line continues.
    pub fn lines(mut self, mut place: impl FnMut(SourceLoc) -> Option<Place<'a>>) -> Self {
        let mut lines = Vec::new();
        for (offset, loc) in self.sources() {
            if let Some(place) = place(loc) {
                push(&mut lines, place.line_at(offset));
            }
        }
        self.lines = lines;
        self
    }

    /// The second line table: lines of `file`, to which the front end wrote the function's intermediate
    /// representation. `line` maps source locations to them. As with source lines, a line continues where there
    /// is no other.
    pub fn ir_lines(
        mut self,
        file: &'a str,
        mut line: impl FnMut(SourceLoc) -> Option<u32>,
    ) -> Self {
        let mut lines = Vec::new();
        for (offset, loc) in self.sources() {
            if let Some(line) = line(loc) {
                push(&mut lines, Line::new(offset, file, line));
            }
        }
        self.ir_lines = lines;
        self
    }

    /// The second line table of a function that was [`listed`](Self::listed), and whose listing was written to
    /// `file` behind `before` other lines.
    pub fn ir_listing(mut self, file: &'a str, before: u32) -> Self {
        self.ir_lines.clear();
        for location in &self.locations {
            if let Some(line) = location.listed {
                let line = line.saturating_add(before);
                push(&mut self.ir_lines, Line::new(location.offset, file, line));
            }
        }
        self
    }

    /// The calls that the front end inlined. `call` maps a source location to the index in `calls` of the
    /// innermost call that it is in, or to `None` for the function itself. Like a line, a call continues where
    /// instructions have no location. Calls without any code left are not announced.
    pub fn inlined(
        mut self,
        calls: &[Call<'a>],
        mut call: impl FnMut(SourceLoc) -> Option<u32>,
    ) -> Self {
        let mut located: Vec<_> = calls.iter().map(|call| (*call, Vec::new())).collect();
        let ends = self.sources().skip(1).map(|(offset, _)| offset);
        for ((start, loc), end) in self.sources().zip(ends.chain([self.size])) {
            let mut inner = located.len();
            let mut next = call(loc);
            // A parent comes before its children, so this ends.
            while let Some(index) = next.map(|index| index as usize).filter(|at| *at < inner) {
                let (call, ranges) = &mut located[index];
                extend(ranges, start..end);
                inner = index;
                next = call.parent;
            }
        }
        self.calls = with_code(located);
        self
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The unwind rows of its frame; `None` if they are not known: on other machines, or if the compiler was
    /// configured not to generate unwind info.
    #[must_use]
    pub fn frame(&self) -> Option<Vec<Row<'_>>> {
        self.frame.as_ref().map(Frame::rows)
    }

    /// Announces the function, whose code is at the start of `memory` and will run there.
    pub fn load(&self, scribe: Scribe, memory: &[u8]) -> LoadedCode {
        let bytes = memory.get(..self.size as usize).unwrap_or(memory);
        self.with(Code::new(bytes), |code| scribe.load(&code))
    }

    /// Announces the function at an address, without its bytes.
    ///
    /// A dump for stock `perf inject` then does not contain it. See [`Self::load_finalized`].
    pub fn load_at(&self, scribe: Scribe, address: u64) -> LoadedCode {
        self.with(Code::at(address, self.size.into()), |code| scribe.load(&code))
    }

    /// Fills `code` with all that is known, and passes it to `announce`: for callers that know more than this
    /// crate does, such as their own frames, or that announce the code by other means.
    pub fn with<R>(&self, code: Code<'_>, announce: impl FnOnce(Code<'_>) -> R) -> R {
        let mut lines = Vec::with_capacity(self.lines.len() + 1);
        if let Some(start) = self.start {
            push(&mut lines, start.line_at(0));
        }
        for line in &self.lines {
            let mut line = *line;
            if lines.is_empty() {
                line.offset = 0;
            }
            push(&mut lines, line);
        }
        let calls: Vec<Inlined<'_>> = self.calls.iter().map(inlined).collect();
        let rows = self.frame();
        let code = code
            .named(self.name)
            .kind(self.kind)
            .tier(self.tier)
            .lines(&lines)
            .ir_lines(&self.ir_lines)
            .inlined(&calls);
        announce(match &rows {
            Some(rows) => code.unwind(Unwind::Rows(rows)),
            None => code,
        })
    }
}

/// Appends a line. Of two lines at one offset, the later one is valid; a line that repeats the previous one is
/// left out.
fn push<'a>(lines: &mut Vec<Line<'a>>, line: Line<'a>) {
    let place = |line: &Line<'a>| (line.file, line.line, line.column);
    lines.pop_if(|last| last.offset == line.offset);
    if lines.last().map(place) != Some(place(&line)) {
        lines.push(line);
    }
}

fn extend(ranges: &mut Vec<Range<u32>>, range: Range<u32>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// The calls that have code, with `parent` renumbered to match.
fn with_code<'a>(located: Vec<(Call<'a>, Vec<Range<u32>>)>) -> Vec<(Call<'a>, Vec<Range<u32>>)> {
    let mut numbers: Vec<Option<u32>> = Vec::with_capacity(located.len());
    let mut kept: Vec<(Call<'a>, Vec<Range<u32>>)> = Vec::new();
    for (mut call, ranges) in located {
        let has_code = !ranges.is_empty();
        numbers.push(has_code.then_some(kept.len() as u32));
        if has_code {
            // If a call has code, so do all calls around it.
            call.parent = call.parent.and_then(|parent| *numbers.get(parent as usize)?);
            kept.push((call, ranges));
        }
    }
    kept
}

fn inlined<'b>((call, ranges): &'b (Call<'_>, Vec<Range<u32>>)) -> Inlined<'b> {
    let Place { file, line, column } = call.place;
    Inlined::new(call.name, ranges).called_from(file, line).column(column).within(call.parent)
}

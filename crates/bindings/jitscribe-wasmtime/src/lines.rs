//! The line tables of a module's functions.

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;

use jitscribe::{Inlined, Line};

use crate::compiled::{Compiled, Place};
use crate::functions::Function;
use crate::source::Source;

/// Produces the lines of one function after the other, in the order of the text.
pub(crate) struct Lines<'a, 'w> {
    places: Peekable<Box<dyn Iterator<Item = Place> + 'a>>,
    source: Option<&'a Source<'w>>,
    wants_bytecode: bool,
    module: &'a str,
}

/// The lines and inlined calls of one function.
#[derive(Default)]
pub(crate) struct FunctionLines<'a> {
    pub(crate) source: Vec<Line<'a>>,
    pub(crate) bytecode: Vec<Line<'a>>,
    calls: Vec<Call<'a>>,
}

/// An inlined call.
struct Call<'a> {
    name: String,
    site: Site<'a>,
    ranges: Vec<Range<u32>>,
}

/// The identity of an inlined call: the call that it is in, its entry in the debug info, and the place of
/// the call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Site<'a> {
    parent: Option<u32>,
    entry: usize,
    file: &'a str,
    line: u32,
    column: u32,
}

impl<'a, 'w> Lines<'a, 'w> {
    pub(crate) fn new(
        compiled: &'a impl Compiled,
        source: Option<&'a Source<'w>>,
        wants_bytecode: bool,
    ) -> Self {
        let is_wanted = wants_bytecode || source.is_some();
        let places = is_wanted.then(|| compiled.places()).flatten();
        let places = places.unwrap_or_else(|| Box::new(std::iter::empty()));
        Self { places: places.peekable(), source, wants_bytecode, module: compiled.name() }
    }

    pub(crate) fn of(&mut self, function: &Function) -> FunctionLines<'a> {
        let range = function.range();
        while self.places.next_if(|(at, _)| *at < range.start).is_some() {}
        let mut lines = FunctionLines::default();
        let mut known = HashMap::new();
        while let Some((at, place)) = self.places.next_if(|(at, _)| range.contains(at)) {
            let Ok(offset) = u32::try_from(at - range.start) else { continue };
            let next = self.places.peek().map_or(range.end, |(next, _)| range.end.min(*next));
            let end = u32::try_from(next - range.start).unwrap_or(u32::MAX);
            if self.wants_bytecode {
                let line = Line::new(offset, self.module, place.unwrap_or(0));
                lines.bytecode.push(line);
            }
            if let Some(source) = self.source {
                lines.add(offset..end, place, source, &mut known);
            }
        }
        // A table that only says "no line" is no better than no table.
        if lines.source.iter().all(|line| line.line == 0) {
            lines.source.clear();
        }
        lines
    }
}

impl<'a> FunctionLines<'a> {
    fn add(
        &mut self,
        code: Range<u32>,
        place: Option<u32>,
        source: &'a Source<'_>,
        known: &mut HashMap<Site<'a>, u32>,
    ) {
        let frames = place.map(|place| source.frames(place)).unwrap_or_default();
        let mut line = Line::new(code.start, "", 0);
        if let Some(location) = frames.first().and_then(|frame| frame.location.as_ref()) {
            let (file, number) = (location.file.unwrap_or(""), location.line.unwrap_or(0));
            line = Line::new(code.start, file, number).column(location.column.unwrap_or(0));
        }
        let is_news = self.source.last().is_none_or(|last| {
            (last.file, last.line, last.column) != (line.file, line.line, line.column)
        });
        if is_news {
            self.source.push(line);
        }
        // From the outermost call to the innermost: each pair is a callee and its caller.
        let mut parent = None;
        for pair in frames.windows(2).rev() {
            let [callee, caller] = pair else { continue };
            let call = caller.location.as_ref();
            let site = Site {
                parent,
                entry: callee.dw_die_offset.map_or(0, |offset| offset.0),
                file: call.and_then(|call| call.file).unwrap_or(""),
                line: call.and_then(|call| call.line).unwrap_or(0),
                column: call.and_then(|call| call.column).unwrap_or(0),
            };
            let index = *known.entry(site).or_insert_with(|| {
                let name = callee.function.as_ref().and_then(|name| name.raw_name().ok());
                let name = name.unwrap_or_default().into_owned();
                self.calls.push(Call { name, site, ranges: Vec::new() });
                (self.calls.len() - 1) as u32
            });
            let ranges = &mut self.calls[index as usize].ranges;
            match ranges.last_mut() {
                Some(last) if last.end == code.start => last.end = code.end,
                _ => ranges.push(code.clone()),
            }
            parent = Some(index);
        }
    }

    /// The inlined calls, callers before callees.
    pub(crate) fn inlined(&self) -> Vec<Inlined<'_>> {
        let calls = self.calls.iter();
        calls
            .map(|Call { name, site, ranges }| {
                Inlined::new(name, ranges)
                    .called_from(site.file, site.line)
                    .column(site.column)
                    .within(site.parent)
            })
            .collect()
    }
}

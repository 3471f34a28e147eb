//! Collects many lines of unknown code at once. Names must be plain numbers, as callgrind writes them.

use std::io::Write;
use std::rc::Rc;

use super::cost::{Call, Callee, Cost, Jump};
use super::{Mode, Next, Rewriter};
use crate::code_map::CodeMap;
use crate::context::UNKNOWN;
use crate::line::Kind;
use crate::position::Column;
use crate::scan::{read_call, read_costs, read_jump, reference};

/// What is behind the lines that were parsed, and their number.
type Advance<'a> = Option<(&'a [u8], u64)>;

/// The columns of the address and the line in positions.
#[derive(Clone, Copy)]
struct Places {
    instr: Option<usize>,
    line: Option<usize>,
}

impl Places {
    fn address(self, positions: &[u64]) -> u64 {
        self.instr.and_then(|place| positions.get(place).copied()).unwrap_or(0)
    }

    fn line(self, positions: &[u64]) -> u64 {
        self.line.and_then(|place| positions.get(place).copied()).unwrap_or(0)
    }
}

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// The context whose lines may be collected many at once, if any.
    pub(super) fn collecting_context(&self) -> Option<usize> {
        match self.mode {
            Mode::Collect(index) if self.next == Next::Own && self.target.is_empty() => Some(index),
            _ => None,
        }
    }

    /// Collects complete lines from the beginning of `waiting` as far as possible. Returns their total size and their
    /// number.
    pub(super) fn fast_collect(&mut self, waiting: &[u8], index: usize) -> (usize, u64) {
        let (rest, lines) = match self.columns.count() {
            1 => self.fast_collect_columns::<1>(waiting, index),
            2 => self.fast_collect_columns::<2>(waiting, index),
            3 => self.fast_collect_columns::<3>(waiting, index),
            4 => self.fast_collect_columns::<4>(waiting, index),
            _ => (waiting, 0),
        };
        (waiting.len().saturating_sub(rest.len()), lines)
    }

    fn fast_collect_columns<'a, const N: usize>(
        &mut self,
        waiting: &'a [u8],
        index: usize,
    ) -> (&'a [u8], u64) {
        let (mut rest, mut count) = (waiting, 0_u64);
        let mut last = [0; N];
        last.iter_mut().zip(self.last.0).for_each(|(last, value)| *last = value);
        let places = Places {
            instr: self.columns.place(Column::Instr),
            line: self.columns.place(Column::Line),
        };
        self.contexts.rows.begin(index);
        loop {
            (rest, count) = self.fast_collect_costs(rest, count, &mut last, places);
            let more = match rest.first() {
                Some(b'\n') => rest.get(1..).map(|behind| (behind, 1)),
                Some(b'j') => self.fast_collect_jump(rest, &mut last, places),
                Some(b'c') => self.fast_collect_call(rest, &mut last, places),
                Some(b'f') => self.next_context(rest),
                _ => None,
            };
            let Some((behind, lines)) = more else { break };
            rest = behind;
            count = count.wrapping_add(lines);
        }
        self.last.0.iter_mut().zip(last).for_each(|(value, last)| *value = last);
        (rest, count)
    }

    /// Collects cost lines, and adds their number to `count`.
    #[inline]
    fn fast_collect_costs<'a, const N: usize>(
        &mut self,
        text: &'a [u8],
        mut count: u64,
        last: &mut [u64; N],
        places: Places,
    ) -> (&'a [u8], u64) {
        let mut rest = text;
        let events = self.events;
        let rows = &mut self.contexts.rows;
        let begin = rows.values.len();
        while let Some(behind) = read_costs(rest, last, events, &mut rows.values) {
            let values = rows.values.len().wrapping_sub(events);
            rows.costs.push(Cost {
                address: places.address(last),
                line: places.line(last),
                values,
            });
            rest = behind;
            count = count.wrapping_add(1);
        }
        let costs = rows.values.get(begin..).unwrap_or_default();
        costs.chunks_exact(events.max(1)).for_each(|costs| self.summary.add_unknown(costs));
        (rest, count)
    }

    /// Collects a jump with its position.
    #[inline]
    fn fast_collect_jump<'a, const N: usize>(
        &mut self,
        text: &'a [u8],
        last: &mut [u64; N],
        places: Places,
    ) -> Advance<'a> {
        let (jump, behind) = read_jump(text, last)?;
        self.summary.has_jumps = true;
        self.contexts.rows.jumps.push(Jump {
            address: places.address(last),
            line: places.line(last),
            target: places.address(&jump.target),
            taken: jump.taken,
            executed: jump.executed,
        });
        Some((behind, 2))
    }

    /// Collects a call with its costs.
    fn fast_collect_call<'a, const N: usize>(
        &mut self,
        text: &'a [u8],
        last: &mut [u64; N],
        places: Places,
    ) -> Advance<'a> {
        let (mut rest, mut lines) = (text, 0_u64);
        let (mut object, mut file) = (&self.cursor.object.name, &self.cursor.line_file);
        let name = loop {
            lines = lines.wrapping_add(1);
            match rest {
                [b'c', b'f', b'n', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    rest = behind;
                    break self.names.given(Kind::Function, id)?;
                }
                [b'c', b'f', b'i' | b'l', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    file = self.names.given(Kind::File, id)?;
                    rest = behind;
                }
                [b'c', b'o', b'b', b'=', name @ ..] => {
                    let (id, behind) = reference(name)?;
                    object = self.names.given(Kind::Object, id)?;
                    rest = behind;
                }
                _ => return None,
            }
        };
        let mut target = *last;
        let (count, behind) = read_call(rest, &mut target)?;
        let values = self.contexts.rows.values.len();
        let behind = read_costs(behind, last, self.events, &mut self.contexts.rows.values)?;
        let callee = match self.contexts.number(&mut self.naming, name, object, file) {
            Some(index) => {
                self.contexts.add_entries(index, count);
                Callee::Unknown(index)
            }
            None => Callee::Known {
                object: Rc::clone(object),
                file: Rc::clone(file),
                name: Rc::clone(name),
            },
        };
        self.contexts.rows.calls.push(Call {
            address: places.address(last),
            line: places.line(last),
            callee,
            target: places.address(&target),
            target_line: places.line(&target),
            count,
            values,
        });
        Some((behind, lines.wrapping_add(2)))
    }

    /// Handles the beginning of another unknown context in the same object and file.
    fn next_context<'a>(&mut self, text: &'a [u8]) -> Advance<'a> {
        let (id, behind) = reference(text.strip_prefix(b"fn=")?)?;
        let name = self.names.given(Kind::Function, id)?;
        let (object, file) = (&self.cursor.object.name, &self.cursor.file.name);
        if **object != *UNKNOWN {
            return None;
        }
        let index = self.contexts.number(&mut self.naming, name, object, file)?;
        self.cursor.line_file = Rc::clone(&self.cursor.file.name);
        self.mode = Mode::Collect(index);
        self.contexts.rows.begin(index);
        Some((behind, 1))
    }
}

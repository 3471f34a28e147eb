//! Copies a profile, and names the unknown code in it.
//!
//! Everything is done in one pass. Functions that callgrind knew are copied unchanged ([`mod@copy`]), most of them many
//! lines at once ([`fast_copy`]), except for the names of unknown [`functions`] that they call. Code that callgrind did
//! not know is collected by context ([`contexts`]), line by line ([`collect`]) or many lines at once ([`fast_collect`]).
//! It is split into [`pieces`] and written at the end of its [`part`].

mod announced;
mod collect;
mod contexts;
mod copy;
mod cost;
mod cursor;
mod fast_collect;
mod fast_copy;
mod flow;
mod functions;
mod moments;
mod naming;
mod part;
mod piece;
mod pieces;
mod recursion;
mod rows;
mod shares;
mod single_function;
mod summary;
mod walk;

use std::collections::BTreeSet;
use std::io::{Read, Write};

use crate::code_map::CodeMap;
use crate::error::{Cause, Error};
use crate::line::{Field, Line, cost, parse};
use crate::lines::{Lines, Raw};
use crate::names::Names;
use crate::position::{Columns, Positions};

use contexts::Contexts;
use cursor::{AnnouncedFunction, Cursor, Target};
use naming::Naming;
pub use summary::{Event, Summary};

/// Every line of unknown code takes memory for all events; callgrind counts about twenty.
const MOST_EVENTS: usize = 256;

/// How much is written at a time.
const STEP: usize = 1 << 18;

/// Copies the profile `input` to `output`, and adds what `map` knows about the code that callgrind did not know.
///
/// The sum of all self costs is unchanged in every part.
///
/// # Errors
/// If the profile is damaged or cannot be read, or if `output` cannot be written. The output written up to the error
/// is not usable.
pub fn rewrite(
    input: impl Read,
    output: impl Write,
    map: &mut impl CodeMap,
) -> Result<Summary, Error> {
    let mut lines = Lines::new(input);
    let mut rewriter = Rewriter::new(output, map);
    loop {
        if rewriter.can_fast_copy() {
            let (bytes, count) = rewriter.fast_copy(lines.waiting());
            lines.skip(bytes, count);
            rewriter.write_out_if_much()?;
        } else if let Some(index) = rewriter.collecting_context() {
            let (bytes, count) = rewriter.fast_collect(lines.waiting(), index);
            lines.skip(bytes, count);
        }
        let Some(raw) = lines.next_line()? else { break };
        rewriter.line(raw)?;
    }
    rewriter.finish(lines.is_cut_off())
}

/// What the following lines belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A function that is copied.
    Copy(CopiedCode),
    /// The context with this number.
    Collect(usize),
}

/// A function that is copied and not collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopiedCode {
    /// callgrind knew it.
    Known,
    /// Neither callgrind nor the map knows it.
    Unknown,
    /// callgrind did not know it, but the map names it.
    Named,
    /// callgrind knew it while it ran, because the process announced it.
    Announced,
}

/// What the next cost line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Own,
    Call,
    Jump { taken: u64, executed: Option<u64>, target: u64 },
}

struct Rewriter<'m, M, W> {
    naming: Naming<'m, M>,
    output: W,
    out: Vec<u8>,
    names: Names,
    columns: Columns,
    events: usize,
    /// The index of the instruction count among the events.
    ir: usize,
    mode: Mode,
    cursor: Cursor,
    target: Target,
    /// The function of [`CopiedCode::Announced`].
    announced: Option<AnnouncedFunction>,
    next: Next,
    /// The positions of the previous line in the input, and whether the output is at the same positions.
    last: Positions,
    is_in_step: bool,
    contexts: Contexts,
    functions: BTreeSet<u32>,
    summary: Summary,
}

impl<'m, M: CodeMap, W: Write> Rewriter<'m, M, W> {
    fn new(output: W, map: &'m mut M) -> Self {
        Self {
            naming: Naming::new(map),
            output,
            out: Vec::with_capacity(STEP.saturating_mul(2)),
            names: Names::default(),
            columns: Columns::default(),
            events: 0,
            ir: 0,
            mode: Mode::Copy(CopiedCode::Known),
            cursor: Cursor::new(),
            target: Target::default(),
            announced: None,
            next: Next::Own,
            last: Positions::default(),
            is_in_step: true,
            contexts: Contexts::default(),
            functions: BTreeSet::new(),
            summary: Summary::default(),
        }
    }

    fn write_out_if_much(&mut self) -> Result<(), Error> {
        if self.out.len() >= STEP && !self.holds_item() { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<(), Error> {
        self.output.write_all(&self.out).map_err(Error::Write)?;
        self.end_item();
        self.out.clear();
        Ok(())
    }

    fn finish(mut self, is_cut_off: bool) -> Result<Summary, Error> {
        if self.events == 0 {
            return Err(Error::Damaged { offset: 0, line: 1, cause: Cause::NoEvents });
        }
        let is_cut_off = is_cut_off || self.next != Next::Own;
        if self.next != Next::Own && self.is_copying() {
            // Without costs of its own, a call or a jump would take those of what follows.
            let last = self.last;
            self.columns.push(&mut self.out, &last, None);
            self.out.push(b'\n');
        }
        self.end_part();
        self.write_out()?;
        self.output.flush().map_err(Error::Write)?;
        self.summary.functions = self.functions.len();
        self.summary.has_instructions = self.columns.has_instr();
        self.summary.is_cut_off = is_cut_off;
        Ok(self.summary)
    }

    /// Whether lines are copied.
    fn is_copying(&self) -> bool {
        matches!(self.mode, Mode::Copy(_))
    }

    /// Whether lines of an announced function are copied.
    fn is_announced(&self) -> bool {
        self.mode == Mode::Copy(CopiedCode::Announced)
    }

    fn line(&mut self, raw: Raw<'_>) -> Result<(), Error> {
        self.any_line(raw.bytes).map_err(raw.damaged())?;
        self.write_out_if_much()
    }

    fn any_line(&mut self, raw: &[u8]) -> Result<(), Cause> {
        let line = parse(raw)?;
        if self.next != Next::Own && !matches!(line, Line::Cost(_) | Line::Blank) {
            return Err(Cause::NoCallCosts);
        }
        match line {
            Line::Cost(text) => match self.mode {
                Mode::Copy(CopiedCode::Announced) => self.announced_cost(text),
                Mode::Copy(copied) => self.copy_cost(text, copied),
                Mode::Collect(index) => self.collect_cost(text, index),
            },
            Line::Blank => {
                if self.is_copying() {
                    self.raw(raw);
                }
                Ok(())
            }
            Line::Header { key, value } => self.header(key, value, raw),
            Line::Name { field: field @ (Field::Ob | Field::Fl), name } => self.place(field, name),
            Line::Name { field: Field::Fn, name } => self.function(name, raw),
            Line::Name { field: Field::Cob | Field::Cfi | Field::Cfl, .. } => self.target(line),
            Line::Name { field: Field::Cfn, name } => self.callee(name, raw),
            Line::Name { field, name } => self.other_name(field, name, raw),
            Line::Calls { .. } | Line::Jump { .. } if !self.cursor.in_function => {
                Err(Cause::NoFunction)
            }
            Line::Calls { count, target } => self.calls(count, target, raw),
            Line::Jump { taken, executed, target } => self.jump(taken, executed, target, raw),
        }
    }

    fn header(&mut self, key: &[u8], value: &[u8], raw: &[u8]) -> Result<(), Cause> {
        self.end_part();
        match key {
            b"positions" => {
                self.columns = Columns::parse(value)?;
                self.last = Positions::default();
            }
            b"events" => {
                let words = || value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                if words().nth(MOST_EVENTS).is_some() {
                    return Err(Cause::TooManyEvents);
                }
                self.ir = words().position(|event| event == b"Ir").unwrap_or(0);
                self.events = self.summary.begin_part(words());
            }
            b"totals" => {
                let mut rest = value;
                for event in &mut self.summary.events {
                    rest = rest.trim_ascii_start();
                    if rest.is_empty() {
                        break;
                    }
                    event.total = event.total.saturating_add(cost(&mut rest)?);
                }
            }
            _ => {}
        }
        self.raw(raw);
        Ok(())
    }

    /// Handles a call's target. The next line has the position of the call.
    fn calls(&mut self, count: u64, target: &[u8], raw: &[u8]) -> Result<(), Cause> {
        let positions = self.columns.take(&mut &*target, &self.last)?;
        self.target.count = count;
        self.target.address = self.columns.address(&positions).unwrap_or(0);
        self.target.line = self.columns.line(&positions);
        self.next = Next::Call;
        if self.is_copying() {
            self.copy_call(positions, raw);
        }
        Ok(())
    }

    fn jump(
        &mut self,
        taken: u64,
        executed: Option<u64>,
        target: &[u8],
        raw: &[u8],
    ) -> Result<(), Cause> {
        self.summary.has_jumps = true;
        let positions = self.columns.take(&mut &*target, &self.last)?;
        let target = self.columns.address(&positions).unwrap_or(0);
        self.next = Next::Jump { taken, executed, target };
        if self.is_copying() {
            self.copy_jump(taken, executed, &positions, raw);
        }
        Ok(())
    }
}

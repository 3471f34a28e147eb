//! A profile copied, with what was unknown in it named.
//!
//! All goes in one pass. What callgrind knew is [`copied`] as it stands, most of it by [`stretch`]es of many lines, but
//! for the names of unknown [`functions`] that it calls. What callgrind did not know is [`collected`], context by
//! context, and written at the end of its [`part`], taken apart into [`pieces`].

mod collected;
mod copied;
mod flow;
mod functions;
mod gathered;
mod here;
mod naming;
mod part;
mod pieces;
mod recursion;
mod rows;
mod shares;
mod stretch;
mod summary;
mod whole;

use std::collections::BTreeSet;
use std::io::{Read, Write};

use crate::error::{Cause, Error};
use crate::known::CodeMap;
use crate::line::{Field, Line, cost, parse};
use crate::lines::{Lines, Raw};
use crate::names::Names;
use crate::position::{Columns, Positions};

use collected::Contexts;
use here::{Here, Target};
use naming::Naming;
pub use summary::{Event, Summary};

/// Every line of unknown code takes room for all events; callgrind counts some twenty.
const MOST_EVENTS: usize = 256;

/// What is written at once.
const STEP: usize = 1 << 18;

/// Copies the profile `input` to `output`, with what `map` knows of the code that callgrind did not know.
///
/// The sum of all self costs stays what it was, in every part.
///
/// # Errors
/// Where the profile is damaged or cannot be read, or `output` not written. What was written until then is of no use.
pub fn rewrite(
    input: impl Read,
    output: impl Write,
    map: &mut impl CodeMap,
) -> Result<Summary, Error> {
    let mut lines = Lines::new(input);
    let mut rewriter = Rewriter::new(output, map);
    loop {
        if rewriter.copies() {
            let (bytes, count) = rewriter.stretch(lines.waiting());
            lines.skip(bytes, count);
            rewriter.write_out_if_much()?;
        } else if let Some(index) = rewriter.gathers() {
            let (bytes, count) = rewriter.gather(lines.waiting(), index);
            lines.skip(bytes, count);
        }
        let Some(raw) = lines.next_line()? else { break };
        rewriter.line(raw)?;
    }
    rewriter.finish(lines.is_cut_off())
}

/// Where the lines that come belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To a function that is copied.
    Copy(Copied),
    /// To the context with this number.
    Collect(usize),
}

/// A function that is copied, and not collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// callgrind knew it.
    Known,
    /// It did not, and nobody does.
    Unknown,
    /// It did not, and it has a name now.
    Named,
}

/// What the next line of costs is of.
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
    /// The place of the instruction count among the events.
    ir: usize,
    mode: Mode,
    here: Here,
    target: Target,
    next: Next,
    /// Where the line before was, in the input; and whether the output is there too.
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
            mode: Mode::Copy(Copied::Known),
            here: Here::new(),
            target: Target::default(),
            next: Next::Own,
            last: Positions::default(),
            is_in_step: true,
            contexts: Contexts::default(),
            functions: BTreeSet::new(),
            summary: Summary::default(),
        }
    }

    fn write_out_if_much(&mut self) -> Result<(), Error> {
        if self.out.len() >= STEP { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<(), Error> {
        self.output.write_all(&self.out).map_err(Error::Write)?;
        self.out.clear();
        Ok(())
    }

    fn finish(mut self, is_cut_off: bool) -> Result<Summary, Error> {
        if self.events == 0 {
            return Err(Error::Damaged { offset: 0, line: 1, cause: Cause::NoEvents });
        }
        let is_cut_off = is_cut_off || self.next != Next::Own;
        if self.next != Next::Own && self.is_copying() {
            // A call or a jump without its costs would take those of what follows.
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
                Mode::Copy(copied) => self.copied_cost(text, copied),
                Mode::Collect(index) => self.collected_cost(text, index),
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
            Line::Calls { .. } | Line::Jump { .. } if !self.here.in_function => {
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

    /// Where calls and jumps go and come from; the next line says from where.
    fn calls(&mut self, count: u64, target: &[u8], raw: &[u8]) -> Result<(), Cause> {
        let positions = self.columns.take(&mut &*target, &self.last)?;
        self.target.count = count;
        self.target.address = self.columns.address(&positions).unwrap_or(0);
        self.target.line = self.columns.line(&positions);
        self.next = Next::Call;
        if self.is_copying() {
            self.copied_calls(positions, raw);
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
            self.copied_jump(taken, executed, &positions, raw);
        }
        Ok(())
    }
}

//! A profile copied, with what was unknown in it named.
//!
//! All goes in one pass. What callgrind knew is copied as it stands, but for the names of unknown functions that it
//! calls. What callgrind did not know is [`collected`], context by context, and written at the end of its part, taken
//! apart into [`pieces`].

mod collected;
mod flow;
mod pieces;
mod shares;
mod summary;

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};
use std::rc::Rc;

use crate::error::{Cause, Error};
use crate::known::{CodeMap, Function, Owner};
use crate::line::{Field, Kind, Line, NameRef, parse};
use crate::lines::{Lines, Raw};
use crate::name::{Context, Names, UNKNOWN, split_part};
use crate::position::{Columns, Positions, Skipped, push_number};
use crate::write::{Body, push_jump, push_name, push_text};

use collected::{Call, Callee, Collected, Cost, Jump};
use pieces::{Piece, pieces};
pub use summary::Summary;

/// What is written at once.
const STEP: usize = 1 << 18;
/// `--separate-recs=2`, unless the profile has deeper levels.
const LEVELS: u32 = 2;

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
            let Skipped { bytes, lines: count, .. } = rewriter.copy(lines.waiting());
            lines.skip(bytes, count);
            rewriter.write_out_if_much()?;
        }
        let Some(raw) = lines.next_line()? else { break };
        rewriter.line(raw)?;
    }
    rewriter.finish(lines.is_cut_off())
}

/// Where the lines that come belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Copied.
    Copy,
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

/// A name as it was given: its number, if it has one, and what it stands for.
#[derive(Debug, Clone)]
struct Given {
    id: Option<u64>,
    name: Rc<[u8]>,
}

/// What was said of the next call's target.
#[derive(Debug, Default)]
struct Target {
    object: Option<Given>,
    file: Option<Given>,
    file_field: Option<Field>,
    function: Option<Rc<[u8]>>,
    /// The unknown context that it is.
    context: Option<usize>,
    count: u64,
    address: u64,
    line: u64,
}

/// What the next line of costs is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Own,
    Call,
    Jump { taken: u64, executed: Option<u64>, target: u64 },
}

struct Rewriter<'m, M, W> {
    map: &'m mut M,
    output: W,
    out: Vec<u8>,
    names: Names,
    columns: Columns,
    events: usize,
    /// The place of the instruction count among the events.
    ir: usize,
    mode: Mode,
    /// Whether a function was said at all.
    in_function: bool,
    /// What the function is that is copied.
    copied: Copied,
    object: Given,
    file: Given,
    line_file: Rc<[u8]>,
    /// Whether the output has another object or file than the input where it is copied.
    is_elsewhere: bool,
    /// Where the line before was, in the input; and whether the output is there too.
    last: Positions,
    is_in_step: bool,
    target: Target,
    next: Next,
    contexts: Vec<Collected>,
    by_name: HashMap<Rc<[u8]>, usize>,
    /// The most callers that a name has (`--separate-callers`).
    callers: usize,
    levels: u32,
    functions: BTreeSet<u32>,
    summary: Summary,
}

impl<'m, M: CodeMap, W: Write> Rewriter<'m, M, W> {
    fn new(output: W, map: &'m mut M) -> Self {
        let nothing = Given { id: None, name: UNKNOWN.into() };
        Self {
            map,
            output,
            out: Vec::with_capacity(STEP.saturating_mul(2)),
            names: Names::default(),
            columns: Columns::default(),
            events: 0,
            ir: 0,
            mode: Mode::Copy,
            in_function: false,
            copied: Copied::Known,
            object: Given { id: None, name: b"".as_slice().into() },
            file: nothing,
            line_file: UNKNOWN.into(),
            is_elsewhere: false,
            last: Positions::default(),
            is_in_step: true,
            target: Target::default(),
            next: Next::Own,
            contexts: Vec::new(),
            by_name: HashMap::new(),
            callers: 0,
            levels: LEVELS,
            functions: BTreeSet::new(),
            summary: Summary::default(),
        }
    }

    fn line(&mut self, raw: Raw<'_>) -> Result<(), Error> {
        // Most lines are costs that are copied.
        if self.mode == Mode::Copy
            && let Some(b'0'..=b'9' | b'+' | b'-' | b'*') = raw.bytes.first()
        {
            self.copied_cost(raw.bytes).map_err(raw.damaged())?;
        } else {
            self.other_line(raw).map_err(raw.damaged())?;
        }
        self.write_out_if_much()
    }

    /// Whether lines of costs are copied as they are.
    fn copies(&self) -> bool {
        self.mode == Mode::Copy
            && self.in_function
            && self.copied == Copied::Known
            && self.next == Next::Own
            && self.is_in_step
            && !self.is_elsewhere
    }

    /// Copies what may be copied as it stands from the beginning of `waiting`.
    fn copy(&mut self, waiting: &[u8]) -> Skipped {
        let skipped = self.columns.skip(waiting, &mut self.last);
        self.summary.has_jumps |= skipped.has_jumps;
        self.out.extend_from_slice(waiting.get(..skipped.bytes).unwrap_or_default());
        skipped
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
        self.end_part();
        self.write_out()?;
        self.output.flush().map_err(Error::Write)?;
        self.summary.functions = self.functions.len();
        self.summary.has_instructions = self.columns.has_instr();
        self.summary.is_cut_off = is_cut_off;
        Ok(self.summary)
    }

    fn raw(&mut self, line: &[u8]) {
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
    }

    fn copied_cost(&mut self, line: &[u8]) -> Result<(), Cause> {
        if !self.in_function {
            return Err(Cause::NoFunction);
        }
        if self.is_elsewhere {
            self.say_where();
        }
        let mut rest = line;
        let positions = self.columns.take(&mut rest, &self.last)?;
        if self.is_in_step || self.columns.are_whole(line) {
            self.raw(line);
        } else {
            self.columns.push(&mut self.out, &positions, None);
            let rest = rest.trim_ascii_start();
            self.raw(rest);
        }
        self.is_in_step = true;
        self.last = positions;
        match std::mem::replace(&mut self.next, Next::Own) {
            Next::Own => self.count(rest)?,
            Next::Call | Next::Jump { .. } => {}
        }
        Ok(())
    }

    /// Counts what is copied of functions that callgrind did not know.
    fn count(&mut self, mut costs: &[u8]) -> Result<(), Cause> {
        let Summary { unknown, named, .. } = &mut self.summary;
        for (unknown, named) in unknown.iter_mut().zip(named) {
            costs = costs.trim_ascii_start();
            if costs.is_empty() || self.copied == Copied::Known {
                break;
            }
            let cost = crate::line::cost(&mut costs)?;
            *unknown = unknown.saturating_add(cost);
            if self.copied == Copied::Named {
                *named = named.saturating_add(cost);
            }
        }
        Ok(())
    }

    fn other_line(&mut self, raw: Raw<'_>) -> Result<(), Cause> {
        let line = parse(raw.bytes)?;
        if self.next != Next::Own && !matches!(line, Line::Cost(_) | Line::Blank) {
            return Err(Cause::NoCallCosts);
        }
        match line {
            Line::Blank => {
                if self.mode == Mode::Copy {
                    self.raw(raw.bytes);
                }
            }
            Line::Header { key, value } => self.header(key, value, raw.bytes)?,
            Line::Name { field, name } => self.name(field, name, raw.bytes)?,
            Line::Calls { count, target } => self.calls(count, target, raw.bytes)?,
            Line::Jump { taken, executed, target } => {
                self.jump(taken, executed, target, raw.bytes)?;
            }
            Line::Cost(text) => self.collected_cost(text)?,
        }
        Ok(())
    }

    fn header(&mut self, key: &[u8], value: &[u8], line: &[u8]) -> Result<(), Cause> {
        self.end_part();
        match key {
            b"positions" => {
                self.columns = Columns::parse(value)?;
                self.last = Positions::default();
            }
            b"events" => {
                let words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                let events: Vec<String> =
                    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
                self.events = events.len();
                self.ir = events.iter().position(|event| event == "Ir").unwrap_or(0);
                for sums in
                    [&mut self.summary.total, &mut self.summary.unknown, &mut self.summary.named]
                {
                    sums.resize(sums.len().max(events.len()), 0);
                }
                self.summary.events = events;
                self.summary.parts = self.summary.parts.saturating_add(1);
            }
            b"totals" => {
                let mut rest = value;
                for sum in &mut self.summary.total {
                    rest = rest.trim_ascii_start();
                    if rest.is_empty() {
                        break;
                    }
                    *sum = sum.saturating_add(crate::line::cost(&mut rest)?);
                }
            }
            _ => {}
        }
        self.raw(line);
        Ok(())
    }

    fn name(&mut self, field: Field, name: NameRef<'_>, line: &[u8]) -> Result<(), Cause> {
        match field {
            Field::Ob | Field::Fl => {
                let given = self.left_out(field.kind(), name)?;
                if field == Field::Ob {
                    self.object = given;
                } else {
                    self.line_file = Rc::clone(&given.name);
                    self.file = given;
                }
                self.is_elsewhere = true;
                Ok(())
            }
            Field::Fn => self.function(name),
            Field::Fi | Field::Fe | Field::Jfi | Field::Jfn => {
                if self.mode == Mode::Copy {
                    if self.is_elsewhere {
                        self.say_where();
                    }
                    let resolved = self.copied_name(field, name, line)?;
                    if matches!(field, Field::Fi | Field::Fe) {
                        self.line_file = resolved;
                    }
                } else {
                    let given = self.left_out(field.kind(), name)?;
                    if matches!(field, Field::Fi | Field::Fe) {
                        self.line_file = given.name;
                    }
                }
                Ok(())
            }
            Field::Cob => {
                self.target.object = Some(self.left_out(Kind::Object, name)?);
                Ok(())
            }
            Field::Cfi | Field::Cfl => {
                self.target.file = Some(self.left_out(Kind::File, name)?);
                self.target.file_field = Some(field);
                Ok(())
            }
            Field::Cfn => self.callee(name, line),
        }
    }

    /// A name whose line is not copied.
    fn left_out(&mut self, kind: Kind, name: NameRef<'_>) -> Result<Given, Cause> {
        let resolved = self.names.resolve(kind, name)?;
        self.names.leave_out(kind, name);
        Ok(Given { id: name.id, name: resolved })
    }

    /// A name whose line is copied: with the name in it, if the output has not said it yet, and with the callers
    /// named that are in it.
    fn copied_name(
        &mut self,
        field: Field,
        name: NameRef<'_>,
        line: &[u8],
    ) -> Result<Rc<[u8]>, Cause> {
        let resolved = self.names.resolve(field.kind(), name)?;
        let unsaid = self.names.say(field.kind(), name);
        if field.kind() == Kind::Function && !(name.id.is_some() && name.text.is_empty()) {
            self.count_callers(&resolved);
        }
        if let Some(unsaid) = unsaid {
            self.push_given(field, name.id, Some(&unsaid));
        } else if !name.text.is_empty() && name_has_callers(field, &resolved) {
            // Its numbers are resolved: a part of the name may be one.
            self.push_given(field, name.id, Some(&resolved));
        } else {
            self.raw(line);
        }
        Ok(resolved)
    }

    /// Writes `field=(id) name`.
    fn push_given(&mut self, field: Field, id: Option<u64>, name: Option<&[u8]>) {
        let callers;
        let name = match name {
            Some(name) if field.kind() == Kind::Function => {
                callers = self.with_callers_named(name);
                Some(callers.as_slice())
            }
            name => name,
        };
        match id {
            None => push_name(&mut self.out, field.key(), name.unwrap_or_default()),
            Some(id) => {
                self.out.extend_from_slice(field.key().as_bytes());
                self.out.extend_from_slice(b"=(");
                push_number(&mut self.out, id);
                self.out.push(b')');
                if let Some(name) = name {
                    self.out.push(b' ');
                    push_text(&mut self.out, name);
                }
                self.out.push(b'\n');
            }
        }
    }

    /// A name whose callers, if they are unknown code, are named.
    fn with_callers_named(&mut self, name: &[u8]) -> Vec<u8> {
        let (own, callers) = split_part(name);
        let mut whole = own.to_vec();
        let callers = self.callers_named(callers);
        whole.extend_from_slice(&callers);
        whole
    }

    /// Callers, each with a `'` before it.
    fn callers_named(&mut self, callers: &[u8]) -> Vec<u8> {
        let mut whole = Vec::with_capacity(callers.len());
        for part in callers.split(|&byte| byte == b'\'').skip(1) {
            whole.push(b'\'');
            let owner = Context::parse(part).and_then(|context| self.map.at(context.address));
            match owner {
                Some(owner) => whole.extend_from_slice(&self.map.function(owner.function).name),
                None => whole.extend_from_slice(part),
            }
        }
        whole
    }

    fn count_callers(&mut self, name: &[u8]) {
        let mut parts = name.split(|&byte| byte == b'\'').skip(1).peekable();
        if let Some(level) = parts.peek().and_then(|part| crate::line::decimal(part)) {
            parts.next();
            self.levels = self.levels.max(u32::try_from(level).unwrap_or(LEVELS).min(99));
        }
        self.callers = self.callers.max(parts.count());
    }

    /// Says the object and file of what is copied.
    fn say_where(&mut self) {
        self.is_elsewhere = false;
        for (field, given) in [(Field::Ob, self.object.clone()), (Field::Fl, self.file.clone())] {
            if given.name.is_empty() {
                continue;
            }
            let reference = NameRef { id: given.id, text: b"" };
            let unsaid = self.names.say(field.kind(), reference);
            let name = if given.id.is_none() { Some(given.name) } else { unsaid };
            self.push_given(field, given.id, name.as_deref());
        }
    }

    /// The unknown context of this name in the current object.
    fn context(&mut self, name: &Rc<[u8]>, object: &Rc<[u8]>, file: &Rc<[u8]>) -> Option<usize> {
        if **object != *UNKNOWN {
            return None;
        }
        if let Some(&index) = self.by_name.get(name) {
            return Some(index);
        }
        let context = Context::parse(name)?;
        self.count_callers(name);
        let index = self.contexts.len();
        self.contexts.push(Collected {
            owner: self.map.at(context.address),
            context,
            name: Rc::clone(name),
            object: Rc::clone(object),
            file: Rc::clone(file),
            entries: 0,
            is_called_from_elsewhere: false,
            costs: Vec::new(),
            calls: Vec::new(),
            jumps: Vec::new(),
            values: Vec::new(),
        });
        self.by_name.insert(Rc::clone(name), index);
        Some(index)
    }

    fn function(&mut self, name: NameRef<'_>) -> Result<(), Cause> {
        self.in_function = true;
        self.target = Target::default();
        let resolved = self.names.resolve(Kind::Function, name)?;
        self.line_file = Rc::clone(&self.file.name);
        let (object, file) = (Rc::clone(&self.object.name), Rc::clone(&self.file.name));
        let context = self.context(&resolved, &object, &file);
        self.copied = if context.is_some() { Copied::Unknown } else { Copied::Known };
        if let Some(index) = context {
            let owner = self.contexts.get(index).and_then(|context| context.owner.clone());
            if self.columns.has_instr() {
                self.names.leave_out(Kind::Function, name);
                self.mode = Mode::Collect(index);
                self.is_in_step = false;
                return Ok(());
            }
            if let Some(owner) = owner {
                // Without instructions: another name, and nothing else.
                self.names.leave_out(Kind::Function, name);
                self.mode = Mode::Copy;
                self.begin_named(index, &owner);
                return Ok(());
            }
        }
        self.mode = Mode::Copy;
        self.say_where();
        let mut line = b"fn=".to_vec();
        push_reference(&mut line, name);
        self.copied_name(Field::Fn, name, &line)?;
        Ok(())
    }

    fn begin_named(&mut self, index: usize, owner: &Owner) {
        self.copied = Copied::Named;
        self.summary.contexts = self.summary.contexts.saturating_add(1);
        let Some(context) = self.contexts.get(index) else { return };
        let (level, callers) = (context.context.level, context.context.callers.clone());
        let function = self.map.function(owner.function);
        self.functions.insert(owner.function);
        let name = self.decorated(&function.name, level, &callers);
        push_name(&mut self.out, "ob", &function.object);
        push_name(&mut self.out, "fl", &function.file);
        push_name(&mut self.out, "fn", &name);
        self.is_elsewhere = false;
        // The next one says where it is.
    }

    /// A name with its level of recursion and its callers.
    fn decorated(&mut self, name: &[u8], level: u32, callers: &[u8]) -> Vec<u8> {
        let mut whole = name.to_vec();
        if level > 1 {
            whole.extend_from_slice(format!("'{level}").as_bytes());
        }
        let callers = self.callers_named(callers);
        whole.extend_from_slice(&callers);
        whole
    }

    fn callee(&mut self, name: NameRef<'_>, line: &[u8]) -> Result<(), Cause> {
        let resolved = self.names.resolve(Kind::Function, name)?;
        let object = self.target.object.as_ref().unwrap_or(&self.object);
        if *object.name != *UNKNOWN && self.mode == Mode::Copy {
            return self.copied_callee(name, line);
        }
        let object = Rc::clone(&object.name);
        let file = self.target.file.as_ref().map(|given| Rc::clone(&given.name));
        let file = file.unwrap_or_else(|| Rc::clone(&self.line_file));
        self.target.context = self.context(&resolved, &object, &file);
        self.target.function = Some(Rc::clone(&resolved));
        if self.mode != Mode::Copy {
            self.names.leave_out(Kind::Function, name);
            return Ok(());
        }
        if self.is_elsewhere {
            self.say_where();
        }
        let owner = self
            .target
            .context
            .and_then(|index| self.contexts.get(index))
            .and_then(|context| Some((context.owner.clone()?, context.context.clone())));
        let Some((owner, context)) = owner else { return self.copied_callee(name, line) };
        self.names.leave_out(Kind::Function, name);
        let function = self.map.function(owner.function);
        let name = self.decorated(&function.name, context.level, &context.callers);
        push_name(&mut self.out, "cob", &function.object);
        push_name(&mut self.out, "cfi", &function.file);
        push_name(&mut self.out, "cfn", &name);
        Ok(())
    }

    /// A call's target that stays as it is.
    fn copied_callee(&mut self, name: NameRef<'_>, line: &[u8]) -> Result<(), Cause> {
        if self.is_elsewhere {
            self.say_where();
        }
        if let Some(given) = self.target.object.take() {
            self.push_target(Field::Cob, given);
        }
        if let Some(given) = self.target.file.take() {
            self.push_target(self.target.file_field.unwrap_or(Field::Cfi), given);
        }
        self.copied_name(Field::Cfn, name, line)?;
        Ok(())
    }

    fn push_target(&mut self, field: Field, given: Given) {
        let unsaid = self.names.say(field.kind(), NameRef { id: given.id, text: b"" });
        let name = if given.id.is_none() { Some(given.name) } else { unsaid };
        self.push_given(field, given.id, name.as_deref());
    }

    fn calls(&mut self, count: u64, target: &[u8], line: &[u8]) -> Result<(), Cause> {
        if !self.in_function {
            return Err(Cause::NoFunction);
        }
        let positions = self.columns.take(&mut &*target, &self.last)?;
        self.target.count = count;
        self.target.address = self.columns.address(&positions).unwrap_or(0);
        self.target.line = self.columns.line(&positions);
        self.next = Next::Call;
        if self.mode != Mode::Copy {
            return Ok(());
        }
        // Nothing may come between this line and its costs.
        if self.is_elsewhere {
            self.say_where();
        }
        let context = self.target.context.and_then(|index| self.contexts.get_mut(index));
        let mut owner = None;
        if let Some(context) = context {
            context.entries = context.entries.saturating_add(count);
            context.is_called_from_elsewhere = true;
            owner = context.owner.clone();
        }
        self.target = Target::default();
        if owner.is_some() || !self.is_in_step {
            let mut positions = positions;
            if let (Some(owner), Some(address)) = (owner, self.columns.address(&positions)) {
                let place = self.map.place(owner.function, address);
                positions =
                    self.columns.of(address, place.map_or(0, |place| u64::from(place.line)));
            }
            self.out.extend_from_slice(b"calls=");
            push_number(&mut self.out, count);
            self.out.push(b' ');
            self.columns.push(&mut self.out, &positions, None);
            self.out.push(b'\n');
        } else {
            self.raw(line);
        }
        Ok(())
    }

    fn jump(
        &mut self,
        taken: u64,
        executed: Option<u64>,
        target: &[u8],
        line: &[u8],
    ) -> Result<(), Cause> {
        if !self.in_function {
            return Err(Cause::NoFunction);
        }
        self.summary.has_jumps = true;
        let positions = self.columns.take(&mut &*target, &self.last)?;
        let target = self.columns.address(&positions).unwrap_or(0);
        self.next = Next::Jump { taken, executed, target };
        if self.mode != Mode::Copy {
            return Ok(());
        }
        if self.is_elsewhere {
            self.say_where();
        }
        if self.is_in_step {
            self.raw(line);
        } else {
            push_jump(&mut self.out, taken, executed);
            self.columns.push(&mut self.out, &positions, None);
            self.out.push(b'\n');
        }
        Ok(())
    }

    /// A line of costs of an unknown context.
    fn collected_cost(&mut self, text: &[u8]) -> Result<(), Cause> {
        let Mode::Collect(index) = self.mode else { return self.copied_cost(text) };
        let mut rest = text;
        let positions = self.columns.take(&mut rest, &self.last)?;
        self.last = positions;
        let next = std::mem::replace(&mut self.next, Next::Own);
        let line = self.columns.line(&positions);
        let address = self.columns.address(&positions).unwrap_or(0);
        if let Next::Jump { taken, executed, target } = next {
            if let Some(context) = self.contexts.get_mut(index) {
                context.jumps.push(Jump { address, line, target, taken, executed });
            }
            return Ok(());
        }
        let target = std::mem::take(&mut self.target);
        if let Some(callee) = target.context.and_then(|index| self.contexts.get_mut(index))
            && next == Next::Call
        {
            callee.entries = callee.entries.saturating_add(target.count);
        }
        let Some(context) = self.contexts.get_mut(index) else { return Ok(()) };
        let values = context.values.len();
        for _ in 0..self.events {
            rest = rest.trim_ascii_start();
            let value = if rest.is_empty() { 0 } else { crate::line::cost(&mut rest)? };
            context.values.push(value);
        }
        if next == Next::Own {
            context.costs.push(Cost { address, line, values });
            let values = context.values.get(values..).unwrap_or_default();
            add(&mut self.summary.unknown, values);
            return Ok(());
        }
        let callee = match target.context {
            Some(callee) => Callee::Unknown(callee),
            None => Callee::Known {
                object: target
                    .object
                    .map_or_else(|| Rc::clone(&self.object.name), |given| given.name),
                file: target.file.map_or_else(|| Rc::clone(&self.line_file), |given| given.name),
                name: target.function.ok_or(Cause::NoNumber)?,
            },
        };
        let (target, target_line, count) = (target.address, target.line, target.count);
        context.calls.push(Call { address, line, callee, target, target_line, count, values });
        Ok(())
    }

    /// Writes what was collected.
    fn end_part(&mut self) {
        if self.mode != Mode::Copy {
            // What follows is of no function that was copied.
            self.in_function = false;
            self.mode = Mode::Copy;
        }
        self.by_name.clear();
        let mut contexts = std::mem::take(&mut self.contexts);
        if contexts.is_empty() || !self.columns.has_instr() {
            return;
        }
        let (events, ir, has_jumps) = (self.events, self.ir, self.summary.has_jumps);
        let all: Vec<Vec<Piece>> = contexts
            .iter()
            .map(|context| pieces(context, self.map, events, ir, has_jumps))
            .collect();
        recursions(&mut contexts, &all, self.levels);
        let functions: Vec<[Rc<[u8]>; 3]> =
            contexts.iter().map(|context| self.own_function(context)).collect();
        for ((context, pieces), own) in contexts.iter().zip(&all).zip(&functions) {
            if context.owner.is_some() && !context.costs.is_empty() {
                self.summary.contexts = self.summary.contexts.saturating_add(1);
            }
            self.pieces(context, pieces, own, &functions);
        }
        self.is_elsewhere = true;
        self.is_in_step = false;
    }

    /// Object, file and name of a context's own function.
    fn own_function(&mut self, context: &Collected) -> [Rc<[u8]>; 3] {
        match &context.owner {
            Some(owner) => {
                let Function { name, object, file } = self.map.function(owner.function);
                let level = context.context.level;
                [object, file, self.decorated(&name, level, &context.context.callers).into()]
            }
            None => [
                Rc::clone(&context.object),
                Rc::clone(&context.file),
                self.with_callers_named(&context.name).into(),
            ],
        }
    }

    /// The functions of a context's pieces.
    fn piece_functions(
        &mut self,
        context: &Collected,
        pieces: &[Piece],
        own: &[Rc<[u8]>; 3],
    ) -> Vec<[Rc<[u8]>; 3]> {
        let mut all = vec![own.clone()];
        // Who was entered by a jump was called by the context's own function, as far as a name can say it.
        let mut callers = Vec::new();
        if self.callers > 0 {
            let (plain, _) = match &context.owner {
                Some(owner) => (self.map.function(owner.function).name.to_vec(), ()),
                None => (split_part(&context.name).0.to_vec(), ()),
            };
            let parts = context.context.callers.split(|&byte| byte == b'\'').skip(1);
            let parts = std::iter::once(plain.as_slice()).chain(parts);
            for part in parts.take(self.callers) {
                callers.push(b'\'');
                callers.extend_from_slice(part);
            }
        }
        for piece in pieces.iter().skip(1) {
            let Some(owner) = &piece.owner else { continue };
            let Function { name, object, file } = self.map.function(owner.function);
            let name = self.decorated(&name, context.context.level, &callers);
            all.push([object, file, name.into()]);
        }
        all
    }

    fn pieces(
        &mut self,
        context: &Collected,
        pieces: &[Piece],
        own: &[Rc<[u8]>; 3],
        functions: &[[Rc<[u8]>; 3]],
    ) {
        let entered = self.piece_functions(context, pieces, own);
        for (piece, [object, file, name]) in pieces.iter().zip(&entered) {
            if let Some(owner) = &piece.owner {
                self.functions.insert(owner.function);
                for row in &piece.rows {
                    add(&mut self.summary.named, piece.values(row, self.events));
                }
            }
            let jumped = piece.entries.iter().filter(|entry| entry.count > 0);
            let jumped: u64 = jumped.map(|entry| entry.count).fold(0, u64::saturating_add);
            self.summary.entered_by_jump = self.summary.entered_by_jump.saturating_add(jumped);
            if piece.rows.is_empty() && piece.calls.is_empty() && piece.jumps.is_empty() {
                continue;
            }
            // By address; at one address the self cost first.
            enum Item<'a> {
                Cost(&'a [u64]),
                Call(&'a Call, &'a [u64]),
                Entry(&'a pieces::Entry),
                Jump(&'a Jump),
            }
            let mut items: Vec<(u64, u64, Item<'_>)> = Vec::with_capacity(piece.rows.len());
            for row in &piece.rows {
                let costs = piece.values(row, self.events);
                // Of what was several functions', one may have had nothing.
                if pieces.len() > 1 && costs.iter().all(|&cost| cost == 0) {
                    continue;
                }
                items.push((row.address, row.line, Item::Cost(costs)));
            }
            for (call, costs) in &piece.calls {
                items.push((call.address, call.line, Item::Call(call, costs)));
            }
            for entry in &piece.entries {
                items.push((entry.address, entry.line, Item::Entry(entry)));
            }
            for jump in &piece.jumps {
                items.push((jump.address, jump.line, Item::Jump(jump)));
            }
            items.sort_by_key(|&(address, _, _)| address);

            let map = &mut *self.map;
            let mut at: Option<Owner> = None;
            let mut place = |address: u64, line: u64| {
                if !at.as_ref().is_some_and(|owner| owner.visible.contains(&address)) {
                    at = map.at(address);
                }
                let place = at.as_ref().and_then(|owner| map.place(owner.function, address));
                match place {
                    Some(place) => (Some(place.file), u64::from(place.line)),
                    None => (None, line),
                }
            };
            let mut body = Body::new(&mut self.out, self.columns, object, file, name);
            for (address, line, item) in items {
                let (line_file, line) = place(address, line);
                // Without a line of its own it stays in the function's file.
                body.file(line_file.as_deref().unwrap_or(file));
                match item {
                    Item::Cost(costs) => body.cost(address, line, costs),
                    Item::Call(call, costs) => {
                        let callee = match &call.callee {
                            Callee::Unknown(index) => functions.get(*index).cloned(),
                            Callee::Known { object, file, name } => {
                                Some([Rc::clone(object), Rc::clone(file), Rc::clone(name)])
                            }
                        };
                        let Some(callee) = callee else { continue };
                        let target_line = match &call.callee {
                            Callee::Unknown(_) => place(call.target, call.target_line).1,
                            Callee::Known { .. } => call.target_line,
                        };
                        let target = (call.target, target_line);
                        let [object, file, name] = &callee;
                        body.call([object, file, name], call.count, target, (address, line), costs);
                    }
                    Item::Entry(entry) => {
                        let Some([object, file, name]) = entered.get(entry.to) else { continue };
                        let target = (entry.target, place(entry.target, 0).1);
                        let from = (address, line);
                        body.call(
                            [object, file, name],
                            entry.count,
                            target,
                            from,
                            &entry.inclusive,
                        );
                    }
                    Item::Jump(jump) => {
                        let target = (jump.target, place(jump.target, 0).1);
                        body.jump(jump.taken, jump.executed, target, (address, line));
                    }
                }
            }
        }
    }
}

/// Whether a name is a function's with callers in it, one of which may be unknown.
fn name_has_callers(field: Field, name: &[u8]) -> bool {
    field.kind() == Kind::Function && memchr::memmem::find(name, b"'0x").is_some()
}

fn push_reference(line: &mut Vec<u8>, name: NameRef<'_>) {
    if let Some(id) = name.id {
        line.extend_from_slice(format!("({id})").as_bytes());
        if !name.text.is_empty() {
            line.push(b' ');
        }
    }
    line.extend_from_slice(name.text);
}

fn add(sums: &mut [u64], costs: &[u64]) {
    sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
}

/// Gives contexts that are entered in a function's middle, and by nobody but that function itself, their level of
/// recursion: callgrind, which takes them for functions of their own, begins to count anew.
fn recursions(contexts: &mut [Collected], all: &[Vec<Piece>], levels: u32) {
    let mut callers: Vec<Option<u32>> = vec![None; contexts.len()];
    let mut is_elsewhere: Vec<bool> =
        contexts.iter().map(|context| context.is_called_from_elsewhere).collect();
    for (number, (context, pieces)) in contexts.iter().zip(all).enumerate() {
        for piece in pieces {
            let function = piece.owner.as_ref().map(|owner| owner.function);
            for (call, _) in &piece.calls {
                let Callee::Unknown(index) = call.callee else { continue };
                let Some(callee) = contexts.get(index) else { continue };
                if index == number {
                    continue;
                }
                let callee = callee.owner.as_ref().map(|owner| owner.function);
                if callee.is_some() && callee == function {
                    if let Some(lowest) = callers.get_mut(index) {
                        let level = context.context.level;
                        *lowest = Some(lowest.map_or(level, |lowest| lowest.min(level)));
                    }
                } else if let Some(elsewhere) = is_elsewhere.get_mut(index) {
                    *elsewhere = true;
                }
            }
        }
    }
    for ((context, caller), elsewhere) in contexts.iter_mut().zip(callers).zip(is_elsewhere) {
        if let Some(caller) = caller.filter(|_| !elsewhere && !context.begins_function()) {
            context.context.level = context.context.level.max(caller.saturating_add(1)).min(levels);
        }
    }
}

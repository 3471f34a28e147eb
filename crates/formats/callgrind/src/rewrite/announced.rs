//! Code that callgrind knew while it ran, because its process announced it.
//!
//! callgrind keeps the names of such code, and looks up lines only when it writes the profile. If the code is gone by then,
//! the lines are 0; if other code is at its addresses, they are that code's. The map has the lines that were announced.

use std::io::Write;
use std::rc::Rc;

use super::cursor::{AnnouncedFunction, ResolvedName};
use super::{CopiedCode, Mode, Next, Rewriter, STEP};
use crate::code_map::{CodeMap, Place};
use crate::error::Cause;
use crate::line::Field;
use crate::position::Positions;
use crate::write::push_name;

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Begins a function, whose name has been written, if it belongs to an announced object.
    pub(super) fn begin_announced(&mut self, name: &Rc<[u8]>) {
        if !self.cursor.is_announced || !self.columns.has_line() {
            return;
        }
        self.mode = Mode::Copy(CopiedCode::Announced);
        self.announced = Some(AnnouncedFunction {
            name: Rc::clone(name),
            file: Rc::clone(&self.cursor.file.name),
            last: None,
            begins: None,
            jump_file: None,
        });
    }

    /// Records that the next line to be written is the first one of a call or jump.
    pub(super) fn begin_item(&mut self) {
        let at = self.out.len();
        if let Some(function) = &mut self.announced {
            function.begins.get_or_insert(at);
        }
    }

    /// Whether lines are held back until their position is known.
    pub(super) fn holds_item(&self) -> bool {
        self.announced.as_ref().is_some_and(|function| function.begins.is_some())
            && self.out.len() < STEP.saturating_mul(4)
    }

    /// Forgets where the item begins: that part of the output is written.
    pub(super) fn end_item(&mut self) {
        if let Some(function) = &mut self.announced {
            function.begins = None;
        }
    }

    /// Handles `fi`, `fe` and `jfi`. They are written with the lines that need them.
    pub(super) fn announced_file(&mut self, field: Field, given: ResolvedName) {
        if field != Field::Jfi {
            self.cursor.line_file = given.name;
        } else if let Some(function) = &mut self.announced {
            function.jump_file = Some(given.name);
        }
    }

    /// The positions of a jump's target, with its line.
    pub(super) fn announced_target(&mut self, target: Positions) -> Positions {
        let Some(place) = self.announced_place(&target) else { return target };
        if let Some(function) = &mut self.announced {
            function.jump_file = Some(place.file);
        }
        self.columns.with_line(target, place.line.into())
    }

    /// Copies a line with costs, or with the position of a call or jump.
    pub(super) fn announced_cost(&mut self, line: &[u8]) -> Result<(), Cause> {
        let mut rest = line;
        let given = self.columns.take(&mut rest, &self.last)?;
        self.last = given;
        let next = std::mem::replace(&mut self.next, Next::Own);
        let place = self.announced_place(&given);
        let (positions, file) = match &place {
            Some(place) => {
                (self.columns.with_line(given, place.line.into()), Rc::clone(&place.file))
            }
            None => (given, Rc::clone(&self.cursor.line_file)),
        };
        if next == Next::Own {
            self.count_lines(rest, &given, &positions, file != self.cursor.line_file)?;
        }
        let mut changes = Vec::new();
        let Some(function) = &mut self.announced else { return Err(Cause::NoFunction) };
        if function.file != file {
            let field = if self.cursor.file.name == file { "fe" } else { "fi" };
            push_name(&mut changes, field, &file);
            function.file = Rc::clone(&file);
        }
        let target = function.jump_file.take().unwrap_or_else(|| Rc::clone(&self.cursor.line_file));
        if matches!(next, Next::Jump { .. }) && target != file {
            push_name(&mut changes, "jfi", &target);
        }
        let last = function.last.replace(positions);
        if let Some(at) = function.begins.take().filter(|at| *at <= self.out.len()) {
            self.out.splice(at..at, changes);
        } else {
            self.out.append(&mut changes);
        }
        if self.is_in_step && positions == given {
            self.raw(line);
        } else {
            self.columns.push(&mut self.out, &positions, last.as_ref());
            self.raw(rest.trim_ascii_start());
        }
        self.is_in_step = positions == given;
        Ok(())
    }

    /// The place of an instruction of the function, if it differs from that in the profile.
    fn announced_place(&mut self, positions: &Positions) -> Option<Place> {
        let address = self.columns.address(positions)?;
        let line = self.columns.line(positions);
        let function = self.announced.as_ref()?;
        self.naming.map.announced_place(&function.name, address, line)
    }

    /// Counts the costs of announced code.
    fn count_lines(
        &mut self,
        mut costs: &[u8],
        before: &Positions,
        after: &Positions,
        is_other_file: bool,
    ) -> Result<(), Cause> {
        let [before, after] = [before, after].map(|positions| self.columns.line(positions));
        let is_other = before != after || is_other_file;
        if before > 0 && !is_other {
            return Ok(());
        }
        for event in &mut self.summary.events {
            costs = costs.trim_ascii_start();
            if costs.is_empty() {
                break;
            }
            let cost = crate::line::cost(&mut costs)?;
            let of = if before > 0 { &mut event.corrected } else { &mut event.without_line };
            *of = of.saturating_add(cost);
            if before == 0 && after > 0 {
                event.restored = event.restored.saturating_add(cost);
            }
        }
        Ok(())
    }
}

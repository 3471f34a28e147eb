//! Lines that are copied one at a time.

use std::io::Write;
use std::rc::Rc;

use super::cursor::{ResolvedName, Target};
use super::naming::has_unknown_callers;
use super::{CopiedCode, Next, Rewriter};
use crate::code_map::CodeMap;
use crate::error::Cause;
use crate::line::{Field, Kind, NameRef, cost};
use crate::position::{Positions, push_number};
use crate::write::{push_jump, push_name, push_text};

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Copies a line unchanged.
    pub(super) fn raw(&mut self, line: &[u8]) {
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
    }

    pub(super) fn copy_cost(&mut self, line: &[u8], copied: CopiedCode) -> Result<(), Cause> {
        if !self.cursor.in_function {
            return Err(Cause::NoFunction);
        }
        self.write_location();
        let mut rest = line;
        let positions = self.columns.take(&mut rest, &self.last)?;
        if self.is_in_step || self.columns.are_whole(line) {
            self.raw(line);
        } else {
            self.columns.push(&mut self.out, &positions, None);
            self.raw(rest.trim_ascii_start());
        }
        self.is_in_step = true;
        self.last = positions;
        match std::mem::replace(&mut self.next, Next::Own) {
            Next::Own if copied != CopiedCode::Known => self.count(rest, copied),
            _ => Ok(()),
        }
    }

    /// Counts the costs that are copied from functions that callgrind did not know.
    fn count(&mut self, mut costs: &[u8], copied: CopiedCode) -> Result<(), Cause> {
        for event in &mut self.summary.events {
            costs = costs.trim_ascii_start();
            if costs.is_empty() {
                break;
            }
            let cost = cost(&mut costs)?;
            event.unknown = event.unknown.saturating_add(cost);
            if copied == CopiedCode::Named {
                event.named = event.named.saturating_add(cost);
            }
        }
        Ok(())
    }

    /// Copies a call's line with count and target, whose positions are `positions`.
    pub(super) fn copy_call(&mut self, positions: Positions, line: &[u8]) {
        self.begin_item();
        // Nothing may be between this line and its costs.
        self.write_location();
        let Target { context, count, .. } = std::mem::take(&mut self.target);
        let context = context.and_then(|index| self.contexts.get_mut(index));
        let mut owner = None;
        if let Some(context) = context {
            context.entries = context.entries.saturating_add(count);
            context.is_called_from_elsewhere = true;
            owner = context.owner.clone();
        }
        if owner.is_none() && self.is_in_step {
            return self.raw(line);
        }
        let mut positions = positions;
        if let (Some(owner), Some(address)) = (owner, self.columns.address(&positions)) {
            let place = self.naming.map.place(owner.function, address);
            positions = self.columns.of(address, place.map_or(0, |place| u64::from(place.line)));
        }
        self.out.extend_from_slice(b"calls=");
        push_number(&mut self.out, count);
        self.out.push(b' ');
        self.columns.push(&mut self.out, &positions, None);
        self.out.push(b'\n');
    }

    pub(super) fn copy_jump(
        &mut self,
        taken: u64,
        executed: Option<u64>,
        target: &Positions,
        line: &[u8],
    ) {
        self.write_location();
        self.begin_item();
        let given = target;
        let target = &match self.is_announced() {
            true => self.announced_target(*target),
            false => *target,
        };
        if self.is_in_step && target == given {
            return self.raw(line);
        }
        push_jump(&mut self.out, taken, executed);
        self.columns.push(&mut self.out, target, None);
        self.out.push(b'\n');
    }

    /// Copies a line with a name. If the number has no meaning or another one in the output, writes the name with it.
    /// Unknown callers within the name are named.
    pub(super) fn copy_name(
        &mut self,
        field: Field,
        name: NameRef<'_>,
        line: &[u8],
    ) -> Result<Rc<[u8]>, Cause> {
        let kind = field.kind();
        let resolved = self.names.resolve(kind, name)?;
        let is_given = !(name.id.is_some() && name.text.is_empty());
        if is_given && kind == Kind::Function {
            self.naming.record(&resolved);
        }
        let stands = match kind {
            _ if !is_given => true,
            // Its parts may be numbers that have another meaning in the output.
            Kind::Function => {
                !has_unknown_callers(&resolved) && !self.names.refers_to_undefined(name.text)
            }
            _ => true,
        };
        let is_defined = name.id.is_none_or(|id| self.names.define(kind, id, &resolved));
        if stands && (is_given || is_defined) {
            self.raw(line);
        } else {
            self.push(field, name.id, Some(&resolved));
        }
        Ok(resolved)
    }

    /// Writes a name that the input defined elsewhere: only its number, if it has the same meaning in the output.
    pub(super) fn push_resolved(&mut self, field: Field, given: &ResolvedName) {
        let is_defined =
            given.id.is_some_and(|id| self.names.define(field.kind(), id, &given.name));
        self.push(field, given.id, (!is_defined).then_some(&given.name));
    }

    /// Writes `field=(id) name`.
    fn push(&mut self, field: Field, id: Option<u64>, name: Option<&[u8]>) {
        let callers;
        let name = match name {
            Some(name) if field.kind() == Kind::Function => {
                callers = self.naming.with_callers_named(name);
                Some(callers.as_slice())
            }
            name => name,
        };
        let Some(id) = id else {
            return push_name(&mut self.out, field.key(), name.unwrap_or_default());
        };
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

    /// Writes the object and file of what is copied, if they are still due in the output.
    pub(super) fn write_location(&mut self) {
        if std::mem::take(&mut self.cursor.object_is_due) && !self.cursor.object.name.is_empty() {
            let object = self.cursor.object.clone();
            self.push_resolved(Field::Ob, &object);
        }
        if std::mem::take(&mut self.cursor.file_is_due) && !self.cursor.file.name.is_empty() {
            let file = self.cursor.file.clone();
            self.push_resolved(Field::Fl, &file);
        }
    }
}

//! Reads the lines of contexts whose functions callgrind did not know.

use std::io::Write;
use std::rc::Rc;

use super::cost::{Call, Callee, Cost, Jump};
use super::cursor::{ResolvedName, Target};
use super::{Next, Rewriter};
use crate::code_map::CodeMap;
use crate::error::Cause;
use crate::line::cost;

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Collects a cost line of an unknown context.
    pub(super) fn collect_cost(&mut self, text: &[u8], index: usize) -> Result<(), Cause> {
        let mut rest = text;
        let positions = self.columns.take(&mut rest, &self.last)?;
        self.last = positions;
        let next = std::mem::replace(&mut self.next, Next::Own);
        let line = self.columns.line(&positions);
        let address = self.columns.address(&positions).unwrap_or(0);
        let rows = &mut self.contexts.rows;
        rows.begin(index);
        if let Next::Jump { taken, executed, target } = next {
            rows.jumps.push(Jump { address, line, target, taken, executed });
            return Ok(());
        }
        let values = rows.values.len();
        for _ in 0..self.events {
            rest = rest.trim_ascii_start();
            rows.values.push(if rest.is_empty() { 0 } else { cost(&mut rest)? });
        }
        let target = std::mem::take(&mut self.target);
        if next == Next::Own {
            rows.costs.push(Cost { address, line, values });
            self.summary.add_unknown(rows.values.get(values..).unwrap_or_default());
            return Ok(());
        }
        let (address_of, target_line, count) = (target.address, target.line, target.count);
        let callee = match target.context {
            Some(callee) => {
                self.contexts.add_entries(callee, count);
                Callee::Unknown(callee)
            }
            None => self.known_callee(target)?,
        };
        let target = address_of;
        let call = Call { address, line, callee, target, target_line, count, values };
        self.contexts.rows.calls.push(call);
        Ok(())
    }

    fn known_callee(&self, target: Target) -> Result<Callee, Cause> {
        let or = |given: Option<ResolvedName>, else_: &Rc<[u8]>| {
            given.map_or_else(|| Rc::clone(else_), |given| given.name)
        };
        Ok(Callee::Known {
            object: or(target.object, &self.cursor.object.name),
            file: or(target.file, &self.cursor.line_file),
            name: target.function.ok_or(Cause::NoNumber)?,
        })
    }
}

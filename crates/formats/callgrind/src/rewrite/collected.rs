//! What a part contains about the contexts whose functions callgrind did not know.

use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;

use super::here::{Given, Target};
use super::naming::Naming;
use super::rows::Rows;
use super::{Next, Rewriter};
use crate::context::{Context, UNKNOWN};
use crate::error::Cause;
use crate::known::{CodeMap, Owner};
use crate::line::cost;

/// The contexts of a part.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    all: Vec<Collected>,
    by_name: HashMap<Rc<[u8]>, usize>,
    /// Their lines.
    pub rows: Rows,
}

impl Contexts {
    /// The number of the context with this name, if it is a context of unknown code.
    pub fn number<M: CodeMap>(
        &mut self,
        naming: &mut Naming<'_, M>,
        name: &Rc<[u8]>,
        object: &Rc<[u8]>,
        file: &Rc<[u8]>,
    ) -> Option<usize> {
        if **object != *UNKNOWN {
            return None;
        }
        if let Some(&index) = self.by_name.get(name) {
            return Some(index);
        }
        let context = Context::parse(name)?;
        naming.saw(name);
        let index = self.all.len();
        self.all.push(Collected {
            owner: naming.map.at(context.address),
            context,
            name: Rc::clone(name),
            object: Rc::clone(object),
            file: Rc::clone(file),
            entries: 0,
            is_called_from_elsewhere: false,
        });
        self.by_name.insert(Rc::clone(name), index);
        Some(index)
    }

    pub fn get(&self, index: usize) -> Option<&Collected> {
        self.all.get(index)
    }

    /// Records a call of this context from a context of the part.
    pub fn entered(&mut self, index: usize, count: u64) {
        if let Some(context) = self.all.get_mut(index) {
            context.entries = context.entries.saturating_add(count);
        }
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut Collected> {
        self.all.get_mut(index)
    }

    /// Takes all contexts and their lines out. The next part has its own.
    pub fn take(&mut self) -> (Vec<Collected>, Rows) {
        // Clearing takes time proportional to the capacity, and many small parts may follow a large one.
        if self.by_name.len() < self.by_name.capacity() / 8 {
            self.by_name = HashMap::new();
        }
        self.by_name.clear();
        (std::mem::take(&mut self.all), std::mem::take(&mut self.rows))
    }

    /// Takes back the memory that [`Self::take`] returned.
    pub fn give_back(&mut self, mut contexts: Vec<Collected>, mut rows: Rows) {
        contexts.clear();
        rows.clear();
        (self.all, self.rows) = (contexts, rows);
    }
}

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Collects a cost line of an unknown context.
    pub(super) fn collected_cost(&mut self, text: &[u8], index: usize) -> Result<(), Cause> {
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
                self.contexts.entered(callee, count);
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
        let or = |given: Option<Given>, else_: &Rc<[u8]>| {
            given.map_or_else(|| Rc::clone(else_), |given| given.name)
        };
        Ok(Callee::Known {
            object: or(target.object, &self.here.object.name),
            file: or(target.file, &self.here.line_file),
            name: target.function.ok_or(Cause::NoNumber)?,
        })
    }
}

/// A context.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The parsed name.
    pub context: Context,
    /// Its name, object and file in the profile.
    pub name: Rc<[u8]>,
    pub object: Rc<[u8]>,
    pub file: Rc<[u8]>,
    /// The function at the address where it is entered.
    pub owner: Option<Owner>,
    /// How often it was called.
    pub entries: u64,
    /// Whether code other than its own function calls it.
    pub is_called_from_elsewhere: bool,
}

/// Self cost of one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub address: u64,
    pub line: u64,
    /// Index of its first cost.
    pub values: usize,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub address: u64,
    pub line: u64,
    pub callee: Callee,
    pub target: u64,
    pub target_line: u64,
    pub count: u64,
    /// Index of its first inclusive cost.
    pub values: usize,
}

/// The target of a call.
#[derive(Debug, Clone)]
pub(crate) enum Callee {
    /// The context with this number.
    Unknown(usize),
    /// A function that callgrind knew.
    Known { object: Rc<[u8]>, file: Rc<[u8]>, name: Rc<[u8]> },
}

/// A jump that was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    pub address: u64,
    pub line: u64,
    pub target: u64,
    pub taken: u64,
    /// How often it was executed, if it is conditional.
    pub executed: Option<u64>,
}

impl Collected {
    /// Whether it is entered at the start of its function.
    pub fn begins_function(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.start == self.context.address)
    }
}

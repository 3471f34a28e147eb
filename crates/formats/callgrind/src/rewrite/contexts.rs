//! The contexts of a part whose functions callgrind did not know.

use std::collections::HashMap;
use std::rc::Rc;

use super::naming::Naming;
use super::rows::Rows;
use crate::code_map::{CodeMap, Owner};
use crate::context::{Context, UNKNOWN};

/// The contexts of a part.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    all: Vec<UnknownContext>,
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
        naming.record(name);
        let index = self.all.len();
        self.all.push(UnknownContext {
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

    pub fn get(&self, index: usize) -> Option<&UnknownContext> {
        self.all.get(index)
    }

    /// Records a call of this context from a context of the part.
    pub fn add_entries(&mut self, index: usize, count: u64) {
        if let Some(context) = self.all.get_mut(index) {
            context.entries = context.entries.saturating_add(count);
        }
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut UnknownContext> {
        self.all.get_mut(index)
    }

    /// Takes all contexts and their lines out. The next part has its own.
    pub fn take(&mut self) -> (Vec<UnknownContext>, Rows) {
        // Clearing takes time proportional to the capacity, and many small parts may follow a large one.
        if self.by_name.len() < self.by_name.capacity() / 8 {
            self.by_name = HashMap::new();
        }
        self.by_name.clear();
        (std::mem::take(&mut self.all), std::mem::take(&mut self.rows))
    }

    /// Takes back the memory that [`Self::take`] returned.
    pub fn recycle(&mut self, mut contexts: Vec<UnknownContext>, mut rows: Rows) {
        contexts.clear();
        rows.clear();
        (self.all, self.rows) = (contexts, rows);
    }
}

/// A context.
#[derive(Debug)]
pub(crate) struct UnknownContext {
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

impl UnknownContext {
    /// Whether it is entered at the start of its function.
    pub fn begins_function(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.start == self.context.address)
    }
}

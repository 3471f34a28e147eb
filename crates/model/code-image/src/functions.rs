//! Functions for the symbol table, for any file format.

use fallible::Vec;

use crate::printable::push_printable;

/// Functions for the symbol table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    functions: Vec<Function>,
    /// Their names, each followed by a NUL.
    names: Vec<u8>,
}

/// A function for the symbol table.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// Its address in the file, with the lowest bit set if it is Thumb code.
    pub(crate) value: u64,
    pub(crate) size: u64,
    /// Offset of its name among the names.
    pub(crate) name: usize,
}

/// Number of functions at which a part of an image without debug info is full.
const FUNCTIONS: usize = 1 << 10;

impl Functions {
    /// Whether the number of functions is at the limit.
    pub(crate) fn is_full(&self) -> bool {
        self.functions.len() >= FUNCTIONS
    }

    /// Adds a function; returns its name as tools will show it. A function without a name is called `<unnamed>`,
    /// because readers ignore a symbol without a name.
    pub(crate) fn add(&mut self, value: u64, size: u64, name: &[u8]) -> &[u8] {
        let at = self.names.len();
        let name = if name.is_empty() { b"<unnamed>" } else { name };
        push_printable(name, &mut self.names);
        let end = self.names.len();
        self.names.push(0);
        self.functions.push(Function { value, size, name: at });
        self.names.get(at..end).unwrap_or_default()
    }

    /// Appends the names to `names`, and returns the functions. Their name offsets are relative to the previous end
    /// of `names`.
    pub(crate) fn take(&mut self, names: &mut Vec<u8>) -> std::vec::Drain<'_, Function> {
        names.append(&mut self.names);
        self.functions.drain(..)
    }

    /// Moves the functions of `part` to this value.
    pub(crate) fn append(&mut self, part: &mut Self) {
        let before = self.names.len();
        let taken = part.take(&mut self.names);
        self.functions
            .extend(taken.map(|it| Function { name: it.name.saturating_add(before), ..it }));
    }

    /// All functions with their names, in the order of addition.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&Function, &[u8])> {
        self.functions.iter().map(|function| {
            let rest = self.names.get(function.name..).unwrap_or_default();
            let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            (function, name)
        })
    }
}

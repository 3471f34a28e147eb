//! Functions that are to be symbols, whatever the format of the file.

use crate::printable::push_printable;

/// Functions that are to be symbols.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    functions: Vec<Function>,
    /// Their names, each with a NUL behind it.
    names: Vec<u8>,
}

/// A function that is to be a symbol.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// Its address in the file, with the lowest bit set if it is Thumb code.
    pub(crate) value: u64,
    pub(crate) size: u64,
    /// Where among the names its own is.
    pub(crate) name: usize,
}

/// Functions after which a part of an image ends that has no debug info.
const FUNCTIONS: usize = 1 << 10;

impl Functions {
    /// Whether there are many.
    pub(crate) fn is_full(&self) -> bool {
        self.functions.len() >= FUNCTIONS
    }

    /// Adds a function; returns its name as a tool will show it. One without a name is called
    /// `<unnamed>`, since readers take a symbol without a name for none at all.
    pub(crate) fn add(&mut self, value: u64, size: u64, name: &[u8]) -> &[u8] {
        let at = self.names.len();
        let name = if name.is_empty() { b"<unnamed>" } else { name };
        push_printable(name, &mut self.names);
        let end = self.names.len();
        self.names.push(0);
        self.functions.push(Function { value, size, name: at });
        self.names.get(at..end).unwrap_or_default()
    }

    /// Appends the names to `names`, and gives the functions, whose names count from where it ended.
    pub(crate) fn take(&mut self, names: &mut Vec<u8>) -> std::vec::Drain<'_, Function> {
        names.append(&mut self.names);
        self.functions.drain(..)
    }

    /// Adds the functions in `part`, and empties it.
    pub(crate) fn append(&mut self, part: &mut Self) {
        let before = self.names.len();
        let taken = part.take(&mut self.names);
        self.functions
            .extend(taken.map(|it| Function { name: it.name.saturating_add(before), ..it }));
    }

    /// All of them, each with its name, as they were added.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&Function, &[u8])> {
        self.functions.iter().map(|function| {
            let rest = self.names.get(function.name..).unwrap_or_default();
            let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            (function, name)
        })
    }
}

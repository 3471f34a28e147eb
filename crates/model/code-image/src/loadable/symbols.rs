//! The functions of an object, and which of them are exported.

use std::cmp::Reverse;

use fallible::{HashMap, Vec};

use crate::functions::Functions;

/// Information about a function besides its symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    /// All of it is present, and can be called. Larger numbers are newer.
    Whole(u64),
    /// Some bytes are missing, or belong to another function.
    InPart,
}

/// A function of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol<'a> {
    /// Its address in the file.
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) name: &'a [u8],
    /// Whether it can be found by its name.
    pub(super) is_exported: bool,
}

/// The functions, sorted by address. Of those with the same name, the newest is exported; of several of the same age,
/// the one with the highest address. If more than `most` would be exported, only the newest are.
pub(super) fn symbols<'a>(
    functions: &'a Functions,
    made: &[Definition],
    most: usize,
) -> Vec<Symbol<'a>> {
    let mut symbols: Vec<Symbol<'a>> = functions
        .iter()
        .map(|(function, name)| Symbol {
            value: function.value,
            size: function.size,
            name,
            is_exported: false,
        })
        .collect();
    let mut last: HashMap<&[u8], (u64, usize)> = HashMap::new();
    last.reserve(symbols.len());
    for (index, (symbol, made)) in symbols.iter().zip(made).enumerate() {
        let Definition::Whole(made) = *made else { continue };
        let found = last.find_or_insert(symbol.name, |_| (made, index));
        if made >= found.0 {
            last.insert(symbol.name, (made, index));
        }
    }
    let mut last: Vec<(u64, usize)> = last.into_values().collect();
    if last.len() > most {
        last.sort_unstable_by_key(|found| Reverse(*found));
        last.truncate(most);
    }
    for (_, index) in last {
        if let Some(symbol) = symbols.get_mut(index) {
            symbol.is_exported = true;
        }
    }
    symbols
}

/// The exported functions, sorted by name.
pub(super) fn exported<'s, 'a>(symbols: &'s [Symbol<'a>]) -> Vec<&'s Symbol<'a>> {
    let mut exported: Vec<_> = symbols.iter().filter(|symbol| symbol.is_exported).collect();
    exported.sort_unstable_by_key(|symbol| symbol.name);
    exported
}

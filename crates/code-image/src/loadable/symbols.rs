//! Which functions an object has, and which of them are found by their names.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::functions::Functions;

/// What is known of a function besides its symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// All of it is there, and can be called. Larger numbers are later.
    Whole(u64),
    /// Bytes are missing, or are of another function.
    InPart,
}

/// A function of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol<'a> {
    /// Its address in the file.
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) name: &'a [u8],
    /// Whether it is found by its name.
    pub(super) is_exported: bool,
}

/// The functions by address. Of those with one name, the one made last is found by it; of several made at the same
/// time, the last by address. If more than `most` would be found, it is those made last.
pub(super) fn symbols<'a>(functions: &'a Functions, made: &[Made], most: usize) -> Vec<Symbol<'a>> {
    let mut symbols: Vec<Symbol<'a>> = functions
        .iter()
        .map(|(function, name)| Symbol {
            value: function.value,
            size: function.size,
            name,
            is_exported: false,
        })
        .collect();
    let mut last: HashMap<&[u8], (u64, usize)> = HashMap::with_capacity(symbols.len());
    for (index, (symbol, made)) in symbols.iter().zip(made).enumerate() {
        let Made::Whole(made) = *made else { continue };
        let found = last.entry(symbol.name).or_insert((made, index));
        if made >= found.0 {
            *found = (made, index);
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

/// Those that are found by their names, in the order of these.
pub(super) fn exported<'s, 'a>(symbols: &'s [Symbol<'a>]) -> Vec<&'s Symbol<'a>> {
    let mut exported: Vec<_> = symbols.iter().filter(|symbol| symbol.is_exported).collect();
    exported.sort_unstable_by_key(|symbol| symbol.name);
    exported
}

//! `.debug_str`: the names of functions that calls were inlined of.

use std::collections::HashMap;

use crate::encode::Encoder;
use crate::printable::{ascii, push_printable};
use crate::target::Target;

/// Names that all units share: a small function is inlined all over a program, and the names that
/// compilers give are long.
#[derive(Debug)]
pub(super) struct Names {
    places: HashMap<Vec<u8>, u32>,
    pub(super) section: Encoder,
}

impl Names {
    pub(super) fn new(target: Target) -> Self {
        Names { places: HashMap::new(), section: Encoder::new(target) }
    }

    /// Where `name` stands in the section, which it is added to if it is new.
    pub(super) fn place(&mut self, name: &[u8]) -> u32 {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        // a section beyond 4 GiB is refused when the file is finished
        let place = self.section.len() as u32;
        self.places.insert(name.to_vec(), place);
        let mut printable = Vec::with_capacity(name.len());
        push_printable(if name.is_empty() { b"<unnamed>" } else { name }, &mut printable);
        self.section.string(&ascii(&printable));
        place
    }
}

//! `.debug_str`: the names of inlined functions.

use fallible::{HashMap, Vec};

use crate::encode::Encoder;
use crate::printable::{ascii, push_printable};
use crate::target::Target;

/// Names that all units share: a small function is inlined in many places of a program, and compilers' names are
/// long.
#[derive(Debug)]
pub(super) struct Names {
    places: HashMap<Vec<u8>, u32>,
    pub(super) section: Encoder,
}

impl Names {
    pub(super) fn new(target: Target) -> Self {
        Names { places: HashMap::new(), section: Encoder::new(target) }
    }

    /// The offset of `name` in the section. A new name is added.
    pub(super) fn place(&mut self, name: &[u8]) -> u32 {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        // a section larger than 4 GiB is rejected when the file is finished
        let place = self.section.len() as u32;
        self.places.insert(Vec::from(name), place);
        let mut printable = Vec::with_capacity(name.len());
        push_printable(if name.is_empty() { b"<unnamed>" } else { name }, &mut printable);
        self.section.string(&ascii(&printable));
        place
    }
}

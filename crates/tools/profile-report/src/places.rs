//! Places in the source, with the calls that were inlined around them: each once.

use profile::ListedFrame;
use rustc_hash::FxHashMap;

use crate::columns::Columns;
use crate::text::{Texts, shown};

/// A place, and the place that it is inlined into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    outer: u32,
    function: u32,
    file: u32,
    line: u32,
    column: u32,
}

/// The places, numbered from 1.
#[derive(Debug, Default)]
pub struct Places {
    numbers: FxHashMap<Place, u32>,
    places: Vec<Place>,
}

impl Places {
    /// The number of a place, by its frames with the innermost first. 0 if there are none.
    pub fn number(&mut self, frames: &[ListedFrame], texts: &mut Texts) -> u32 {
        let mut outer = 0;
        for frame in frames.iter().rev() {
            let place = Place {
                outer,
                function: texts.number(&shown(&frame.function)),
                file: texts.number(&shown(&frame.file)),
                line: frame.line,
                column: frame.column,
            };
            let next = u32::try_from(self.places.len().saturating_add(1)).unwrap_or(u32::MAX);
            outer = *self.numbers.entry(place.clone()).or_insert(next);
            if outer == next {
                self.places.push(place);
            }
        }
        outer
    }

    /// The table `place`.
    pub fn columns(&self, columns: &mut Columns) {
        columns.u32("place.outer?", self.places.iter().map(|place| place.outer));
        columns.u32("place.function", self.places.iter().map(|place| place.function));
        columns.u32("place.file", self.places.iter().map(|place| place.file));
        columns.u32("place.line", self.places.iter().map(|place| place.line));
        columns.u32("place.column", self.places.iter().map(|place| place.column));
    }
}

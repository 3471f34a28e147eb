//! Arenas, their images, and how these are mapped.

use std::ops::Range;

use code_timeline::{AddressSpaceId, CodeId};

use super::place::Place;

/// A code, or a part of it, in an image.
#[derive(Clone, Debug)]
pub struct ImageCode {
    /// The addresses in the image. They are those in the process, unless the code was relocated: see `layers`.
    pub visible: Range<u64>,
    /// The difference from the addresses in the process.
    pub moved_by: u64,
    /// The code.
    pub code: CodeId,
}

impl ImageCode {
    /// The addresses in the process.
    pub(super) fn range(&self) -> Range<u64> {
        self.visible.start - self.moved_by..self.visible.end - self.moved_by
    }

    /// Its mapping at `place`.
    pub(super) fn mapped(&self, place: Place) -> Mapping {
        Mapping { range: self.range(), moved_by: self.moved_by, place }
    }
}

/// A mapping of an image.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The addresses in the process.
    pub range: Range<u64>,
    /// How far behind them the addresses in the image are.
    pub moved_by: u64,
    /// The place in the stream.
    pub place: Place,
}

/// An image to write, and its mappings.
#[derive(Debug)]
pub struct PlannedImage {
    /// The span of its addresses.
    pub span: Range<u64>,
    /// The code in it, by address.
    pub shown: Vec<ImageCode>,
    /// Its mappings; those of the same time in their order.
    pub mappings: Vec<Mapping>,
    /// The time until which it shows its arena.
    pub(super) until: u64,
}

impl PlannedImage {
    /// Whether code in the image is at this address.
    pub fn shows(&self, address: u64) -> bool {
        let behind = self.shown.partition_point(|code| code.visible.end <= address);
        self.shown.get(behind).is_some_and(|code| code.visible.start <= address)
    }
}

/// A range of one process's memory with its code.
#[derive(Debug)]
pub struct Arena {
    /// The address space.
    pub space: AddressSpaceId,
    /// From the first code to the end of the last.
    pub span: Range<u64>,
    /// Its images: one for each span of time, in their order; or all for all time, in layers.
    pub images: Vec<PlannedImage>,
}

impl Arena {
    /// The numbers of the images that show it at `time`. The first one shows the first code at each address.
    pub(crate) fn images_at(&self, time: u64) -> Range<usize> {
        let first = self.images.partition_point(|image| image.until <= time);
        let until = self.images.get(first).map(|image| image.until);
        let count = self.images[first..].partition_point(|image| Some(image.until) == until);
        first..first + count
    }
}

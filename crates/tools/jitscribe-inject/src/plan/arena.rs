//! Arenas, their images, and how these are mapped.

use std::ops::Range;

use code_timeline::{CodeId, LifeId};

use super::place::Place;

/// Code, or a part of it, that an image shows.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The addresses in the image. They are the process's own, unless the code had to give way.
    pub visible: Range<u64>,
    /// How far from the process's own addresses that is.
    pub moved_by: u64,
    /// Whose code it is.
    pub code: CodeId,
}

impl Shown {
    /// The addresses in the process.
    pub(super) fn range(&self) -> Range<u64> {
        self.visible.start - self.moved_by..self.visible.end - self.moved_by
    }

    /// Maps it at `place`.
    pub(super) fn mapped(&self, place: Place) -> Mapping {
        Mapping { range: self.range(), moved_by: self.moved_by, place }
    }
}

/// A mapping of an image.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The addresses in the process.
    pub range: Range<u64>,
    /// How far behind them those of the image are.
    pub moved_by: u64,
    /// Where in the stream.
    pub place: Place,
}

/// One image to be written, and where it is to be mapped.
#[derive(Debug)]
pub struct PlannedImage {
    /// The span of its addresses.
    pub span: Range<u64>,
    /// What it shows, by address.
    pub shown: Vec<Shown>,
    /// How it is mapped; those of one time in their order.
    pub mappings: Vec<Mapping>,
    /// Until when it is the one that shows its arena.
    pub(super) until: u64,
}

/// A stretch of one process's memory with its code.
#[derive(Debug)]
pub struct Arena {
    /// Whose memory.
    pub life: LifeId,
    /// From the first code to the end of the last.
    pub span: Range<u64>,
    /// Its images, in the order of time.
    pub images: Vec<PlannedImage>,
}

impl Arena {
    /// The image that shows it at `time`.
    pub(super) fn image_at(&mut self, time: u64) -> Option<&mut PlannedImage> {
        let number = self.images.partition_point(|image| image.until <= time);
        self.images.get_mut(number)
    }
}

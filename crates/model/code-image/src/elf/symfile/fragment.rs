//! The parts of one code in a symfile.

use super::{Ends, Symfile, SymfileCode};

/// What is copied to add a code to a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment<'a> {
    pub(super) code: SymfileCode,
    pub(super) thumb: bool,
    /// Includes its NUL.
    pub(super) name: &'a [u8],
    pub(super) info: &'a [u8],
    pub(super) line: &'a [u8],
    pub(super) ranges: &'a [u8],
    pub(super) frames: &'a [u8],
    /// Offsets of the references to range lists, in the section that `info` was copied from. `info` begins at
    /// `lists_from` there.
    pub(super) lists: &'a [u32],
    pub(super) lists_from: u32,
    /// Offset of `ranges` in the section that it was copied from. The references include it.
    pub(super) ranges_from: u32,
}

impl Symfile {
    /// The parts of all codes, sorted by address.
    pub(super) fn fragments(&self) -> impl Iterator<Item = Fragment<'_>> {
        let mut from = Ends::default();
        let layout = self.layout;
        let part = |section: usize, from: u32, to: u32| {
            let range = section.saturating_add(from as usize)..section.saturating_add(to as usize);
            self.bytes.get(range).unwrap_or_default()
        };
        self.codes.iter().map(move |shown| {
            let to = shown.ends;
            let fragment = Fragment {
                code: shown.code,
                thumb: shown.thumb,
                name: part(layout.names, from.name, to.name),
                info: part(layout.info, from.info, to.info),
                line: part(layout.line, from.line, to.line),
                ranges: part(layout.ranges, from.ranges, to.ranges),
                frames: part(layout.frames, from.frames, to.frames),
                lists: self.lists.get(from.lists as usize..to.lists as usize).unwrap_or_default(),
                lists_from: from.info,
                ranges_from: from.ranges,
            };
            from = to;
            fragment
        })
    }
}

//! Call frame information: the unwind info of many codes as one `.eh_frame` with its search table.
//!
//! Independent of the object format: addresses passed in are those of the file.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod absolute;
mod cie;
mod cursor;
mod instructions;
mod pointer;
mod reader;
mod relative;
#[cfg(feature = "objects")]
mod rows;
mod tables;

pub(crate) use absolute::{absolute, tombstone};
pub(crate) use relative::relative;
pub(crate) use tables::UnwindTables;

/// Counts of the unwind info that was used and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UnwindSummary {
    /// Frame descriptions (FDEs) in the image.
    pub fdes: u64,
    /// Common parts (CIEs) in the image; equal ones were merged.
    pub cies: u64,
    /// Frame descriptions left out because an entry, or the section from there on, is damaged.
    pub malformed: u64,
    /// Left out because of an unknown augmentation, pointer encoding or instruction.
    pub unsupported: u64,
    /// Left out because they describe no instruction in the visible part of the code.
    pub outside: u64,
    /// Left out because another one of the same code describes the same instructions.
    pub overlapping: u64,
    /// Left out because the tables are more than 2 GiB away from the code.
    pub out_of_reach: u64,
    /// In `.eh_frame` but not in the `.pdata` of a DLL, because Windows' unwind info cannot express them.
    pub inexpressible: u64,
}

/// Why a frame description is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Malformed,
    Unsupported,
    Outside,
    Overlapping,
    OutOfReach,
}

impl UnwindSummary {
    /// Adds the counts of other unwind info.
    fn add(&mut self, other: &Self) {
        let Self {
            fdes,
            cies,
            malformed,
            unsupported,
            outside,
            overlapping,
            out_of_reach,
            inexpressible,
        } = other;
        for (sum, more) in [
            (&mut self.fdes, fdes),
            (&mut self.cies, cies),
            (&mut self.malformed, malformed),
            (&mut self.unsupported, unsupported),
            (&mut self.outside, outside),
            (&mut self.overlapping, overlapping),
            (&mut self.out_of_reach, out_of_reach),
            (&mut self.inexpressible, inexpressible),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }

    fn count(&mut self, cause: Cause) {
        let counter = match cause {
            Cause::Malformed => &mut self.malformed,
            Cause::Unsupported => &mut self.unsupported,
            Cause::Outside => &mut self.outside,
            Cause::Overlapping => &mut self.overlapping,
            Cause::OutOfReach => &mut self.out_of_reach,
        };
        *counter = counter.saturating_add(1);
    }
}

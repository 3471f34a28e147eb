//! DWARF 4: the function and the source line that an address belongs to.
//!
//! Independent of the object format: addresses passed in are those of the file, and sections are returned as bytes.

mod abbreviations;
mod calls;
mod constants;
mod files;
mod inlining;
mod line_program;
mod names;
mod numbers;
mod rows;
mod sections;
mod single;
mod unit;

pub(crate) use calls::calls;
pub(crate) use rows::rows;
pub(crate) use sections::Sections;
pub(crate) use single::{
    DEAD_UNIT, EMPTY_UNIT, FILLER, FILLER_BYTE, Single, UNIT_LINES_AT, UNIT_ROOT_AT,
    entry_abbreviations, single_abbreviations,
};
pub(crate) use unit::Unit;

use self::names::Names;
use fallible::Vec;

use crate::encode::Encoder;
use crate::target::Target;

/// Collects compilation units, in ascending order of address.
#[derive(Debug)]
pub(crate) struct DebugInfo {
    target: Target,
    sections: Sections,
    names: Names,
    has_lines: bool,
    has_calls: bool,
}

impl DebugInfo {
    pub(crate) fn new(target: Target) -> Self {
        let section = || Encoder::new(target);
        let sections = Sections {
            abbrev: section(),
            info: section(),
            aranges: section(),
            ranges: section(),
            line: section(),
            strings: section(),
        };
        DebugInfo {
            target,
            sections,
            names: Names::new(target),
            has_lines: false,
            has_calls: false,
        }
    }

    /// Adds the content of `unit`, and empties it.
    pub(crate) fn append(&mut self, unit: &mut Unit) {
        self.has_lines |= unit.has_lines();
        self.has_calls |= unit.has_calls();
        if !unit.is_empty() {
            unit.write(self.target, &mut self.names, &mut self.sections);
            unit.clear();
        }
    }

    /// The buffers of the large sections, to reserve memory for them.
    pub(crate) fn large_tables(&mut self) -> [&mut Vec<u8>; 2] {
        [&mut self.sections.info.bytes, &mut self.sections.line.bytes]
    }

    /// The sections; all empty if no function had lines or inlined calls.
    pub(crate) fn finish(mut self) -> Sections {
        if !self.has_lines && !self.has_calls {
            return Self::new(self.target).sections;
        }
        abbreviations::write(&mut self.sections.abbrev, self.has_calls);
        self.sections.strings = self.names.section;
        self.sections
    }
}

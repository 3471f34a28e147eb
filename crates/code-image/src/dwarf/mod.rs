//! DWARF 4: which function and which source line an address belongs to.
//!
//! Independent of the object format: addresses come in as the file will have them, sections go out
//! as bytes.

mod abbreviations;
mod calls;
mod constants;
mod files;
mod inlining;
mod line_program;
mod names;
mod rows;
mod unit;

pub(crate) use calls::calls;
pub(crate) use rows::rows;

use self::calls::Calls;
use self::names::Names;
use self::rows::Row;
use self::unit::Unit;
use crate::encode::Encoder;
use crate::target::Target;

/// Functions in one compilation unit.
///
/// Readers find the unit by `.debug_aranges` and then read all of it, some of them a list of
/// functions or line sequences that they walk from its start: units must be small. Each unit costs
/// some 150 bytes and its own file table: they must not be tiny.
const FUNCTIONS_PER_UNIT: usize = 512;
/// Rows after which a unit ends, however few functions it has.
const ROWS_PER_UNIT: usize = 1 << 16;
/// Inlined calls after which a unit ends, however few functions it has.
const CALLS_PER_UNIT: usize = 1 << 10;

/// Collects functions, in ascending order of address, into compilation units.
#[derive(Debug)]
pub(crate) struct DebugInfo {
    target: Target,
    sections: Sections,
    unit: Unit,
    names: Names,
    has_lines: bool,
    has_calls: bool,
}

/// The sections of debug info; empty if there was nothing to say.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) abbrev: Encoder,
    pub(crate) info: Encoder,
    pub(crate) aranges: Encoder,
    pub(crate) ranges: Encoder,
    pub(crate) line: Encoder,
    pub(crate) strings: Encoder,
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
            unit: Unit::new(target),
            names: Names::new(target),
            has_lines: false,
            has_calls: false,
        }
    }

    /// Adds the function at `start..end` with its rows and inlined calls, if it has any.
    ///
    /// One without is told of all the same: perf asks a file no more for lines once it found no
    /// function at the first 123 addresses that it asked for.
    pub(crate) fn add(
        &mut self,
        name: &[u8],
        start: u64,
        end: u64,
        rows: &[Row<'_>],
        calls: &Calls<'_>,
    ) {
        self.has_lines |= !rows.is_empty();
        self.has_calls |= !calls.is_empty();
        self.unit.add(name, start, end, rows, calls, &mut self.names);
        let Unit { functions, rows, inlining, .. } = &self.unit;
        if *functions >= FUNCTIONS_PER_UNIT
            || *rows >= ROWS_PER_UNIT
            || inlining.calls >= CALLS_PER_UNIT
        {
            self.close_unit();
        }
    }

    /// The sections; all empty if no function had lines or inlined calls.
    pub(crate) fn finish(mut self) -> Sections {
        if !self.has_lines && !self.has_calls {
            return Self::new(self.target).sections;
        }
        self.close_unit();
        abbreviations::write(&mut self.sections.abbrev, self.has_calls);
        self.sections.strings = self.names.section;
        self.sections
    }

    fn close_unit(&mut self) {
        let unit = std::mem::replace(&mut self.unit, Unit::new(self.target));
        if unit.functions > 0 {
            unit.write(self.target, &mut self.sections);
        }
    }
}

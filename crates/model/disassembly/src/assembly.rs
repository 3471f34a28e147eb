//! A code as views show it: with labels, and names of what it refers to.

use std::ops::Range;

use profile::{CodeId, CodeSource, Listing};

use crate::disassembler::disassemble;
use crate::instruction::{Instruction, Reference, ReferenceKind, Syntax};

/// The instructions of a code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The instructions, by offset and without gaps.
    pub lines: Vec<Line>,
    /// Whether the code has more instructions, which are left out as it is too long.
    pub is_cut: bool,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its offset in the code.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u8,
    /// The number of its label, from 1, if an instruction of the code jumps to it.
    pub label: Option<u32>,
    /// Its text, with the target of a branch as a label or a name. The name is foreign text.
    pub text: String,
    /// Where the text has a branch's target.
    pub target_text: Option<Range<usize>>,
    /// What it refers to; `None` if that is nothing, or a constant that is no known address.
    pub target: Option<Target>,
}

/// What an instruction refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address, in the terms of the code.
    pub address: u64,
    /// How it is used.
    pub kind: ReferenceKind,
    /// The offset of the address in the code, if it is within the code.
    pub inside: Option<u64>,
    /// The name of the function there, and the offset of the address in the function. Empty if none is known.
    pub name: Vec<u8>,
    /// The offset of the address in the function of this name.
    pub name_offset: u64,
}

/// So that hostile code does not take all memory. No compiler makes functions of this size.
const MOST_LINES: usize = 1 << 20;
/// Names in instructions are cut to this number of bytes; [`Target::name`] has all of it.
const LONGEST_NAME: usize = 200;

impl Target {
    /// Its name and offset as text: `name+0x10`. `None` if it has no name.
    #[must_use]
    pub fn name_text(&self) -> Option<String> {
        if self.name.is_empty() {
            return None;
        }
        let shown = self.name.get(..LONGEST_NAME).unwrap_or(&self.name);
        let mut text = String::from_utf8_lossy(shown).into_owned();
        if shown.len() < self.name.len() {
            text.push('…');
        }
        if self.name_offset > 0 {
            text.push_str(&format!("+{:#x}", self.name_offset));
        }
        Some(text)
    }
}

impl Assembly {
    /// Disassembles a code, and names what its instructions refer to.
    ///
    /// `None` if instructions of its machine cannot be decoded.
    #[must_use]
    pub fn of(
        code: CodeId,
        listing: &Listing,
        source: &mut dyn CodeSource,
        syntax: Syntax,
    ) -> Option<Self> {
        let mut decoded = disassemble(listing.machine, listing.address, &listing.bytes, syntax)?;
        let instructions: Vec<Instruction> = decoded.by_ref().take(MOST_LINES).collect();
        let is_cut = decoded.next().is_some();
        let inside = |address: u64| {
            let offset = address.wrapping_sub(listing.address);
            (offset < listing.bytes.len() as u64).then_some(offset)
        };
        // Of a jump into an instruction, that instruction's place.
        let place_of = |offset: u64| {
            let behind = instructions.partition_point(|each| each.offset <= offset);
            behind.checked_sub(1)
        };
        let mut labels = vec![None; instructions.len()];
        for reference in instructions.iter().filter_map(|each| each.reference.as_ref()) {
            if is_label(reference, inside(reference.address))
                && let Some(place) = inside(reference.address).and_then(place_of)
                && let Some(label) = labels.get_mut(place)
            {
                *label = Some(0);
            }
        }
        for (number, label) in (1..).zip(labels.iter_mut().flatten()) {
            *label = number;
        }
        let label_at = |offset: u64| {
            let place = place_of(offset)?;
            let rest = offset.checked_sub(instructions.get(place)?.offset)?;
            Some((labels.get(place).copied()??, rest))
        };
        let mut lines = Vec::with_capacity(instructions.len());
        for (instruction, label) in instructions.iter().zip(&labels) {
            let Instruction { offset, length, text, reference } = instruction;
            let mut line = Line {
                offset: *offset,
                length: *length,
                label: *label,
                text: text.clone(),
                target_text: None,
                target: None,
            };
            if let Some(reference) = reference {
                let inside = inside(reference.address);
                let label = inside.filter(|_| is_label(reference, inside)).and_then(label_at);
                line.refer(code, reference, inside, label, source);
            }
            lines.push(line);
        }
        Some(Self { lines, is_cut })
    }

    /// The place in [`Self::lines`] of the instruction that this offset is in.
    #[must_use]
    pub fn line_at(&self, offset: u64) -> Option<usize> {
        let behind = self.lines.partition_point(|line| line.offset <= offset);
        let place = behind.checked_sub(1)?;
        let line = self.lines.get(place)?;
        (offset.wrapping_sub(line.offset) < u64::from(line.length)).then_some(place)
    }
}

/// Whether the target of a reference gets a label: all jumps within the code, and calls, except of the code's own function.
fn is_label(reference: &Reference, inside: Option<u64>) -> bool {
    match reference.kind {
        ReferenceKind::Jump => inside.is_some(),
        ReferenceKind::Call => inside.is_some_and(|offset| offset > 0),
        ReferenceKind::Relative => inside.is_some(),
        ReferenceKind::Constant => false,
    }
}

impl Line {
    /// Writes what the instruction refers to into the line.
    fn refer(
        &mut self,
        code: CodeId,
        reference: &Reference,
        inside: Option<u64>,
        label: Option<(u32, u64)>,
        source: &mut dyn CodeSource,
    ) {
        let Reference { address, kind, ref place } = *reference;
        let known = match label {
            Some(_) => None,
            None => source.name_at(code, address).filter(|(name, _)| !name.is_empty()),
        };
        if kind == ReferenceKind::Constant && known.is_none() {
            return;
        }
        let (name, name_offset) = known.unwrap_or_default();
        let target = Target { address, kind, inside, name, name_offset };
        let written = match label {
            Some((label, 0)) => Some(format!("L{label}")),
            Some((label, rest)) => Some(format!("L{label}+{rest:#x}")),
            None => target.name_text(),
        };
        match (written, place) {
            (Some(written), Some(place)) => {
                let end = place.start.saturating_add(written.len());
                self.text.replace_range(place.clone(), &written);
                self.target_text = Some(place.start..end);
            }
            (Some(written), None) => self.text.push_str(&format!("  # {written}")),
            (None, Some(place)) => self.target_text = Some(place.clone()),
            (None, None) => self.text.push_str(&format!("  # {address:#x}")),
        }
        self.target = Some(target);
    }
}

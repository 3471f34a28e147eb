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

/// An instruction, or a run of zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its offset in the code.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Whether it stands for a run of zeros, in place of what they would be decoded to.
    pub is_zeros: bool,
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

/// As many zeros are one line, or more: memory that has no code yet, and counts are of what is shown.
const SHORTEST_ZEROS: usize = 64;
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
        let (mut lines, references, is_cut) = decoded(listing, syntax)?;
        let inside = |address: u64| {
            let offset = address.wrapping_sub(listing.address);
            (offset < listing.bytes.len() as u64).then_some(offset)
        };
        // Of a jump into an instruction, that instruction's place.
        let starts: Vec<u64> = lines.iter().map(|line| line.offset).collect();
        let place_of = |offset: u64| {
            let behind = starts.partition_point(|&start| start <= offset);
            behind.checked_sub(1)
        };
        let mut labels = vec![None; lines.len()];
        for reference in references.iter().flatten() {
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
            let rest = offset.checked_sub(*starts.get(place)?)?;
            Some((labels.get(place).copied()??, rest))
        };
        for ((line, label), reference) in lines.iter_mut().zip(&labels).zip(&references) {
            line.label = *label;
            if let Some(reference) = reference {
                let inside = inside(reference.address);
                let label = inside.filter(|_| is_label(reference, inside)).and_then(label_at);
                line.refer(code, reference, inside, label, source);
            }
        }
        Some(Self { lines, is_cut })
    }

    /// The place in [`Self::lines`] of the instruction that this offset is in.
    #[must_use]
    pub fn line_at(&self, offset: u64) -> Option<usize> {
        let behind = self.lines.partition_point(|line| line.offset <= offset);
        let place = behind.checked_sub(1)?;
        let line = self.lines.get(place)?;
        (offset.wrapping_sub(line.offset) < line.length).then_some(place)
    }
}

/// The lines of a code, what each refers to, and whether there are more.
type Decoded = (Vec<Line>, Vec<Option<Reference>>, bool);

/// Decodes a code. Runs of zeros are not decoded.
fn decoded(listing: &Listing, syntax: Syntax) -> Option<Decoded> {
    let Listing { machine, address, ref bytes, .. } = *listing;
    let (mut lines, mut references) = (Vec::new(), Vec::new());
    let mut rest = bytes.as_slice();
    let mut done = 0_u64;
    loop {
        let mut decoder = disassemble(machine, address.wrapping_add(done), rest, syntax)?;
        let zeros = loop {
            let Some(Instruction { offset, length, text, reference }) = decoder.next() else {
                return Some((lines, references, false));
            };
            if lines.len() >= MOST_LINES {
                return Some((lines, references, true));
            }
            let zeros = zeros_at(rest, offset);
            let (length, text, reference) = match zeros {
                Some(zeros) => (zeros, format!(".zero   {zeros:#x}"), None),
                None => (length.into(), text, reference),
            };
            let offset = done.saturating_add(offset);
            let (label, target_text, target) = (None, None, None);
            let is_zeros = zeros.is_some();
            lines.push(Line { offset, length, is_zeros, label, text, target_text, target });
            references.push(reference);
            if is_zeros {
                break offset.saturating_add(length).saturating_sub(done);
            }
        };
        rest = usize::try_from(zeros).ok().and_then(|end| rest.get(end..)).unwrap_or_default();
        done = done.saturating_add(zeros);
    }
}

/// The length of a run of zeros at an offset, if it is long: as many as make whole instructions.
fn zeros_at(bytes: &[u8], offset: u64) -> Option<u64> {
    let rest = bytes.get(usize::try_from(offset).ok()?..)?;
    if rest.first_chunk::<8>() != Some(&[0; 8]) {
        return None;
    }
    let zeros = rest.iter().position(|&byte| byte != 0).unwrap_or(rest.len()) & !3;
    (zeros >= SHORTEST_ZEROS).then_some(zeros as u64)
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

#[cfg(test)]
mod tests {
    use jit_code::elf_machine;
    use profile::Source;

    use super::*;

    struct Nameless;

    impl CodeSource for Nameless {
        fn listing(&mut self, _: CodeId) -> Option<Listing> {
            None
        }

        fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
            None
        }

        fn source(&mut self, _: &[u8]) -> Option<Source> {
            None
        }
    }

    fn assembly(machine: u16, bytes: Vec<u8>) -> Assembly {
        let listing = Listing { address: 0x1000, machine, bytes, lines: Vec::new() };
        Assembly::of(CodeId(0), &listing, &mut Nameless, Syntax::Intel).unwrap()
    }

    /// A region of which nearly all is empty, with `ret` at both ends.
    #[test]
    fn a_run_of_zeros_is_one_line() {
        const ZEROS: usize = 16 << 20;
        for (machine, ret) in
            [(elf_machine::X86_64, &[0xc3][..]), (elf_machine::AARCH64, &[0xc0, 0x03, 0x5f, 0xd6])]
        {
            let bytes = [ret, &vec![0; ZEROS], ret].concat();
            let assembly = assembly(machine, bytes);
            let texts: Vec<&str> = assembly.lines.iter().map(|line| &*line.text).collect();
            assert_eq!(texts, ["ret", ".zero   0x1000000", "ret"]);
            let length = ret.len() as u64;
            let places = assembly.lines.iter().map(|line| (line.offset, line.length));
            let zeros = ZEROS as u64;
            let expected = [(0, length), (length, zeros), (length + zeros, length)];
            assert_eq!(places.collect::<Vec<_>>(), expected);
            assert!(!assembly.is_cut);
            assert_eq!(assembly.line_at(length + 5), Some(1));
        }
    }

    #[test]
    fn few_zeros_are_instructions() {
        let assembly = assembly(elf_machine::X86_64, [&[0; 62][..], &[0xc3]].concat());
        assert_eq!(assembly.lines.len(), 32);
        assert!(assembly.lines.iter().all(|line| !line.is_zeros));
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let assembly = assembly(elf_machine::X86_64, vec![0x90; MOST_LINES + 1]);
        assert_eq!((assembly.lines.len(), assembly.is_cut), (MOST_LINES, true));
    }
}

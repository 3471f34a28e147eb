//! Generated `.eh_frame` sections, in many of the forms that the format allows.

use code_image::{Endian, Target};
use proptest::prelude::*;

/// One FDE: what it covers of its code, and its instructions.
#[derive(Debug, Clone)]
pub struct Frame {
    pub gap: u64,
    /// In units of the code alignment factor.
    pub units: u64,
    pub instructions: Vec<Instruction>,
}

#[derive(Debug, Clone)]
pub enum Instruction {
    /// In units of the code alignment factor.
    Advance(u8, u32),
    Copied(Vec<u8>),
}

/// How the CIE is written.
#[derive(Debug, Clone)]
pub struct Style {
    pub version: u8,
    pub augmentation: &'static str,
    pub encoding: u8,
    pub code_alignment: u8,
    pub terminated: bool,
    pub long: bool,
}

pub fn style() -> impl Strategy<Value = Style> {
    (
        prop::sample::select(vec![1, 3]),
        prop::sample::select(vec!["", "zR", "zRS", "zPLR", "zRLP"]),
        // absolute; relative to the place, in 4 bytes, a word, 8 bytes; relative to the text
        prop::sample::select(vec![0x00, 0x1b, 0x10, 0x1c, 0x2b]),
        prop::sample::select(vec![1, 2, 4]),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(version, augmentation, encoding, code_alignment, terminated, long)| {
            Style { version, augmentation, encoding, code_alignment, terminated, long }
        })
}

fn copied() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..16_u8, 0..64_u8).prop_map(|(register, offset)| vec![0x0c, register, offset]),
        (0..64_u8).prop_map(|offset| vec![0x0e, offset]),
        (0..16_u8).prop_map(|register| vec![0x0d, register]),
        (0..16_u8, 0..64_u8).prop_map(|(register, offset)| vec![0x80 | register, offset]),
        (0..16_u8).prop_map(|register| vec![0xc0 | register]),
        (0..16_u8, 0..128_u8).prop_map(|(register, offset)| vec![0x11, register, offset]),
        (0..16_u8).prop_map(|register| vec![0x08, register]),
        (0..16_u8).prop_map(|register| vec![0x07, register]),
        (0..16_u8, 0..16_u8).prop_map(|(to, from)| vec![0x09, to, from]),
        // an expression for one unit, as in PLT entries, and no more
        (0..128_u8).prop_map(|constant| vec![0x0f, 2, 0x77, constant, 0x41, 0x0c, 7, 8]),
        (0..16_u8, 0..128_u8)
            .prop_map(|(register, constant)| vec![0x10, register, 2, 0x77, constant]),
        (0..16_u8, 0..128_u8)
            .prop_map(|(register, constant)| vec![0x16, register, 2, 0x77, constant]),
        (0..64_u8).prop_map(|size| vec![0x2e, size]),
        // remembered, changed, restored
        (0..64_u8).prop_map(|offset| vec![0x0a, 0x0e, offset, 0x0b]),
        Just(vec![0]),
    ]
}

pub fn frame() -> impl Strategy<Value = Frame> {
    let advance = (0..4_u8, 0..20_u32).prop_map(|(form, by)| Instruction::Advance(form, by));
    let instruction = prop_oneof![advance, copied().prop_map(Instruction::Copied)];
    (0..3_u64, 1..40_u64, prop::collection::vec(instruction, 0..10))
        .prop_map(|(gap, units, instructions)| Frame { gap, units, instructions })
}

struct Out {
    bytes: Vec<u8>,
    target: Target,
}

impl Out {
    fn number(&mut self, value: u64, size: usize) {
        match self.target.endian {
            Endian::Little => self.bytes.extend(&value.to_le_bytes()[..size]),
            Endian::Big => self.bytes.extend(&value.to_be_bytes()[8 - size..]),
        }
    }

    fn length(&mut self, long: bool, length: usize) {
        if long {
            self.number(0xffff_ffff, 4);
        }
        self.number(length as u64, if long { 8 } else { 4 });
    }

    /// Writes an entry: length, then what `body` writes, padded.
    fn entry(&mut self, long: bool, body: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.length(long, 0);
        let from = self.bytes.len();
        body(self);
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        let rest = self.bytes.split_off(from);
        self.bytes.truncate(start);
        self.length(long, rest.len());
        self.bytes.extend(rest);
    }
}

/// Size of the code that `frames` describe.
pub fn size(style: &Style, frames: &[Frame]) -> u64 {
    let unit = u64::from(style.code_alignment);
    frames.iter().map(|frame| (frame.gap + frame.units) * unit).sum::<u64>() + 1
}

/// The section for a code at `start`.
pub fn section(target: Target, style: &Style, frames: &[Frame], start: u64) -> Vec<u8> {
    let address = start + size(style, frames).next_multiple_of(8);
    let encoding = if style.augmentation.is_empty() { 0 } else { style.encoding };
    let word = if target.is_64 { 8 } else { 4 };
    let width = match encoding & 0x0f {
        0x0b => 4,
        0x0c => 8,
        _ => word,
    };
    let mut out = Out { bytes: Vec::new(), target };
    out.entry(style.long, |out| {
        out.number(0, 4);
        out.bytes.push(style.version);
        out.bytes.extend(style.augmentation.bytes());
        // code alignment, data alignment of -8, return address in register 16
        out.bytes.extend([0, style.code_alignment, 0x78, 16]);
        if !style.augmentation.is_empty() {
            let mut data = Vec::new();
            for letter in style.augmentation.bytes() {
                match letter {
                    b'R' => data.push(encoding),
                    b'L' => data.push(0x1b),
                    b'P' => data.extend([0x1b, 1, 2, 3, 4]),
                    _ => {}
                }
            }
            out.bytes.push(data.len() as u8);
            out.bytes.extend(data);
        }
        out.bytes.extend([0x0c, 7, 8, 0x90, 1]);
    });

    let unit = u64::from(style.code_alignment);
    let mut begin = start;
    for frame in frames {
        begin += frame.gap * unit;
        let len = frame.units * unit;
        out.entry(style.long, |out| {
            out.number(out.bytes.len() as u64, 4);
            let base = match encoding & 0xf0 {
                0x10 => address + out.bytes.len() as u64,
                0x20 => start,
                _ => 0,
            };
            out.number(begin.wrapping_sub(base), width);
            out.number(len, width);
            if style.augmentation.contains('L') {
                out.bytes.extend([4, 9, 9, 9, 9]);
            } else if !style.augmentation.is_empty() {
                out.bytes.push(0);
            }
            for instruction in &frame.instructions {
                match instruction {
                    Instruction::Advance(0, by) => out.bytes.push(0x40 | *by as u8),
                    Instruction::Advance(form, by) => {
                        out.bytes.push(1 + form);
                        out.number((*by).into(), 1 << (form - 1));
                    }
                    Instruction::Copied(bytes) => out.bytes.extend(bytes),
                }
            }
        });
        begin += len;
    }
    if style.terminated {
        out.number(0, 4);
    }
    out.bytes
}

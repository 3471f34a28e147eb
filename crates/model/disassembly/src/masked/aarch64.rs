//! Instructions of AArch64.

use super::words::Words;

/// Bits of an instruction.
const IMM26: u32 = 0x03ff_ffff;
const IMM19: u32 = 0x00ff_ffe0;
const IMM14: u32 = 0x0007_ffe0;
const IMM16: u32 = 0x001f_ffe0;
const IMM12: u32 = 0x003f_fc00;
const ADR: u32 = 0x60ff_ffe0;
const REGISTER: u32 = 0x1f;

pub fn mask(address: u64, bytes: &mut [u8]) {
    let code = bytes.to_vec();
    let instructions = code.chunks_exact(4).map(|word| {
        let word = word.first_chunk().copied().unwrap_or_default();
        u32::from_le_bytes(word)
    });
    let instructions: Vec<u32> = instructions.collect();
    let mut words = Words::new(&code, address, 8);
    let places = (0_u64..).map(|at| address.wrapping_add(at.wrapping_mul(4)));
    for (place, &instruction) in places.clone().zip(&instructions) {
        // LDR of 64 bits, of a literal
        if instruction & 0xff00_0000 == 0x5800_0000
            && let Some((_, distance)) = relative(instruction)
        {
            words.load(place.wrapping_add_signed(distance));
        }
    }
    // The bits of each instruction that are masked; `None` within words.
    let mut masks = vec![Some(0_u32); instructions.len()];
    let mut between = Vec::new();
    let mut at = 0;
    while at < instructions.len() {
        let offset = at.saturating_mul(4);
        let count = if words.end_of(offset).is_some() {
            between.push(offset);
            masks.iter_mut().skip(at).take(2).for_each(|mask| *mask = None);
            2
        } else {
            1
        };
        at = at.saturating_add(count);
    }
    let inside = words.inside();
    for ((place, &instruction), mask) in places.zip(&instructions).zip(&mut masks) {
        if let (Some(mask), Some((field, distance))) = (mask, relative(instruction)) {
            let target = place.wrapping_add_signed(distance);
            if is_page(instruction) || !inside.contains(&target) {
                *mask |= field;
            }
        }
    }
    mask_moves(&instructions, &mut masks);
    mask_in_pages(&instructions, &mut masks);
    for ((field, word), mask) in bytes.chunks_exact_mut(4).zip(instructions).zip(masks) {
        field.copy_from_slice(&(word & !mask.unwrap_or(0)).to_le_bytes());
    }
    for offset in between {
        words.write(offset, bytes);
    }
}

/// An address of 48 or 64 bits is made of three or four moves to one register.
fn mask_moves(instructions: &[u32], masks: &mut [Option<u32>]) {
    let is_first = |word: u32| matches!(word & 0xff80_0000, 0xd280_0000 | 0x9280_0000);
    let mut start = 0;
    while let (Some(&first), Some(mask)) = (instructions.get(start), masks.get(start)) {
        let next = start.saturating_add(1);
        let more = instructions.iter().zip(masks.iter()).skip(next).take_while(|(word, mask)| {
            let is_move = **word & 0xff80_0000 == 0xf280_0000;
            mask.is_some() && is_move && **word & REGISTER == first & REGISTER
        });
        let more = if mask.is_some() && is_first(first) { more.count() } else { 0 };
        let end = next.saturating_add(more);
        if more >= 2 {
            masks.iter_mut().take(end).skip(start).flatten().for_each(|mask| *mask |= IMM16);
        }
        start = end;
    }
}

/// What follows an ADRP to its register is the place in the page.
fn mask_in_pages(instructions: &[u32], masks: &mut [Option<u32>]) {
    let pairs = instructions.iter().zip(instructions.iter().skip(1));
    let is_code: Vec<bool> = masks.iter().map(Option::is_some).collect();
    let masks = masks.iter_mut().skip(1);
    for (((&page, &word), mask), is_code) in pairs.zip(masks).zip(is_code) {
        // ADD of 64 bits; loads and stores with an offset
        let is_within = word & 0xffc0_0000 == 0x9100_0000 || word & 0x3b00_0000 == 0x3900_0000;
        let is_of_page = word.wrapping_shr(5) & REGISTER == page & REGISTER;
        if is_code
            && is_page(page)
            && is_within
            && is_of_page
            && let Some(mask) = mask
        {
            *mask |= IMM12;
        }
    }
}

/// ADRP
fn is_page(word: u32) -> bool {
    word & 0x9f00_0000 == 0x9000_0000
}

/// The bits of an instruction's distance, and the distance in bytes.
fn relative(word: u32) -> Option<(u32, i64)> {
    // From the bits of a field, which ends at the highest bit of `mask`: sign-extended.
    let signed = |mask: u32, scale: u32| {
        let up = mask.leading_zeros();
        let value = (word & mask).wrapping_shl(up).cast_signed();
        i64::from(value.wrapping_shr(up.wrapping_add(mask.trailing_zeros()))).wrapping_shl(scale)
    };
    match word {
        // B, BL
        _ if word & 0x7c00_0000 == 0x1400_0000 => Some((IMM26, signed(IMM26, 2))),
        // B.cond; CBZ, CBNZ; LDR, LDRSW and PRFM of a literal
        _ if word & 0xff00_0000 == 0x5400_0000
            || word & 0x7e00_0000 == 0x3400_0000
            || word & 0x3b00_0000 == 0x1800_0000 =>
        {
            Some((IMM19, signed(IMM19, 2)))
        }
        // TBZ, TBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => Some((IMM14, signed(IMM14, 2))),
        // ADR, ADRP: the lowest two bits of the distance are elsewhere.
        _ if word & 0x1f00_0000 == 0x1000_0000 => {
            let low = i64::from(word >> 29 & 3);
            Some((ADR, signed(IMM19, 2).wrapping_add(low)))
        }
        _ => None,
    }
}

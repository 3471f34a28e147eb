//! Machine code without what differs between two copies of it at different addresses.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use jit_code::elf_machine;

/// Sets to zero what depends on where a code and its surroundings are: absolute 64-bit operands, and the distances to targets outside of the code.
/// `machine` is the ELF number of the machine, `address` is where the code takes itself to be. Distances within the code stay.
///
/// `false` if instructions of the machine cannot be decoded; then nothing is changed. `docs/design/identity.md` lists what is masked.
pub fn mask_addresses(machine: u16, address: u64, bytes: &mut [u8]) -> bool {
    match machine {
        elf_machine::X86_64 => x86(64, address, bytes),
        elf_machine::I386 => x86(32, address, bytes),
        elf_machine::AARCH64 => aarch64(address, bytes),
        _ => return false,
    }
    true
}

fn range_of(address: u64, bytes: &[u8]) -> Range<u64> {
    address..address.saturating_add(bytes.len() as u64)
}

fn x86(bits: u32, address: u64, bytes: &mut [u8]) {
    let inside = range_of(address, bytes);
    let code = bytes.to_vec();
    let mut decoder = Decoder::with_ip(bits, &code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    loop {
        let start = decoder.position();
        if start >= code.len() {
            break;
        }
        decoder.set_ip(address.wrapping_add(start as u64));
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            // The next byte may be the first of an instruction. The position is within the bytes, so that it is accepted.
            let _ = decoder.set_position(start.saturating_add(1));
            continue;
        }
        let places = decoder.get_constant_offsets(&instruction);
        let mut mask = |offset: usize, size: usize| {
            let begin = start.saturating_add(offset);
            if let Some(field) = bytes.get_mut(begin..begin.saturating_add(size)) {
                field.fill(0);
            }
        };
        let is_branch = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        let is_wide = instruction.op_kinds().any(|kind| kind == OpKind::Immediate64);
        let is_outside = is_branch && !inside.contains(&instruction.near_branch_target());
        if places.has_immediate() && (is_wide || is_outside) {
            mask(places.immediate_offset(), places.immediate_size());
        }
        let is_far = instruction.is_ip_rel_memory_operand()
            && !inside.contains(&instruction.ip_rel_memory_address());
        // `mov rax, [0x7f0000000000]` has its address as a displacement of 8 bytes.
        if places.has_displacement() && (is_far || places.displacement_size() == 8) {
            mask(places.displacement_offset(), places.displacement_size());
        }
    }
}

/// Bits of an instruction.
const IMM26: u32 = 0x03ff_ffff;
const IMM19: u32 = 0x00ff_ffe0;
const IMM14: u32 = 0x0007_ffe0;
const IMM16: u32 = 0x001f_ffe0;
const ADR: u32 = 0x60ff_ffe0;
const REGISTER: u32 = 0x1f;

fn aarch64(address: u64, bytes: &mut [u8]) {
    let inside = range_of(address, bytes);
    let words = bytes.chunks_exact(4).map(|word| {
        let word = word.first_chunk().copied().unwrap_or_default();
        u32::from_le_bytes(word)
    });
    let words: Vec<u32> = words.collect();
    let mut masks = vec![0_u32; words.len()];
    for ((at, &word), mask) in (0_u64..).zip(&words).zip(&mut masks) {
        let place = address.wrapping_add(at.wrapping_mul(4));
        if let Some((field, distance)) = relative(word) {
            let target = place.wrapping_add_signed(distance);
            let is_page = word & 0x9f00_0000 == 0x9000_0000;
            if is_page || !inside.contains(&target) {
                *mask = field;
            }
        }
    }
    // An address of 48 or 64 bits is made of three or four moves to one register.
    let is_first = |word: u32| matches!(word & 0xff80_0000, 0xd280_0000 | 0x9280_0000);
    let mut start = 0;
    while let Some(&first) = words.get(start) {
        let next = start.saturating_add(1);
        let more = words.iter().skip(next).take_while(|&&word| {
            word & 0xff80_0000 == 0xf280_0000 && word & REGISTER == first & REGISTER
        });
        let more = if is_first(first) { more.count() } else { 0 };
        let end = next.saturating_add(more);
        if more >= 2 {
            masks.iter_mut().take(end).skip(start).for_each(|mask| *mask = IMM16);
        }
        start = end;
    }
    for ((field, word), mask) in bytes.chunks_exact_mut(4).zip(words).zip(masks) {
        field.copy_from_slice(&(word & !mask).to_le_bytes());
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(machine: u16, address: u64, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        assert!(mask_addresses(machine, address, &mut bytes));
        bytes
    }

    #[test]
    fn x86_loses_absolute_operands_and_far_distances() {
        for (code, result) in [
            // movabs rax, 0x1122334455667788
            ("48b88877665544332211", "48b80000000000000000"),
            // movabs rax, [0x1122334455667788]
            ("48a18877665544332211", "48a10000000000000000"),
            // call and jmp to themselves stay, those far away do not
            ("e8fbffffff", "e8fbffffff"),
            ("e800010000", "e800000000"),
            ("ebfe", "ebfe"),
            ("eb70", "eb00"),
            ("0f8400010000", "0f8400000000"),
            // lea rax, [rip-7], lea rax, [rip+0x100], cmp dword [rip+0x100], 5
            ("488d05f9ffffff", "488d05f9ffffff"),
            ("488d0500010000", "488d0500000000"),
            ("833d0001000005", "833d0000000005"),
            // mov eax, 5; mov rax, [rsp+8]; mov rax, -1
            ("b805000000", "b805000000"),
            ("488b442408", "488b442408"),
            ("48c7c0ffffffff", "48c7c0ffffffff"),
            // bytes that are no instruction
            ("0606", "0606"),
        ] {
            let bytes = |text: &str| -> Vec<u8> {
                let digits = text.as_bytes().chunks(2);
                let number = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16);
                digits.map(|two| number(two).expect("hexadecimal")).collect()
            };
            assert_eq!(
                masked(elf_machine::X86_64, 0x10_0000, &bytes(code)),
                bytes(result),
                "{code}"
            );
        }
    }

    #[test]
    fn aarch64_loses_far_distances_and_addresses_of_moves() {
        for (words, result) in [
            // bl .+0x1000, b .
            (vec![0x9400_0400], vec![0x9400_0000]),
            (vec![0x1400_0000], vec![0x1400_0000]),
            // b.eq .-4 behind nop, and alone
            (vec![0xd503_201f, 0x54ff_ffe0], vec![0xd503_201f, 0x54ff_ffe0]),
            (vec![0x54ff_ffe0], vec![0x5400_0000]),
            // cbz x1, .+0x100; tbz w2, #3, .+0x100; ldr x3, .+0x100
            (vec![0xb400_0801], vec![0xb400_0001]),
            (vec![0x3618_0802], vec![0x3618_0002]),
            (vec![0x5800_0803], vec![0x5800_0003]),
            // adrp x0, .+0x3000; adr x0, .+1 (inside), adr x0, .+5 (outside)
            (vec![0xf000_0000], vec![0x9000_0000]),
            (vec![0x3000_0000], vec![0x3000_0000]),
            (vec![0x3000_0020], vec![0x1000_0000]),
            // movz x0, #1; movk x0, #2, lsl #16; movk x0, #3, lsl #32
            (
                vec![0xd280_0020, 0xf2a0_0040, 0xf2c0_0060],
                vec![0xd280_0000, 0xf2a0_0000, 0xf2c0_0000],
            ),
            // of only 32 bits
            (vec![0xd280_0020, 0xf2a0_0040], vec![0xd280_0020, 0xf2a0_0040]),
            // of several registers
            (
                vec![0xd280_0020, 0xf2a0_0040, 0xf2c0_0061],
                vec![0xd280_0020, 0xf2a0_0040, 0xf2c0_0061],
            ),
        ] {
            let bytes = |words: &[u32]| {
                words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
            };
            assert_eq!(masked(elf_machine::AARCH64, 0x10_0000, &bytes(&words)), bytes(&result));
        }
    }

    #[test]
    fn other_machines_are_left_alone() {
        let mut bytes = [1, 2, 3];
        assert!(!mask_addresses(243, 0, &mut bytes));
        assert_eq!(bytes, [1, 2, 3]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_masked(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            address in any::<u64>(),
            machine in prop::sample::select(vec![elf_machine::X86_64, elf_machine::I386, elf_machine::AARCH64]),
        ) {
            let once = masked(machine, address, &bytes);
            prop_assert_eq!(once.len(), bytes.len());
            for (before, after) in bytes.iter().zip(&once) {
                prop_assert_eq!(before & after, *after);
            }
        }
    }
}

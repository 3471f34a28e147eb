//! Machine code without what differs between two copies of it at different addresses.

mod aarch64;
mod words;
mod x86;

use jit_code::elf_machine;

/// Sets to zero what depends on where a code and its surroundings are: absolute addresses, and the distances to targets outside of the code. Distances within
/// the code stay, and an absolute address of the code itself becomes one.
/// `machine` is the ELF number of the machine, `address` is where the process has the code: not where an image has it.
///
/// `false` if instructions of the machine cannot be decoded; then nothing is changed. `docs/design/identity.md` lists what is masked.
pub fn mask_addresses(machine: u16, address: u64, bytes: &mut [u8]) -> bool {
    match machine {
        elf_machine::X86_64 => x86::mask(64, address, bytes),
        elf_machine::I386 => x86::mask(32, address, bytes),
        elf_machine::AARCH64 => aarch64::mask(address, bytes),
        _ => return false,
    }
    true
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
            // lea rbx, [r13-0x117ccd90]; lea rbx, [r13+0x8df8]; lea rbx, [r12-0x117ccd90]; mov eax, [r13+rcx+0x10000000]
            ("498d9d703283ee", "498d9d00000000"),
            ("498d9df88d0000", "498d9df88d0000"),
            ("498d9c24703283ee", "498d9c24703283ee"),
            ("418b840d00000010", "418b840d00000010"),
            // jmp [rip], and the address; mov rax, [rip], and the address; a number that is loaded into another register
            ("ff25000000008877665544332211", "ff25000000000000000000000000"),
            ("488b05000000008877665544332211", "488b05000000000000000000000000"),
            ("f20f1005000000008877665544332211", "f20f1005000000008877665544332211"),
            // jmp rax, nops, and a table of addresses in the code, the last of which is behind it
            (
                "ffe0660f1f440000080010000000000000001000000000001800100000000000",
                "ffe0660f1f440000080000000000000000000000000000001800000000000000",
            ),
            (
                "ffe0660f1f44000008001000000000001800100000000000",
                "ffe0660f1f44000008000000000000001800100000000000",
            ),
            // bytes that are no instruction
            ("0606", "0606"),
        ] {
            assert_eq!(
                masked(elf_machine::X86_64, 0x10_0000, &bytes(code)),
                bytes(result),
                "{code}"
            );
        }
        // On x86, addresses have four bytes.
        let table = ("ffe09090080010000000100010001000", "ffe09090080000000000000010001000");
        assert_eq!(masked(elf_machine::I386, 0x10_0000, &bytes(table.0)), bytes(table.1));
    }

    fn bytes(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        let number = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16);
        digits.map(|two| number(two).expect("hexadecimal")).collect()
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
            // adrp x0, .+0x3000, then add x0, x0, #0x123; ldr x1, [x0, #8]; add x0, x1, #0x123, which is another register
            (vec![0xf000_0000, 0x9104_8c00], vec![0x9000_0000, 0x9100_0000]),
            (vec![0xf000_0000, 0xf940_0401], vec![0x9000_0000, 0xf940_0001]),
            (vec![0xf000_0000, 0x9104_8c20], vec![0x9000_0000, 0x9104_8c20]),
            // ldr x3, .+8; br x3; an address. Into a register of floating point numbers, it is none.
            (
                vec![0x5800_0043, 0xd61f_0060, 0x4433_2211, 0x5566_7788],
                vec![0x5800_0043, 0xd61f_0060, 0, 0],
            ),
            (
                vec![0x5c00_0043, 0xd61f_0060, 0x4433_2211, 0x5566_7788],
                vec![0x5c00_0043, 0xd61f_0060, 0x4433_2211, 0x5566_7788],
            ),
            // A table of addresses in the code; what it holds is not taken for instructions.
            (
                vec![0xd61f_0060, 0xd503_201f, 0x10_0004, 0, 0x10_0000, 0],
                vec![0xd61f_0060, 0xd503_201f, 4, 0, 0, 0],
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

    /// A code at `address` that is made of pieces, each with a number, and refers to what is `far` away.
    fn made(pieces: &[(usize, u8)], address: u64, far: i32) -> Vec<u8> {
        let absolute = address.wrapping_add_signed(far.into()).to_le_bytes();
        let distance = far.to_le_bytes();
        let mut code = Vec::new();
        for (piece, number) in pieces {
            // A return, which is always within the code.
            code.push(0xc3);
            let own = (address + u64::from(*number) % code.len() as u64).to_le_bytes();
            match piece {
                // call, lea, movabs of what is elsewhere; lea rbx, [r13+far]
                0 => code.extend([&[0xe8][..], &distance].concat()),
                1 => code.extend([&[0x48, 0x8d, 0x05][..], &distance].concat()),
                2 => code.extend([&[0x48, 0xb8][..], &absolute].concat()),
                3 => code.extend([&[0x49, 0x8d, 0x9d][..], &distance].concat()),
                // jmp [rip]; mov rax, [rip]
                4 => code.extend([&[0xff, 0x25, 0, 0, 0, 0][..], &absolute].concat()),
                5 => code.extend([&[0x48, 0x8b, 0x05, 0, 0, 0, 0][..], &absolute].concat()),
                // movabs of the code itself, and a table
                6 => code.extend([&[0x48, 0xb8][..], &own].concat()),
                7 => {
                    code.resize(code.len().next_multiple_of(8), 0x90);
                    code.extend([own, own].concat());
                }
                _ => code.extend([0xb8, *number, 1, 2, 3]),
            }
        }
        code
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
        }

        /// Pieces that depend on places, at two places.
        #[test]
        fn copies_of_a_code_are_the_same(
            pieces in proptest::collection::vec((0..9_usize, any::<u8>()), 1..40),
            pages in proptest::array::uniform2(0x1_0000_u64..0x7fff_ffff),
            far in proptest::array::uniform2(0x10_0000_i32..0x7000_0000),
        ) {
            let copies = [0, 1].map(|copy| made(&pieces, pages[copy] << 12, far[copy]));
            let [one, other] = [0, 1].map(|copy| {
                masked(elf_machine::X86_64, pages[copy] << 12, &copies[copy])
            });
            prop_assert_eq!(&one, &other);
            // What does not depend on places is there.
            let numbers = pieces.iter().filter(|(piece, _)| *piece == 8);
            for (_, number) in numbers {
                prop_assert!(one.windows(5).any(|it| it == [0xb8, *number, 1, 2, 3]));
            }
        }
    }
}

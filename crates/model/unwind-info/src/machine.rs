//! The machines, and the rules of their ABIs.

use jit_code::elf_machine;

/// A machine whose frames can be described. Both are little-endian with 64-bit addresses.
///
/// Register numbers and rules are those of the System V ABI for x86-64 (figure 3.36) and of the DWARF for the Arm
/// 64-bit architecture (AADWARF64, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Machine {
    /// AMD64, Intel 64.
    X86_64,
    /// ARM, 64 bits.
    Aarch64,
}

impl Machine {
    /// The machine with this number in ELF's `e_machine` and jitdump's `elf_mach`.
    #[must_use]
    #[allow(clippy::as_conversions, reason = "they widen, and `From` is not const")]
    pub const fn from_elf(e_machine: u32) -> Option<Self> {
        const X86_64: u32 = elf_machine::X86_64 as u32;
        const AARCH64: u32 = elf_machine::AARCH64 as u32;
        match e_machine {
            X86_64 => Some(Self::X86_64),
            AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The machine that this code is compiled for.
    #[must_use]
    pub const fn host() -> Option<Self> {
        if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            Some(Self::X86_64)
        } else if cfg!(all(
            target_arch = "aarch64",
            target_pointer_width = "64",
            target_endian = "little"
        )) {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// The number of the stack pointer: `rsp`, `sp`.
    #[must_use]
    pub const fn stack_pointer(self) -> u16 {
        match self {
            Self::X86_64 => 7,
            Self::Aarch64 => 31,
        }
    }

    /// The number of the frame pointer: `rbp`, `x29`.
    #[must_use]
    pub const fn frame_pointer(self) -> u16 {
        match self {
            Self::X86_64 => 6,
            Self::Aarch64 => 29,
        }
    }

    /// General registers, the stack pointer among them, have the numbers below this.
    pub(crate) const fn general_registers(self) -> u16 {
        match self {
            Self::X86_64 => 16,
            Self::Aarch64 => 32,
        }
    }

    /// The registers that a call must preserve, without stack and frame pointer. Their numbers fit into one byte of LEB128.
    pub(crate) fn preserved(self) -> impl Iterator<Item = u8> {
        let (first, second) = match self {
            Self::X86_64 => (3..=3, 12..=15),
            // x19 to x28, and the low halves of v8 to v15
            Self::Aarch64 => (19..=28, 72..=79),
        };
        first.chain(second)
    }

    /// The number of the return address column: a separate column on x86-64, `x30` on aarch64.
    #[must_use]
    pub const fn return_address(self) -> u16 {
        match self {
            Self::X86_64 => 16,
            Self::Aarch64 => 30,
        }
    }

    /// Where the call has saved the return address, as a distance from the CFA; `None` if it is in its register.
    #[must_use]
    pub const fn return_address_offset(self) -> Option<i32> {
        match self {
            Self::X86_64 => Some(-8),
            Self::Aarch64 => None,
        }
    }

    /// The distance of the CFA from the stack pointer at the first instruction of a function.
    #[must_use]
    pub const fn entry_cfa_offset(self) -> i32 {
        match self {
            Self::X86_64 => 8,
            Self::Aarch64 => 0,
        }
    }

    /// The unit of offsets in code, in bytes: the size of the smallest instruction.
    #[must_use]
    pub const fn code_alignment(self) -> u32 {
        match self {
            Self::X86_64 => 1,
            Self::Aarch64 => 4,
        }
    }

    /// The unit of locations in the frame, in bytes. Negative, because frames grow downward.
    #[must_use]
    pub const fn data_alignment(self) -> i32 {
        -8
    }

    /// The common part (CIE) that all entries written by [`fde`](crate::fde) refer to.
    #[must_use]
    pub const fn cie(self) -> &'static [u8] {
        match self {
            Self::X86_64 => &CIE_X86_64,
            Self::Aarch64 => &CIE_AARCH64,
        }
    }
}

/// Version 1, augmentation "zR": addresses are pcrel | sdata4.
const CIE_X86_64: [u8; 24] = [
    20, 0, 0, 0, // length of what follows
    0, 0, 0, 0, // marks a CIE
    1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, // units of 1 and -8, return address in 16
    0x0c, 7, 8, // DW_CFA_def_cfa: rsp + 8
    0x90, 1, // DW_CFA_offset: the return address at CFA - 8
    0, 0, // DW_CFA_nop
];

/// Like [`CIE_X86_64`].
const CIE_AARCH64: [u8; 20] = [
    16, 0, 0, 0, // length of what follows
    0, 0, 0, 0, // marks a CIE
    1, b'z', b'R', 0, 4, 0x78, 30, 1, 0x1b, // units of 4 and -8, return address in 30
    0x0c, 31, 0, // DW_CFA_def_cfa: sp + 0
];

/// Version 1, augmentation "zRB": return addresses are signed with key B (AADWARF64, section 5.1).
pub(crate) const CIE_AARCH64_KEY_B: [u8; 24] = [
    20, 0, 0, 0, // length of what follows
    0, 0, 0, 0, // marks a CIE
    1, b'z', b'R', b'B', 0, 4, 0x78, 30, 1, 0x1b, // as in `CIE_AARCH64`
    0x0c, 31, 0, // DW_CFA_def_cfa: sp + 0
    0, 0, 0, // DW_CFA_nop
];

//! The machine an image is for.

pub use jit_code::Endian;
use jit_code::elf_machine::{ARM, I386, LOONGARCH, M68K, MIPS, PPC, PPC64, RISCV, SH, SPARC};

/// The machine an image is for: that of the code, not that of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// `e_machine`, as in the jitdump header's `elf_mach`.
    pub machine: u16,
    /// Byte order of the file and of everything in it.
    pub endian: Endian,
    /// ELF64 (`true`) or ELF32.
    pub is_64: bool,
    /// `e_flags`, the machine's ABI variant.
    pub flags: u32,
}

impl Target {
    /// The usual variant of `machine`: the word size and the `e_flags` of its Linux ABI.
    ///
    /// A jitdump specifies only the machine. If one number is used for both word sizes (MIPS, RISC-V), the 64-bit
    /// variant is assumed; set [`is_64`](Self::is_64) and [`flags`](Self::flags) if more is known.
    #[must_use]
    pub fn new(machine: u16, endian: Endian) -> Self {
        let is_64 = !matches!(machine, SPARC | I386 | M68K | PPC | ARM | SH);
        let flags = match machine {
            // EF_ARM_EABI_VER5
            ARM => 0x0500_0000,
            // ABI version 2 on both byte orders: version 1 would promise function descriptors
            PPC64 => 2,
            // EF_MIPS_ARCH_64R2 | EF_MIPS_CPIC | EF_MIPS_PIC
            MIPS => 0x8000_0006,
            // EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE
            RISCV => 0x5,
            // LP64D, object ABI v1
            LOONGARCH => 0x43,
            _ => 0,
        };
        Target { machine, endian, is_64, flags }
    }

    /// Size of an address in bytes.
    pub(crate) fn address_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }
}

//! The machine an image is for.

/// Byte order of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Endian {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// The machine an image is for: that of the code, not that of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// `e_machine`, as the jitdump header's `elf_mach` gives it.
    pub machine: u16,
    /// Byte order of the file and of everything in it.
    pub endian: Endian,
    /// ELF64 (`true`) or ELF32.
    pub is_64: bool,
    /// `e_flags`, the machine's ABI variant.
    pub flags: u32,
}

const EM_SPARC: u16 = 2;
const EM_386: u16 = 3;
const EM_68K: u16 = 4;
const EM_MIPS: u16 = 8;
const EM_PPC: u16 = 20;
const EM_PPC64: u16 = 21;
const EM_ARM: u16 = 40;
const EM_SH: u16 = 42;
const EM_RISCV: u16 = 243;
const EM_LOONGARCH: u16 = 258;

impl Target {
    /// The usual variant of `machine`: the word size and the `e_flags` that its Linux ABI has.
    ///
    /// A jitdump names only the machine. Where one number serves both word sizes (MIPS, RISC-V) the
    /// 64-bit one is taken; set [`is_64`](Self::is_64) and [`flags`](Self::flags) when more is known.
    #[must_use]
    pub fn new(machine: u16, endian: Endian) -> Self {
        let is_64 = !matches!(machine, EM_SPARC | EM_386 | EM_68K | EM_PPC | EM_ARM | EM_SH);
        let flags = match machine {
            // EF_ARM_EABI_VER5
            EM_ARM => 0x0500_0000,
            // ABI version 2 on both byte orders: version 1 would promise function descriptors
            EM_PPC64 => 2,
            // EF_MIPS_ARCH_64R2 | EF_MIPS_CPIC | EF_MIPS_PIC
            EM_MIPS => 0x8000_0006,
            // EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE
            EM_RISCV => 0x5,
            // LP64D, object ABI v1
            EM_LOONGARCH => 0x43,
            _ => 0,
        };
        Target { machine, endian, is_64, flags }
    }

    /// Bytes of an address.
    pub(crate) fn address_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }
}

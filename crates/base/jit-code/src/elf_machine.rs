//! Numbers of machines: `e_machine` of ELF (`elf.h`), which is `elf_mach` of a jitdump.

/// SPARC, 32 bits.
pub const SPARC: u16 = 2;
/// x86, 32 bits.
pub const I386: u16 = 3;
/// Motorola 68000.
pub const M68K: u16 = 4;
/// MIPS, 32 and 64 bits.
pub const MIPS: u16 = 8;
/// PowerPC, 32 bits.
pub const PPC: u16 = 20;
/// PowerPC, 64 bits.
pub const PPC64: u16 = 21;
/// IBM Z, 31 and 64 bits.
pub const S390: u16 = 22;
/// Arm, 32 bits.
pub const ARM: u16 = 40;
/// SuperH.
pub const SH: u16 = 42;
/// x86-64.
pub const X86_64: u16 = 62;
/// Arm, 64 bits.
pub const AARCH64: u16 = 183;
/// RISC-V, 32 and 64 bits.
pub const RISCV: u16 = 243;
/// LoongArch, 32 and 64 bits.
pub const LOONGARCH: u16 = 258;

/// The machine that this code is compiled for; 0 (`EM_NONE`) if it is none of those above.
pub const NATIVE: u16 = if cfg!(target_arch = "x86_64") {
    X86_64
} else if cfg!(target_arch = "aarch64") {
    AARCH64
} else if cfg!(target_arch = "x86") {
    I386
} else if cfg!(target_arch = "arm") {
    ARM
} else if cfg!(target_arch = "s390x") {
    S390
} else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
    RISCV
} else if cfg!(target_arch = "powerpc64") {
    PPC64
} else if cfg!(target_arch = "loongarch64") {
    LOONGARCH
} else {
    0
};

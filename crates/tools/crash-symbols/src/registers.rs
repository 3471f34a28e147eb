//! DWARF's numbers of registers, and the names that minidump-unwind has for them.

/// A machine whose frames can be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

/// By number; the last one is the return address.
const X86_64: [&str; 17] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip",
];
const AARCH64: [&str; 32] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
    "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
    "x28", "fp", "lr", "sp",
];

impl Machine {
    /// The machine with this `e_machine` of ELF.
    pub(crate) fn from_elf(machine: u16) -> Option<Self> {
        match machine {
            62 => Some(Self::X86_64),
            183 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The name of a register.
    pub(crate) fn register(self, number: u16) -> Option<&'static str> {
        let names: &[&str] = match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        };
        names.get(usize::from(number)).copied()
    }
}

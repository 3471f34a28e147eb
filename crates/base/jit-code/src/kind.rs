//! The role of a code in its runtime.

/// The role of a code in its runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A function of the program that the runtime executes.
    #[default]
    Function,
    /// A piece of code shared by many functions: an inline cache, a call into the runtime.
    Stub,
    /// Code that transfers control between two calling conventions.
    Trampoline,
    /// Code that an interpreter executes for one of its instructions.
    BytecodeHandler,
    /// Code around a function: the entry from outside, an argument adapter.
    Wrapper,
    /// A compiled regular expression.
    RegularExpression,
    /// A method that the interpreter of HotSpot, the Java virtual machine, executes: not machine code, but the method's
    /// bytecode, or for a native method HotSpot's description of it. The frames of interpreted methods refer to these addresses.
    JavaMethod,
    /// Anything else.
    Other,
}

impl From<u8> for Kind {
    /// An undefined number is [`Kind::Other`].
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Function,
            1 => Self::Stub,
            2 => Self::Trampoline,
            3 => Self::BytecodeHandler,
            4 => Self::Wrapper,
            5 => Self::RegularExpression,
            6 => Self::JavaMethod,
            _ => Self::Other,
        }
    }
}

impl From<Kind> for u8 {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Function => 0,
            Kind::Stub => 1,
            Kind::Trampoline => 2,
            Kind::BytecodeHandler => 3,
            Kind::Wrapper => 4,
            Kind::RegularExpression => 5,
            Kind::JavaMethod => 6,
            Kind::Other => 255,
        }
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Function,
        Self::Stub,
        Self::Trampoline,
        Self::BytecodeHandler,
        Self::Wrapper,
        Self::RegularExpression,
        Self::JavaMethod,
        Self::Other,
    ];

    /// Its name in one or two words, as tools show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Stub => "stub",
            Self::Trampoline => "trampoline",
            Self::BytecodeHandler => "bytecode handler",
            Self::Wrapper => "wrapper",
            Self::RegularExpression => "regular expression",
            Self::JavaMethod => "Java method",
            Self::Other => "other",
        }
    }
}

impl core::fmt::Display for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn numbers_and_kinds_go_both_ways() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from(u8::from(kind)), kind);
        }
        assert_eq!(Kind::from(77), Kind::Other);
    }
}

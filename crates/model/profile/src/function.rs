//! Functions of the source.

use crate::id::{ModuleId, StringId};

/// A function: the same for all its compilations, and wherever it is inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Function {
    /// Its name, demangled, and without a mark of the compiler's tier.
    pub name: StringId,
    /// The file that its lines are in; empty if it is not known.
    pub file: StringId,
    /// The line where it begins, from 1; 0 if it is not known.
    pub line: u32,
    /// The column where it begins, from 1; 0 if it is not known.
    pub column: u32,
    /// The hash of its source that its runtime tells functions of one name apart by; empty if there is none. If others have the same name and another
    /// hash, a finished profile has `#` and the hash at the end of the name.
    pub source_hash: StringId,
    /// What it is.
    pub kind: FunctionKind,
    /// The file of the language runtime that runs it. `None` if there is none, or it is not known.
    pub runtime: Option<ModuleId>,
}

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FunctionKind {
    /// In a program or a library.
    Native,
    /// In the kernel.
    Kernel,
    /// Compiled at run time.
    Jitted,
    /// Run by an interpreter, as far as frames show it.
    Interpreted,
    /// Code without a known name. The function's name tells where it is: `[libfoo.so]`, `[jit code]`.
    Unknown,
    /// No code: the stack ends here, and the function's name says why.
    End,
}

impl Function {
    /// A function of which only the name is known.
    #[must_use]
    pub const fn new(name: StringId, kind: FunctionKind) -> Self {
        let (file, source_hash) = (StringId::EMPTY, StringId::EMPTY);
        Self { name, file, line: 0, column: 0, source_hash, kind, runtime: None }
    }
}

impl FunctionKind {
    /// Its name in reports and exports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Jitted => "jitted",
            Self::Interpreted => "interpreted",
            Self::Unknown => "unknown",
            Self::End => "end of stack",
        }
    }

    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Native, Self::Kernel, Self::Jitted, Self::Interpreted, Self::Unknown, Self::End];
}

//! The parts of a name.

use std::borrow::Cow;

/// How a function without a name is called.
pub const ANONYMOUS: &[u8] = b"(anonymous)";

/// What the name of a code says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionName<'a> {
    /// The function, without marks of the compiler and without its place.
    pub function: Cow<'a, [u8]>,
    /// The file, as the runtime names it; empty if the name does not say.
    pub file: &'a [u8],
    /// The line that the function or the trace begins at, from 1; 0 if the name does not say. Without a file, it says little.
    pub line: u32,
    /// The column, from 1; 0 if the name does not say.
    pub column: u32,
    /// The hash of the function's source, by which the runtime tells functions of one name apart; empty if the name has none.
    pub source_hash: &'a [u8],
    /// The tier of the compiler.
    pub tier: Option<&'a [u8]>,
    /// What the code is to the function.
    pub kind: NameKind,
    /// Whether an `o` at the beginning may be a mark of V8: see [`Self::without_loop_mark`].
    pub(super) may_have_loop_mark: bool,
}

/// What a code is to the function that its name is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameKind {
    /// The function, or a part of it, compiled.
    #[default]
    Compiled,
    /// A trampoline, by which an interpreter calls itself to run the function.
    Trampoline,
}

impl<'a> FunctionName<'a> {
    /// The function of names that have none.
    pub const ANONYMOUS: &'static [u8] = ANONYMOUS;

    /// A function of which only the name is known.
    pub(super) fn plain(function: &'a [u8]) -> Self {
        Self { function: Cow::Borrowed(function), ..Self::default() }
    }

    /// The same with a tier.
    pub(super) fn tier(self, tier: &'a [u8]) -> Self {
        Self { tier: Some(tier), ..self }
    }

    /// Whether it has a file and a line.
    #[must_use]
    pub fn has_place(&self) -> bool {
        !self.file.is_empty() && self.line > 0
    }

    /// Where the function begins: line and column, (0, 0) if the name does not say. The line of a trace is that of the trace.
    #[must_use]
    pub fn definition(&self) -> (u32, u32) {
        let is_of_trace = self.file.is_empty() && self.tier == Some(b"trace");
        if is_of_trace { (0, 0) } else { (self.line, self.column) }
    }

    /// The function if the `o` at the beginning of its name is a mark. Some versions of V8 mark code that was entered within a
    /// loop by an `o` *behind* the tier, which may as well be the beginning of the name.
    #[must_use]
    pub fn without_loop_mark(&self) -> Option<&[u8]> {
        let rest = self.function.strip_prefix(b"o").filter(|_| self.may_have_loop_mark)?;
        Some(if rest.is_empty() { ANONYMOUS } else { rest })
    }
}

//! The names of code that nothing announces: see `docs/inferred-names.md`.

/// A stub that only jumps to the code with the name behind this.
pub const STUB: &str = "→ ";
/// Code behind the announced code with this name, up to a bracket.
pub const AFTER: &str = "[jit code after ";
/// The same before it.
pub const BEFORE: &str = "[jit code before ";
/// Executable memory that has this name, up to a bracket.
pub const MEMORY_OF: &str = "[executable memory of ";
/// Executable memory without a name.
pub const MEMORY: &str = "[anonymous executable memory]";

/// Whether a symbol is an inferred name that only says where the code is: a stub's says what it is.
#[must_use]
pub fn is_place(symbol: &[u8]) -> bool {
    is_inferred(symbol) && !symbol.starts_with(STUB.as_bytes())
}

/// Whether a symbol is an inferred name. Names that a runtime announces never have these forms.
#[must_use]
pub fn is_inferred(symbol: &[u8]) -> bool {
    let begins = [STUB, AFTER, BEFORE, MEMORY_OF];
    symbol == MEMORY.as_bytes() || begins.iter().any(|name| symbol.starts_with(name.as_bytes()))
}

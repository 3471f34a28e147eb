//! What source locations stand for.

/// A place in a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// Path of the file, as a debugger should open it.
    pub file: &'a str,
    /// From 1; 0 for code that comes from no line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
}

/// A call whose callee the front end compiled in place of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call<'a> {
    /// Name of the callee.
    pub name: &'a str,
    /// The call into whose callee this one was inlined: its index among the calls, which is less than
    /// this one's own. `None`: into the function itself.
    pub parent: Option<u32>,
    /// Where the call stands.
    pub place: Place<'a>,
}

//! What source locations refer to.

use jitscribe::Line;

/// A place in a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// Path of the file, as a debugger should open it.
    pub file: &'a str,
    /// From 1; 0 for code that has no source line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
}

impl<'a> Place<'a> {
    pub(crate) fn line_at(self, offset: u32) -> Line<'a> {
        Line::new(offset, self.file, self.line).column(self.column)
    }
}

/// A call that the front end inlined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call<'a> {
    /// Name of the callee.
    pub name: &'a str,
    /// The call into whose callee this one was inlined: an index among the calls, less than this
    /// call's own index. `None`: it was inlined into the function itself.
    pub parent: Option<u32>,
    /// The place of the call.
    pub place: Place<'a>,
}

//! The payload of a BREAKPOINTS item of a code log: the breakpoints that a debugger waits to place in code to come.
//!
//! While [`control::BREAKPOINTS`](super::control::BREAKPOINTS) is set, the process shows the debugger each code that a
//! breakpoint may be in, before its announcement returns, and counts all changes.

/// Offset of the u64 with the number of codes that were loaded, unloaded or moved since the control bit was applied.
pub const CHANGES: usize = 0;
/// Offset of the u32 with the size of the text in bytes.
pub const LENGTH: usize = 8;
/// Offset of the text, whose form [`Breakpoint::parse`] describes.
pub const TEXT: usize = 16;

/// A breakpoint that is to be placed in code when it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakpoint<'t> {
    /// In each function whose name contains this as a whole word, inlined ones included.
    Function(&'t [u8]),
    /// At this line of each file whose path ends in these bytes.
    Line(u32, &'t [u8]),
}

impl<'t> Breakpoint<'t> {
    /// The breakpoints of a text: `f NAME` and `l LINE FILE`, one in each line. Other lines are skipped.
    pub fn parse(text: &'t [u8]) -> impl Iterator<Item = Self> {
        text.split(|byte| *byte == b'\n').filter_map(|line| match line.split_at_checked(2)? {
            (b"f ", name) if !name.is_empty() => Some(Self::Function(name)),
            (b"l ", rest) => {
                let space = rest.iter().position(|byte| *byte == b' ')?;
                let (number, file) = (rest.get(..space)?, rest.get(space.saturating_add(1)..)?);
                let number = core::str::from_utf8(number).ok()?.parse().ok()?;
                (!file.is_empty()).then_some(Self::Line(number, file))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Breakpoint::{self, Function, Line};

    #[test]
    fn a_text_is_parsed_and_what_is_not_understood_is_skipped() {
        let text =
            b"f many_13\nl 131 crowd.lang\nx\n\nf \nl 7 \nl x y\nl 99999999999 y\nf a b\nl 2 a b";
        let parsed: std::vec::Vec<_> = Breakpoint::parse(text).collect();
        let expected =
            [Function(b"many_13"), Line(131, b"crowd.lang"), Function(b"a b"), Line(2, b"a b")];
        assert_eq!(parsed, expected);
    }
}

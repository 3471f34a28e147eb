//! The writer: lines that every reader of perf maps takes.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// What an empty name becomes: perf drops a line without a name.
const NAMELESS: &str = "[unnamed]";

/// perf drops the lines whose name is shorter.
const SHORTEST: usize = 3;

/// Appends one line: both numbers in lower-case hexadecimal without `0x`, single
/// blanks, the name as [`safe_name`] gives it, and a newline.
///
/// perf drops names of one or two bytes, so these are filled up with blanks to
/// three; [`entries`](crate::entries) cuts them again.
///
/// Several threads that append to one file keep their lines whole by passing each
/// line to one `write` on a descriptor opened with `O_APPEND`.
pub fn push_line(out: &mut Vec<u8>, address: u64, size: u64, name: &[u8]) {
    let name = safe_name(name);
    let mut numbers = String::new();
    // Writing into a String cannot fail.
    let _ = write!(numbers, "{address:x} {size:x} ");
    out.extend_from_slice(numbers.as_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend(core::iter::repeat_n(b' ', SHORTEST.saturating_sub(name.len())));
    out.push(b'\n');
}

/// The name as it can stand in a line: every control character is a `?` (a newline
/// would end the line, a NUL the name, an escape would reach the terminal), what is
/// not UTF-8 is U+FFFD, blanks around the name are cut, and no name is `[unnamed]`.
///
/// A name that is already so is returned unchanged.
#[must_use]
pub fn safe_name(name: &[u8]) -> Cow<'_, str> {
    let name = match String::from_utf8_lossy(name) {
        Cow::Borrowed(name) => Cow::Borrowed(name.trim_matches([' ', '\t'])),
        Cow::Owned(name) => Cow::Owned(name.trim_matches([' ', '\t']).into()),
    };
    if name.is_empty() {
        Cow::Borrowed(NAMELESS)
    } else if name.contains(char::is_control) {
        Cow::Owned(name.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
    } else {
        name
    }
}

//! Foreign text in messages.

use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::os::unix::ffi::OsStrExt;

use crate::Escaped;
use crate::cut::boundary;

/// The longest name in a message, in bytes.
const LONGEST_NAME: usize = 400;
/// The longest name in a table, in bytes: regular expressions and URLs that name code may be much longer.
const LONGEST_SHORT: usize = 120;
/// The longest path or other text in a message, in bytes. The kernel accepts no longer path.
const LONGEST_TEXT: usize = 4096;

/// Text of foreign origin for a message. Unprintable characters are escaped (`\x1b`), and the middle of a long text is
/// replaced by its length.
#[derive(Clone, Copy, Debug)]
pub struct Foreign<'a> {
    text: &'a [u8],
    longest: usize,
}

/// A path, for a message.
#[must_use]
pub fn path<P: AsRef<OsStr> + ?Sized>(path: &P) -> Foreign<'_> {
    Foreign { text: path.as_ref().as_bytes(), longest: LONGEST_TEXT }
}

/// A name of a function or a process, for a message.
#[must_use]
pub fn name<N: AsRef<[u8]> + ?Sized>(name: &N) -> Foreign<'_> {
    Foreign { text: name.as_ref(), longest: LONGEST_NAME }
}

/// A name of a function or a file, for a table.
#[must_use]
pub fn short<N: AsRef<[u8]> + ?Sized>(name: &N) -> Foreign<'_> {
    Foreign { text: name.as_ref(), longest: LONGEST_SHORT }
}

/// The text of an error or of another program, for a message.
#[must_use]
pub fn said(text: &str) -> Foreign<'_> {
    Foreign { text: text.as_bytes(), longest: LONGEST_TEXT }
}

/// A name in a listing, shown in full.
#[must_use]
pub fn whole(name: &[u8]) -> Foreign<'_> {
    Foreign { text: name, longest: usize::MAX }
}

impl Display for Foreign<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, longest } = *self;
        if text.len() <= longest {
            return Escaped(text).fmt(f);
        }
        let (start, end) = (boundary(text, longest / 2), boundary(text, text.len() - longest / 2));
        let cut = |range| Escaped(text.get(range).unwrap_or_default());
        write!(f, "{}…[{} bytes]…{}", cut(0..start), text.len(), cut(end..text.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        let long = "ö\x1b".repeat(100_000);
        let shown = name(&long).to_string();
        assert!(shown.starts_with(r"ö\x1bö") && shown.ends_with(r"ö\x1b"), "{shown}");
        assert!(shown.contains("…[300000 bytes]…") && shown.len() < 2000, "{shown}");
        assert_eq!(name("größe").to_string(), "größe");
        assert_eq!(whole(long.as_bytes()).to_string(), r"ö\x1b".repeat(100_000));
    }
}

//! Names and paths as strings of C.

use std::ffi::CStr;

use fallible::Vec;

/// Longer names are cut: tools store names in buffers.
const LONGEST: usize = 2000;
const CUT: &[u8] = b"...";
/// `PATH_MAX` of Linux, with the NUL: no longer path can be opened.
const LONGEST_PATH: usize = 4096;

/// A string of C, and the memory that holds it, which is used again and again.
#[derive(Debug, Default)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// A name, for people: what is not printable becomes `?`, and NULs are among that.
    pub(crate) fn name(&mut self, name: &[u8]) -> &CStr {
        let name = if name.is_empty() { b"<unnamed>" } else { name };
        let kept = match name.len() > LONGEST {
            true => printable::beginning(name, LONGEST - CUT.len()),
            false => name,
        };
        self.0.clear();
        printable::replaced(kept, "?").for_each(|piece| self.0.extend_from_slice(piece));
        if kept.len() < name.len() {
            self.0.extend_from_slice(CUT);
        }
        self.end()
    }

    /// A path, which the tool opens: unchanged. `None` if it is empty or cannot be opened.
    pub(crate) fn path(&mut self, path: &[u8]) -> Option<&CStr> {
        if path.is_empty() || path.len() >= LONGEST_PATH || path.contains(&0) {
            return None;
        }
        self.0.clear();
        self.0.extend_from_slice(path);
        Some(self.end())
    }

    /// The string; empty if an allocation for it was refused.
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }

    fn end(&mut self) -> &CStr {
        self.0.push(0);
        self.as_c_str()
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, LONGEST_PATH, Text};

    #[test]
    fn names_are_strings_of_c() {
        let mut text = Text::default();
        let mut shown = |name: &[u8]| text.name(name).to_bytes().to_vec();
        assert_eq!(shown(b"fib"), b"fib");
        assert_eq!(shown("größe(λ)".as_bytes()), "größe(λ)".as_bytes());
        assert_eq!(shown(b"a\0b\nc\x7f\x80\xff"), b"a?b?c??\xff");
        assert_eq!(shown(b""), b"<unnamed>");
        let long = shown("ö".repeat(LONGEST).as_bytes());
        assert!(long.len() <= LONGEST && long.ends_with(b"...") && String::from_utf8(long).is_ok());
        assert_eq!(shown(&[0xbf; LONGEST + 1]).len(), LONGEST);
    }

    #[test]
    fn paths_are_unchanged_or_left_out() {
        let mut text = Text::default();
        let mut shown = |path: &[u8]| text.path(path).map(|path| path.to_bytes().to_vec());
        assert_eq!(shown(b"/a\n\xff.lang").as_deref(), Some(&b"/a\n\xff.lang"[..]));
        assert_eq!([shown(b""), shown(b"/a\0b"), shown(&[b'a'; LONGEST_PATH])], [None, None, None]);
        assert_eq!(shown(&[b'a'; LONGEST_PATH - 1]).unwrap().len(), LONGEST_PATH - 1);
    }
}

//! Foreign text as the page shows it.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustc_hash::FxHashMap;

/// A name or a path: unprintable characters are escaped, and the middle of a long text is replaced by its length.
pub fn shown(text: &[u8]) -> Cow<'_, str> {
    const LONGEST: usize = 4096;
    match std::str::from_utf8(text) {
        Ok(text) if text.len() <= LONGEST && printable::is_safe(text.as_bytes()) => text.into(),
        _ => printable::path(OsStr::from_bytes(text)).to_string().into(),
    }
}

/// A line of a source, with its tabs.
pub fn line(text: &[u8]) -> String {
    let parts: Vec<Cow<'_, str>> = text.split(|&byte| byte == b'\t').map(shown).collect();
    parts.join("\t")
}

/// Texts, each once. The first one is empty.
#[derive(Debug)]
pub struct Texts {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Default for Texts {
    fn default() -> Self {
        let mut texts = Self { numbers: FxHashMap::default(), texts: Vec::new() };
        texts.number("");
        texts
    }
}

impl Texts {
    /// The number of a text.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// The texts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_or_hide_is_escaped() {
        assert_eq!(shown(b"a\nb\x1b[2J"), "a\\nb\\x1b[2J");
        assert_eq!(shown(b"</script>"), "</script>");
        assert_eq!(shown("gr\u{f6}\u{df}e".as_bytes()), "gr\u{f6}\u{df}e");
        assert_eq!(line(b"\tif\x07"), "\tif\\x07");
        let long = shown(&[b'x'; 1 << 20]).into_owned();
        assert!(long.len() < 5000 && long.contains("[1048576 bytes]"), "{}", long.len());
    }
}

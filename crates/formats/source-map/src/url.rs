//! The comments at the end of a script, by which it names itself and refers to its map.

use std::borrow::Cow;

use crate::base64;

/// Where the map of a script is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapUrl {
    /// In the script: the content of a `data:` URL.
    Inline(Vec<u8>),
    /// At a URL, as it is spelled in the script: mostly relative to that of the script.
    At(Vec<u8>),
}

/// No URL other than `data:` is longer.
const LONGEST: usize = 1 << 14;

impl MapUrl {
    /// The last comment `//# sourceMappingURL=…` (or the older `//@`) in a script, at the beginning of a line or behind code, with only blank lines,
    /// comments of a line each and closing braces behind it: webpack puts what it passes to `eval` into braces. `None` if there is none, or its `data:` URL is
    /// not valid.
    #[must_use]
    pub fn of_script(script: &[u8]) -> Option<Self> {
        Self::parse(last_comment(script, &MAP_COMMENTS)?)
    }

    fn parse(url: &[u8]) -> Option<Self> {
        let is_data = url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"));
        if !is_data {
            let fits = !url.is_empty() && url.len() <= LONGEST;
            return fits.then(|| Self::At(url.to_vec()));
        }
        let comma = memchr::memchr(b',', url)?;
        let (kind, content) = url.split_at_checked(comma)?;
        let content = content.get(1..)?;
        let is_base64 = kind.len().checked_sub(7).and_then(|at| kind.get(at..));
        if is_base64.is_some_and(|end| end.eq_ignore_ascii_case(b";base64")) {
            return base64::decode(&percent_decoded(content)).map(Self::Inline);
        }
        Some(Self::Inline(percent_decoded(content).into_owned()))
    }
}

/// The URL that a script gives itself by the last comment `//# sourceURL=…` (or the older `//@`), where [`MapUrl::of_script`] looks too. Text that is passed
/// to `eval` has no other name.
#[must_use]
pub fn source_url(script: &[u8]) -> Option<&[u8]> {
    let url = last_comment(script, &URL_COMMENTS)?;
    (!url.is_empty() && url.len() <= LONGEST).then_some(url)
}

/// How the comments begin.
const MAP_COMMENTS: [&[u8]; 2] = [b"//# sourceMappingURL=", b"//@ sourceMappingURL="];
const URL_COMMENTS: [&[u8]; 2] = [b"//# sourceURL=", b"//@ sourceURL="];

/// The URL in the last of such comments at the end of a script.
fn last_comment<'s>(script: &'s [u8], begins: &[&[u8]; 2]) -> Option<&'s [u8]> {
    let mut rest = script;
    loop {
        // All blank lines at once: a script may be made of them.
        rest = rest.trim_ascii_end();
        let start = memchr::memrchr2(b'\n', b'\r', rest).map_or(0, |at| at.saturating_add(1));
        let line = rest.get(start..)?.trim_ascii_start();
        if let Some(url) = url_in(line, begins) {
            return Some(url);
        }
        let is_passed = line.starts_with(b"//") || line.iter().all(|byte| *byte == b'}');
        if start == 0 || !is_passed {
            return None;
        }
        rest = rest.get(..start.saturating_sub(1))?;
    }
}

/// The URL in a line that is, or ends with, such a comment.
fn url_in<'l>(line: &'l [u8], begins: &[&[u8]; 2]) -> Option<&'l [u8]> {
    // A search has a price of its own, which many short lines would pay.
    if line.len() < begins[0].len() {
        return None;
    }
    let found = |begin: &&[u8]| Some((memchr::memmem::rfind(line, begin)?, begin.len()));
    let (at, len) = begins.iter().filter_map(found).max()?;
    let url = line.get(at.saturating_add(len)..)?;
    // A quote follows where the comment is a string of the code.
    let is_url = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'`');
    url.iter().all(is_url).then_some(url)
}

/// Replaces each `%XX`. Where no two digits follow, the sign stays; so does `%00`, which no path can have.
#[must_use]
pub fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return text.into();
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let digits = behind.first_chunk().filter(|_| byte == b'%');
        let value = digits.and_then(|&[high, low]: &[u8; 2]| {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            u8::try_from(digit(high)? << 4 | digit(low)?).ok().filter(|&value| value != 0)
        });
        if value.is_some() {
            rest = behind.get(2..).unwrap_or_default();
        }
        decoded.push(value.unwrap_or(byte));
    }
    decoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(script: &str) -> Option<MapUrl> {
        MapUrl::of_script(script.as_bytes())
    }

    #[test]
    fn the_last_comment_counts() {
        let at = |url: &str| Some(MapUrl::At(url.into()));
        assert_eq!(url("f();\n//# sourceMappingURL=a.js.map\n"), at("a.js.map"));
        assert_eq!(url("f();//# sourceMappingURL=a.map\r\n\r\n"), at("a.map"));
        assert_eq!(url("//# sourceMappingURL=a\n//@ sourceMappingURL=b"), at("b"));
        assert_eq!(url("//# sourceMappingURL=a.map\n//# sourceURL=x.js\n"), at("a.map"));
        assert_eq!(url("//# sourceMappingURL=a.map\nf();\n"), None);
        assert_eq!(url("g('//# sourceMappingURL=a');\n"), None);
        assert_eq!(url("//# sourceMappingURL=\n"), None);
        assert_eq!(url("{f();\n//# sourceMappingURL=a.map\n\n}\n"), at("a.map"));
        assert_eq!(url("g(`\n//# sourceMappingURL=a.map\n}`)"), None);
        assert_eq!(url(""), None);
    }

    #[test]
    fn scripts_name_themselves() {
        let url = |script: &'static str| source_url(script.as_bytes());
        let module = Some(&b"webpack-internal:///./a.js"[..]);
        assert_eq!(url("f();\n\n//# sourceURL=webpack-internal:///./a.js\n"), module);
        let both = "f();\n//# sourceMappingURL=a.map\n//# sourceURL=webpack-internal:///./a.js\n";
        assert_eq!(url(both), module);
        assert_eq!(MapUrl::of_script(both.as_bytes()), Some(MapUrl::At(b"a.map".to_vec())));
        assert_eq!(url("f();//@ sourceURL=a.js\n//# sourceMappingURL=b"), Some(&b"a.js"[..]));
        assert_eq!(url("eval('f();\\n//# sourceURL=a.js\\n');\n"), None);
        assert_eq!(url("//# sourceURL=a.js\nf();"), None);
        assert_eq!(url("//# sourceURL=\n"), None);
    }

    #[test]
    fn a_script_may_end_with_millions_of_blank_lines() {
        let mut script = b"f();\n//# sourceMappingURL=a.map".to_vec();
        script.resize(8 << 20, b'\n');
        assert_eq!(MapUrl::of_script(&script), Some(MapUrl::At(b"a.map".to_vec())));
        script.fill(b'\n');
        assert_eq!(MapUrl::of_script(&script), None);
    }

    #[test]
    fn data_urls_are_decoded() {
        let inline = |text: &str| Some(MapUrl::Inline(text.into()));
        let encoded = "//# sourceMappingURL=data:application/json;charset=utf-8;base64,e30=";
        assert_eq!(url(encoded), inline("{}"));
        assert_eq!(url("//# sourceMappingURL=data:application/json,%7b%7D"), inline("{}"));
        assert_eq!(url("//# sourceMappingURL=data:application/json;base64,e30!"), None);
        assert_eq!(url("//# sourceMappingURL=data:"), None);
    }

    #[test]
    fn signs_without_digits_stay() {
        for (encoded, decoded) in
            [("a%20b", "a b"), ("%", "%"), ("%4", "%4"), ("%zz%41", "%zzA"), ("%00", "%00")]
        {
            assert_eq!(&*percent_decoded(encoded.as_bytes()), decoded.as_bytes());
        }
    }
}

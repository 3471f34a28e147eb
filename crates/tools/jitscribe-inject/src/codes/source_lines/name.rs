//! The spelling of source files.

use std::borrow::Cow;

use source_map::percent_decoded;

/// A file name as a runtime gives it, as a path: `file:///a%20b.js` → `/a b.js`, `node:internal/fs` → `node/internal/fs`,
/// `webpack://app/./src/a.ts` → `webpack/app/./src/a.ts`.
///
/// perf takes what follows the first colon in the output of addr2line for a line number, so a name with a colon would have none. Colons that belong to no
/// scheme become `%3A`. A drive letter stays.
#[must_use]
pub fn source_name(name: &[u8]) -> Cow<'_, [u8]> {
    let Some(colon) = name.iter().position(|&byte| byte == b':') else { return name.into() };
    let (scheme, rest) = name.split_at_checked(colon).unwrap_or((name, b""));
    let rest = rest.get(1..).unwrap_or_default();
    if scheme.eq_ignore_ascii_case(b"file")
        && let Some(path) = file_path(rest)
    {
        return match percent_decoded(path) {
            Cow::Borrowed(path) => without_colons(path),
            Cow::Owned(path) => without_colons(&path).into_owned().into(),
        };
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    match scheme {
        [drive] if drive.is_ascii_alphabetic() && matches!(rest, [b'/' | b'\\', ..]) => name.into(),
        [first, ..] if first.is_ascii_alphabetic() && scheme.iter().all(is_letter) => {
            let is_separator = |byte: &&u8| matches!(**byte, b':' | b'/');
            let separators = rest.iter().take_while(is_separator).count();
            let rest = rest.get(separators..).unwrap_or_default();
            let mut path = scheme.to_vec();
            if !rest.is_empty() {
                path.push(b'/');
                path.extend_from_slice(&without_colons(rest));
            }
            path.into()
        }
        _ => without_colons(name),
    }
}

/// The path in a `file:` URL, behind the scheme; `None` if there is none. A query distinguishes modules that were loaded several times.
fn file_path(url: &[u8]) -> Option<&[u8]> {
    let path = match url.strip_prefix(b"//") {
        Some(behind) => behind.get(behind.iter().position(|&byte| byte == b'/')?..)?,
        None => url,
    };
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    path.get(..end).filter(|path| path.len() > 1 && path.starts_with(b"/"))
}

fn without_colons(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b':') {
        return path.into();
    }
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b':').collect();
    parts.join(&b"%3A"[..]).into()
}

/// The path `relative` from the folder `base`, without `.` and `..`. An empty folder is one without a name.
pub fn joined(base: &[u8], relative: &[u8]) -> Vec<u8> {
    let base = if relative.starts_with(b"/") { b"" } else { base };
    let is_absolute = relative.starts_with(b"/") || base.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in base.split(|&byte| byte == b'/').chain(relative.split(|&byte| byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => _ = parts.pop(),
            b".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let path = parts.join(&b"/"[..]);
    if is_absolute { [b"/", &path[..]].concat() } else { path }
}

/// The folder of a path; empty for a name without one.
pub fn folder_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    slash.and_then(|slash| path.get(..slash.max(1))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_without_colons() {
        for (name, path) in [
            ("/src/a.js", "/src/a.js"),
            ("src/a.c", "src/a.c"),
            ("", ""),
            ("file:///src/a%20b%c3%b6.js?t=1#x", "/src/a bö.js"),
            ("FILE:/src/a.js", "/src/a.js"),
            ("file://localhost/a%3Ab.js", "/a%3Ab.js"),
            ("file://", "file"),
            ("node:internal/fs", "node/internal/fs"),
            ("ext:core/01_core.js", "ext/core/01_core.js"),
            ("https://deno.land:443/std/a.ts", "https/deno.land%3A443/std/a.ts"),
            ("webpack:///./src/a.ts", "webpack/./src/a.ts"),
            ("SETTING::src/core.c/Any.pm6", "SETTING/src/core.c/Any.pm6"),
            ("/a:b/c.js", "/a%3Ab/c.js"),
            ("C:\\a\\b.js", "C:\\a\\b.js"),
            ("C:/a/b.js", "C:/a/b.js"),
            ("a b:c", "a b%3Ac"),
            (":", "%3A"),
        ] {
            let spelled = source_name(name.as_bytes());
            assert_eq!(String::from_utf8_lossy(&spelled), path, "{name}");
            assert_eq!(source_name(&spelled), spelled, "{name}");
        }
    }

    #[test]
    fn relative_paths_are_joined() {
        for (base, relative, path) in [
            ("/a/b", "../src/./c.ts", "/a/src/c.ts"),
            ("/a", "../../../c.ts", "/c.ts"),
            ("/a", "/x//c.ts", "/x/c.ts"),
            ("", "webpack/app/./src/c.ts", "webpack/app/src/c.ts"),
            ("", "../c.ts", "../c.ts"),
            ("a/b", "../c.ts", "a/c.ts"),
        ] {
            let path_found = joined(base.as_bytes(), relative.as_bytes());
            assert_eq!(String::from_utf8_lossy(&path_found), path);
        }
        assert_eq!(
            [folder_of(b"/a/b"), folder_of(b"/a"), folder_of(b"a")],
            [&b"/a"[..], b"/", b""]
        );
    }
}

//! Keeps the sources of scripts, of which code was sampled.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::logged_codes::{InfoId, LoggedCodes};
use crate::source_lines::source_name;

/// The most bytes of sources that are written for one recording.
const LARGEST: usize = 1 << 28;
/// File systems allow names of this length.
const LONGEST_NAME: usize = 255;
/// Paths with more components are not written.
const DEEPEST: usize = 64;

/// Writes the sources of the scripts of these codes below `folder`, which is created: each at the path that lines in images
/// have, so that `perf annotate --prefix FOLDER` and the like find it. Two different sources at one path are
/// kept, the second with `.2` behind its name.
///
/// # Errors
/// The system's error. A path that cannot be a file name is skipped.
pub fn write_sampled<'l>(
    folder: &Path,
    codes: impl Iterator<Item = (&'l LoggedCodes, InfoId)>,
) -> io::Result<()> {
    let mut done = BTreeSet::new();
    let mut left = LARGEST;
    for (logs, id) in codes {
        let Some(info) = logs.info(id) else { continue };
        for number in logs.scripts_of(info) {
            if !done.insert((std::ptr::from_ref(logs).addr(), number)) {
                continue;
            }
            let Some(script) = logs.script(number) else { continue };
            let Some(path) = below(folder, &script.url) else { continue };
            let Some(text) = logs.text(script) else { continue };
            let Some(rest) = left.checked_sub(text.len()) else { return Ok(()) };
            left = rest;
            match keep(&path, &text) {
                // One script is where another one has a folder.
                Err(error) if is_conflict(&error) => {}
                kept => kept?,
            }
        }
    }
    Ok(())
}

/// The path for a script; `None` if it has no usable name.
fn below(folder: &Path, url: &str) -> Option<PathBuf> {
    let path = source_name(url.as_bytes());
    let mut all = folder.to_owned();
    let mut count = 0;
    for part in path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
        count += 1;
        if part == b".." || part.contains(&0) || part.len() > LONGEST_NAME || count > DEEPEST {
            return None;
        }
        all.push(OsStr::from_bytes(part));
    }
    (count > 0).then_some(all)
}

/// Writes the file, unless there is one with the same content.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    for number in 1..10 {
        let mut path = path.to_owned();
        if number > 1 {
            path.as_mut_os_string().push(format!(".{number}"));
        }
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(text.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if fs::read(&path)? == text.as_bytes() {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_conflict(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, PermissionDenied,
    };
    let kinds = [AlreadyExists, InvalidFilename, IsADirectory, NotADirectory, PermissionDenied];
    kinds.contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_is_written_elsewhere() {
        let folder = Path::new("/out");
        let path = |url: &str| below(folder, url);
        assert_eq!(path("/home/a b/x.js"), Some("/out/home/a b/x.js".into()));
        assert_eq!(path("file:///home/x%20y.mjs?v=1"), Some("/out/home/x y.mjs".into()));
        assert_eq!(path("node:internal/url"), Some("/out/node/internal/url".into()));
        assert_eq!(path("/home/a:b.js"), Some("/out/home/a%3Ab.js".into()));
        assert_eq!(path("file:///a%00b"), Some("/out/a%00b".into()));
        assert_eq!(path("a//./b"), Some("/out/a/b".into()));
        for url in
            ["", "/", "..", "/a/../../etc/passwd", "file:///a/%2e%2e/b", "a\0b", &"x".repeat(256)]
        {
            assert_eq!(path(url), None, "{url:?}");
        }
        assert_eq!(path(&"a/".repeat(65)), None);
    }

    #[test]
    fn sources_are_kept_once_for_each_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.js");
        for text in ["one", "two", "one"] {
            keep(&path, text).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(folder.path().join("a"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["b.js", "b.js.2"]);
        let error = keep(&path.join("below"), "three").unwrap_err();
        assert!(is_conflict(&error), "{error}");
    }
}

//! Keeps the sources of scripts, of which code was sampled.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::output::Folder;
use crate::codes::source_lines::source_name;
use crate::codes::v8_log::{InfoId, LoggedCodes};

/// The name of the folder, in that of the images, with the sources of scripts that V8's code log or source maps have.
pub const SOURCES: &str = "sources";

/// The most bytes of sources that are written for one recording.
const LARGEST: usize = 1 << 28;
/// File systems allow names of this length.
const LONGEST_NAME: usize = 255;
/// Paths with more components are not written.
const DEEPEST: usize = 64;

/// Writes the texts of sources that scripts were compiled from, as source maps have them, below `folder`: see [`write_sampled`].
///
/// # Errors
/// The system's error. A path that cannot be a file name is skipped.
pub fn write_originals<'s>(
    folder: &Arc<Folder>,
    originals: impl Iterator<Item = (&'s [u8], &'s str)>,
) -> io::Result<()> {
    for (path, text) in originals {
        let Some(path) = components(path) else { continue };
        match keep(folder, &path, text) {
            Err(error) if is_conflict(&error) => {}
            kept => kept?,
        }
    }
    Ok(())
}

/// Writes the sources of the scripts of these codes below `folder`: each at the path that lines in images have, so that `perf annotate --prefix FOLDER` and the like find it. Two different sources at one path are
/// kept, the second with `.2` behind its name.
///
/// What was compiled in memory under the name of its source, one of `originals`, is left out: the lines of its code are those of the source.
///
/// # Errors
/// The system's error. A path that cannot be a file name is skipped.
pub fn write_sampled<'l>(
    folder: &Arc<Folder>,
    codes: impl Iterator<Item = (&'l LoggedCodes, InfoId)>,
    originals: &BTreeSet<&[u8]>,
) -> io::Result<()> {
    let mut done = BTreeSet::new();
    let mut left = LARGEST;
    for (logs, id) in codes {
        let Some(info) = logs.info(id) else { continue };
        for number in logs.scripts_of(info) {
            if !done.insert((std::ptr::from_ref(logs).addr(), number)) {
                continue;
            }
            let Some(script) = logs.script(number).filter(|script| script.is_named()) else {
                continue;
            };
            let spelled = source_name(script.url.as_bytes());
            let Some(path) = components(&spelled).filter(|_| !originals.contains(&*spelled)) else {
                continue;
            };
            let Some(text) = logs.text(script) else { continue };
            let Some(rest) = left.checked_sub(text.len()) else { return Ok(()) };
            left = rest;
            match keep(folder, &path, &text) {
                // One script is where another one has a folder, or something is there that is not ours.
                Err(error) if is_conflict(&error) => {}
                kept => kept?,
            }
        }
    }
    Ok(())
}

/// The components of a path as [`source_name`] spells it; `None` if it has no usable name.
fn components(path: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for part in path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b".")) {
        let is_usable = part != b".." && !part.contains(&0) && part.len() <= LONGEST_NAME;
        if !is_usable || all.len() == DEEPEST {
            return None;
        }
        all.push(part.to_vec());
    }
    (!all.is_empty()).then_some(all)
}

/// Writes the file, unless there is one with the same content. Links are not followed.
fn keep(folder: &Arc<Folder>, path: &[Vec<u8>], text: &str) -> io::Result<()> {
    let Some((name, folders)) = path.split_last() else { return Ok(()) };
    let folder = folder.below(folders.iter().map(|part| OsStr::from_bytes(part)))?;
    for number in 1..10 {
        let mut name = OsStr::from_bytes(name).to_owned();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        match folder.new_file(&name, Mode::from_raw_mode(0o666)) {
            Ok(mut file) => return file.write_all(text.as_bytes()),
            Err(Errno::EXIST) => {
                if folder.has(&name, text.as_bytes())? {
                    return Ok(());
                }
            }
            Err(error) => return Err(error.into()),
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
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_script_is_written_elsewhere() {
        let path = |url: &str| {
            let parts = components(&source_name(url.as_bytes()))?;
            Some(String::from_utf8(parts.join(&b'/')).unwrap())
        };
        assert_eq!(path("/home/a b/x.js").as_deref(), Some("home/a b/x.js"));
        assert_eq!(path("file:///home/x%20y.mjs?v=1").as_deref(), Some("home/x y.mjs"));
        assert_eq!(path("node:internal/url").as_deref(), Some("node/internal/url"));
        assert_eq!(path("/home/a:b.js").as_deref(), Some("home/a%3Ab.js"));
        assert_eq!(path("file:///a%00b").as_deref(), Some("a%00b"));
        assert_eq!(path("a//./b").as_deref(), Some("a/b"));
        for url in
            ["", "/", "..", "/a/../../etc/passwd", "file:///a/%2e%2e/b", "a\0b", &"x".repeat(256)]
        {
            assert_eq!(path(url), None, "{url:?}");
        }
        assert_eq!(path(&"a/".repeat(65)), None);
    }

    #[test]
    fn sources_are_kept_once_for_each_content() {
        let top = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::create(&top.path().join("sources")).unwrap());
        let path = |path: &str| components(path.as_bytes()).unwrap();
        for text in ["one", "two", "one"] {
            keep(&folder, &path("a/b.js"), text).unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(top.path().join("sources/a"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["b.js", "b.js.2"]);
        let error = keep(&folder, &path("a/b.js/below"), "three").unwrap_err();
        assert!(is_conflict(&error), "{error}");
    }

    /// Another user may have put links where sources are written.
    #[test]
    fn no_source_is_written_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::create(&top.path().join("sources")).unwrap());
        fs::create_dir(top.path().join("elsewhere")).unwrap();
        symlink("../elsewhere", top.path().join("sources/etc")).unwrap();
        symlink("elsewhere/new", top.path().join("sources/file.js")).unwrap();
        for path in ["/etc/cron.d/evil", "/etc/evil"] {
            let error = keep(&folder, &components(path.as_bytes()).unwrap(), "text").unwrap_err();
            assert!(is_conflict(&error), "{path}: {error}");
        }
        keep(&folder, &components(b"/file.js").unwrap(), "text").unwrap();
        assert!(top.path().join("sources/file.js.2").is_file());
        assert_eq!(fs::read_dir(top.path().join("elsewhere")).unwrap().count(), 0);
    }
}

//! Copies files that were gone while they were recorded to the folder of the images.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jitscribe_inject::files::{base_name, looks_like_dump, pid_of_jitted};
use jitscribe_inject::output::Folder;
use jitscribe_inject::{KeptFile, KeptFiles, Output};
use native_files::Elf;

use crate::files::next_data;
use crate::process::{FileBytes, HeldFile};
use crate::{Error, Result, note, text};

/// The folder below that of the images, with a folder for each file.
pub const GONE: &str = "gone";
/// The most bytes that are copied of one file, and of all. Holes do not count.
const LARGEST: u64 = 1 << 30;
const MOST: u64 = 4 << 30;
/// The largest size of a file with its holes.
const LARGEST_WITH_HOLES: u64 = 1 << 36;
/// The longest name of a file.
const LONGEST_NAME: usize = 200;
/// The unit in which zeros become holes.
const BLOCK: usize = 4096;

/// The files that were kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// How the recording identifies them.
    pub files: KeptFiles,
    /// Their paths.
    pub paths: Vec<PathBuf>,
}

/// Copies files below `folder`. A file that cannot be copied is reported, and has no names.
pub fn keep(held: &[HeldFile], folder: &Path, replace: bool) -> Result<Kept> {
    if held.is_empty() {
        return Ok(Kept::default());
    }
    let gone = Folder::create(folder)?.canonical().map(Arc::new)?;
    let gone = gone.below([OsStr::new(GONE)]).map_err(Error::file(folder))?;
    let mut left = MOST;
    let mut paths = Vec::new();
    let mut files = Vec::new();
    for (number, file) in held.iter().enumerate() {
        let number = OsString::from(number.to_string());
        let kept = gone.below([number.as_os_str()]).and_then(|folder| {
            let name = file_name(file.name());
            copy(file, &folder, &name, &mut left, replace)
        });
        let (path, build_id) = match kept {
            Ok((path, build_id)) => (Some(path), build_id),
            Err(error) => {
                note::warning(format_args!(
                    "{}: gone while process {} ran it, and not kept: {error}",
                    text::path(Path::new(OsStr::from_bytes(file.name()))),
                    file.pid,
                ));
                (None, None)
            }
        };
        paths.extend(path.clone());
        let (pid, inode, name) = (file.pid, file.inode(), file.name().to_vec());
        files.push(KeptFile { pid, inode, name, path, build_id });
    }
    Ok(Kept { files: files.into_iter().collect(), paths })
}

/// The name of a file where it is kept: as it was, if no tool takes that for another kind of file.
fn file_name(name: &[u8]) -> OsString {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let name = base_name(name.strip_prefix(b"/memfd:").unwrap_or(name));
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
    let name = name.iter().map(|byte| if is_plain(byte) { *byte } else { b'_' });
    let name: Vec<u8> = name.take(LONGEST_NAME).collect();
    let is_other = pid_of_jitted(&name).is_some() || looks_like_dump(&name);
    let is_hidden = name.iter().all(|byte| *byte == b'.');
    if is_other || is_hidden { "file".into() } else { OsString::from_vec(name) }
}

/// Copies a file. Returns its path and its build-id.
fn copy(
    file: &HeldFile,
    folder: &Arc<Folder>,
    name: &OsStr,
    left: &mut u64,
    replace: bool,
) -> io::Result<(PathBuf, Option<Vec<u8>>)> {
    let failed = |error: jitscribe_inject::Error| io::Error::other(error.to_string());
    let mut output = Output::create_in(folder, name, replace).map_err(failed)?;
    let most = LARGEST.min(*left);
    let copied = match &file.bytes {
        FileBytes::File(opened) => copy_file(opened, output.file(), most)?,
        FileBytes::Loaded(bytes, _) => write_sparse(bytes, 0, output.file())?,
        FileBytes::Unreadable => return Err(io::Error::other("it could not be read")),
    };
    *left = left.saturating_sub(copied);
    let path = output.path().to_owned();
    let elf = Elf::read(&*output.file());
    let build_id = elf.ok().and_then(|elf| elf.build_id().map(<[u8]>::to_vec));
    output.finish().map_err(failed)?;
    Ok((path, build_id))
}

/// Copies what is in a file, but no holes. Returns how many bytes it has.
fn copy_file(from: &File, to: &File, most: u64) -> io::Result<u64> {
    let size = from.metadata()?.len();
    if size > LARGEST_WITH_HOLES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    to.set_len(size)?;
    let mut room = vec![0; 1 << 20];
    let (mut at, mut copied) = (0, 0_u64);
    while let Some(data) = next_data(from, at..size)? {
        at = data.start;
        while at < data.end {
            let part = usize::try_from(data.end - at).unwrap_or(room.len()).min(room.len());
            let part = room.get_mut(..part).unwrap_or_default();
            let count = from.read_at(part, at)?;
            if count == 0 {
                return Ok(copied);
            }
            copied += write_sparse(part.get(..count).unwrap_or_default(), at, to)?;
            if copied > most {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            at += count as u64;
        }
    }
    Ok(copied)
}

/// Writes bytes at this offset. Zeros become holes. Returns how many others there are.
fn write_sparse(bytes: &[u8], at: u64, mut to: &File) -> io::Result<u64> {
    let mut written = 0;
    for (number, block) in (0_u64..).zip(bytes.chunks(BLOCK)) {
        if block.iter().any(|byte| *byte != 0) {
            to.write_all_at(block, at + number * BLOCK as u64)?;
            written += block.len() as u64;
        }
    }
    let end = at + bytes.len() as u64;
    if to.metadata()?.len() < end {
        to.set_len(end)?;
    }
    to.flush()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_files_unless_they_mean_something_else() {
        for (name, kept) in [
            ("/tmp/libgccjit-e8Otzp/fake.so (deleted)", "fake.so"),
            ("/memfd:code (deleted)", "code"),
            ("/memfd:a/b\u{1b}[1m (deleted)", "b__1m"),
            ("/tmp/#1234 (deleted)", "_1234"),
            ("/tmp/.. (deleted)", "file"),
            ("/memfd: (deleted)", "file"),
            ("/tmp/jit-7-0.elf (deleted)", "file"),
            ("/tmp/jitted-7-0.so", "file"),
            ("/tmp/jit-7.dump", "file"),
        ] {
            assert_eq!(file_name(name.as_bytes()), OsStr::new(kept), "{name}");
        }
        assert_eq!(file_name(&[b'x'; 300]).len(), LONGEST_NAME);
    }

    #[test]
    fn zeros_become_holes() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name| {
            File::options().read(true).write(true).create_new(true).open(folder.path().join(name))
        };
        let (one, other) = (file("one").expect("a file"), file("other").expect("a file"));
        let bytes = [vec![7; 5000], vec![0; 100_000], vec![8; 3], vec![0; 20_000]].concat();
        assert!(write_sparse(&bytes, 0, &one).expect("written") < 4 * BLOCK as u64);
        assert!(copy_file(&one, &other, 1 << 20).expect("copied") < 4 * BLOCK as u64);
        for file in [&one, &other] {
            let mut read = vec![1; bytes.len() + 1];
            assert_eq!(file.read_at(&mut read, 0).expect("read"), bytes.len());
            assert!(read.starts_with(&bytes));
        }
        assert!(copy_file(&one, &other, 4096).is_err());
    }
}

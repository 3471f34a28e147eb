//! What the options of the callgrind that runs the process say about the code that it counts.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::valgrind::{is_tool, is_under_valgrind};

/// Whether callgrind runs the process, and no option affects which code it counts.
pub(crate) fn counts_all() -> bool {
    is_under_valgrind() && is_tool(b"callgrind-") && !is_chosen()
}

/// Whether the user chose which code is counted, in any place that Valgrind takes options from, or whether this cannot be found
/// out. The program's own arguments and variables are searched with the others: this may only leave the work counted.
fn is_chosen() -> bool {
    // As for the executable, Valgrind answers for `/proc/self/cmdline` with the program's part.
    let is_in_process = |path: &str| mentions_choice(path).unwrap_or(true);
    if is_in_process("/proc/thread-self/cmdline") || is_in_process("/proc/thread-self/environ") {
        return true;
    }
    let is_in_file = |path: &Path| match mentions_choice(path) {
        Ok(is_in) => is_in,
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory
        ),
    };
    is_in_file(Path::new(".valgrindrc"))
        || home_file(&mut [0; 1024]).is_none_or(|path| path.is_some_and(is_in_file))
}

/// The path of `.valgrindrc` in the home directory, `Some(None)` if there is no such directory; `None` if there is no space.
fn home_file(buffer: &mut [u8]) -> Option<Option<&Path>> {
    const NAME: &[u8] = b"/.valgrindrc";
    // SAFETY: a string. A program that changes its environment in another thread at this moment breaks each such call.
    let home = unsafe { libc::getenv(c"HOME".as_ptr()) };
    if home.is_null() {
        return Some(None);
    }
    // SAFETY: a string of the environment, which is copied at once.
    let home = unsafe { CStr::from_ptr(home) }.to_bytes();
    let path = buffer.get_mut(..home.len() + NAME.len())?;
    path[..home.len()].copy_from_slice(home);
    path[home.len()..].copy_from_slice(NAME);
    Some(Some(Path::new(OsStr::from_bytes(path))))
}

/// Whether a file mentions an option that affects which code callgrind counts.
fn mentions_choice(path: impl AsRef<Path>) -> std::io::Result<bool> {
    const WORDS: [&[u8]; 2] = [b"--collect-atstart", b"--toggle-collect"];
    const LONGEST: usize = 17;
    let mut file = File::open(path)?;
    let mut buffer = [0; 2048];
    // The end of the previous part is kept in front: a word may begin there.
    let mut kept = 0;
    loop {
        let read = match file.read(buffer.get_mut(kept..).unwrap_or_default()) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let text = buffer.get(..kept + read).unwrap_or_default();
        if WORDS.iter().any(|word| text.windows(word.len()).any(|part| part == *word)) {
            return Ok(true);
        }
        let from = text.len().saturating_sub(LONGEST - 1);
        kept = text.len() - from;
        buffer.copy_within(from..from + kept, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::mentions_choice;

    #[test]
    fn options_are_found_wherever_they_are() {
        let path = std::env::temp_dir().join(format!("guest-callgrind-{}", std::process::id()));
        let mentions = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            mentions_choice(&path).unwrap()
        };
        let other = b"--collect-jumps=yes\0--tool=callgrind\0";
        assert!(!mentions(b"") && !mentions(other));
        for word in ["--collect-atstart=no", "--toggle-collect=main"] {
            for at in [0, 1, 2030, 2047, 2048, 4090] {
                let mut text = vec![b'-'; 5000];
                text[at..at + word.len()].copy_from_slice(word.as_bytes());
                assert!(mentions(&text), "{word} at {at}");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(mentions_choice(&path).is_err());
    }
}

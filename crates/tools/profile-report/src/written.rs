//! Files that were written before.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::write::BEGINNING;

/// Whether a file is one that this crate has written, which may be replaced.
#[must_use]
pub fn is_report(path: &Path) -> bool {
    // A symbolic link, a pipe or a device is none.
    if !path.symlink_metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let mut first = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut first));
    read.is_ok() && first == BEGINNING.as_bytes()
}

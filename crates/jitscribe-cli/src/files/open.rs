//! Opens files that may be anything.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file to read. Devices and FIFOs, which might wait or act, are not opened.
pub fn open_regular(path: &Path) -> std::io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Whether two paths lead to one file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    let file = |path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((file(a), file(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether there is a regular file.
pub fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file())
}

/// The pid in a jitdump's header; `None` if the file is no jitdump.
pub fn jitdump_pid(path: &Path) -> Option<u32> {
    if !is_file(path) {
        return None;
    }
    let mut header = [0; jitdump::HEADER_SIZE as usize];
    open_regular(path).ok()?.read_exact(&mut header).ok()?;
    jitdump::Dump::parse(&header).ok().map(|dump| dump.header().pid)
}

//! What the kernel reports about the process.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The number in this line of `/proc/self/status` (proc_pid_status(5)), whose name ends in `:`; `None` if there is none.
#[must_use]
pub fn own_status(name: &str) -> Option<i32> {
    // As bytes, because the process's name, which may be any bytes, is in it.
    let mut buffer = [0; 4096];
    let status = begin_of("/proc/self/status", &mut buffer)?;
    let mut lines = status.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// The first bytes of a file, up to the size of `buffer`. Does not allocate, if the path is short.
#[must_use]
pub fn begin_of(path: impl AsRef<Path>, buffer: &mut [u8]) -> Option<&[u8]> {
    let mut file = File::open(path).ok()?;
    let mut filled = 0;
    loop {
        match file.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    buffer.get(..filled)
}

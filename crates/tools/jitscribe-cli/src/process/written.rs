//! The files that a process has open for writing.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, readlinkat, statat};
use serde::{Deserialize, Serialize};

use crate::foreign::Target;

/// The most descriptors that are looked at.
const MAX_DESCRIPTORS: usize = 256;
/// The most files that are returned.
const MAX_FILES: usize = 16;

/// A file that a process writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Its path, as the process sees it.
    pub path: Vec<u8>,
    /// Device and inode.
    pub file: (u64, u64),
}

/// The regular files that a process has open only for writing, as a log is. Only for workers: this may block forever.
///
/// # Errors
/// If its descriptors cannot be listed.
pub fn written_files(target: &Target) -> io::Result<Vec<WrittenFile>> {
    let folder = target.file("fd", OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut files: Vec<WrittenFile> = Vec::new();
    for entry in Dir::read_from(&folder)?.flatten().take(MAX_DESCRIPTORS) {
        let name = entry.file_name();
        if is_write_only(target, name) != Some(true) {
            continue;
        }
        let Ok(path) = readlinkat(&folder, name, Vec::new()) else { continue };
        let path = path.into_bytes();
        let Ok(found) = statat(&folder, name, AtFlags::empty()) else { continue };
        let is_there = path.starts_with(b"/") && found.st_nlink > 0;
        if !is_there || FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            continue;
        }
        let file = (found.st_dev, found.st_ino);
        if files.iter().all(|known| known.file != file) {
            files.push(WrittenFile { path, file });
        }
        if files.len() == MAX_FILES {
            break;
        }
    }
    Ok(files)
}

/// Whether a descriptor can be written and not read, according to its flags in `/proc/PID/fdinfo`.
fn is_write_only(target: &Target, descriptor: &CStr) -> Option<bool> {
    let name = format!("fdinfo/{}", descriptor.to_str().ok()?);
    let mut text = String::new();
    File::from(target.file(&name, OFlags::RDONLY).ok()?)
        .take(4096)
        .read_to_string(&mut text)
        .ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    Some(OFlags::from_bits_retain(flags) & OFlags::ACCMODE == OFlags::WRONLY)
}

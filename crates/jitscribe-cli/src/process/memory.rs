//! The memory of a process, and what is mapped in it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use code_log::Source;

/// The memory of a process, read by address.
#[derive(Debug)]
pub struct Memory {
    file: File,
    pid: u32,
}

/// A part of it, read by offset.
#[derive(Debug)]
pub struct Window {
    file: File,
    pid: u32,
    range: Range<u64>,
}

/// One line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// Others see what is written to it.
    pub is_shared: bool,
    /// It can be written to.
    pub is_writable: bool,
    /// The file's path, or another name, or nothing.
    pub name: String,
}

impl Mapping {
    /// Whether no file that others can open lies behind it. Shared anonymous memory has the name of a device.
    pub fn is_anonymous(&self) -> bool {
        self.name.is_empty() || self.name.starts_with("/dev/zero")
    }
}

impl Memory {
    /// The memory of process `pid`.
    ///
    /// # Errors
    /// Who may not trace the process may not read it.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { file: File::open(format!("/proc/{pid}/mem"))?, pid })
    }

    /// Reads what lies at `address`.
    pub fn read_exact(&self, address: u64, room: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(room, address)
    }

    /// A part of it.
    pub fn window(&self, range: Range<u64>) -> io::Result<Window> {
        Ok(Window { file: self.file.try_clone()?, pid: self.pid, range })
    }
}

impl Window {
    /// Address of its first byte.
    pub fn start(&self) -> u64 {
        self.range.start
    }

    /// Writes to it.
    pub fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(format!("/proc/{}/mem", self.pid))?;
        file.write_all_at(bytes, self.range.start.saturating_add(at))
    }
}

impl Source for Window {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let start = self.range.start.saturating_add(at);
        let left = usize::try_from(self.range.end.saturating_sub(start)).unwrap_or(usize::MAX);
        let count = room.len().min(left);
        match room.get_mut(..count) {
            Some(room) if count > 0 => Source::read_at(&self.file, start, room),
            _ => Ok(0),
        }
    }
}

/// What is mapped in process `pid`.
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(text.lines().filter_map(mapping).collect())
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: address(start)?..address(end)?,
        is_shared: permissions.ends_with('s'),
        is_writable: permissions.as_bytes().get(1) == Some(&b'w'),
        name: fields.nth(3).unwrap_or_default().trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "7f1000000000-7f1000400000 rw-s 00000000 00:01 1034 /dev/zero (deleted)";
        let map = mapping(line).unwrap();
        assert_eq!(map.range, 0x7f10_0000_0000..0x7f10_0040_0000);
        assert!(map.is_shared && map.is_writable && map.is_anonymous());
        let heap =
            mapping("5500-5600 rw-p 00000000 00:00 0                          [heap]").unwrap();
        assert_eq!((heap.name.as_str(), heap.is_shared), ("[heap]", false));
        assert_eq!(mapping("7f00-7f10 r--p 00000000 00:00 0").unwrap().name, "");
    }
}

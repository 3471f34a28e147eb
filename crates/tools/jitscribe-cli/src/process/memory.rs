//! The memory and the mappings of a process, as read by a worker.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::find::device;
use super::log_dump::CodeBytes;
use super::source::read_all;
use crate::files::looks_like_marker;
use crate::foreign::Progress;

/// Code of at least this size is read only if half of its pages are present, which shows that a compiler has written it. Smaller
/// code is always read: it may be in a second, executable mapping that has no pages yet.
const LARGE: u64 = 1 << 16;

/// The number of bytes read at a time.
const PART: usize = 1 << 20;

/// The most bytes that are read of the list of mappings. A large JVM has some ten thousand lines of a hundred bytes.
const MAPPINGS: u64 = 64 << 20;

/// The memory of a process, read by address.
#[derive(Debug)]
pub struct Memory<'f> {
    memory: &'f OwnedFd,
    /// Its `pagemap`, which shows which pages are present.
    pages: Option<&'f OwnedFd>,
    progress: &'f Progress<'f>,
}

/// The list of the mappings of a process, `/proc/PID/maps`. It is that of the program that ran when the file was opened.
#[derive(Debug)]
pub struct Mappings(pub File);

/// One line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses, including those of mappings that continue it.
    pub range: Range<u64>,
    /// Its own addresses.
    pub first: Range<u64>,
    /// Whether it is shared with other processes.
    pub is_shared: bool,
    /// Whether it is writable.
    pub is_writable: bool,
    /// Whether it is executable.
    pub is_executable: bool,
    /// Its offset in the file.
    pub offset: u64,
    /// The device of the file.
    pub device: u64,
    /// The inode number of the file.
    pub inode: u64,
    /// The path of the file, another name, or empty.
    pub name: Vec<u8>,
}

impl Mapping {
    /// Parses a line.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let mut field = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = field()?.split_once('-')?;
        let permissions = field()?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (offset, device) = (number(field()?)?, device(field()?)?);
        let inode = field()?.parse().ok()?;
        let range = number(start)?..number(end)?;
        Some(Self {
            first: range.clone(),
            range,
            is_shared: permissions.ends_with('s'),
            is_writable: permissions.as_bytes().get(1) == Some(&b'w'),
            is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
            offset,
            device,
            inode,
            name: fields.next().unwrap_or_default().trim_ascii_start().to_owned(),
        })
    }

    /// Whether a JIT compiler may have written code here: executable memory without a file, or the mapping by which a jitdump is
    /// recognized.
    pub fn may_have_code(&self) -> bool {
        self.is_executable && (self.is_anonymous() || self.is_marker())
    }

    /// Whether it is the executable mapping of a file that is named as a jitdump.
    pub fn is_marker(&self) -> bool {
        self.is_executable && looks_like_marker(self.path())
    }

    /// Its name without what the kernel adds if the file was deleted.
    pub fn path(&self) -> &[u8] {
        self.name.strip_suffix(b" (deleted)").unwrap_or(&self.name)
    }

    /// Whether no file backs it. The kernel's own code (`[vdso]`, `[vsyscall]`) is no JIT compiler's.
    pub fn is_anonymous(&self) -> bool {
        is_anonymous(&self.name)
    }

    /// Whether another mapping directly follows this one, in memory and in the same file.
    pub fn is_continued_by(&self, next: &Self) -> bool {
        let length = self.range.end.saturating_sub(self.range.start);
        self.range.end == next.range.start
            && (self.device, self.inode) == (next.device, next.inode)
            && self.offset.checked_add(length) == Some(next.offset)
    }
}

/// Whether the kernel names a mapping so that no file backs.
pub fn is_anonymous(name: &[u8]) -> bool {
    let prefixes: [&[u8]; 6] =
        [b"/memfd:", b"/dev/zero", b"/anon_hugepage", b"/SYSV", b"[anon", b"[heap]"];
    name.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

impl Mappings {
    /// Passes each mapping to `each`.
    ///
    /// # Errors
    /// `ESRCH` if the process ended or began another program before all were read: the kernel ends the list then, as if there were
    /// no more.
    pub fn each(&mut self, mut each: impl FnMut(Mapping)) -> io::Result<()> {
        self.0.rewind()?;
        let mut lines = BufReader::new((&self.0).take(MAPPINGS));
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if let Some(mapping) = Mapping::parse(&line) {
                each(mapping);
            }
            line.clear();
        }
        self.0.rewind()?;
        if (&self.0).read(&mut [0])? == 0 { Err(Errno::SRCH.into()) } else { Ok(()) }
    }
}
/// The list of mappings of process `pid`, as the kernel gives it. Only for workers: this may block forever.
pub fn mappings_text(pid: u32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/maps"))
}

impl<'f> Memory<'f> {
    /// The memory behind this descriptor.
    pub fn new(
        memory: &'f OwnedFd,
        pages: Option<&'f OwnedFd>,
        progress: &'f Progress<'f>,
    ) -> Self {
        Self { memory, pages, progress }
    }

    /// The number of pages in this range that are in memory or swapped out; `None` if unknown.
    fn pages_there(&self, range: &Range<u64>) -> Option<u64> {
        let mut count = 0;
        each_page_there(self.pages, range, |_| count += 1)?;
        Some(count)
    }

    /// The parts of this range, which begins at a page, that are in memory or swapped out; `None` if unknown.
    pub fn present(&self, range: &Range<u64>) -> Option<Vec<Range<u64>>> {
        present(self.pages, range)
    }
}

/// The parts of this range, which begins at a page, that are in memory or swapped out, by a `pagemap`; `None` if unknown.
pub fn present(pages: Option<&OwnedFd>, range: &Range<u64>) -> Option<Vec<Range<u64>>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    each_page_there(pages, range, |page| match parts.last_mut() {
        Some(last) if last.end == page.start => last.end = page.end,
        _ => parts.push(page),
    })?;
    Some(parts)
}

/// Passes each page in this range that is in memory or swapped out; `None` if unknown.
fn each_page_there(
    pages: Option<&OwnedFd>,
    range: &Range<u64>,
    mut each: impl FnMut(Range<u64>),
) -> Option<()> {
    let page = rustix::param::page_size() as u64;
    let (first, last) = (range.start / page, range.end.div_ceil(page));
    let mut buffer = [0; 8 << 9];
    let mut at = first;
    while at < last {
        let words = usize::try_from(last - at).unwrap_or(usize::MAX).min(buffer.len() / 8);
        let read = read_all(pages?, at.checked_mul(8)?, buffer.get_mut(..words * 8)?).ok()?;
        if read == 0 {
            break;
        }
        for (number, word) in (at..).zip(buffer.get(..read)?.as_chunks().0) {
            // Bit 63: it is in memory; 62: it is swapped out.
            if u64::from_ne_bytes(*word) >> 62 != 0 {
                let start = number.checked_mul(page)?;
                each(start..start.checked_add(page)?);
            }
        }
        at += (read / 8) as u64;
    }
    Some(())
}

impl CodeBytes for Memory<'_> {
    fn code_bytes(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let size = range.end.checked_sub(range.start)?;
        if size >= LARGE {
            let page = rustix::param::page_size() as u64;
            let is_hollow = self.pages_there(&range).is_some_and(|there| there < size / page / 2);
            if is_hollow {
                return None;
            }
        }
        let mut bytes = super::log_dump::code_buffer(&range)?;
        let mut at = range.start;
        for part in bytes.chunks_mut(PART) {
            self.progress.report();
            if read_all(self.memory, at, part).ok()? < part.len() {
                return None;
            }
            at = at.checked_add(part.len() as u64)?;
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_list_that_a_process_s_end_cuts_is_not_taken_for_a_whole_one() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        // `spawn` returns while the kernel still maps the program: what it has answered once is mapped.
        child.stdin.as_mut().expect("its input").write_all(b"x").expect("it reads");
        child.stdout.as_mut().expect("its output").read_exact(&mut [0]).expect("it answers");
        let file = File::open(format!("/proc/{}/maps", child.id())).expect("its mappings");
        let mut mappings = Mappings(file);
        let mut count = 0;
        mappings.each(|_| count += 1).expect("all of its mappings");
        assert!(count > 3);
        let ended = mappings.each(|_| {
            let _ = child.kill();
            let _ = child.wait();
        });
        assert_eq!(ended.expect_err("it has ended").raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn lines_of_maps() {
        let line = b"7f1000000000-7f1000400000 rw-s 00000000 00:01 1034 /dev/zero (deleted)\n";
        let map = Mapping::parse(line).unwrap();
        assert_eq!(map.range, 0x7f10_0000_0000..0x7f10_0040_0000);
        assert!(map.is_shared && map.is_writable);
        assert_eq!((map.device, map.inode, map.offset), (1, 1034, 0));
        assert_eq!(map.name, b"/dev/zero (deleted)");
        let next = Mapping::parse(b"7f1000400000-7f1000500000 rw-s 00400000 00:01 1034 x").unwrap();
        assert!(map.is_continued_by(&next) && !next.is_continued_by(&map));
        let heap =
            Mapping::parse(b"5500-5600 rw-p 00000000 00:00 0                          [heap]")
                .unwrap();
        assert_eq!((heap.name.as_slice(), heap.is_shared), (&b"[heap]"[..], false));
        assert_eq!(Mapping::parse(b"7f00-7f10 r--p 00000000 00:00 0").unwrap().name, b"");
        for bad in ["", "x", "1-", "1-2", "1-2 rw-p", "1-2 rw-p 0 0 0", "-2 rw-p 0 0:0 0"] {
            assert_eq!(Mapping::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}

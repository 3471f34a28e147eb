//! The list of mappings of a process, by which its runtime is recognized.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

use super::failure::Failure;
use super::target::Target;
use super::wait::Wait;

/// The most bytes that are read of the list of mappings. A large JVM has some ten thousand lines of a hundred bytes.
const MOST: u64 = 64 << 20;

/// The length at which lines are split. The kernel writes no longer lines, whatever the path.
const LONGEST_LINE: usize = 32 << 10;

/// The list of mappings of a process.
///
/// Opening and reading it waits for the lock of the process's address space, which a hostile process can keep locked.
#[derive(Debug)]
pub struct Maps(File);

/// A line of the list.
#[derive(Clone, Copy, Debug)]
pub struct Mapping<'l>(&'l [u8]);

impl Maps {
    /// Opens it.
    pub fn of(target: &Target) -> io::Result<Self> {
        Ok(Self(target.file("maps")?))
    }

    /// Calls `each` with the mappings, until it breaks off.
    pub fn each(
        self,
        wait: &Wait<'_>,
        each: impl FnMut(Mapping<'_>) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        each_of(BufReader::new(self.0.take(MOST)), wait, each)
    }
}

/// The same for the text of the list.
pub fn each_of(
    mut maps: impl BufRead,
    wait: &Wait<'_>,
    mut each: impl FnMut(Mapping<'_>) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = maps.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
        if read == 0 || each(Mapping(line.trim_ascii_end())).is_break() {
            return Ok(());
        }
        wait.check()?;
    }
}

impl<'l> Mapping<'l> {
    /// The line, such as `7f00-7f10 r-xp 00000000 08:01 1034    /usr/lib/jvm/lib/server/libjvm.so`, with ` (deleted)` at the end if the
    /// file was replaced since.
    pub fn line(self) -> &'l [u8] {
        self.0
    }

    /// The name of the file without its folders, if it is mapped as code.
    pub fn code_file(self) -> Option<&'l [u8]> {
        let permissions = self.0.split(|byte| *byte == b' ').nth(1)?;
        let path = self.0.strip_suffix(b" (deleted)").unwrap_or(self.0);
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        (permissions.get(2) == Some(&b'x')).then(|| path.get(slash + 1..)).flatten()
    }
}

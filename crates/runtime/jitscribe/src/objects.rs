//! All live code as one object that a loader accepts: see [`write()`].

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use fallible::Vec;

use code_image::ObjectWriter;
use code_image::jitdump::{Converter, LineTable};
pub use code_image::{FinishedObject, ObjectFormat};
use perf_map::Entry;
use rustix::fs::OFlags;

use crate::Scribe;
use crate::image::{record, target};
use crate::log::{Log, MACHINE, Position};

/// Why no object was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ObjectError {
    /// There is no live code, or the log is off.
    Nothing,
    /// The file exists, or cannot be written.
    File(io::Error),
    /// The code does not fit into the format.
    Format(FormatError),
}

/// Why the code does not fit into the format, as a message.
#[derive(Debug)]
pub struct FormatError(code_image::Error);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for FormatError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no code is alive"),
            Self::File(cause) => write!(f, "the file cannot be written: {cause}"),
            Self::Format(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for ObjectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Nothing => None,
            Self::File(cause) => Some(cause),
            Self::Format(cause) => Some(cause),
        }
    }
}

impl From<io::Error> for ObjectError {
    fn from(cause: io::Error) -> Self {
        Self::File(cause)
    }
}

/// A function, because an implementation of `From` would make the other crate's error part of the interface.
fn failed(cause: impl Into<code_image::Error>) -> ObjectError {
    match cause.into() {
        code_image::Error::Io(cause) => ObjectError::File(cause),
        cause => ObjectError::Format(FormatError(cause)),
    }
}

/// Writes all live code to the new file `path`, as an object that a loader accepts. With `dlopen` and `dlsym`, another
/// process can run the code, if the code refers to nothing outside of itself. Debuggers and disassemblers can read the object
/// after this process has ended.
///
/// The bytes are those that are in memory now. The symbols are the codes' names; if several codes have one name, `dlsym`
/// finds the one that was announced last. Code that is announced or dropped during the call may or may not be included. See
/// the project's `docs/objects.md`.
///
/// Unlike an announcement, this takes time, and may fail.
///
/// # Errors
/// [`ObjectError::Nothing`], [`ObjectError::Format`], [`ObjectError::File`]. The file does not exist after an error, unless
/// it existed before.
pub fn write(
    scribe: &Scribe,
    format: ObjectFormat,
    path: impl AsRef<Path>,
) -> Result<FinishedObject, ObjectError> {
    let path = path.as_ref();
    let log = scribe.0.current().ok_or(ObjectError::Nothing)?;
    let alive = fallible::attempt(|| LiveCodes::of(log)).map_err(failed)?;
    if alive.0.is_empty() {
        return Err(ObjectError::Nothing);
    }
    // A new file, accessible only to this user; no link is followed.
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(path)?;
    let done = fallible::attempt(|| write_to(log, format, &alive, LimitedFile::new(file)))
        .unwrap_or_else(|refused| Err(failed(refused)));
    if done.is_err() {
        let _ = std::fs::remove_file(path);
    }
    done
}

fn write_to(
    log: &Log,
    format: ObjectFormat,
    alive: &LiveCodes,
    file: LimitedFile,
) -> Result<FinishedObject, ObjectError> {
    let pieces = alive.pieces();
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else {
        return Err(ObjectError::Nothing);
    };
    let span = first.address..last.end();
    let mut object = ObjectWriter::new(file, target(), format, span).map_err(failed)?;
    let memory = File::open("/proc/self/mem").ok();
    let mut current = Vec::new();
    for piece in &pieces {
        let Some(&LiveCode { position, index, time, .. }) = alive.0.get(piece.entry.line as usize)
        else {
            continue;
        };
        // Code that was unloaded since is left out.
        let Some(dump) = log.dump_of(position, index) else { continue };
        let Some(load) = record(&dump) else { continue };
        let visible = piece.address..piece.end();
        if visible.start < load.address || visible.end > load.end() {
            continue; // it moved meanwhile
        }
        let bytes = match &memory {
            Some(memory) => read(memory, load.address, load.size, &mut current),
            None => None,
        };
        let (table, mut room) = (LineTable::Source, Converter::new(MACHINE));
        room.convert(&load, load.address, visible, table, |code| {
            let mut code = code.clone();
            code.code.bytes = bytes.or(code.code.bytes);
            object.add(&code, time)
        })
        .map_err(failed)?;
    }
    object.finish().map_err(failed)
}

/// The `size` bytes at `address` now. Not read through a pointer, because the announced memory may be unmapped.
fn read<'r>(memory: &File, address: u64, size: u64, buffer: &'r mut Vec<u8>) -> Option<&'r [u8]> {
    let size = usize::try_from(size).ok()?;
    buffer.clear();
    buffer.try_reserve(size).ok()?;
    buffer.resize(size, 0);
    memory.read_exact_at(buffer, address).ok()?;
    Some(buffer)
}

/// The places of live codes, from the oldest to the newest.
struct LiveCodes(Vec<LiveCode>);

struct LiveCode {
    position: Position,
    index: u32,
    time: u64,
    address: u64,
    size: u64,
}

impl LiveCodes {
    fn of(log: &Log) -> Self {
        let mut alive = Vec::new();
        for (position, index, _) in log.positions() {
            if let Some(dump) = log.dump_of(position, index)
                && let Some(load) = record(&dump)
            {
                let (time, address, size) = (load.timestamp, load.address, load.size);
                alive.push(LiveCode { position, index, time, address, size });
            }
        }
        alive.sort_by_key(|living| living.time);
        Self(alive)
    }

    /// The codes by address. `line` of an entry is the index of its code.
    fn pieces(&self) -> Vec<perf_map::Piece<'static>> {
        let entries = (0..).zip(&self.0).map(|(line, living)| Entry {
            offset: 0,
            line,
            address: living.address,
            size: living.size,
            name: b"",
        });
        let entries: Vec<Entry<'_>> = entries.collect();
        match perf_map::try_resolve(&entries) {
            Ok(pieces) => pieces.into(),
            Err(_) => {
                fallible::refuse();
                Vec::new()
            }
        }
    }
}

/// A file that does not grow beyond the process's limit on file sizes, because that would raise a signal.
struct LimitedFile {
    file: File,
    position: u64,
    limit: u64,
}

impl LimitedFile {
    fn new(file: File) -> Self {
        let limit = guest::file_size_limit().unwrap_or(u64::MAX);
        Self { file, position: 0, limit }
    }
}

impl Write for LimitedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.position.saturating_add(bytes.len() as u64) > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.file.write(bytes)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for LimitedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.file.seek(to)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::LimitedFile;

    #[test]
    fn a_file_does_not_grow_beyond_the_limit() {
        let file = tempfile::tempfile().unwrap();
        let mut limited = LimitedFile { limit: 8, ..LimitedFile::new(file) };
        assert_eq!(limited.write(&[1; 8]).unwrap(), 8);
        assert!(limited.write(&[1]).is_err());
        limited.seek(SeekFrom::Start(7)).unwrap();
        assert!(limited.write(&[1; 2]).is_err());
        assert_eq!(limited.write(&[1]).unwrap(), 1);
        assert_eq!(limited.file.metadata().unwrap().len(), 8);
    }
}

//! Minidumps, as far as they are needed: the directory, the threads, the exception.

use crate::error::Error;
use crate::words::{u32_at, u64_at, words};

pub(crate) const SIGNATURE: u32 = 0x504d_444d;
pub(crate) const HEADER_SIZE: usize = 32;
/// Offsets in the header.
pub(crate) const STREAM_COUNT: usize = 8;
pub(crate) const DIRECTORY: usize = 12;
/// Size of an entry of the directory: type, size, offset.
pub(crate) const ENTRY_SIZE: usize = 12;

pub(crate) const THREAD_LIST: u32 = 3;
pub(crate) const MODULE_LIST: u32 = 4;
const EXCEPTION: u32 = 6;

const THREAD_SIZE: usize = 48;
/// Offsets in a thread: the location of its stack, and that of its registers.
const THREAD_STACK: usize = 32;
const THREAD_CONTEXT: usize = 40;
/// Offset in an exception of the location of the registers.
const EXCEPTION_CONTEXT: usize = 160;

/// An entry of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) stream_type: u32,
    /// The place of the entry itself.
    pub(crate) at: usize,
    location: Location,
}

/// A range of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    at: u32,
    size: u32,
}

impl Location {
    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        Some(Self { size: u32_at(bytes, at)?, at: u32_at(bytes, at.checked_add(4)?)? })
    }

    pub(crate) fn of<'d>(self, dump: &'d [u8], what: &'static str) -> Result<&'d [u8], Error> {
        let (at, size) = (self.at as usize, self.size as usize);
        let found = dump.get(at..).and_then(|rest| rest.get(..size));
        found.ok_or(Error::Cut { what, at: self.at.into(), size: self.size.into() })
    }
}

impl Entry {
    pub(crate) fn stream<'d>(&self, dump: &'d [u8]) -> Result<&'d [u8], Error> {
        self.location.of(dump, "a stream")
    }
}

/// The bytes of the directory.
pub(crate) fn directory(dump: &[u8]) -> Result<&[u8], Error> {
    if u32_at(dump, 0) != Some(SIGNATURE) || dump.len() < HEADER_SIZE {
        return Err(Error::NotAMinidump);
    }
    let [count, at] = [STREAM_COUNT, DIRECTORY].map(|at| u32_at(dump, at).unwrap_or(0));
    let size = u64::from(count).saturating_mul(ENTRY_SIZE as u64);
    let cut = Error::Cut { what: "the directory", at: at.into(), size };
    let length = usize::try_from(size).map_err(|_| cut)?;
    dump.get(at as usize..).and_then(|rest| rest.get(..length)).ok_or(cut)
}

/// The entries of the directory.
pub(crate) fn entries(dump: &[u8]) -> Result<impl Iterator<Item = Entry>, Error> {
    let directory = directory(dump)?;
    let start = u32_at(dump, DIRECTORY).unwrap_or(0) as usize;
    Ok((0..directory.len()).step_by(ENTRY_SIZE).filter_map(move |at| {
        Some(Entry {
            stream_type: u32_at(directory, at)?,
            at: start.checked_add(at)?,
            location: Location::read(directory, at.checked_add(4)?)?,
        })
    }))
}

pub(crate) fn find(dump: &[u8], stream_type: u32) -> Result<Option<Entry>, Error> {
    Ok(entries(dump)?.find(|entry| entry.stream_type == stream_type))
}

/// The stream of this type in a minidump; `None` if it has none.
///
/// # Errors
/// If this is not a minidump, or if it is cut.
pub fn find_stream(minidump: &[u8], stream_type: u32) -> Result<Option<&[u8]>, Error> {
    find(minidump, stream_type)?.map(|entry| entry.stream(minidump)).transpose()
}

/// All words on the stacks and in the registers of a minidump, in no order: what may refer to code.
///
/// # Errors
/// If this is not a minidump, or if it is cut.
pub fn stack_words(minidump: &[u8]) -> Result<impl Iterator<Item = u64> + '_, Error> {
    let mut parts = Vec::new();
    // Stacks do not overlap; only the registers of the crash may be those of a thread. A damaged list could refer to the whole file
    // again and again.
    let mut left = minidump.len().saturating_mul(2);
    let mut add = |location: Location, what| {
        let part = location.of(minidump, what)?;
        if let Some(less) = left.checked_sub(part.len()) {
            left = less;
            parts.push(part);
        }
        Ok(())
    };
    if let Some(list) = find_stream(minidump, THREAD_LIST)? {
        let (count, threads) = items(list, THREAD_SIZE);
        for thread in threads.chunks_exact(THREAD_SIZE).take(count) {
            for (at, what) in [(THREAD_STACK, "a stack"), (THREAD_CONTEXT, "a thread's registers")]
            {
                if let Some(location) = Location::read(thread, at) {
                    add(location, what)?;
                }
            }
        }
    }
    if let Some(exception) = find_stream(minidump, EXCEPTION)?
        && let Some(location) = Location::read(exception, EXCEPTION_CONTEXT)
    {
        add(location, "the registers of the crash")?;
    }
    Ok(parts.into_iter().flat_map(words))
}

/// The number of items that a list of a minidump claims, and the items. Some writers align them to 8 bytes.
pub(crate) fn items(list: &[u8], size: usize) -> (usize, &[u8]) {
    let count = u32_at(list, 0).unwrap_or(0) as usize;
    let is_padded = count.checked_mul(size).and_then(|all| all.checked_add(8)) == Some(list.len());
    (count, list.get(if is_padded { 8 } else { 4 }..).unwrap_or_default())
}

/// The address and size of a module.
pub(crate) fn module_range(module: &[u8]) -> Option<std::ops::Range<u64>> {
    let base = u64_at(module, 0)?;
    Some(base..base.saturating_add(u32_at(module, 8)?.into()))
}

//! What precedes the chunks of a log.

use jitdump::RecordId;
use jitdump::extension::{log, tag, tail};

use crate::error::Error;
use crate::words::{u32_at, u64_at};

/// The header of the file, before the record with the LOG item.
pub(crate) const FILE_HEADER: usize = 40;
const ITEM: usize = FILE_HEADER + tail::FIRST_PAYLOAD;
/// Maximum size of the logs that the library writes.
const LARGEST: u64 = 32 << 30;
/// The smallest and the largest plausible chunk size.
const CHUNK_SIZES: std::ops::RangeInclusive<u32> = 4096..=1 << 28;

/// A log's header and control words, as they were when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Id of the process that writes the log, as the process itself sees it. In a forked child that has not announced
    /// anything yet, this is the parent's id.
    pub pid: u32,
    /// Whether timestamps are counts of the processor's clock, and not nanoseconds of `CLOCK_MONOTONIC`.
    pub arch_timestamp: bool,
    /// Size of a chunk in bytes.
    pub chunk_size: u32,
    /// Number of chunks in use.
    pub chunks: u32,
    /// What the process should do: [`jitdump::extension::control`].
    pub control: u32,
    /// Size to which the log may grow.
    pub limit: u64,
    /// Number of codes that were not written for lack of space.
    pub left_out: u64,
    /// Time of the first code that was left out.
    pub left_out_first: u64,
    /// Time of the last code that was left out.
    pub left_out_last: u64,
    /// When the log was last turned off; 0: never.
    pub paused: u64,
    /// When it was turned on again; 0: never.
    pub resumed: u64,
    /// When this process was forked from one with a log; 0: unknown.
    pub forked: u64,
    /// Id of the process that it was forked from; 0: none.
    pub parent: u32,
    /// The address at which this process has the log of that process mapped, if codes of it belong to this process: those that
    /// were alive at [`Self::forked`]. `None`: this log has all of its codes.
    pub inherited: Option<u64>,
}

impl Head {
    /// Number of bytes from the log's beginning that [`Self::parse`] needs.
    pub const SIZE: usize = ITEM + log::SIZE;
    /// Offset of the control word, the only one that may be written from outside.
    pub const CONTROL: u64 = (ITEM + log::CONTROL) as u64;

    /// Parses a log's first bytes.
    ///
    /// # Errors
    /// If this is not a log, or one of a later version.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let short = Error::NotALog("it is too short");
        let word = |at| u32_at(bytes, at).ok_or(Error::NotALog("it is too short"));
        let long = |at: usize| {
            u64_at(bytes, ITEM.saturating_add(at)).ok_or(Error::NotALog("it is too short"))
        };
        if bytes.len() < Self::SIZE {
            return Err(short);
        }
        if word(0)? != jitdump::MAGIC {
            return Err(Error::NotALog("it does not begin like a jitdump of this machine"));
        }
        // Every snapshot begins with this header, so it must be valid.
        let Ok(dump) = jitdump::Dump::parse(bytes) else {
            return Err(Error::NotALog("its header is not a jitdump header"));
        };
        if word(8)? as usize != FILE_HEADER {
            return Err(Error::NotALog("its header has the wrong size"));
        }
        let tail = FILE_HEADER.saturating_add(tail::OFFSET_WITHOUT_ENTRIES);
        let is_ours = word(FILE_HEADER)? == RecordId::DEBUG_INFO.0
            && word(tail)? == tail::MAGIC
            && bytes
                .get(tail.saturating_add(tail::HEADER_SIZE)..)
                .and_then(|item| item.first_chunk())
                == Some(&tag::LOG.to_ne_bytes());
        if !is_ours {
            return Err(Error::NotALog("its first record does not describe one"));
        }
        let item = |at: usize| word(ITEM.saturating_add(at));
        let version = item(log::VERSION_AT)?;
        if version != log::VERSION {
            return Err(Error::Version { version });
        }
        let chunk_size = item(log::CHUNK_SIZE)?;
        if !CHUNK_SIZES.contains(&chunk_size) || !chunk_size.is_multiple_of(8) {
            return Err(Error::NotALog("its chunk size is not valid"));
        }
        let chunks = item(log::CHUNKS)?;
        if u64::from(chunk_size).saturating_mul(u64::from(chunks)) > LARGEST {
            return Err(Error::NotALog("it has too many chunks"));
        }
        Ok(Self {
            pid: word(20)?,
            arch_timestamp: dump.header().arch_timestamp(),
            chunk_size,
            chunks,
            control: item(log::CONTROL)?,
            limit: long(log::LIMIT)?,
            left_out: long(log::LEFT_OUT)?,
            left_out_first: long(log::LEFT_OUT_FIRST)?,
            left_out_last: long(log::LEFT_OUT_LAST)?,
            paused: long(log::PAUSED)?,
            resumed: long(log::RESUMED)?,
            forked: long(log::FORKED)?,
            parent: item(log::PARENT)?,
            inherited: log::inherited_address(item(log::INHERITED)?),
        })
    }
}

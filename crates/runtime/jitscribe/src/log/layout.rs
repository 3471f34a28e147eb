//! Offsets in the log: within a record, a group or the file.

use jitdump::extension::{
    breakpoints as breakpoints_item, chunk as chunk_item, code as code_item, log as log_item, tail,
};
pub(crate) use jitdump::extension::{chunk::FILLER_MIN, chunk::HEAD_SIZE, log::FIRST_CHUNK};

/// Bytes in a chunk. Each thread that is announcing holds one, and a new chunk costs three system
/// calls.
pub(crate) const CHUNK: usize = 64 << 10;
/// Offset of the tail's header in a record without entries.
pub(crate) const TAIL: usize = tail::OFFSET_WITHOUT_ENTRIES;
/// Offset of the tail's first item. Everything in a group that is written with plain stores is behind
/// it: before it are the words that others may read while it is written.
pub(crate) const FIRST_ITEM: usize = TAIL + tail::HEADER_SIZE;
/// Offset of the payload of the first item.
pub(crate) const PAYLOAD: usize = tail::FIRST_PAYLOAD;

/// Offsets in a group.
pub(crate) mod code {
    use super::{PAYLOAD, code_item};
    pub(crate) const TIME: usize = 8;
    pub(crate) const ADDRESS: usize = 16;
    pub(crate) const ENTRIES: usize = 24;
    pub(crate) const DIED: usize = PAYLOAD + code_item::DIED;
    pub(crate) const CODE_SIZE: usize = PAYLOAD + code_item::CODE_SIZE;
    pub(crate) const INDEX: usize = PAYLOAD + code_item::CODE_INDEX;
    pub(crate) const GROUP_SIZE: usize = PAYLOAD + code_item::GROUP_SIZE;
    pub(crate) const TID: usize = PAYLOAD + code_item::TID;
    pub(crate) const FLAGS: usize = PAYLOAD + code_item::FLAGS;
    /// The end of the item.
    pub(crate) const END: usize = PAYLOAD + code_item::SIZE;
}

/// Offsets in a LOAD record. Within a group it need not be aligned.
pub(crate) mod load {
    pub(crate) const PID: usize = 16;
    pub(crate) const TID: usize = 20;
    pub(crate) const VMA: usize = 24;
    pub(crate) const ADDRESS: usize = 32;
    pub(crate) const SIZE: usize = 40;
    pub(crate) const INDEX: usize = 48;
    /// The name, a NUL, and the bytes.
    pub(crate) const NAME: usize = 56;
}

/// Offsets in a DEBUG_INFO record with entries, and in one of these.
pub(crate) mod debug {
    pub(crate) const ADDRESS: usize = 16;
    pub(crate) const COUNT: usize = 24;
    pub(crate) const ENTRIES: usize = 32;
    /// The file's name, and a NUL.
    pub(crate) const ENTRY_FILE: usize = 16;
}

/// Offsets in a chunk.
pub(crate) mod chunk {
    use super::{PAYLOAD, chunk_item};
    pub(crate) const EPOCH: usize = PAYLOAD + chunk_item::EPOCH;
    pub(crate) const SPAN: usize = PAYLOAD + chunk_item::SPAN;
}

/// Offsets in the file.
pub(crate) mod control {
    use super::{FIRST_CHUNK, FIRST_ITEM, PAYLOAD, breakpoints_item, log_item};
    /// The record behind the file's header.
    pub(crate) const RECORD: usize = 40;
    const LOG: usize = RECORD + PAYLOAD;
    pub(crate) const VERSION: usize = LOG + log_item::VERSION_AT;
    pub(crate) const CHUNKS: usize = LOG + log_item::CHUNKS;
    pub(crate) const CONTROL: usize = LOG + log_item::CONTROL;
    pub(crate) const LIMIT: usize = LOG + log_item::LIMIT;
    pub(crate) const LEFT_OUT: usize = LOG + log_item::LEFT_OUT;
    pub(crate) const LEFT_OUT_FIRST: usize = LOG + log_item::LEFT_OUT_FIRST;
    pub(crate) const LEFT_OUT_LAST: usize = LOG + log_item::LEFT_OUT_LAST;
    pub(crate) const PAUSED: usize = LOG + log_item::PAUSED;
    pub(crate) const RESUMED: usize = LOG + log_item::RESUMED;
    pub(crate) const FORKED: usize = LOG + log_item::FORKED;
    pub(crate) const PARENT: usize = LOG + log_item::PARENT;
    #[cfg(target_os = "linux")]
    pub(crate) const INHERITED: usize = LOG + log_item::INHERITED;
    /// The header of the item behind LOG, which extends to the first chunk.
    pub(crate) const BREAKPOINTS_ITEM: usize = LOG + log_item::SIZE;
    const BREAKPOINTS: usize = BREAKPOINTS_ITEM + (PAYLOAD - FIRST_ITEM);
    pub(crate) const BREAKPOINTS_SIZE: usize = FIRST_CHUNK - BREAKPOINTS;
    #[cfg(feature = "gdb")]
    pub(crate) const CHANGES: usize = BREAKPOINTS + breakpoints_item::CHANGES;
    pub(crate) const BREAKPOINTS_LENGTH: usize = BREAKPOINTS + breakpoints_item::LENGTH;
    pub(crate) const BREAKPOINTS_TEXT: usize = BREAKPOINTS + breakpoints_item::TEXT;
    /// The maximum size of the text.
    pub(crate) const BREAKPOINTS_ROOM: usize = FIRST_CHUNK - BREAKPOINTS_TEXT;
}

/// The first word of a record.
pub(crate) const fn record_word(id: u32, size: usize) -> u64 {
    pair(id, size as u32)
}

/// The header of an item.
pub(crate) const fn item_word(tag: u16, detail: u16, size: usize) -> u64 {
    let first = if cfg!(target_endian = "little") {
        tag as u32 | (detail as u32) << 16
    } else {
        (tag as u32) << 16 | detail as u32
    };
    pair(first, size as u32)
}

/// Two adjacent 32-bit fields as one word.
pub(crate) const fn pair(first: u32, second: u32) -> u64 {
    if cfg!(target_endian = "little") {
        first as u64 | (second as u64) << 32
    } else {
        (first as u64) << 32 | second as u64
    }
}

/// The two fields of a word made by [`pair`].
pub(crate) const fn unpair(word: u64) -> (u32, u32) {
    if cfg!(target_endian = "little") {
        (word as u32, (word >> 32) as u32)
    } else {
        ((word >> 32) as u32, word as u32)
    }
}

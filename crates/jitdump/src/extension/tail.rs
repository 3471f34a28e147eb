//! The tail: what stands behind the last entry of a DEBUG_INFO record, made of items.

/// The word a tail begins with, in the byte order of the dump: `JSCR` in a little-endian one.
pub const MAGIC: u32 = 0x5243_534a;

/// Size of the tail's header: [`MAGIC`] (u32), and the size of all items (u32).
pub const HEADER_SIZE: usize = 8;

/// Size of an item's header: tag (u16), detail (u16), size of the payload (u32).
pub const ITEM_HEADER_SIZE: usize = 8;

/// What a tail and its items begin at multiples of, counted from the start of the record.
pub const ALIGN: usize = 8;

/// Where the tail begins in a record without entries.
pub const OFFSET_WITHOUT_ENTRIES: usize = 32;

/// Where the payload of the first item begins in a record without entries.
pub const FIRST_PAYLOAD: usize = OFFSET_WITHOUT_ENTRIES + HEADER_SIZE + ITEM_HEADER_SIZE;

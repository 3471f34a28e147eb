//! What is read at most.

/// Heads of lists in one process.
pub const HEADS: usize = 32;
/// Entries of one list.
pub const ENTRIES: usize = 1 << 16;
/// Bytes of one object.
pub const OBJECT: u64 = 16 << 20;
/// Bytes of all objects of one process.
pub const OBJECTS: u64 = 256 << 20;
/// Functions of one object.
pub const FUNCTIONS: usize = 1 << 16;
/// Source lines of one object.
pub const LINES: usize = 1 << 20;
/// Bytes of a file's table of symbol names that are searched.
pub const NAMES: u64 = 1 << 30;
/// Bytes of a file's table of symbols that are searched.
pub const SYMBOLS: u64 = 1 << 30;

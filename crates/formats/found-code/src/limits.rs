//! What is read at most.

/// Codes of one process that are known at a time.
pub const CODES: usize = 1 << 16;
/// Bytes of one code.
pub const CODE: u64 = 16 << 20;
/// Lua states of one process.
pub const STATES: usize = 64;
/// Regular expressions of one process.
pub const EXPRESSIONS: usize = 1 << 13;
/// Bytes of one regular expression, without its machine code.
pub const EXPRESSION: u64 = 1 << 18;
/// Structures that are examined at one poll.
pub const EXAMINED: u64 = 1 << 17;
/// Bytes of the name of a file.
pub const NAME: u64 = 1024;
/// Bytes of a file that are searched for what tells a compiler.
pub const FILE: u64 = 32 << 20;

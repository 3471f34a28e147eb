//! The layout of the stream. All numbers are in the byte order of the process.
//!
//! It is a header, a jitdump, and the machine code of codes for which the jitdump has none.

/// The type of the stream in the directory of a minidump.
pub const STREAM_TYPE: u32 = 0x4a53_0001;

/// The first word: `JITC` in a little-endian process.
pub const MAGIC: u32 = 0x4354_494a;
/// The version that this module describes.
pub const VERSION: u16 = 1;
/// Size of the header.
pub const HEADER_SIZE: usize = 40;

/// Offset of the u32 with [`MAGIC`].
pub const MAGIC_AT: usize = 0;
/// Offset of the u16 with the version.
pub const VERSION_AT: usize = 4;
/// Offset of the u16 with the size of the header, behind which the jitdump begins.
pub const HEADER_SIZE_AT: usize = 6;
/// Offset of the u32 with the number of codes in the jitdump.
pub const CODES: usize = 8;
/// Offset of the u32 with the number of codes whose bytes follow the jitdump.
pub const CODE_BYTES: usize = 12;
/// Offset of the u64 with the size of the jitdump, a multiple of 8.
pub const DUMP_SIZE: usize = 16;
/// Offset of the u64 with the number of codes that were left out for lack of space.
pub const LEFT_OUT: usize = 24;

/// Size of what precedes the bytes of a code: its address and the number of bytes (u64 each). The bytes are padded to a multiple of 8.
pub const CODE_BYTES_HEADER: usize = 16;

/// Size of the jitdump's header. Behind it are groups, as in a code log.
pub const DUMP_HEADER: usize = 40;

/// Maximum number of bytes of one code in the stream.
pub const MOST_CODE_BYTES: u64 = 1 << 20;

/// Maximum number of bytes of all codes together.
pub const MOST_BYTES: u64 = 16 << 20;

/// What the header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Number of codes in the jitdump.
    pub codes: u32,
    /// Number of codes whose bytes follow the jitdump.
    pub code_bytes: u32,
    /// Size of the jitdump.
    pub dump_size: u64,
    /// Number of codes that were left out for lack of space.
    pub left_out: u64,
}

impl Header {
    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        let mut put = |at: usize, field: &[u8]| {
            for (place, byte) in bytes.iter_mut().skip(at).zip(field) {
                *place = *byte;
            }
        };
        put(MAGIC_AT, &MAGIC.to_ne_bytes());
        put(VERSION_AT, &VERSION.to_ne_bytes());
        put(HEADER_SIZE_AT, &(HEADER_SIZE as u16).to_ne_bytes());
        put(CODES, &self.codes.to_ne_bytes());
        put(CODE_BYTES, &self.code_bytes.to_ne_bytes());
        put(DUMP_SIZE, &self.dump_size.to_ne_bytes());
        put(LEFT_OUT, &self.left_out.to_ne_bytes());
        bytes
    }
}

/// Whether a word of a stack refers to the code of `size` bytes at `address`, as a return address or in a register. The address behind
/// the last byte counts: a call may be the last instruction of its code.
#[must_use]
pub fn refers_to(word: u64, address: u64, size: u64) -> bool {
    word.wrapping_sub(address) <= size
}

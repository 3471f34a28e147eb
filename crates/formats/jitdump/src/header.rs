//! The file header.

use crate::endian::{Endian, Fields, to_u64};
use crate::error::{Error, ErrorKind};

/// The magic number, `JiTD`, as a number in the writer's byte order.
pub const MAGIC: u32 = 0x4a69_5444;

/// Size of the header of version 1 in bytes.
pub const HEADER_SIZE: u32 = 40;

/// Bit of [`Header::flags`]: the records' timestamps are raw counts of the processor's clock (the TSC on x86) instead
/// of nanoseconds of `CLOCK_MONOTONIC`.
pub const FLAG_ARCH_TIMESTAMP: u64 = 1;

/// The file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Byte order of everything that follows.
    pub endian: Endian,
    /// Version of the format; 1 for every known writer.
    pub version: u32,
    /// Size of the header in bytes according to the file: 40, or more if it has fields unknown to this crate.
    pub total_size: u32,
    /// ELF `e_machine` of the code. Not always correct: see [`Quirks`](crate::Quirks).
    pub elf_mach: u32,
    /// Reserved. Some writers leave garbage here.
    pub pad1: u32,
    /// Process id as the writer saw it (in its own pid namespace).
    pub pid: u32,
    /// When the file was created. Not always by the records' clock: see
    /// [`Quirks::header_clock`](crate::Quirks::header_clock).
    pub timestamp: u64,
    /// Flags; see [`FLAG_ARCH_TIMESTAMP`].
    pub flags: u64,
}

impl Header {
    /// Reads the header at the start of a file. This is enough to decide whether a file is a jitdump.
    ///
    /// # Errors
    /// When the file is shorter than a header, has another magic number, or has a version above 1.
    pub fn parse(data: &[u8]) -> Result<Self, Error> {
        let cut_off = Error::new(0, ErrorKind::HeaderCutOff { len: to_u64(data.len()) });
        let magic = *data.first_chunk::<4>().ok_or(cut_off)?;
        let endian = match u32::from_le_bytes(magic) {
            MAGIC => Endian::Little,
            number if number == MAGIC.swap_bytes() => Endian::Big,
            _ => return Err(Error::new(0, ErrorKind::BadMagic { found: magic })),
        };
        let header = Self::fields(data, endian).ok_or(cut_off)?;
        if header.version > 1 {
            return Err(Error::new(0, ErrorKind::UnknownVersion { version: header.version }));
        }
        Ok(header)
    }

    fn fields(data: &[u8], endian: Endian) -> Option<Self> {
        let mut fields = Fields::new(data, endian);
        fields.u32()?;
        Some(Self {
            endian,
            version: fields.u32()?,
            total_size: fields.u32()?,
            elf_mach: fields.u32()?,
            pad1: fields.u32()?,
            pid: fields.u32()?,
            timestamp: fields.u64()?,
            flags: fields.u64()?,
        })
    }

    /// Whether the records' timestamps are raw counts of the processor's clock.
    ///
    /// If a bit without a meaning is set, the writer did not initialize the flags (`PerfSupportPlugin` of LLVM
    /// 19), and no bit counts.
    #[must_use]
    pub fn arch_timestamp(&self) -> bool {
        self.flags == FLAG_ARCH_TIMESTAMP
    }
}

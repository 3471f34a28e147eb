//! How a dump's writer deviates from the format.

use jit_code::elf_machine;

use crate::reader::Dump;

/// How a dump's writer deviates from the format, detected from the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quirks {
    /// By how much the addresses of debug entries are too high: the size of an ELF header, 0x40 (0x34 on 32-bit),
    /// from V8 and LLVM; otherwise 0.
    ///
    /// Detected from where the entries of each code are. Without a bias, the lowest entry of nearly every code is
    /// within its first bytes. With one, (almost) none is below the bias, many are exactly at it, and those of the
    /// code's last bytes exceed its end by no more than the bias.
    pub debug_addr_bias: u64,
    /// The clock of the file header's timestamp. V8 and CPython write microseconds of the wall clock.
    pub header_clock: HeaderClock,
    /// The clock of the records' timestamps.
    pub record_clock: RecordClock,
    /// Code addresses may have the Thumb bit set (32-bit ARM), which must be cleared.
    pub thumb: bool,
    /// ELF `e_machine` of the code: that of the header, unless the code itself contradicts it. Erlang on AArch64
    /// writes 62, x86-64.
    pub machine: u32,
}

/// The clock of the file header's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderClock {
    /// The records' clock.
    Records,
    /// Microseconds since 1970.
    WallMicroseconds,
    /// Nanoseconds since 1970, where the records use another clock.
    WallNanoseconds,
    /// Another one: the timestamp has no relation to the records' timestamps.
    Unknown,
    /// There is no record to compare with.
    NoRecords,
}

/// The clock of the records' timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordClock {
    /// `CLOCK_MONOTONIC` in nanoseconds, as far as can be determined.
    Monotonic,
    /// `CLOCK_REALTIME` in nanoseconds: the values are times of this century.
    Realtime,
    /// Raw counts of the processor's clock, as the header's flag states.
    Arch,
}

impl Quirks {
    /// The quirks of a writer that conforms to the format.
    #[must_use]
    pub fn none(dump: &Dump<'_>) -> Self {
        let header = dump.header();
        Self {
            debug_addr_bias: 0,
            header_clock: HeaderClock::Records,
            record_clock: if header.arch_timestamp() {
                RecordClock::Arch
            } else {
                RecordClock::Monotonic
            },
            thumb: header.elf_mach == u32::from(elf_machine::ARM),
            machine: header.elf_mach,
        }
    }
}

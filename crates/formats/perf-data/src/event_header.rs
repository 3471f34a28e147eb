//! The header of an event: its type, bits and size.

use crate::endian::{Cursor, Endian};

/// `struct perf_event_header`: type, misc, size.
pub(crate) const EVENT_HEADER_SIZE: usize = 8;

/// Event types (`PERF_RECORD_*`).
pub mod kind {
    /// A mapping without protection and flags.
    pub const MMAP: u32 = 1;
    /// A thread name, also set by `exec`.
    pub const COMM: u32 = 3;
    /// A thread or process ended.
    pub const EXIT: u32 = 4;
    /// A thread or process began.
    pub const FORK: u32 = 7;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// A mapping with protection, flags and the identity of its file.
    pub const MMAP2: u32 = 10;
    /// Code that the kernel compiled, such as a BPF program, has a name from now on, or has it no longer.
    pub const KSYMBOL: u32 = 17;
    /// First type that perf, not the kernel, generates: these records have no trailer.
    pub const USER_TYPE_START: u32 = 64;
    /// Pipe only: an event attribute and its ids.
    pub const HEADER_ATTR: u32 = 64;
    /// Pipe only, obsolete.
    pub const HEADER_EVENT_TYPE: u32 = 65;
    /// Pipe only: tracepoint formats, as a payload.
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// Pipe only: the build-id of a file.
    pub const HEADER_BUILD_ID: u32 = 67;
    /// All events before the previous record of this type can be sorted.
    pub const FINISHED_ROUND: u32 = 68;
    /// Which kind of AUX area data there is, and how it was recorded.
    pub const AUXTRACE_INFO: u32 = 70;
    /// AUX area data, as a payload.
    pub const AUXTRACE: u32 = 71;
    /// Name, unit or CPUs of an event.
    pub const EVENT_UPDATE: u32 = 78;
    /// Converts the CPU's counter to perf's time.
    pub const TIME_CONV: u32 = 79;
    /// Pipe only: a feature section.
    pub const HEADER_FEATURE: u32 = 80;
    /// A piece of a zstd stream of events.
    pub const COMPRESSED: u32 = 81;
    /// Like `COMPRESSED`, with its exact length, so that it can be padded to 8 bytes.
    pub const COMPRESSED2: u32 = 83;
}

/// Bits of [`Event::misc`](crate::Event::misc).
pub mod misc {
    /// The kind of code that the record is about (kernel, user, guest…).
    pub const CPU_MODE_MASK: u16 = 7;
    /// User code.
    pub const USER: u16 = 2;
    /// A mapping that is not executable.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// A name set by `exec`.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// A mapping record with its file's build-id instead of the inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
}

/// Decoded `struct perf_event_header`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    pub(crate) size: u16,
}

impl Header {
    /// All zero if `bytes` is too short, which callers rule out.
    pub(crate) fn of(bytes: &[u8], endian: Endian) -> Self {
        let mut at = Cursor::new(bytes, endian);
        let read =
            |at: &mut Cursor<'_>| Some(Self { kind: at.u32()?, misc: at.u16()?, size: at.u16()? });
        read(&mut at).unwrap_or_default()
    }
}

/// Encodes header and body as one event; `None` if it would be larger than an event can be.
pub(crate) fn encode_event(
    endian: Endian,
    event_kind: u32,
    event_misc: u16,
    body: &[&[u8]],
) -> Option<Vec<u8>> {
    let length =
        body.iter().try_fold(EVENT_HEADER_SIZE, |sum, part| sum.checked_add(part.len()))?;
    let size = u16::try_from(length).ok()?;
    let mut out = Vec::with_capacity(length);
    out.extend(endian.put_u32(event_kind));
    out.extend(endian.put_u16(event_misc));
    out.extend(endian.put_u16(size));
    body.iter().for_each(|part| out.extend_from_slice(part));
    Some(out)
}

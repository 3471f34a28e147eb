//! Decoded records, for consumers that read their fields.

use crate::endian::{Cursor, Endian, until_nul};
use crate::error::{Cause, Error};
use crate::event::Event;
use crate::event_header::{EVENT_HEADER_SIZE, encode_event, kind, misc};
use crate::sample::Sample;
use crate::sample_id::SampleId;

/// A decoded record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Record<'a> {
    /// MMAP or MMAP2.
    Mmap(Mmap<'a>),
    /// COMM.
    Comm(Comm<'a>),
    /// FORK.
    Fork(Task),
    /// EXIT.
    Exit(Task),
    /// SAMPLE.
    Sample(Sample<'a>),
    /// FINISHED_ROUND.
    FinishedRound,
    /// KSYMBOL.
    Ksymbol(Ksymbol<'a>),
    /// TIME_CONV.
    TimeConv(TimeConv),
    /// Any other type, which is not decoded.
    Other,
}

impl<'a> Event<'a> {
    /// Decodes the record.
    ///
    /// # Errors
    /// [`Cause::EventTooShort`] if the bytes end before the fields of its type.
    pub fn record(&self) -> Result<Record<'a>, Error> {
        Record::decode(self).ok_or(Error::malformed(self.offset, Cause::EventTooShort))
    }
}

impl<'a> Record<'a> {
    fn decode(event: &Event<'a>) -> Option<Self> {
        let endian = event.endian();
        let event_kind = event.kind();
        let layout = event.attrs().layout_of(event_kind, event.body());
        if event_kind == kind::SAMPLE {
            let (attr, layout) = layout?;
            return Sample::decode(event.body(), attr, layout, endian).map(Self::Sample);
        }
        let fields = match layout {
            Some((attr, _)) if event_kind < kind::USER_TYPE_START => {
                let trailer = SampleId::encoded_len(attr);
                event.body().get(..event.body().len().checked_sub(trailer)?)?
            }
            _ => event.body(),
        };
        let at = Cursor::new(fields, endian);
        Some(match event_kind {
            kind::MMAP => Self::Mmap(Mmap::decode(at, event.misc())?),
            kind::MMAP2 => Self::Mmap(Mmap::decode2(at, event.misc())?),
            kind::COMM => Self::Comm(Comm::decode(at, event.misc())?),
            kind::FORK => Self::Fork(Task::decode(at)?),
            kind::EXIT => Self::Exit(Task::decode(at)?),
            kind::FINISHED_ROUND => Self::FinishedRound,
            kind::KSYMBOL => Self::Ksymbol(Ksymbol::decode(at)?),
            kind::TIME_CONV => Self::TimeConv(TimeConv::decode(at)?),
            _ => Self::Other,
        })
    }
}

/// A mapping of a file, or of memory, into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The header's misc bits: CPU mode and [`misc::MMAP_DATA`]. [`misc::MMAP_BUILD_ID`] is set
    /// exactly when [`MmapDetail::file`] is a build-id.
    pub misc: u16,
    /// Process; `u32::MAX` for the kernel's own maps.
    pub pid: u32,
    /// Thread that made the mapping.
    pub tid: u32,
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file, in bytes.
    pub page_offset: u64,
    /// The fields that only MMAP2 has.
    pub detail: Option<MmapDetail>,
    /// Path, or a name in brackets, or `//anon`; without NUL.
    pub filename: &'a [u8],
}

/// The fields of MMAP2 that MMAP lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmapDetail {
    /// `PROT_*` (4 = executable).
    pub protection: u32,
    /// `MAP_*` (1 = shared, 2 = private).
    pub flags: u32,
    /// The identity of the file.
    pub file: FileIdentity,
}

/// The identity of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIdentity {
    /// By its inode.
    Inode {
        /// Device, major part.
        major: u32,
        /// Device, minor part.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// By its content.
    BuildId(InlineBuildId),
}

impl FileIdentity {
    /// The identity of a copy of the file: by its content, or without an inode.
    #[must_use]
    pub fn of_copy(self) -> Self {
        match self {
            Self::Inode { .. } => Self::Inode { major: 0, minor: 0, inode: 0, generation: 0 },
            Self::BuildId(id) => Self::BuildId(id),
        }
    }
}

/// A build-id of at most 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InlineBuildId {
    len: u8,
    bytes: [u8; 20],
}

impl InlineBuildId {
    /// `None` for more than 20 bytes.
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; 20];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { len: u8::try_from(id.len()).ok()?, bytes })
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

impl std::fmt::Debug for InlineBuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<'a> Mmap<'a> {
    fn decode(mut at: Cursor<'a>, event_misc: u16) -> Option<Self> {
        let (pid, tid) = at.pair()?;
        Some(Self {
            misc: event_misc,
            pid,
            tid,
            address: at.u64()?,
            len: at.u64()?,
            page_offset: at.u64()?,
            detail: None,
            filename: at.text(),
        })
    }

    fn decode2(mut at: Cursor<'a>, event_misc: u16) -> Option<Self> {
        let (pid, tid) = at.pair()?;
        let (address, len, page_offset) = (at.u64()?, at.u64()?, at.u64()?);
        let file = if event_misc & misc::MMAP_BUILD_ID != 0 {
            let [len, ..] = at.array::<4>()?;
            FileIdentity::BuildId(InlineBuildId { len: len.min(20), bytes: at.array()? })
        } else {
            let (major, minor) = at.pair()?;
            FileIdentity::Inode { major, minor, inode: at.u64()?, generation: at.u64()? }
        };
        let (protection, flags) = at.pair()?;
        Some(Self {
            misc: event_misc,
            pid,
            tid,
            address,
            len,
            page_offset,
            detail: Some(MmapDetail { protection, flags, file }),
            filename: at.text(),
        })
    }

    /// Whether code can be executed from it, according to the record.
    pub fn is_executable(&self) -> bool {
        const PROT_EXEC: u32 = 4;
        match self.detail {
            Some(detail) => detail.protection & PROT_EXEC != 0,
            None => self.misc & misc::MMAP_DATA == 0,
        }
    }

    /// Encodes the record as an event: MMAP2 if there is a detail, else MMAP.
    ///
    /// `trailer` comes from [`Attrs::trailer`](crate::Attrs::trailer). `None` if the name makes it larger than an
    /// event can be.
    pub fn encode(&self, endian: Endian, trailer: &[u8]) -> Option<Vec<u8>> {
        // Five numbers, the detail, and the padding of the name.
        let mut body = Vec::with_capacity(self.filename.len().saturating_add(72));
        for word in [self.pid, self.tid] {
            body.extend(endian.put_u32(word));
        }
        for word in [self.address, self.len, self.page_offset] {
            body.extend(endian.put_u64(word));
        }
        let mut event_misc = self.misc & !misc::MMAP_BUILD_ID;
        if let Some(detail) = self.detail {
            match detail.file {
                FileIdentity::Inode { major, minor, inode, generation } => {
                    body.extend(endian.put_u32(major));
                    body.extend(endian.put_u32(minor));
                    body.extend(endian.put_u64(inode));
                    body.extend(endian.put_u64(generation));
                }
                FileIdentity::BuildId(id) => {
                    event_misc |= misc::MMAP_BUILD_ID;
                    body.extend([id.len, 0, 0, 0]);
                    body.extend(id.bytes);
                }
            }
            body.extend(endian.put_u32(detail.protection));
            body.extend(endian.put_u32(detail.flags));
        }
        let event_kind = if self.detail.is_some() { kind::MMAP2 } else { kind::MMAP };
        body.extend_from_slice(self.filename);
        pad_text(&mut body);
        encode_event(endian, event_kind, event_misc, &[&body, trailer])
    }
}

/// Ends a text with a NUL and pads it to 8 bytes, as the kernel does.
fn pad_text(body: &mut Vec<u8>) {
    debug_assert_eq!(EVENT_HEADER_SIZE, 8, "the header does not shift the alignment");
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
}

/// The name of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Whether `exec` set it: the process's earlier mappings are gone.
    pub exec: bool,
    /// The name, at most 15 bytes; without NUL.
    pub name: &'a [u8],
}

impl<'a> Comm<'a> {
    fn decode(mut at: Cursor<'a>, event_misc: u16) -> Option<Self> {
        let (pid, tid) = at.pair()?;
        let exec = event_misc & misc::COMM_EXEC != 0;
        Some(Self { pid, tid, exec, name: until_nul(at.rest()) })
    }
}

/// The name of code that the kernel compiled (`struct perf_record_ksymbol` of perf's `lib/perf/include/perf/event.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksymbol<'a> {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub len: u32,
    /// What it is: 1 for a BPF program, 2 for out-of-line code, such as kprobes' (`PERF_RECORD_KSYMBOL_TYPE_*`).
    pub kind: u16,
    /// Whether it is gone, rather than there.
    pub unregistered: bool,
    /// The name, without NUL.
    pub name: &'a [u8],
}

impl<'a> Ksymbol<'a> {
    /// `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
    const UNREGISTER: u16 = 1;

    fn decode(mut at: Cursor<'a>) -> Option<Self> {
        let address = at.u64()?;
        let (len, kind, flags) = (at.u32()?, at.u16()?, at.u16()?);
        let unregistered = flags & Self::UNREGISTER != 0;
        Some(Self { address, len, kind, unregistered, name: until_nul(at.rest()) })
    }
}

/// A thread or process that started or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Its parent process; the same for a thread.
    pub parent_pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread that started it.
    pub parent_tid: u32,
    /// When.
    pub time: u64,
}

impl Task {
    fn decode(mut at: Cursor<'_>) -> Option<Self> {
        let (pid, parent_pid) = at.pair()?;
        let (tid, parent_tid) = at.pair()?;
        Some(Self { pid, parent_pid, tid, parent_tid, time: at.u64()? })
    }
}

/// Converts a reading of the CPU's counter to perf's time: `zero + (cycles * mult >> shift)`, computed without
/// overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConv {
    /// Bits to shift right.
    pub shift: u64,
    /// Factor.
    pub mult: u64,
    /// Time at counter zero.
    pub zero: u64,
    /// For counters shorter than 64 bits: the reading from which `cycles` counts, and the counter's mask. `None` if
    /// they are not valid.
    pub cap: Option<TimeCap>,
}

/// Additional values for a short counter, see [`TimeConv::cap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeCap {
    /// Last known reading.
    pub cycles: u64,
    /// Mask of the bits that the counter has.
    pub mask: u64,
}

impl TimeConv {
    fn decode(mut at: Cursor<'_>) -> Option<Self> {
        let (shift, mult, zero) = (at.u64()?, at.u64()?, at.u64()?);
        let mut cap = || {
            let (cycles, mask) = (at.u64()?, at.u64()?);
            let [has_zero, short, ..] = at.array::<8>()?;
            (has_zero != 0 && short != 0).then_some(TimeCap { cycles, mask })
        };
        Some(Self { shift, mult, zero, cap: cap() })
    }

    /// Perf's time for a counter reading.
    pub fn time(&self, counter: u64) -> u64 {
        let counter = self.widen(counter);
        let shift = u32::try_from(self.shift).unwrap_or(u32::MAX);
        let whole = counter.checked_shr(shift).unwrap_or_default();
        let low = counter & 1_u64.checked_shl(shift).unwrap_or_default().wrapping_sub(1);
        let part = low.wrapping_mul(self.mult).checked_shr(shift).unwrap_or_default();
        self.zero.wrapping_add(whole.wrapping_mul(self.mult)).wrapping_add(part)
    }

    /// Counter reading at a time of perf; the inverse of [`Self::time`] except for rounding. `None` if the record's
    /// numbers do not allow it.
    pub fn counter(&self, time: u64) -> Option<u64> {
        let shift = u32::try_from(self.shift).unwrap_or(u32::MAX);
        let since = time.wrapping_sub(self.zero);
        let whole = since.checked_div(self.mult)?;
        let low = since.checked_rem(self.mult)?;
        let high = whole.checked_shl(shift)?;
        let counter = high.wrapping_add(low.checked_shl(shift)?.checked_div(self.mult)?);
        Some(self.widen(counter))
    }

    /// A short counter's reading, extended with the high bits of the last known reading.
    fn widen(&self, counter: u64) -> u64 {
        match self.cap {
            Some(cap) => cap.cycles.wrapping_add(counter.wrapping_sub(cap.cycles) & cap.mask),
            None => counter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_and_time_convert() {
        // A counter of 2.5 GHz: 0.4 ns per tick.
        let conv = TimeConv { shift: 20, mult: 419_430, zero: 1000, cap: None };
        assert_eq!(conv.time(0), 1000);
        assert_eq!(conv.time(2_500_000_000), 1_000_000_000 + 1000 - 954);
        let back = conv.counter(conv.time(2_500_000_000)).unwrap();
        assert!(2_500_000_000 - back < 3, "{back}");
        let short = TimeCap { cycles: 0x1_0000_0010, mask: 0xffff_ffff };
        let conv = TimeConv { shift: 0, mult: 1, zero: 0, cap: Some(short) };
        assert_eq!(conv.time(0x20), 0x1_0000_0020);
        assert_eq!(conv.time(0x5), 0x2_0000_0005);
        let broken = TimeConv { shift: u64::MAX, mult: 0, zero: 0, cap: None };
        assert_eq!((broken.time(5), broken.counter(5)), (0, None));
    }
}

//! `perf_event_attr`: the settings that an event was opened with, which determine the layout of its records.

use crate::endian::{Cursor, Endian, until_nul};

/// Bits of [`Attr::sample_type`] (`PERF_SAMPLE_*`): which fields a sample and a trailer contain.
pub mod sample_type {
    /// Instruction pointer.
    pub const IP: u64 = 1;
    /// Process and thread id.
    pub const TID: u64 = 1 << 1;
    /// Timestamp.
    pub const TIME: u64 = 1 << 2;
    /// Data address.
    pub const ADDR: u64 = 1 << 3;
    /// Counter values.
    pub const READ: u64 = 1 << 4;
    /// Call chain.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// Id of the event (of the group leader, if inherited).
    pub const ID: u64 = 1 << 6;
    /// CPU number.
    pub const CPU: u64 = 1 << 7;
    /// Sample period.
    pub const PERIOD: u64 = 1 << 8;
    /// Id of this event itself.
    pub const STREAM_ID: u64 = 1 << 9;
    /// Raw tracepoint data.
    pub const RAW: u64 = 1 << 10;
    /// Branch stack.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// User registers.
    pub const REGS_USER: u64 = 1 << 12;
    /// Copy of the user stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// Event id at a fixed position: first in a sample, last in a trailer.
    pub const IDENTIFIER: u64 = 1 << 16;
}

const FLAG_MMAP: u32 = 8;
const FLAG_COMM: u32 = 9;
const FLAG_FREQ: u32 = 10;
const FLAG_TASK: u32 = 13;
const FLAG_SAMPLE_ID_ALL: u32 = 18;
const FLAG_MMAP2: u32 = 23;
const FLAG_USE_CLOCKID: u32 = 25;

/// Smallest size of any version of `perf_event_attr` (`PERF_ATTR_SIZE_VER0`).
pub(crate) const ATTR_SIZE_MIN: u32 = 64;

/// One event as it was opened: the raw `perf_event_attr`, and the fields that readers need.
///
/// Fields that the recorder's version of the structure lacks are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    raw: Vec<u8>,
    ids: Vec<u64>,
    name: Option<Vec<u8>>,
    /// `PERF_TYPE_*`.
    pub event_type: u32,
    /// Which event of that type.
    pub config: u64,
    /// The number of events between two samples or, if [`Self::is_by_frequency`], the number of samples each second.
    pub sample_period: u64,
    /// Fields in each sample, see [`sample_type`].
    pub sample_type: u64,
    /// Layout of counter values, `PERF_FORMAT_*`.
    pub read_format: u64,
    /// The flag bits, in the order of the kernel's header for either byte order (bit 0 = `disabled`).
    pub flags: u64,
    /// Kind of branches, and what else each branch entry contains.
    pub branch_sample_type: u64,
    /// Mask of the registers in a sample's user registers.
    pub sample_regs_user: u64,
    /// Mask of the registers in a sample's interrupted registers.
    pub sample_regs_intr: u64,
    /// The clock of the timestamps if [`Self::use_clockid`] is true (1 = `CLOCK_MONOTONIC`).
    pub clockid: i32,
}

impl Attr {
    /// Decodes `raw`, a complete `perf_event_attr` of any version; `None` if it is shorter than the first version.
    pub fn parse(raw: &[u8], ids: Vec<u64>, endian: Endian) -> Option<Self> {
        let mut at = Cursor::new(raw, endian);
        let event_type = at.u32()?;
        let _size = at.u32()?;
        let config = at.u64()?;
        let sample_period = at.u64()?;
        let sample_type = at.u64()?;
        let read_format = at.u64()?;
        // The flags are bit fields: a big-endian compiler allocates them from the top.
        let flags = match endian {
            Endian::Little => at.u64()?,
            Endian::Big => at.u64()?.reverse_bits(),
        };
        let _wakeup_and_breakpoint = at.u64()?;
        let _config1 = at.u64()?;
        let mut later = || at.u64().unwrap_or_default();
        let _config2 = later();
        let branch_sample_type = later();
        let sample_regs_user = later();
        let (_stack_user, clockid) = at.pair().unwrap_or_default();
        let sample_regs_intr = at.u64().unwrap_or_default();
        Some(Self {
            raw: raw.to_vec(),
            ids,
            name: None,
            event_type,
            config,
            sample_period,
            sample_type,
            read_format,
            flags,
            branch_sample_type,
            sample_regs_user,
            sample_regs_intr,
            clockid: clockid.cast_signed(),
        })
    }

    /// The `perf_event_attr` as recorded.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Ids of the kernel events opened with it, one per CPU or thread.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The event's name as the user gave it, if the recording contains it.
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    pub(crate) fn set_name(&mut self, name: &[u8]) {
        self.name = Some(until_nul(name).to_vec());
    }

    /// Whether records other than samples end with a trailer with thread, time and other ids.
    pub fn sample_id_all(&self) -> bool {
        self.flag(FLAG_SAMPLE_ID_ALL)
    }

    /// Whether the kernel adapts the period, so that there is a number of samples each second.
    pub fn is_by_frequency(&self) -> bool {
        self.flag(FLAG_FREQ)
    }

    /// Whether [`Self::clockid`] is the clock of the timestamps, and not perf's own clock.
    pub fn use_clockid(&self) -> bool {
        self.flag(FLAG_USE_CLOCKID)
    }

    /// Whether the kernel reports mappings, names or forks with this event.
    pub fn is_tracking(&self) -> bool {
        [FLAG_MMAP, FLAG_COMM, FLAG_TASK, FLAG_MMAP2].into_iter().any(|bit| self.flag(bit))
    }

    /// Whether samples contain a field, see [`sample_type`].
    pub fn has(&self, sample_type: u64) -> bool {
        self.sample_type & sample_type != 0
    }

    fn flag(&self, bit: u32) -> bool {
        self.flags.checked_shr(bit).unwrap_or_default() & 1 != 0
    }

    /// Whether the records of both have the same layout.
    pub(crate) fn same_layout(&self, other: &Self) -> bool {
        let layout = |attr: &Self| {
            (
                attr.sample_type,
                attr.read_format,
                attr.branch_sample_type,
                attr.sample_regs_user,
                attr.sample_regs_intr,
                attr.sample_id_all(),
            )
        };
        layout(self) == layout(other)
    }
}

//! Samples.

use crate::attr::{Attr, sample_type};
use crate::endian::{Cursor, Endian};
use crate::layout::SampleLayout;
use crate::sample_id::SampleId;

const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_ID: u64 = 1 << 2;
const FORMAT_GROUP: u64 = 1 << 3;
const FORMAT_LOST: u64 = 1 << 4;
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// One sample: which thread ran which code at what time, and its call chain.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Thread, time and ids.
    pub id: SampleId,
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Data address.
    pub address: Option<u64>,
    /// How many events the sample represents.
    pub period: Option<u64>,
    /// Call chain, innermost first.
    pub callchain: Callchain<'a>,
    /// Branches taken, latest first.
    pub branches: Branches<'a>,
    /// User registers in the order of their numbers in the attribute's mask.
    pub user_registers: Words<'a>,
    /// The valid part of the copy of the user stack, from the stack pointer upward.
    pub user_stack: &'a [u8],
    /// Where fields are that can be overwritten.
    pub offsets: SampleOffsets,
}

/// Where fields of a sample begin: offsets in the event's body. They are 0 for fields that the sample does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleOffsets {
    /// Of the instruction pointer.
    pub ip: usize,
    /// Of the first user register.
    pub user_registers: usize,
    /// Of the copy of the user stack.
    pub user_stack: usize,
}

impl<'a> Sample<'a> {
    pub(crate) fn decode(
        body: &'a [u8],
        attr: &Attr,
        layout: SampleLayout,
        endian: Endian,
    ) -> Option<Self> {
        let (fixed, behind) = layout.split(body, endian)?;
        let mut at = Cursor::new(behind, endian);
        let mut sample = Self {
            id: fixed.sample_id(),
            ip: fixed.ip(),
            address: fixed.address(),
            period: fixed.period(),
            callchain: Callchain(Words { bytes: &[], endian }),
            branches: Branches(Words { bytes: &[], endian }),
            user_registers: Words { bytes: &[], endian },
            user_stack: &[],
            offsets: SampleOffsets { ip: layout.ip_offset(), ..SampleOffsets::default() },
        };
        let offset = |at: &Cursor<'_>| body.len().saturating_sub(at.rest().len());
        if attr.has(sample_type::READ) {
            skip_read(&mut at, attr.read_format)?;
        }
        if attr.has(sample_type::CALLCHAIN) {
            let count = at.u64()?;
            sample.callchain = Callchain(words(&mut at, count, 1, endian)?);
        }
        if attr.has(sample_type::RAW) {
            let size = u64::from(at.u32()?);
            at.bytes(size)?;
        }
        if attr.has(sample_type::BRANCH_STACK) {
            let count = at.u64()?;
            if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
                at.u64()?;
            }
            sample.branches = Branches(words(&mut at, count, 3, endian)?);
            if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
                words(&mut at, count, 1, endian)?;
            }
        }
        if attr.has(sample_type::REGS_USER) && at.u64()? != 0 {
            let count = u64::from(attr.sample_regs_user.count_ones());
            sample.offsets.user_registers = offset(&at);
            sample.user_registers = words(&mut at, count, 1, endian)?;
        }
        if attr.has(sample_type::STACK_USER) {
            let size = at.u64()?;
            if size != 0 {
                sample.offsets.user_stack = offset(&at);
                let copied = at.bytes(size)?;
                let valid = usize::try_from(at.u64()?).unwrap_or(usize::MAX);
                sample.user_stack = copied.get(..valid).unwrap_or(copied);
            }
        }
        Some(sample)
    }
}

fn words<'a>(at: &mut Cursor<'a>, count: u64, each: u64, endian: Endian) -> Option<Words<'a>> {
    let size = count.checked_mul(each)?.checked_mul(8)?;
    Some(Words { bytes: at.bytes(size)?, endian })
}

/// Skips counter values: of one event, or of a whole group.
fn skip_read(at: &mut Cursor<'_>, format: u64) -> Option<()> {
    let times =
        u64::from((format & (FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING)).count_ones());
    let extra = u64::from((format & (FORMAT_ID | FORMAT_LOST)).count_ones());
    let each = extra.checked_add(1)?;
    let count = if format & FORMAT_GROUP != 0 { at.u64()? } else { 1 };
    let total = count.checked_mul(each)?.checked_add(times)?;
    at.bytes(total.checked_mul(8)?).map(|_| ())
}

/// 64-bit words in the recording's byte order.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (head, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(self.endian.u64(*head))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.bytes.len().checked_div(8).unwrap_or_default();
        (count, Some(count))
    }
}

impl ExactSizeIterator for Words<'_> {}

/// The entries of a call chain.
#[derive(Clone, Copy, Debug)]
pub struct Callchain<'a>(Words<'a>);

/// One entry of a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainEntry {
    /// An address: in the first entry the instruction pointer, in the others a return address.
    Address(u64),
    /// The kind of code that the following entries are in.
    Context(Context),
}

/// The markers within a call chain (`PERF_CONTEXT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Hypervisor.
    Hypervisor,
    /// Kernel.
    Kernel,
    /// User code.
    User,
    /// Unwinding deferred until the return to user code.
    UserDeferred,
    /// Guest, of either kind.
    Guest,
    /// The guest's kernel.
    GuestKernel,
    /// The guest's user code.
    GuestUser,
    /// A marker that this library does not know.
    Unknown(u64),
}

impl ChainEntry {
    fn new(word: u64) -> Self {
        /// The markers are the numbers from -4095 up; there is no code at these addresses.
        const FIRST_MARKER: u64 = (-4095_i64).cast_unsigned();
        if word < FIRST_MARKER {
            return Self::Address(word);
        }
        Self::Context(match word.cast_signed() {
            -32 => Context::Hypervisor,
            -128 => Context::Kernel,
            -512 => Context::User,
            -640 => Context::UserDeferred,
            -2048 => Context::Guest,
            -2176 => Context::GuestKernel,
            -2560 => Context::GuestUser,
            _ => Context::Unknown(word),
        })
    }
}

impl Iterator for Callchain<'_> {
    type Item = ChainEntry;

    fn next(&mut self) -> Option<ChainEntry> {
        self.0.next().map(ChainEntry::new)
    }
}

/// The entries of a branch stack.
#[derive(Clone, Copy, Debug)]
pub struct Branches<'a>(Words<'a>);

/// A branch that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch instruction.
    pub from: u64,
    /// Target address.
    pub to: u64,
}

impl Iterator for Branches<'_> {
    type Item = Branch;

    fn next(&mut self) -> Option<Branch> {
        let (from, to) = (self.0.next()?, self.0.next()?);
        let _flags = self.0.next()?;
        Some(Branch { from, to })
    }
}

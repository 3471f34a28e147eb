//! Detects from the data how a dump's writer deviates from the format.

use core::ops::ControlFlow;
use jit_code::elf_machine;

use crate::code_load::CodeLoad;
use crate::codes::{CodeEvent, Codes};
use crate::error::Error;
use crate::garbled::NEAR;
use crate::quirks::{HeaderClock, Quirks, RecordClock};
use crate::reader::Dump;
use crate::record::Body;

/// Sizes of the ELF header that writers add to debug addresses: 64-bit and 32-bit.
const BIASES: [u64; 2] = [0x40, 0x34];

/// How many events are examined. A dump has one writer, and its quirks show early.
const EVENTS: usize = 1 << 16;
/// How many codes with debug entries are examined to detect their bias.
const DEBUG_SAMPLES: u32 = 1000;
/// How many of these suffice.
const BIAS_SAMPLES: u32 = 8;
/// How many entries of one code are examined.
const ENTRIES: usize = 64;
/// How many codes are examined to detect the machine.
const CODE_SAMPLES: u32 = 256;

/// Nanoseconds in an hour.
const HOUR: u64 = 3_600_000_000_000;
/// Seconds from 1970 to September 2001, and to the end of 2100: the range in which a number is taken for the time of
/// a wall clock.
const WALL_SECONDS: core::ops::Range<u64> = 1_000_000_000..4_133_980_800;

impl<'a> Dump<'a> {
    /// One event per code, corrected for the quirks of the writer that [`Quirks::detect`] finds.
    #[must_use]
    pub fn codes(&self) -> Codes<'a> {
        self.codes_with(Quirks::detect(self))
    }
}

impl Quirks {
    /// Detects quirks in the first records (up to 65,536 of them).
    #[must_use]
    pub fn detect(dump: &Dump<'_>) -> Self {
        let (quirks, _) = Self::detect_clocks(dump);
        let mut detector = Detector::new(quirks);
        let _ = dump.codes_with(quirks).try_for_each(|event| detector.examine(&event));
        detector.finish()
    }

    /// The quirks that the first record shows, and whether more of the file is needed to find that record.
    pub(crate) fn detect_clocks(dump: &Dump<'_>) -> (Self, bool) {
        let mut quirks = Self::none(dump);
        let mut records = dump.records();
        let first = records.find_map(|record| {
            record.ok().filter(|record| !matches!(record.body, Body::Unknown { .. }))
        });
        if let Some(first) = first {
            if !dump.header().arch_timestamp() && is_wall(first.timestamp, 1_000_000_000) {
                quirks.record_clock = RecordClock::Realtime;
            }
            quirks.header_clock = header_clock(dump.header().timestamp, first.timestamp);
        } else {
            quirks.header_clock = HeaderClock::NoRecords;
        }
        (quirks, records.needs_more())
    }
}

/// Detects quirks from the codes of a dump, beginning with the first.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    quirks: Quirks,
    events: usize,
    biases: [BiasVotes; 2],
    debug_samples: u32,
    machine: MachineVotes,
}

impl Detector {
    /// `quirks` are those known from the first record.
    pub(crate) fn new(quirks: Quirks) -> Self {
        Self {
            quirks,
            events: 0,
            biases: BIASES.map(BiasVotes::new),
            debug_samples: 0,
            machine: MachineVotes::default(),
        }
    }

    /// Examines an item of [`Dump::codes_with`]; breaks when it has seen enough.
    pub(crate) fn examine(&mut self, event: &Result<CodeEvent<'_>, Error>) -> ControlFlow<()> {
        self.events = self.events.saturating_add(1);
        if let Ok(CodeEvent::Load(code)) = event {
            self.examine_code(code);
        }
        if self.events >= EVENTS || self.debug_samples >= DEBUG_SAMPLES {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn examine_code(&mut self, code: &CodeLoad<'_>) {
        if self.machine.codes < CODE_SAMPLES {
            self.machine.add(code.address, code.bytes);
        }
        // A record with a tail was written by a program without a bias.
        if code.tail().is_some() {
            return;
        }
        // Behind a name that contains NULs, entries are read at wrong positions: what follows the first address that is
        // far from the code says nothing.
        let near = code.address.saturating_sub(NEAR)
            ..code.address.saturating_add(code.size).saturating_add(NEAR);
        let deltas = || {
            code.raw_entries()
                .map_while(Result::ok)
                .take_while(|entry| near.contains(&entry.addr))
                .take(ENTRIES)
                .filter(|entry| entry.line != 0)
                .map(|entry| entry.addr.wrapping_sub(code.address).cast_signed())
        };
        if let (Some(low), Some(high)) = (deltas().min(), deltas().max()) {
            for votes in &mut self.biases {
                votes.add(low, high, code.size);
            }
            self.debug_samples = self.debug_samples.saturating_add(1);
        }
    }

    /// Whether it has seen enough debug info to detect a bias.
    #[cfg(feature = "std")]
    pub(crate) fn has_enough_debug_info(&self) -> bool {
        self.debug_samples >= BIAS_SAMPLES
    }

    pub(crate) fn finish(self) -> Quirks {
        let Self { mut quirks, biases, machine, .. } = self;
        quirks.debug_addr_bias =
            biases.iter().find(|votes| votes.is_accepted()).map_or(0, |votes| votes.bias);
        if quirks.machine == u32::from(elf_machine::X86_64) && machine.is_aarch64() {
            quirks.machine = u32::from(elf_machine::AARCH64);
        }
        quirks
    }
}

/// Whether `time`, in units of which `per_second` make a second, is a wall clock time of this century.
fn is_wall(time: u64, per_second: u64) -> bool {
    time.checked_div(per_second).is_some_and(|seconds| WALL_SECONDS.contains(&seconds))
}

/// The clock of the header's timestamp. A monotonic clock can reach the value of a wall clock's microseconds after
/// eleven days of uptime. Therefore the records decide first: a header timestamp within an hour of the first record's
/// is by its clock.
fn header_clock(header: u64, first: u64) -> HeaderClock {
    if header.abs_diff(first) < HOUR {
        HeaderClock::Records
    } else if is_wall(header, 1_000_000) {
        HeaderClock::WallMicroseconds
    } else if is_wall(header, 1_000_000_000) {
        HeaderClock::WallNanoseconds
    } else if header != 0 && header < first {
        // A dump opened long before the first code was loaded.
        HeaderClock::Records
    } else {
        HeaderClock::Unknown
    }
}

/// Counts the evidence for and against one bias of the debug addresses.
#[derive(Clone, Copy, Debug)]
struct BiasVotes {
    bias: u64,
    codes: u32,
    /// Codes whose lowest entry is below the bias, which contradicts it.
    below: u32,
    /// Codes whose lowest entry is exactly at it.
    exact: u32,
    /// Codes with an entry past their end that the bias explains.
    overrun: u32,
}

impl BiasVotes {
    fn new(bias: u64) -> Self {
        Self { bias, codes: 0, below: 0, exact: 0, overrun: 0 }
    }

    fn add(&mut self, low: i64, high: i64, size: u64) {
        let bias = self.bias.cast_signed();
        let size = size.cast_signed();
        self.codes = self.codes.saturating_add(1);
        self.below = self.below.saturating_add(u32::from(low < bias));
        self.exact = self.exact.saturating_add(u32::from(low == bias));
        let explained = high >= size && high.saturating_sub(bias) <= size;
        self.overrun = self.overrun.saturating_add(u32::from(explained));
    }

    /// Whether the bias is accepted. One code in twenty may contradict it (debug info paired with the wrong code). A
    /// quarter must begin at the code's start. A few codes do not suffice unless one overruns.
    fn is_accepted(&self) -> bool {
        self.codes > 0
            && self.below.saturating_mul(20) <= self.codes
            && self.exact.saturating_mul(4) >= self.codes
            && (self.codes >= BIAS_SAMPLES || self.overrun > 0)
    }
}

/// Counts what distinguishes AArch64 code from x86-64 code.
#[derive(Clone, Copy, Debug, Default)]
struct MachineVotes {
    codes: u32,
    /// Codes whose address or size is not a multiple of four bytes, the size of an instruction.
    unaligned: u32,
    /// Codes with an instruction that ends or begins functions: `ret` or `stp x29, x30, [sp, #…]!`.
    idioms: u32,
}

impl MachineVotes {
    fn add(&mut self, address: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.codes = self.codes.saturating_add(1);
        let (words, rest) = bytes.as_chunks::<4>();
        self.unaligned = self
            .unaligned
            .saturating_add(u32::from(!rest.is_empty() || !address.is_multiple_of(4)));
        let has_idiom = words.iter().take(4096).any(|word| {
            let word = u32::from_le_bytes(*word);
            word == 0xd65f_03c0 || word & 0xffc0_7fff == 0xa980_7bfd
        });
        self.idioms = self.idioms.saturating_add(u32::from(has_idiom));
    }

    fn is_aarch64(&self) -> bool {
        self.codes > 0 && self.unaligned == 0 && self.idioms.saturating_mul(2) >= self.codes
    }
}

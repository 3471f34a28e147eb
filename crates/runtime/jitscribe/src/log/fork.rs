//! The log of a forked child: a copy of the codes that were alive, at the same positions.
//!
//! Handles contain positions in the log, so the child's log must have the codes at the same positions as the parent's. The parent
//! continues to write to its log until the child creates its own, and these changes must not appear in the child's log. The
//! child's private memory still has, for each chunk, the time of the last birth and of the last death before the fork. A code
//! that was alive then stays intact as long as it lives, and after its death until its space is reused; only codes whose space
//! was reused are lost to the child, and counted.

use std::sync::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::time::Duration;

use fallible::{Place, Vec};

use super::layout::{CHUNK, FILLER_MIN, FIRST_CHUNK, code, control, load};
use super::memory::{Backing, Errno, Failure};
use super::records::{State, pieces};
use super::{Log, process_id};
use crate::clock::Clock;
use crate::system;

/// How often a chunk is read again when its space is reused in between.
const ATTEMPTS: usize = 16;
/// How long, and how often in total, to wait for chunks that the parent is changing: the parent may be dead.
const WAIT: Duration = Duration::from_millis(1);
const WAITS: u32 = 200;

/// Codes that were alive at the fork: their words, and the position and size of each.
#[derive(Default)]
struct Survivors {
    words: Vec<u64>,
    places: Vec<(usize, usize)>,
    lost: u64,
}

impl Log {
    /// Makes this log the child's own. No other thread may use it during the call.
    ///
    /// In the parent, this thread had the id `before`.
    pub(crate) fn adopt(&self, before: u32) -> Result<(), Failure> {
        self.chunks.reset_lock();
        let parent = self.pid.load(Relaxed);
        let pid = process_id();
        let in_use = self.chunks.in_use();
        let failed = |cause| Failure::of("room for the code log after fork", cause);
        let survivors = self.survivors().map_err(failed)?;
        let control = self.control().load(Relaxed);
        let mut space = [0; control::BREAKPOINTS_ROOM];
        let breakpoints = self.breakpoints(&mut space);
        self.take_new_backing(pid)?;
        self.begin(pid)?;
        self.control().store(control, Relaxed);
        self.set_breakpoints(breakpoints);
        self.mapping
            .word(control::FORKED)
            .store(start_of_process(self.options.clock).unwrap_or(0), Relaxed);
        self.mapping.half(control::PARENT).store(parent, Relaxed);
        self.chunks.release_all_except(&self.lanes.reset(before));
        self.retry_after.store(0, Relaxed);
        self.pid.store(pid, Relaxed);

        let length = in_use * CHUNK;
        if length > 0 {
            self.mapping.have(&self.backing, FIRST_CHUNK, length).map_err(failed)?;
        }
        self.settle(&survivors, pid);
        self.mapping.half(control::CHUNKS).store(in_use as u32, Release);
        if survivors.lost > 0 {
            self.left_out(survivors.lost);
        }
        Ok(())
    }

    /// The codes that were alive at the fork, as far as they are still there.
    fn survivors(&self) -> Result<Survivors, Errno> {
        let mut all = Survivors::default();
        // At once: growing step by step would copy megabytes again and again. Pages that are not needed are not used.
        let _ = all.words.try_reserve_exact(self.chunks.in_use() * (CHUNK / 8));
        let mut waits = 0;
        for (number, range) in self.chunks.ranges() {
            let before = (all.words.len(), all.places.len());
            for _ in 0..ATTEMPTS {
                let Some(epoch) = self.steady_epoch(number, &mut waits) else { break };
                self.survivors_in(number, range.clone(), &mut all)?;
                fence(Acquire);
                if self.epoch(number) == Some(epoch) {
                    break;
                }
                all.words.truncate(before.0);
                all.places.truncate(before.1);
            }
            let found = (all.places.len() - before.1) as u64;
            all.lost += self.chunks.live_in(number).saturating_sub(found);
        }
        Ok(all)
    }

    /// The epoch of a chunk once it is not being changed. `None` if it belongs to a run by now, or if the parent cannot finish
    /// the change.
    fn steady_epoch(&self, number: usize, waits: &mut u32) -> Option<u64> {
        loop {
            let epoch = self.epoch(number)?;
            if epoch.is_multiple_of(2) {
                return Some(epoch);
            }
            *waits = waits.checked_add(1).filter(|waits| *waits < WAITS)?;
            system::nap(WAIT);
        }
    }

    fn survivors_in(
        &self,
        number: usize,
        range: std::ops::Range<usize>,
        all: &mut Survivors,
    ) -> Result<(), Errno> {
        let (last_load, last_unload) = self.chunks.last_times(number);
        // A run had one code, at its beginning. The rest may be separate chunks by now, whose space is reused without changing
        // the run's head.
        let is_run = range.len() > CHUNK;
        let mut end = range.start;
        for piece in pieces(&self.mapping, range).take(if is_run { 1 } else { usize::MAX }) {
            let died_before = match piece.state {
                State::Filler => continue,
                State::Alive => false,
                State::Dead(died) => died <= last_unload,
            };
            let word = |at| self.mapping.word(at).load(Acquire);
            // The gap between two codes consisted of pieces, too; otherwise the content has changed.
            let is_in_place = piece.at == end || piece.at >= end + FILLER_MIN;
            if died_before || word(piece.at + code::TIME) > last_load || !is_in_place {
                continue;
            }
            all.words.try_reserve(piece.size / 8).map_err(|_| Errno::NOMEM)?;
            all.places.try_reserve(1).map_err(|_| Errno::NOMEM)?;
            end = piece.at + piece.size;
            all.words.extend((piece.at..end).step_by(8).map(word));
            all.places.push((piece.at, piece.size));
        }
        Ok(())
    }

    /// Writes all chunks: the survivors at their positions, and fillers between them.
    fn settle(&self, survivors: &Survivors, pid: u32) {
        let mut places = survivors.places.iter().copied().peekable();
        let mut words = survivors.words.iter();
        for (number, range) in self.chunks.ranges() {
            self.chunks.settle(number, 0, 0);
            self.write_head(number, (range.end - range.start).div_ceil(CHUNK));
            let (mut at, mut live, mut space) = (range.start, 0, 0);
            let fill_up_to = |at: usize, end: usize| {
                if end > at {
                    self.fill(at, end - at);
                }
                end - at
            };
            while let Some((place, size)) = places.next_if(|(place, _)| *place < range.end) {
                space += fill_up_to(at, place);
                for (word, value) in (place..).step_by(8).zip(words.by_ref().take(size / 8)) {
                    self.mapping.word(word).store(*value, Relaxed);
                }
                self.mapping.word(place + code::DIED).store(0, Relaxed);
                self.set_load_pid(place, size, pid);
                live += 1;
                at = place + size;
            }
            space += fill_up_to(at, range.end);
            self.chunks.settle(number, live, space);
        }
    }

    fn take_new_backing(&self, pid: u32) -> Result<(), Failure> {
        let mut new_path = None;
        let new = match &self.backing {
            Backing::Memory(_) => Backing::memory()?,
            Backing::File(_, path) => {
                let no_memory = || Failure::memory("a code log after fork");
                let name = super::dump_name(pid).ok();
                let path = name.and_then(|name| path.first().with_file_name(&*name));
                let path = path.ok_or_else(no_memory)?;
                let place = Place::new().map_err(|_| no_memory())?;
                let (new, path) = Backing::new_file(&path)?;
                new_path = Some(place.fill(path));
                new
            }
            Backing::Anonymous => Backing::Anonymous,
        };
        let failed = |cause| Failure::of("a code log after fork", cause);
        // A limit on file sizes that was set since leaves the end of the mapping without a file.
        let used = FIRST_CHUNK + self.chunks.in_use() * CHUNK;
        let size = self.mapping.size().min(new.most()).max(used);
        // Before the mapping is replaced, so that it stays the parent's if this fails.
        new.set_size(size).map_err(failed)?;
        self.mapping.replace(&new).map_err(failed)?;
        if let (
            Backing::Memory(old) | Backing::File(old, _),
            Backing::Memory(new) | Backing::File(new, _),
        ) = (&self.backing, new)
        {
            old.become_file(new);
        }
        if let (Backing::File(_, path), Some(new_path)) = (&self.backing, new_path) {
            path.become_path(Box::leak(new_path));
        }
        Ok(())
    }

    /// Sets another process id in the LOAD record of a group, if there is one.
    fn set_load_pid(&self, at: usize, size: usize, pid: u32) {
        if let Some(record) = self.load_record(at, size) {
            self.set_bytes_at(record + load::PID, pid);
        }
    }

    fn set_bytes_at(&self, at: usize, value: u32) {
        for (byte, value) in value.to_ne_bytes().into_iter().enumerate() {
            self.mapping.byte(at + byte).store(value, Relaxed);
        }
    }
}

/// The time at which this process began, by the clock of the records, rounded down to a hundredth of a second. `None` for the
/// processor's clock, whose frequency is not known.
fn start_of_process(clock: Clock) -> Option<u64> {
    if clock != Clock::Monotonic {
        return None;
    }
    let mut space = [0; 1024];
    let stat = guest::begin_of("/proc/self/stat", &mut space)?;
    // The name, in parentheses, may contain anything.
    let behind_name = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(stat.get(behind_name + 1..)?).ok()?;
    let ticks: u64 = text.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let since_boot = ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())?;
    // That clock runs while the machine sleeps; the clock of the records does not.
    since_boot.checked_sub(system::since_boot().saturating_sub(clock.now()))
}

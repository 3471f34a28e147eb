//! The log of a fork's child: a copy of what was alive, at the same places.
//!
//! Handles tell codes by their places in the log, so the child's log has to have them where the parent's
//! has. The parent goes on writing to its log until the child takes its own, and what it does is not to be
//! seen there: the child's private memory still has, for each chunk, the time of the last birth and of the
//! last death before the fork. A code that was alive then stays whole as long as it lives, and after its
//! death until its room is used anew; those codes alone are lost to the child, and counted.

use std::sync::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::time::Duration;

use super::layout::{CHUNK, FILLER_MIN, FIRST_CHUNK, code, control, load};
use super::memory::{self, Backing, Errno, Failure};
use super::records::{State, pieces};
use super::{Log, process_id};
use crate::clock::Clock;
use crate::system;

/// How often a chunk is read again when its room is used anew meanwhile.
const ATTEMPTS: usize = 16;
/// How long, and how often in all, chunks that the parent is changing are waited for: it may be dead.
const WAIT: Duration = Duration::from_millis(1);
const WAITS: u32 = 200;

/// Codes that were alive at the fork: their words, and where each stands and how many bytes it has.
#[derive(Default)]
struct Survivors {
    words: Vec<u64>,
    places: Vec<(usize, usize)>,
    lost: u64,
}

impl Log {
    /// Makes this log the child's own. No other thread may use it meanwhile.
    pub(crate) fn adopt(&self) -> Result<(), Failure> {
        self.chunks.reset_latch();
        let parent = self.pid.load(Relaxed);
        let pid = process_id();
        let in_use = self.chunks.in_use();
        let failed = |cause| Failure { what: "room for the code log after fork".to_owned(), cause };
        let survivors = self.survivors().map_err(failed)?;
        let control = self.control().load(Relaxed);
        self.take_new_backing(pid)?;
        self.begin(pid)?;
        self.control().store(control, Relaxed);
        self.mapping
            .word(control::FORKED)
            .store(start_of_process(self.options.clock).unwrap_or(0), Relaxed);
        self.mapping.half(control::PARENT).store(parent, Relaxed);
        self.lanes.reset();
        self.chunks.let_go();
        self.starving.store(0, Relaxed);
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

    /// What was alive at the fork, as far as it is still there.
    fn survivors(&self) -> Result<Survivors, Errno> {
        let mut all = Survivors::default();
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

    /// The epoch of a chunk when it is no more being changed. `None` if it belongs to a run by now, or the parent
    /// cannot go on with it.
    fn steady_epoch(&self, number: usize, waits: &mut u32) -> Option<u64> {
        loop {
            let epoch = self.epoch(number)?;
            if epoch.is_multiple_of(2) {
                return Some(epoch);
            }
            *waits = waits.checked_add(1).filter(|waits| *waits < WAITS)?;
            std::thread::sleep(WAIT);
        }
    }

    fn survivors_in(
        &self,
        number: usize,
        range: std::ops::Range<usize>,
        all: &mut Survivors,
    ) -> Result<(), Errno> {
        let (last_birth, last_death) = self.chunks.last_times(number);
        // A run had one code, at its beginning. What is behind may be chunks of their own by now, whose room is used
        // anew without a word in the run's head.
        let is_run = range.len() > CHUNK;
        let mut end = range.start;
        for piece in pieces(&self.mapping, range).take(if is_run { 1 } else { usize::MAX }) {
            let died_before = match piece.state {
                State::Filler => continue,
                State::Alive => false,
                State::Dead(died) => died <= last_death,
            };
            let word = |at| self.mapping.word(at).load(Acquire);
            // The gap between two of them was pieces too; else this is not what it seems.
            let is_in_place = piece.at == end || piece.at >= end + FILLER_MIN;
            if died_before || word(piece.at + code::TIME) > last_birth || !is_in_place {
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

    /// Writes all chunks: the survivors at their places, and fillers between them.
    fn settle(&self, survivors: &Survivors, pid: u32) {
        let mut places = survivors.places.iter().copied().peekable();
        let mut words = survivors.words.iter();
        for (number, range) in self.chunks.ranges() {
            self.chunks.settle(number, 0, 0);
            self.write_head(number, (range.end - range.start).div_ceil(CHUNK));
            let (mut at, mut live, mut room) = (range.start, 0, 0);
            let fill_up_to = |at: usize, end: usize| {
                if end > at {
                    self.fill(at, end - at);
                }
                end - at
            };
            while let Some((place, size)) = places.next_if(|(place, _)| *place < range.end) {
                room += fill_up_to(at, place);
                for (word, value) in (place..).step_by(8).zip(words.by_ref().take(size / 8)) {
                    self.mapping.word(word).store(*value, Relaxed);
                }
                self.mapping.word(place + code::DIED).store(0, Relaxed);
                self.set_load_pid(place, size, pid);
                live += 1;
                at = place + size;
            }
            room += fill_up_to(at, range.end);
            self.chunks.settle(number, live, room);
        }
    }

    fn take_new_backing(&self, pid: u32) -> Result<(), Failure> {
        let new = match &self.backing {
            Backing::Memory(_) => Backing::memory()?,
            Backing::File(_, path) => {
                let path = path.with_file_name(format!("jit-{pid}.dump"));
                Backing::file(&path)?
            }
            Backing::Anonymous => Backing::Anonymous,
        };
        let failed = |cause| Failure { what: "a code log after fork".to_owned(), cause };
        self.mapping.replace(&new).map_err(failed)?;
        if let (Some(old), Some(new)) = (self.backing.fd(), new.fd()) {
            memory::redirect(old, new).map_err(failed)?;
        }
        Ok(())
    }

    /// Gives the LOAD of a group, if there is one, another process id.
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

/// When this process began, by the clock of the records, to a hundredth of a second, rounded down. How fast the processor counts,
/// it does not say.
fn start_of_process(clock: Clock) -> Option<u64> {
    if clock != Clock::Monotonic {
        return None;
    }
    let stat = std::fs::read("/proc/self/stat").ok()?;
    // The name, in brackets, may hold anything.
    let behind_name = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(stat.get(behind_name + 1..)?).ok()?;
    let ticks: u64 = text.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let since_boot = ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())?;
    // That clock goes on while the machine sleeps; the records' does not.
    since_boot.checked_sub(system::since_boot().saturating_sub(clock.now()))
}

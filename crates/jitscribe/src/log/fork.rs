//! The log of a fork's child: a copy of what was alive, at the same places.
//!
//! Handles tell codes by their places in the log, so the child's log has to have them where the parent's
//! has. What the parent did since the fork is not to be seen in it: the child's private memory still has
//! the rooms and epochs of the moment of the fork, and what lies beyond them is left out.

use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::backing::{Backing, Failure};
use super::layout::{CHUNK, FIRST_CHUNK, HEAD_SIZE, chunk, code, control, pair};
use super::records::{State, pieces};
use super::{Log, mapping, process_id};
use crate::clock;

/// Offset of the process id in a LOAD record.
const LOAD_PID: usize = 16;

impl Log {
    /// Makes this log the child's own. No other thread may use it meanwhile.
    pub(crate) fn adopt(&self) -> Result<(), Failure> {
        self.chunks.reset_latch();
        let parent = self.pid.load(Relaxed);
        let pid = process_id();
        let forked = start_of_process();
        let in_use = self.chunks.in_use();

        let old = self.copy_of_chunks(in_use);
        let rooms: Vec<Range<usize>> = self.lanes.rooms().filter(|room| !room.is_empty()).collect();
        let control = self.control().load(Relaxed);
        self.take_new_backing(pid)?;
        self.begin(pid)?;
        self.control().store(control, Relaxed);
        self.mapping.word(control::FORKED).store(forked.unwrap_or(0), Relaxed);
        self.mapping.half(control::PARENT).store(parent, Relaxed);
        self.lanes.reset();
        self.pid.store(pid, Relaxed);

        let length = in_use * CHUNK;
        if length > 0 {
            let failed =
                |cause| Failure { what: "room for the code log after fork".to_owned(), cause };
            self.backing.grow(FIRST_CHUNK, length).map_err(failed)?;
            let _ = self.mapping.advise(FIRST_CHUNK, length, rustix::mm::Advice::LinuxDoDump);
        }
        for (word, value) in old.iter().enumerate() {
            self.mapping.word(FIRST_CHUNK + 8 * word).store(*value, Relaxed);
        }
        drop(old);
        for room in rooms {
            self.fill(room.start, room.len());
        }
        let lost = self.settle(pid, forked);
        self.mapping.half(control::CHUNKS).store(in_use as u32, Release);
        for _ in 0..lost {
            self.left_out();
        }
        Ok(())
    }

    /// The words of all chunks, as they are now.
    fn copy_of_chunks(&self, in_use: usize) -> Vec<u64> {
        (0..in_use * CHUNK / 8)
            .map(|word| self.mapping.word(FIRST_CHUNK + 8 * word).load(Acquire))
            .collect()
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
        self.mapping.replace(new.fd()).map_err(failed)?;
        if let (Some(old), Some(new)) = (self.backing.fd(), new.fd()) {
            mapping::redirect(old, new).map_err(failed)?;
        }
        Ok(())
    }

    /// Puts the copied chunks right: the parent's process id, its codes that were dead, and what it did
    /// since the fork. Returns how many codes were lost to the latter.
    fn settle(&self, pid: u32, forked: Option<u64>) -> u64 {
        let mut lost = 0;
        for (number, range) in self.chunks.ranges() {
            let start = range.start - HEAD_SIZE;
            if self.mapping.word(start + chunk::EPOCH).load(Relaxed) != self.chunks.epoch(number) {
                lost += self.chunks.live_in(number);
                self.mapping.word(start + chunk::EPOCH).store(self.chunks.epoch(number), Relaxed);
                let span = pair((range.end - start).div_euclid(CHUNK) as u32, 0);
                self.mapping.word(start + chunk::SPAN).store(span, Relaxed);
                self.fill(range.start, range.len());
            }
            let mut live = 0;
            for piece in pieces(&self.mapping, range.clone()) {
                let died_later = |died| forked.is_some_and(|forked| died >= forked);
                match piece.state {
                    State::Filler => {}
                    State::Dead(died) if !died_later(died) => {}
                    State::Dead(_) | State::Alive => {
                        self.mapping.word(piece.at + code::DIED).store(0, Relaxed);
                        self.set_load_pid(piece.at, piece.size, pid);
                        live += 1;
                    }
                }
            }
            self.reclaim(range.clone());
            let room = pieces(&self.mapping, range).filter(|piece| piece.state == State::Filler);
            self.chunks.settle(number, live, room.map(|piece| piece.size).sum());
        }
        lost
    }

    /// Gives the LOAD of a group, if there is one, another process id.
    fn set_load_pid(&self, at: usize, size: usize, pid: u32) {
        if let Some(load) = self.load_record(at, size) {
            self.set_bytes_at(load + LOAD_PID, pid);
        }
    }

    fn set_bytes_at(&self, at: usize, value: u32) {
        for (byte, value) in value.to_ne_bytes().into_iter().enumerate() {
            self.mapping.byte(at + byte).store(value, Relaxed);
        }
    }
}

/// When this process began, by the clock of the records, to a hundredth of a second, rounded down.
fn start_of_process() -> Option<u64> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    // The name, in brackets, may hold anything.
    let behind_name = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(stat.get(behind_name + 1..)?).ok()?;
    let ticks: u64 = text.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let since_boot = ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())?;
    // That clock goes on while the machine sleeps; the records' does not.
    since_boot.checked_sub(clock::since_boot().saturating_sub(clock::now()))
}

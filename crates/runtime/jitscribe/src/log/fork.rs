//! The log of a forked child: a copy of the codes that were alive, at the same positions.
//!
//! Handles contain positions in the log, so the child's log must have the codes at the same positions as the parent's. The parent
//! continues to write to its log until the child creates its own, and these changes must not appear in the child's log. The
//! child's private memory still has, for each chunk, the time of the last birth and of the last death before the fork. A code
//! that was alive then stays intact as long as it lives, and after its death until its space is reused; only codes whose space
//! was reused are lost to the child, and counted.

use std::sync::atomic::Ordering::{Relaxed, Release};

use fallible::Place;

use super::chunk_copy::ChunkCopy;
use super::layout::{CHUNK, FIRST_CHUNK, HEAD_SIZE, control};
use super::mapping::Mapping;
use super::memory::{Backing, Errno, Failure};
use super::{Log, process_id};
use crate::clock::Clock;
use crate::system;

impl Log {
    /// Makes this log the child's own. No other thread may use it during the call.
    ///
    /// In the parent, this thread had the id `before`. With `may_share`, the codes stay in the parent's log for now: see
    /// [`inherited`](super::inherited).
    pub(crate) fn adopt(&self, before: u32, may_share: bool) -> Result<(), Failure> {
        self.chunks.reset_lock();
        let parent = self.pid.load(Relaxed);
        let pid = process_id();
        let in_use = self.chunks.in_use();
        let failed = |cause| Failure::of("room for the code log after fork", cause);
        // What may be refused comes before the mapping is replaced, so that it stays the parent's in that case.
        let mut copy = ChunkCopy::new(&self.chunks).map_err(failed)?;
        // Only with the descriptor is the second mapping where readers find it.
        let may_share = may_share && self.backing.fd().is_some();
        let used = FIRST_CHUNK + in_use * CHUNK;
        let parents = match in_use {
            0 => None,
            _ => Some(self.mapping.again(&self.backing, used, CHUNK).map_err(failed)?),
        };
        let busy = || failed(Errno::BUSY);
        let lock = self.chunks.lock_owners().ok_or_else(busy)?;
        let earlier = self.inherited.take(&lock);
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
        let kept = self.lanes.reset(before);
        self.chunks.release_all_except(&kept);
        self.retry_after.store(0, Relaxed);
        self.pid.store(pid, Relaxed);
        // An announcement that a signal handler interrupted to fork continues in one of the chunks that are kept.
        let may_share = may_share && earlier.is_none() && kept.iter().all(|at| *at == 0);
        let parents = match parents {
            Some(parents) if may_share => match self.share(parents, in_use, &lock) {
                Ok(()) => return Ok(()),
                Err(parents) => Some(parents),
            },
            parents => parents,
        };
        if let Some(parents) = parents {
            // Read once: compilers merge a comparison of each range into the test for `None`, and memcheck then warns of the size that is not there.
            let earlier_size = earlier.as_ref().map_or(0, Mapping::size);
            for (number, range) in self.chunks.ranges() {
                // What the parent itself had not copied from the log of its own parent.
                let earlier = earlier.as_ref().filter(|_| range.end <= earlier_size);
                copy.read(self, earlier.unwrap_or(&parents), number, range.clone());
                self.mapping
                    .put(&self.backing, range.start - HEAD_SIZE, &copy.bytes)
                    .map_err(failed)?;
                self.chunks.settle(number, copy.live, copy.space);
            }
        }
        self.mapping.half(control::CHUNKS).store(in_use as u32, Release);
        if copy.lost > 0 {
            self.left_out(copy.lost);
        }
        Ok(())
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
        let used = self.chunks.end();
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

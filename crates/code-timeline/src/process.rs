//! Which address space a process id meant, at a time.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// One address space: a process from its fork or exec to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifeId(u32);

impl LifeId {
    /// This life's place in a table that is indexed by life.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Life {
    pid: u32,
    from: u64,
    /// The process whose memory a fork copied.
    parent: Option<u32>,
}

/// The lives of all processes. Events may be told in any order.
#[derive(Debug, Default)]
pub struct Processes {
    lives: Vec<Life>,
    /// Per process, its lives in the order of their beginning.
    by_pid: BTreeMap<u32, Vec<LifeId>>,
}

impl Processes {
    /// No processes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `pid` exists; when it began is not known. Says nothing new about a process with a life.
    pub fn seen(&mut self, pid: u32) {
        if !self.by_pid.contains_key(&pid) {
            self.begin(Life { pid, from: 0, parent: None });
        }
    }

    /// `child` was forked off `parent` at `time` and has a copy of its memory. A new thread is no
    /// fork.
    pub fn fork(&mut self, child: u32, parent: u32, time: u64) {
        if child != parent {
            self.seen(parent);
            self.begin(Life { pid: child, from: time, parent: Some(parent) });
        }
    }

    /// `pid` replaced its program at `time`: nothing of its memory is left.
    pub fn exec(&mut self, pid: u32, time: u64) {
        self.begin(Life { pid, from: time, parent: None });
    }

    fn begin(&mut self, life: Life) {
        let id = LifeId(u32::try_from(self.lives.len()).unwrap_or(u32::MAX));
        let lives = &self.lives;
        let of_pid = self.by_pid.entry(life.pid).or_default();
        let place = of_pid.partition_point(|id| lives[id.index()].from <= life.from);
        of_pid.insert(place, id);
        self.lives.push(life);
    }

    /// The life of `pid` at `time`; its first life for times before that began. `None` for a
    /// process never heard of.
    #[must_use]
    pub fn at(&self, pid: u32, time: u64) -> Option<LifeId> {
        self.around(pid, time).map(|(life, _)| life)
    }

    /// The same, and for which times that is so: without the last of all, `u64::MAX`.
    #[must_use]
    pub fn around(&self, pid: u32, time: u64) -> Option<(LifeId, Range<u64>)> {
        let of_pid = self.by_pid.get(&pid)?;
        let later = of_pid.partition_point(|&id| self.from(id) <= time).max(1);
        let life = *of_pid.get(later - 1)?;
        let from = if later == 1 { 0 } else { self.from(life) };
        Some((life, from..of_pid.get(later).map_or(u64::MAX, |&next| self.from(next))))
    }

    /// The life whose memory `life` began with, and when it was copied.
    #[must_use]
    pub fn parent(&self, life: LifeId) -> Option<(LifeId, u64)> {
        let Life { from, parent, .. } = self.lives[life.index()];
        // The parent's life just before: at the very time of the fork it may already exec.
        let parent = self.at(parent?, from.saturating_sub(1))?;
        (parent != life).then_some((parent, from))
    }

    /// The process id of `life`.
    #[must_use]
    pub fn pid(&self, life: LifeId) -> u32 {
        self.lives[life.index()].pid
    }

    /// When `life` began; 0 when it was there before anyone looked.
    #[must_use]
    pub fn from(&self, life: LifeId) -> u64 {
        self.lives[life.index()].from
    }

    /// Every life, in the order in which they were told.
    pub fn lives(&self) -> impl Iterator<Item = LifeId> + use<> {
        (0..u32::try_from(self.lives.len()).unwrap_or(u32::MAX)).map(LifeId)
    }

    /// Every process id ever seen, ascending.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.by_pid.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_means_another_life_after_fork_exec_and_reuse() {
        let mut processes = Processes::new();
        processes.seen(1);
        processes.fork(2, 1, 100);
        processes.exec(2, 200);
        processes.fork(2, 1, 300);
        let life = |pid, time| processes.at(pid, time).expect("a known pid");
        let [forked, execed, reused] = [150, 250, 350].map(|time| life(2, time));
        assert_eq!(processes.at(3, 0), None);
        for (time, times) in [(150, 0..200), (0, 0..200), (299, 200..300), (300, 300..u64::MAX)] {
            assert_eq!(processes.around(2, time), Some((life(2, time), times)));
        }
        assert_eq!(life(2, 0), forked, "before the beginning: the first life");
        assert!(forked != execed && execed != reused);
        assert_eq!(processes.parent(forked), Some((life(1, 0), 100)));
        assert_eq!(processes.parent(execed), None);
        assert_eq!(processes.parent(reused), Some((life(1, 0), 300)));
    }

    #[test]
    fn the_order_of_telling_does_not_matter() {
        let mut processes = Processes::new();
        processes.exec(7, 50);
        processes.fork(7, 1, 20);
        assert_eq!(processes.parent(processes.at(7, 30).unwrap()).unwrap().1, 20);
        assert_eq!(processes.parent(processes.at(7, 60).unwrap()), None);
    }

    #[test]
    fn threads_are_no_forks() {
        let mut processes = Processes::new();
        processes.fork(5, 5, 10);
        assert_eq!(processes.at(5, 20), None);
    }
}

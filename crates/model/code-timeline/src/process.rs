//! Which address space a process id refers to at a time.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::{Bound, Range};

/// One address space: a process from its fork or exec to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifeId(u32);

impl LifeId {
    /// The only address space, for input that does not distinguish several. It belongs to no [`Processes`], except as
    /// the first life added to one.
    pub const ONLY: Self = Self(0);

    /// The index of this life in a table.
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

/// The lives of all processes. Events may be added in any order.
#[derive(Debug, Default)]
pub struct Processes {
    lives: Vec<Life>,
    /// The lives by process, in the order of their beginning and then of their addition.
    by_pid: BTreeSet<(u32, u64, LifeId)>,
    /// Every process.
    pids: BTreeSet<u32>,
}

/// Maximum number of generations that are searched for what was at an address: processes that were forked one from
/// another and that each have their own memory or code.
///
/// The search ends at a program that an exec started. Shells, build tools and servers fork three or four generations
/// deep.
pub const GENERATIONS: usize = 64;

/// What a process has from another process, whose memory it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// The life that it was inherited from.
    pub life: LifeId,
    /// The last time of that life of which the process has a copy.
    pub asked: u64,
}

impl Processes {
    /// Creates a value without processes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that `pid` exists; its beginning is unknown. Has no effect for a process that already has a life.
    pub fn seen(&mut self, pid: u32) {
        if !self.pids.contains(&pid) {
            self.begin(Life { pid, from: 0, parent: None });
        }
    }

    /// Records that `child` was forked from `parent` at `time` and has a copy of its memory. A new thread is not a
    /// fork.
    pub fn fork(&mut self, child: u32, parent: u32, time: u64) {
        if child != parent {
            self.seen(parent);
            self.begin(Life { pid: child, from: time, parent: Some(parent) });
        }
    }

    /// Records that `pid` replaced its program at `time`: nothing of its memory remains.
    pub fn exec(&mut self, pid: u32, time: u64) {
        self.begin(Life { pid, from: time, parent: None });
    }

    fn begin(&mut self, life: Life) {
        let id = LifeId(u32::try_from(self.lives.len()).unwrap_or(u32::MAX));
        self.by_pid.insert((life.pid, life.from, id));
        self.pids.insert(life.pid);
        self.lives.push(life);
    }

    /// The life of `pid` at `time`; its first life for times before that began. `None` for an unknown process.
    #[must_use]
    pub fn at(&self, pid: u32, time: u64) -> Option<LifeId> {
        self.begun(pid, time).map(|(_, life)| life)
    }

    /// The same, and when that life began.
    fn begun(&self, pid: u32, time: u64) -> Option<(u64, LifeId)> {
        let begun = (pid, 0, LifeId(0))..=(pid, time, LifeId(u32::MAX));
        let later = (pid, time, LifeId(u32::MAX))..=(pid, u64::MAX, LifeId(u32::MAX));
        let here = self.by_pid.range(begun).next_back();
        let &(_, from, life) = here.or_else(|| self.by_pid.range(later).next())?;
        Some((from, life))
    }

    /// The same, and the times for which it is valid. The range excludes the very last time, `u64::MAX`.
    #[must_use]
    pub fn around(&self, pid: u32, time: u64) -> Option<(LifeId, Range<u64>)> {
        let (from, life) = self.begun(pid, time)?;
        let last = (pid, u64::MAX, LifeId(u32::MAX));
        let behind = (Bound::Excluded((pid, from, life)), Bound::Included(last));
        let until = self.by_pid.range(behind).next().map_or(u64::MAX, |&(_, from, _)| from);
        // The first life also applies to times before it began.
        let first = self.by_pid.range((pid, 0, LifeId(0))..=last).next();
        let is_first = first == Some(&(pid, from, life));
        Some((life, if is_first { 0 } else { from }..until))
    }

    /// The life whose memory `life` began with, and when it was copied.
    #[must_use]
    pub fn parent(&self, life: LifeId) -> Option<(LifeId, u64)> {
        let Life { from, parent, .. } = *self.lives.get(life.index())?;
        // The parent's life just before the fork: at the same timestamp the parent may already exec.
        let parent = self.at(parent?, from.saturating_sub(1))?;
        (parent != life).then_some((parent, from))
    }

    /// For each life, indexed by its number: the nearest life whose memory it has and for which `has` is true. These
    /// are the lives that it was forked from, directly or through others, each as it was at the fork. `None` if there
    /// is none, as for a program that was started by an exec.
    ///
    /// All lives are computed together, in linear time after sorting. Following a chain of forks for each query would
    /// take quadratic time.
    #[must_use]
    pub fn inherited(&self, has: impl Fn(LifeId) -> bool) -> Vec<Option<Inherited>> {
        // A parent's memory counts only if the parent began before the fork. So each step leads to a life that began
        // earlier. In the order of their beginnings, each result is known before it is needed.
        let mut order: Vec<LifeId> = self.lives().collect();
        order.sort_by_key(|&life| self.from(life));
        let mut inherited: Vec<Option<Inherited>> = alloc::vec![None; self.lives.len()];
        for life in order {
            let Some((parent, forked)) = self.parent(life) else { continue };
            let asked = forked.saturating_sub(1);
            let of_parent = || {
                let is_older = self.from(parent) <= asked;
                inherited.get(parent.index()).copied().flatten().filter(|_| is_older)
            };
            let found = match has(parent) {
                true => Some(Inherited { life: parent, asked }),
                false => of_parent(),
            };
            if let Some(place) = inherited.get_mut(life.index()) {
                *place = found;
            }
        }
        inherited
    }

    /// `life` and the lives whose memory it has, through at most [`GENERATIONS`] forks: each with the last time of
    /// which `life` has a copy.
    #[must_use]
    pub fn lineage(&self, life: LifeId) -> Vec<Inherited> {
        let own = Inherited { life, asked: u64::MAX };
        let next = |child: &Inherited| {
            let (life, forked) = self.parent(child.life)?;
            (forked <= child.asked).then(|| Inherited { life, asked: forked.saturating_sub(1) })
        };
        core::iter::successors(Some(own), next).take(GENERATIONS + 1).collect()
    }

    /// The process id of `life`.
    #[must_use]
    pub fn pid(&self, life: LifeId) -> u32 {
        self.lives[life.index()].pid
    }

    /// When `life` began; 0 if it existed before the recording.
    #[must_use]
    pub fn from(&self, life: LifeId) -> u64 {
        self.lives.get(life.index()).map_or(0, |life| life.from)
    }

    /// Every life, in the order of addition.
    pub fn lives(&self) -> impl Iterator<Item = LifeId> + use<> {
        (0..u32::try_from(self.lives.len()).unwrap_or(u32::MAX)).map(LifeId)
    }

    /// Every process id ever seen, ascending.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.pids.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        /// The results agree with a linear search through all lives of a process.
        #[test]
        fn agrees_with_a_list(
            events in prop::collection::vec((0u32..4, 0u32..4, 1u64..12, any::<bool>()), 0..40),
        ) {
            let processes = made(&events);
            for pid in 0..4 {
                for time in 0..14 {
                    let mut of_pid: Vec<LifeId> =
                        processes.lives().filter(|&life| processes.pid(life) == pid).collect();
                    of_pid.sort_by_key(|&life| processes.from(life));
                    let begun = |&&life: &&LifeId| processes.from(life) <= time;
                    let expected = of_pid.iter().rfind(begun).or(of_pid.first()).copied();
                    prop_assert_eq!(processes.at(pid, time), expected);
                    let around = processes.around(pid, time);
                    prop_assert_eq!(around.as_ref().map(|(life, _)| *life), expected);
                    if let Some((life, times)) = around {
                        for other in 0..14 {
                            let same = processes.at(pid, other) == Some(life);
                            prop_assert_eq!(times.contains(&other), same, "{:?} {}", times, other);
                        }
                    }
                }
            }
        }

        /// The result for each life is what a walk along its parents finds.
        #[test]
        fn what_is_inherited_is_what_a_walk_finds(
            events in prop::collection::vec((0u32..6, 0u32..6, 1u64..12, any::<bool>()), 0..40),
            has in any::<u64>(),
        ) {
            let processes = made(&events);
            let has = |life: LifeId| has >> (life.index() % 64) & 1 == 1;
            let inherited = processes.inherited(has);
            for life in processes.lives() {
                let walk = || {
                    let (mut at, mut asked) = (life, u64::MAX);
                    loop {
                        let (parent, forked) = processes.parent(at)?;
                        if forked > asked {
                            return None;
                        }
                        (at, asked) = (parent, forked - 1);
                        if has(at) {
                            return Some(Inherited { life: at, asked });
                        }
                    }
                };
                prop_assert_eq!(inherited[life.index()], walk());
            }
        }
    }

    fn made(events: &[(u32, u32, u64, bool)]) -> Processes {
        let mut processes = Processes::new();
        for &(pid, parent, time, exec) in events {
            match exec {
                true => processes.exec(pid, time),
                false => processes.fork(pid, parent, time),
            }
        }
        processes
    }

    #[test]
    fn threads_are_no_forks() {
        let mut processes = Processes::new();
        processes.fork(5, 5, 10);
        assert_eq!(processes.at(5, 20), None);
    }
}

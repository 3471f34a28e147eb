//! Which address space a process id refers to at a time.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::{Bound, Range};

/// One address space: a process from its fork or exec to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressSpaceId(u32);

impl AddressSpaceId {
    /// The only address space, for input that does not distinguish several. It belongs to no [`Processes`], except as
    /// the first address space added to one.
    pub const ONLY: Self = Self(0);

    /// The index of this address space in a table.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct AddressSpace {
    pid: u32,
    from: u64,
    /// The process whose memory a fork copied.
    parent: Option<u32>,
}

/// The address spaces of all processes. Events may be added in any order.
#[derive(Debug, Default)]
pub struct Processes {
    spaces: Vec<AddressSpace>,
    /// The address spaces by process, in the order of their beginning and then of their addition.
    by_pid: BTreeSet<(u32, u64, AddressSpaceId)>,
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
    /// The address space that it was inherited from.
    pub space: AddressSpaceId,
    /// The last time of that address space of which the process has a copy.
    pub as_of: u64,
}

impl Processes {
    /// Creates a value without processes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that `pid` exists; its beginning is unknown. Has no effect for a process that is known already.
    pub fn add(&mut self, pid: u32) {
        if !self.pids.contains(&pid) {
            self.begin(AddressSpace { pid, from: 0, parent: None });
        }
    }

    /// Records that `child` was forked from `parent` at `time` and has a copy of its memory. A new thread is not a
    /// fork.
    pub fn fork(&mut self, child: u32, parent: u32, time: u64) {
        if child != parent {
            self.add(parent);
            self.begin(AddressSpace { pid: child, from: time, parent: Some(parent) });
        }
    }

    /// Records that `pid` replaced its program at `time`: nothing of its memory remains.
    pub fn exec(&mut self, pid: u32, time: u64) {
        self.begin(AddressSpace { pid, from: time, parent: None });
    }

    fn begin(&mut self, space: AddressSpace) {
        let id = AddressSpaceId(u32::try_from(self.spaces.len()).unwrap_or(u32::MAX));
        self.by_pid.insert((space.pid, space.from, id));
        self.pids.insert(space.pid);
        self.spaces.push(space);
    }

    /// The address space of `pid` at `time`; its first one for times before that began. `None` for an unknown process.
    #[must_use]
    pub fn at(&self, pid: u32, time: u64) -> Option<AddressSpaceId> {
        self.begun(pid, time).map(|(_, space)| space)
    }

    /// The same, and when that address space began.
    fn begun(&self, pid: u32, time: u64) -> Option<(u64, AddressSpaceId)> {
        let begun = (pid, 0, AddressSpaceId(0))..=(pid, time, AddressSpaceId(u32::MAX));
        let later =
            (pid, time, AddressSpaceId(u32::MAX))..=(pid, u64::MAX, AddressSpaceId(u32::MAX));
        let here = self.by_pid.range(begun).next_back();
        let &(_, from, space) = here.or_else(|| self.by_pid.range(later).next())?;
        Some((from, space))
    }

    /// The same, and the times for which it is valid. The range excludes the very last time, `u64::MAX`.
    #[must_use]
    pub fn around(&self, pid: u32, time: u64) -> Option<(AddressSpaceId, Range<u64>)> {
        let (from, space) = self.begun(pid, time)?;
        let last = (pid, u64::MAX, AddressSpaceId(u32::MAX));
        let behind = (Bound::Excluded((pid, from, space)), Bound::Included(last));
        let until = self.by_pid.range(behind).next().map_or(u64::MAX, |&(_, from, _)| from);
        // The first address space also applies to times before it began.
        let first = self.by_pid.range((pid, 0, AddressSpaceId(0))..=last).next();
        let is_first = first == Some(&(pid, from, space));
        Some((space, if is_first { 0 } else { from }..until))
    }

    /// The address space whose memory `space` began with, and when it was copied.
    #[must_use]
    pub fn parent(&self, space: AddressSpaceId) -> Option<(AddressSpaceId, u64)> {
        let AddressSpace { from, parent, .. } = *self.spaces.get(space.index())?;
        // The parent's address space just before the fork: at the same timestamp the parent may already exec.
        let parent = self.at(parent?, from.saturating_sub(1))?;
        (parent != space).then_some((parent, from))
    }

    /// For each address space, indexed by its number: the nearest address space whose memory it has and for which `has`
    /// is true. These are the address spaces that it was forked from, directly or through others, each as it was at the
    /// fork. `None` if there is none, as for a program that was started by an exec.
    ///
    /// All address spaces are computed together, in linear time after sorting. Following a chain of forks for each
    /// query would take quadratic time.
    #[must_use]
    pub fn inherited(&self, has: impl Fn(AddressSpaceId) -> bool) -> Vec<Option<Inherited>> {
        // A parent's memory counts only if the parent began before the fork. So each step leads to an address space
        // that began earlier. In the order of their beginnings, each result is known before it is needed.
        let mut order: Vec<AddressSpaceId> = self.spaces().collect();
        order.sort_by_key(|&space| self.from(space));
        let mut inherited: Vec<Option<Inherited>> = alloc::vec![None; self.spaces.len()];
        for space in order {
            let Some((parent, forked)) = self.parent(space) else { continue };
            let as_of = forked.saturating_sub(1);
            let of_parent = || {
                let is_older = self.from(parent) <= as_of;
                inherited.get(parent.index()).copied().flatten().filter(|_| is_older)
            };
            let found = match has(parent) {
                true => Some(Inherited { space: parent, as_of }),
                false => of_parent(),
            };
            if let Some(place) = inherited.get_mut(space.index()) {
                *place = found;
            }
        }
        inherited
    }

    /// `space` and the address spaces whose memory it has, through at most [`GENERATIONS`] forks: each with the last
    /// time of which `space` has a copy.
    #[must_use]
    pub fn lineage(&self, space: AddressSpaceId) -> Vec<Inherited> {
        let own = Inherited { space, as_of: u64::MAX };
        let next = |child: &Inherited| {
            let (space, forked) = self.parent(child.space)?;
            (forked <= child.as_of).then(|| Inherited { space, as_of: forked.saturating_sub(1) })
        };
        core::iter::successors(Some(own), next).take(GENERATIONS + 1).collect()
    }

    /// The process id of `space`.
    #[must_use]
    pub fn pid(&self, space: AddressSpaceId) -> u32 {
        self.spaces[space.index()].pid
    }

    /// When `space` began; 0 if it existed before the recording.
    #[must_use]
    pub fn from(&self, space: AddressSpaceId) -> u64 {
        self.spaces.get(space.index()).map_or(0, |space| space.from)
    }

    /// Every address space, in the order of addition.
    pub fn spaces(&self) -> impl Iterator<Item = AddressSpaceId> + use<> {
        (0..u32::try_from(self.spaces.len()).unwrap_or(u32::MAX)).map(AddressSpaceId)
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
    fn a_pid_refers_to_a_new_address_space_after_fork_exec_and_reuse() {
        let mut processes = Processes::new();
        processes.add(1);
        processes.fork(2, 1, 100);
        processes.exec(2, 200);
        processes.fork(2, 1, 300);
        let space = |pid, time| processes.at(pid, time).expect("a known pid");
        let [forked, execed, reused] = [150, 250, 350].map(|time| space(2, time));
        assert_eq!(processes.at(3, 0), None);
        for (time, times) in [(150, 0..200), (0, 0..200), (299, 200..300), (300, 300..u64::MAX)] {
            assert_eq!(processes.around(2, time), Some((space(2, time), times)));
        }
        assert_eq!(space(2, 0), forked, "before the beginning: the first life");
        assert!(forked != execed && execed != reused);
        assert_eq!(processes.parent(forked), Some((space(1, 0), 100)));
        assert_eq!(processes.parent(execed), None);
        assert_eq!(processes.parent(reused), Some((space(1, 0), 300)));
    }

    #[test]
    fn the_order_of_addition_does_not_matter() {
        let mut processes = Processes::new();
        processes.exec(7, 50);
        processes.fork(7, 1, 20);
        assert_eq!(processes.parent(processes.at(7, 30).unwrap()).unwrap().1, 20);
        assert_eq!(processes.parent(processes.at(7, 60).unwrap()), None);
    }

    proptest! {
        /// The results agree with a linear search through all address spaces of a process.
        #[test]
        fn agrees_with_a_list(
            events in prop::collection::vec((0u32..4, 0u32..4, 1u64..12, any::<bool>()), 0..40),
        ) {
            let processes = made(&events);
            for pid in 0..4 {
                for time in 0..14 {
                    let mut of_pid: Vec<AddressSpaceId> =
                        processes.spaces().filter(|&space| processes.pid(space) == pid).collect();
                    of_pid.sort_by_key(|&space| processes.from(space));
                    let begun = |&&space: &&AddressSpaceId| processes.from(space) <= time;
                    let expected = of_pid.iter().rfind(begun).or(of_pid.first()).copied();
                    prop_assert_eq!(processes.at(pid, time), expected);
                    let around = processes.around(pid, time);
                    prop_assert_eq!(around.as_ref().map(|(space, _)| *space), expected);
                    if let Some((space, times)) = around {
                        for other in 0..14 {
                            let same = processes.at(pid, other) == Some(space);
                            prop_assert_eq!(times.contains(&other), same, "{:?} {}", times, other);
                        }
                    }
                }
            }
        }

        /// The result for each address space is what a walk along its parents finds.
        #[test]
        fn inherited_agrees_with_a_walk_along_the_parents(
            events in prop::collection::vec((0u32..6, 0u32..6, 1u64..12, any::<bool>()), 0..40),
            has in any::<u64>(),
        ) {
            let processes = made(&events);
            let has = |space: AddressSpaceId| has >> (space.index() % 64) & 1 == 1;
            let inherited = processes.inherited(has);
            for space in processes.spaces() {
                let walk = || {
                    let (mut at, mut as_of) = (space, u64::MAX);
                    loop {
                        let (parent, forked) = processes.parent(at)?;
                        if forked > as_of {
                            return None;
                        }
                        (at, as_of) = (parent, forked - 1);
                        if has(at) {
                            return Some(Inherited { space: at, as_of });
                        }
                    }
                };
                prop_assert_eq!(inherited[space.index()], walk());
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
    fn a_new_thread_is_not_a_fork() {
        let mut processes = Processes::new();
        processes.fork(5, 5, 10);
        assert_eq!(processes.at(5, 20), None);
    }
}

//! The list, and what has changed in it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::fields::{u32_at, u64_at};
use crate::limits;
use crate::read_at::ReadAt;

/// New entries are put first. As the memory of an object that was unregistered is used again, that many are read again at each poll.
const NEWEST: usize = 16;
/// Objects of up to this size are read again.
const SMALL: u64 = 1 << 16;
/// How often the list is read to its end although its head is as before: once in so many polls.
const RARELY: u32 = 16;
/// The version of the interface.
const VERSION: u32 = 1;
/// `JIT_REGISTER_FN`.
const REGISTER: u32 = 1;

/// What has changed since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// An object is in the list that was not.
    Registered {
        /// A number that no other object of this [`List`] has.
        id: u64,
        /// The object: an ELF file, or whatever the process has there.
        object: &'a [u8],
        /// Whether the process says that registering this one was its last change of the list.
        is_last: bool,
    },
    /// An object is no longer in the list.
    Unregistered {
        /// Its number.
        id: u64,
    },
}

/// The lists of one process: which objects were in them at the last poll.
#[derive(Debug, Default)]
pub struct List {
    known: HashMap<Place, Known>,
    heads: HashMap<u64, Head>,
    next: u64,
    polls: u32,
    /// Bytes of objects that were read.
    read: u64,
}

/// Where an object is: address and size.
type Place = (u64, u64);

#[derive(Debug)]
struct Known {
    id: u64,
    hash: u64,
    /// The head of the list that it is in.
    head: u64,
}

/// `struct jit_descriptor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    action: u32,
    relevant: u64,
    first: u64,
}

/// `struct jit_code_entry`.
struct Entry {
    next: u64,
    object: Place,
}

impl Head {
    fn read(memory: &(impl ReadAt + ?Sized), at: u64) -> Option<Self> {
        let bytes: [u8; 24] = memory.array(at)?;
        let head = Self {
            action: u32_at(&bytes, 4),
            relevant: u64_at(&bytes, 8),
            first: u64_at(&bytes, 16),
        };
        (u32_at(&bytes, 0) == VERSION && head.action <= 2).then_some(head)
    }

    /// The object that was registered with the last change of the list; `None` if that removed one.
    fn registered_last(&self, memory: &(impl ReadAt + ?Sized)) -> Option<Place> {
        let entry = (self.action == REGISTER).then(|| Entry::read(memory, self.relevant));
        entry.flatten().map(|entry| entry.object)
    }
}

impl Entry {
    fn read(memory: &(impl ReadAt + ?Sized), at: u64) -> Option<Self> {
        let bytes: [u8; 32] = memory.array(at)?;
        Some(Self { next: u64_at(&bytes, 0), object: (u64_at(&bytes, 16), u64_at(&bytes, 24)) })
    }
}

impl List {
    /// Reads the lists with these heads, and passes on what has changed. What was unregistered is passed on first.
    ///
    /// The process runs on. A list that it changes in the middle of reading is read at the next poll.
    pub fn poll(
        &mut self,
        memory: &(impl ReadAt + ?Sized),
        heads: &[u64],
        mut each: impl FnMut(Change<'_>),
    ) {
        self.polls = self.polls.wrapping_add(1);
        for &at in heads.iter().take(limits::HEADS) {
            self.poll_one(memory, at, &mut each);
        }
    }

    /// Whether nothing is read any more as the limit is reached.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.read >= limits::OBJECTS
    }

    fn poll_one(
        &mut self,
        memory: &(impl ReadAt + ?Sized),
        at: u64,
        each: &mut impl FnMut(Change<'_>),
    ) {
        let Some(head) = Head::read(memory, at) else { return };
        let last = head.registered_last(memory);
        let is_same = self.heads.insert(at, head) == Some(head);
        let is_part = is_same && !self.polls.is_multiple_of(RARELY);
        let mut walk = Walk::new(head.first);
        let newest = walk.next(memory, NEWEST);
        let mut seen = HashSet::new();
        let new = self.look(memory, (at, last), &newest, true, &mut seen, each);
        if !is_part || new || walk.is_at_end {
            let rest = walk.next(memory, limits::ENTRIES);
            self.look(memory, (at, last), &rest, false, &mut seen, each);
            // Only a list that was read to its end, and did not change in between, shows what is gone.
            if walk.is_at_end && Head::read(memory, at) == Some(head) {
                self.known.retain(|place, known| {
                    let stays = known.head != at || seen.contains(place);
                    if !stays {
                        each(Change::Unregistered { id: known.id });
                    }
                    stays
                });
            }
        }
    }

    /// Looks at these entries. Whether any object is new.
    fn look(
        &mut self,
        memory: &(impl ReadAt + ?Sized),
        (head, last): (u64, Option<Place>),
        places: &[Place],
        again: bool,
        seen: &mut HashSet<Place>,
        each: &mut impl FnMut(Change<'_>),
    ) -> bool {
        let mut is_new = false;
        for &place in places {
            let (address, size) = place;
            if !seen.insert(place) || size == 0 || size > limits::OBJECT {
                continue;
            }
            let known = self.known.get(&place).map(|known| (known.id, known.hash));
            if known.is_some() && !(again && size <= SMALL) {
                continue;
            }
            let left = limits::OBJECTS.saturating_sub(self.read);
            if known.is_none() && left < size {
                self.read = limits::OBJECTS;
                continue;
            }
            let Some(object) = memory.bytes(address, size) else { continue };
            let hash = hash(&object);
            match known {
                Some((_, before)) if before == hash => continue,
                Some((id, _)) => each(Change::Unregistered { id }),
                None => {}
            }
            self.read = self.read.saturating_add(size).min(limits::OBJECTS);
            let id = self.next;
            self.next = self.next.saturating_add(1);
            self.known.insert(place, Known { id, hash, head });
            is_new = true;
            each(Change::Registered { id, object: &object, is_last: last == Some(place) });
        }
        is_new
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// A way along the entries of a list.
struct Walk {
    at: u64,
    visited: HashSet<u64>,
    is_at_end: bool,
}

impl Walk {
    fn new(first: u64) -> Self {
        Self { at: first, visited: HashSet::new(), is_at_end: first == 0 }
    }

    /// The objects of the next entries, up to the end, an entry that cannot be read, or one that was visited.
    fn next(&mut self, memory: &(impl ReadAt + ?Sized), most: usize) -> Vec<Place> {
        let mut places = Vec::new();
        while places.len() < most && self.visited.len() < limits::ENTRIES && !self.is_at_end {
            if self.visited.contains(&self.at) {
                break;
            }
            let Some(entry) = Entry::read(memory, self.at) else { break };
            self.visited.insert(self.at);
            places.push(entry.object);
            self.at = entry.next;
            self.is_at_end = entry.next == 0;
        }
        places
    }
}

//! Call stacks, as far as it must be known whether they can be believed.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Counts, Named};

/// As many frames valgrind shows unless told otherwise (`--num-callers`).
const FRAMES: u64 = 12;

/// What was seen of the stacks of a log.
#[derive(Debug)]
pub struct Stacks {
    /// As many frames are shown: a stack that has so many may end anywhere.
    limit: u64,
    /// Stacks that end in code of a JIT or unknown code, by how many frames they have.
    ending: BTreeMap<u64, u64>,
    records: HashSet<u64>,
}

/// One stack, from the innermost frame on.
#[derive(Debug, Default)]
pub struct Stack {
    frames: u64,
    /// Whether a frame was named.
    jitted: bool,
    /// Whether an unknown frame called one that was named.
    unknown_caller: bool,
    /// Whether the last frame is one that was named, or unknown.
    lost: bool,
    /// Of what the frames say, addresses left out.
    said: DefaultHasher,
}

/// A frame of a stack.
#[derive(Debug)]
pub enum Seen<'a> {
    /// It had a name: this is what is said behind the address.
    Told(&'a [u8]),
    /// It has a name now.
    Named(&'a Named),
    /// It has none.
    Unknown,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { limit: FRAMES, ending: BTreeMap::new(), records: HashSet::new() }
    }
}

impl Stacks {
    /// The log says how many frames are shown.
    pub fn set_limit(&mut self, frames: u64) {
        self.limit = frames;
    }

    /// A stack is whole. `record` says of which kind the loss record is that it belongs to.
    pub fn end(&mut self, stack: Stack, record: Option<&[u8]>, counts: &mut Counts) {
        if !stack.jitted {
            return;
        }
        add(&mut counts.stacks);
        if stack.unknown_caller {
            add(&mut counts.broken);
        } else if stack.lost {
            add(self.ending.entry(stack.frames).or_default());
        }
        if let Some(kind) = record {
            let mut said = stack.said;
            kind.hash(&mut said);
            if !self.records.insert(said.finish()) {
                add(&mut counts.repeated);
            }
        }
    }

    /// All is read.
    pub fn finish(self, counts: &mut Counts) {
        for (frames, stacks) in self.ending {
            if frames < self.limit {
                counts.broken = counts.broken.saturating_add(stacks);
            }
        }
    }
}

impl Stack {
    /// The next frame, a caller of the one before.
    pub fn push(&mut self, seen: &Seen<'_>, counts: &mut Counts) {
        add(&mut counts.frames);
        add(&mut self.frames);
        self.lost = true;
        match seen {
            Seen::Told(said) => {
                self.lost = false;
                said.hash(&mut self.said);
            }
            Seen::Named(named) => {
                add(&mut counts.unknown);
                add(&mut counts.named);
                if named.doubtful {
                    add(&mut counts.doubtful);
                }
                self.jitted = true;
                for frame in &named.frames {
                    (&frame.function, &frame.file, frame.line).hash(&mut self.said);
                }
            }
            Seen::Unknown => {
                add(&mut counts.unknown);
                self.unknown_caller |= self.jitted;
                0.hash(&mut self.said);
            }
        }
    }
}

/// One more.
pub fn add(count: &mut u64) {
    *count = count.saturating_add(1);
}

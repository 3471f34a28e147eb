//! Call stacks, as far as needed to detect broken ones.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Counts, Named};

/// How many frames Valgrind shows by default (`--num-callers`).
const FRAMES: u64 = 12;

/// The stacks of a log.
#[derive(Debug)]
pub struct Stacks {
    /// The maximum number of frames shown: a stack that has this many may end anywhere.
    limit: u64,
    /// The number of stacks that end in JIT-compiled or unknown code, by their number of frames.
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
    /// Whether the last frame was named by this crate, or is unknown.
    lost: bool,
    /// Hash of the text of the frames, without addresses.
    hash: DefaultHasher,
}

/// A frame of a stack.
#[derive(Debug)]
pub enum StackEntry<'a> {
    /// It already had a name: the text behind the address.
    Text(&'a [u8]),
    /// It was named.
    Named(&'a Named),
    /// It has no name.
    Unknown,
}

impl Default for Stacks {
    fn default() -> Self {
        Self { limit: FRAMES, ending: BTreeMap::new(), records: HashSet::new() }
    }
}

impl Stacks {
    /// Sets the number of frames shown, according to the log.
    pub fn set_limit(&mut self, frames: u64) {
        self.limit = frames;
    }

    /// Records a complete stack. `record` is the kind of the loss record that it belongs to.
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
            let mut hash = stack.hash;
            kind.hash(&mut hash);
            if !self.records.insert(hash.finish()) {
                add(&mut counts.repeated);
            }
        }
    }

    /// Ends the log.
    pub fn finish(self, counts: &mut Counts) {
        for (frames, stacks) in self.ending {
            if frames < self.limit {
                counts.broken = counts.broken.saturating_add(stacks);
            }
        }
    }
}

impl Stack {
    /// Adds the next frame, the caller of the previous one.
    pub fn push(&mut self, entry: &StackEntry<'_>, counts: &mut Counts) {
        add(&mut counts.frames);
        add(&mut self.frames);
        self.lost = true;
        match entry {
            StackEntry::Text(text) => {
                self.lost = false;
                text.hash(&mut self.hash);
            }
            StackEntry::Named(named) => {
                add(&mut counts.unknown);
                add(&mut counts.named);
                if named.doubtful {
                    add(&mut counts.doubtful);
                }
                self.jitted = true;
                for frame in &named.frames {
                    (&frame.function, &frame.file, frame.line).hash(&mut self.hash);
                }
            }
            StackEntry::Unknown => {
                add(&mut counts.unknown);
                self.unknown_caller |= self.jitted;
                0.hash(&mut self.hash);
            }
        }
    }
}

/// Increments a counter.
pub fn add(count: &mut u64) {
    *count = count.saturating_add(1);
}

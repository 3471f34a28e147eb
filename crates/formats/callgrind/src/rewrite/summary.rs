//! The result of a rewrite.

/// What a rewrite found in a profile, and what it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Summary {
    /// The events that the profile counts.
    pub events: Vec<Event>,
    /// Contexts of unknown code that got a name: callgrind has one for each address that is called.
    pub contexts: usize,
    /// Functions that were named.
    pub functions: usize,
    /// How often the jumps were taken that became calls, because they go to the beginning of another function.
    pub entered_by_jump: u64,
    /// Parts of the profile.
    pub parts: u64,
    /// Whether it has instruction addresses (`--dump-instr=yes`). Otherwise only whole contexts are renamed.
    pub has_instructions: bool,
    /// Whether it has jumps (`--collect-jumps=yes`). Otherwise the sources of jumps to a function are guesses.
    pub has_jumps: bool,
    /// Whether its last line had no line end, so that it was cut off.
    pub is_cut_off: bool,
}

/// One of the events that a profile counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Event {
    /// Its name: Ir, D1mr…
    pub name: String,
    /// The total count according to the profile: the sum of its `totals:` lines.
    pub total: u64,
    /// The count in code that callgrind did not know.
    pub unknown: u64,
    /// The part of that which now has a function.
    pub named: u64,
    /// The count in announced code at instructions for which callgrind had no line.
    pub without_line: u64,
    /// The part of that which now has a line.
    pub restored: u64,
    /// The count in announced code at instructions which had the line of other code.
    pub corrected: u64,
}

impl Summary {
    /// Begins a part that counts events with these names. Returns their number.
    pub(super) fn begin_part<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) -> usize {
        let mut count = 0_usize;
        for (place, name) in names.enumerate() {
            let name = String::from_utf8_lossy(name).into_owned();
            match self.events.get_mut(place) {
                Some(event) => event.name = name,
                None => self.events.push(Event { name, ..Event::default() }),
            }
            count = place.saturating_add(1);
        }
        self.parts = self.parts.saturating_add(1);
        count
    }

    pub(super) fn add_unknown(&mut self, costs: &[u64]) {
        for (event, cost) in self.events.iter_mut().zip(costs) {
            event.unknown = event.unknown.saturating_add(*cost);
        }
    }

    pub(super) fn add_named(&mut self, costs: &[u64]) {
        for (event, cost) in self.events.iter_mut().zip(costs) {
            event.named = event.named.saturating_add(*cost);
        }
    }
}

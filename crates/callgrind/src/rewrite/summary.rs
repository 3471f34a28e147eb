//! What a rewriting did.

/// What was found in a profile, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Summary {
    /// What it counts.
    pub events: Vec<Event>,
    /// Contexts of unknown code that got a name: callgrind has one for each address that is called.
    pub contexts: usize,
    /// Functions that were named.
    pub functions: usize,
    /// Jumps that became calls, as they go to another function's beginning: how often they were taken.
    pub entered_by_jump: u64,
    /// Parts of the profile.
    pub parts: u64,
    /// Whether it tells instructions apart (`--dump-instr=yes`). Else whole contexts are renamed and that is all.
    pub has_instructions: bool,
    /// Whether it tells of jumps (`--collect-jumps=yes`). Else who jumped to a function is a guess.
    pub has_jumps: bool,
    /// Whether its last line had no end: it was cut off.
    pub is_cut_off: bool,
}

/// One of the events that a profile counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Event {
    /// Its name: Ir, D1mr…
    pub name: String,
    /// How often it came, as the profile says it: the sum of its lines `totals:`.
    pub total: u64,
    /// How often in code that callgrind did not know.
    pub unknown: u64,
    /// How much of that has a function now.
    pub named: u64,
}

impl Summary {
    /// Begins a part that counts the events of these names.
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

//! Whether this copy of the library publishes a context.

use std::sync::atomic::{
    AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use process_context::CodeLog;

use super::others;
use super::page::{CurrentPage, Page};
use super::protocol::{PAYLOAD_SPACE, Store, publish, update, withdraw};
use super::table::{MOST_LOGS, Table};
use crate::log::Failure;
use crate::system;

/// The longest `service.name`, in bytes. A longer one is left out.
const LONGEST_NAME: usize = 255;

/// What became of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// No scribe has requested one.
    Unwanted = 0,
    /// There is none, or none yet.
    Unpublished = 1,
    Published = 2,
    /// Another part of the process has one.
    Yielded = 3,
}

/// The context of this copy of the library. All methods but `state` require the lock of the context.
#[derive(Debug)]
pub(super) struct Publication {
    state: AtomicU8,
    page: CurrentPage,
    name: [AtomicU8; LONGEST_NAME],
    name_length: AtomicUsize,
}

impl Publication {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU8::new(State::Unwanted as u8),
            page: CurrentPage::new(),
            name: [const { AtomicU8::new(0) }; LONGEST_NAME],
            name_length: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        let states = [State::Unpublished, State::Published, State::Yielded];
        let state = self.state.load(Acquire);
        states.into_iter().find(|known| *known as u8 == state).unwrap_or(State::Unwanted)
    }

    fn set(&self, state: State) {
        self.state.store(state as u8, Release);
    }

    /// A scribe requests a context, with this `service.name`.
    pub(super) fn want(&self, service_name: Option<&str>) {
        if self.state() == State::Unwanted {
            self.set(State::Unpublished);
        }
        if let Some(name) = service_name.filter(|name| name.len() <= LONGEST_NAME) {
            for (place, byte) in self.name.iter().zip(name.bytes()) {
                place.store(byte, Relaxed);
            }
            self.name_length.store(name.len(), Relaxed);
        }
    }

    /// In the child of a fork, which does not have the parent's page.
    pub(super) fn forget(&self) {
        self.page.forget();
        if self.state() != State::Unwanted {
            self.set(State::Unpublished);
        }
    }

    /// Publishes or updates the context, unless another part of the process has one.
    #[inline(never)]
    pub(super) fn publish(&self, table: &Table) -> Result<State, Failure> {
        let is_other = others::are_there(self.address());
        let is_other = is_other.map_err(|cause| {
            Failure::of("searching for another process context in /proc/self/maps", cause)
        })?;
        if is_other {
            self.withdraw();
            self.set(State::Yielded);
            return Ok(State::Yielded);
        }
        let mut space = [0; PAYLOAD_SPACE];
        // There is enough space for the longest name, and the most logs with the largest numbers.
        let Some(size) = self.encode(table, &mut space) else { return Ok(self.state()) };
        let payload = space.get(..size).unwrap_or_default();
        let now = system::since_boot();
        if let Some(page) = self.page.get() {
            update(&page, payload, now);
            page.name();
        } else {
            let (page, is_named) = Page::new()?;
            publish(&page, payload, now);
            if !page.name() && !is_named {
                page.discard();
                let cause = rustix::io::Errno::NOSYS;
                return Err(Failure::of("a name for the memory of the process context", cause));
            }
            self.page.set(page);
        }
        self.set(State::Published);
        Ok(State::Published)
    }

    /// Withdraws the context if another part of the process has one. If the list of mappings cannot be read, it stays.
    #[inline(never)]
    pub(super) fn make_way(&self) {
        if others::are_there(self.address()) == Ok(true) {
            self.withdraw();
            self.set(State::Yielded);
        }
    }

    fn address(&self) -> Option<u64> {
        self.page.get().map(|page| page.address())
    }

    fn withdraw(&self) {
        if let Some(page) = self.page.get() {
            withdraw(&page);
            self.page.unmap();
        }
    }

    fn encode(&self, table: &Table, space: &mut [u8]) -> Option<usize> {
        let mut name = [0; LONGEST_NAME];
        for (byte, place) in name.iter_mut().zip(&self.name) {
            *byte = place.load(Relaxed);
        }
        let name = name.get(..self.name_length.load(Relaxed)).unwrap_or_default();
        let name = str::from_utf8(name).ok().filter(|name| !name.is_empty());
        let mut logs = [CodeLog::default(); MOST_LOGS];
        let count = table.copy(&mut logs);
        process_context::encode(name, logs.get(..count)?, space)
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeLog, LONGEST_NAME, MOST_LOGS, PAYLOAD_SPACE, Publication, Table};

    #[test]
    fn the_largest_payload_has_space() {
        let (table, publication) = (Table::new(), Publication::new());
        for number in 0..MOST_LOGS as u64 {
            table.add(CodeLog { address: u64::MAX - number, size: u64::MAX, version: u32::MAX });
        }
        publication.want(Some(&"x".repeat(LONGEST_NAME)));
        let mut space = [0; PAYLOAD_SPACE];
        let size = publication.encode(&table, &mut space).unwrap();
        let context = process_context::Context::new(&space[..size]);
        assert_eq!((context.code_logs().count(), context.resource().count()), (MOST_LOGS, 1));
    }
}

//! The codes that are announced and alive.
//!
//! V8 does not say when it frees code, only what it creates and moves. So code ends when other code takes its place, or with the session.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jitscribe::LoadedCode;

/// The codes by their addresses. Those of all isolates: each has its own memory.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    by_address: BTreeMap<u64, Announced>,
}

#[derive(Debug)]
struct Announced {
    size: u64,
    code: LoadedCode,
}

impl Codes {
    /// Announces code of `size` bytes with `load`, in place of what was there.
    pub(crate) fn load(&self, address: u64, size: u64, load: impl FnOnce() -> LoadedCode) {
        let mut state = self.state();
        if state.is_open {
            state.end(address, size);
            let code = load();
            state.by_address.insert(address, Announced { size, code });
        }
    }

    /// Code was moved.
    pub(crate) fn moved(&self, from: u64, to: u64) {
        let mut state = self.state();
        let Some(mut moved) = state.by_address.remove(&from) else { return };
        state.end(to, moved.size);
        moved.code.moved_to_address(to);
        state.by_address.insert(to, moved);
    }

    /// Code is gone.
    pub(crate) fn unload(&self, address: u64) {
        self.state().by_address.remove(&address);
    }

    /// Accepts code from now on.
    pub(crate) fn open(&self) {
        self.state().is_open = true;
    }

    /// Unloads all code, and accepts none any more.
    pub(crate) fn close(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Unloads the codes in a range.
    fn end(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let overlapping = |(at, code): (&u64, &Announced)| {
            (at.saturating_add(code.size) > address).then_some(*at)
        };
        while let Some(at) = self.by_address.range(..end).next_back().and_then(overlapping) {
            self.by_address.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use jitscribe::{Code, Scribe};

    use super::*;

    fn addresses(codes: &Codes) -> Vec<u64> {
        codes.state().by_address.keys().copied().collect()
    }

    #[test]
    fn code_ends_where_other_code_takes_its_place() {
        let scribe = Scribe::builder().off().build();
        let codes = Codes::default();
        let load = |at, size| codes.load(at, size, || scribe.load(&Code::at(at, size)));
        load(100, 10);
        assert!(addresses(&codes).is_empty(), "it is not open");
        codes.open();
        for at in [100, 110, 120, 130] {
            load(at, 10);
        }
        load(115, 10);
        assert_eq!(addresses(&codes), [100, 115, 130]);
        codes.moved(100, 135);
        codes.moved(7, 115);
        assert_eq!(addresses(&codes), [115, 135]);
        codes.unload(115);
        assert_eq!(addresses(&codes), [135]);
        codes.close();
        load(100, 10);
        assert!(addresses(&codes).is_empty());
    }
}

//! The codes that are announced and alive.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jitscribe::LoadedCode;

use crate::jvmti::MethodId;
use crate::methods::ById;

/// The codes by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    by_address: ById<u64, Announced>,
}

#[derive(Debug)]
struct Announced {
    /// The method; `None` for code that belongs to no method.
    method: Option<MethodId>,
    /// Announced by a replay, and not when it was compiled.
    is_from_replay: bool,
    #[expect(dead_code, reason = "dropping it says that the code is gone")]
    code: LoadedCode,
}

impl Codes {
    /// Announces code with `load`, and replaces the code at its address. `is_from_replay`: announced by a replay, and not
    /// when it was compiled.
    pub(crate) fn load(
        &self,
        address: u64,
        method: Option<MethodId>,
        is_from_replay: bool,
        load: impl FnOnce() -> LoadedCode,
    ) {
        let mut state = self.state();
        if state.is_open {
            // Before the new code is announced: unloading the old code later would remove the new one from a perf map, too.
            drop(state.by_address.remove(&address));
            let code = load();
            state.by_address.insert(address, Announced { method, is_from_replay, code });
        }
    }

    /// The code of `method` at an address is unloaded. Normally this is the last code that was announced there, because the
    /// JVM reports events in their order. The old code of a redefined method then has another id than when it was announced,
    /// or none. But a replay on another thread may run ahead of earlier events. So code from a replay must belong to this
    /// method, by its id or by `is_same`.
    pub(crate) fn unload(
        &self,
        address: u64,
        method: MethodId,
        is_same: impl FnOnce(MethodId) -> bool,
    ) {
        let there = self.state().by_address.get(&address).map(|it| (it.method, it.is_from_replay));
        let Some((Some(there), is_from_replay)) = there else { return };
        // Do not hold the lock while calling the JVM.
        if there != method && is_from_replay && !is_same(there) {
            return;
        }
        let mut state = self.state();
        if state.by_address.get(&address).is_some_and(|now| now.method == Some(there)) {
            drop(state.by_address.remove(&address));
        }
    }

    /// Accepts code from now on.
    pub(crate) fn open(&self) {
        self.state().is_open = true;
    }

    /// Unloads all code, and accepts none any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What was announced and is there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jitscribe::LoadedCode;

use crate::agent;
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
    /// Whose code it is; `None` for what is no method's.
    method: Option<MethodId>,
    /// By a replay, and not when it was compiled.
    is_told_anew: bool,
    #[expect(dead_code, reason = "dropping it says that the code is gone")]
    code: LoadedCode,
}

impl Codes {
    /// Announces code by `load`, in the place of what was at its address.
    pub(crate) fn load(
        &self,
        address: u64,
        method: Option<MethodId>,
        load: impl FnOnce() -> LoadedCode,
    ) {
        let mut state = self.state();
        if state.is_open {
            // First: a code that ends after another began at its address would take that one with it from a perf map.
            drop(state.by_address.remove(&address));
            let code = load();
            let is_told_anew = agent::is_replaying();
            state.by_address.insert(address, Announced { method, is_told_anew, code });
        }
    }

    /// The code of `method` at an address is gone: what was told last there, as the JVM tells what happens in its order. The
    /// old code of a redefined method has another id then than it was told by, if any. But what was told anew, to another
    /// thread, may have come before what happened earlier: so it has to be of this method, by its id or what `is_same` says.
    pub(crate) fn unload(
        &self,
        address: u64,
        method: MethodId,
        is_same: impl FnOnce(MethodId) -> bool,
    ) {
        let there = self.state().by_address.get(&address).map(|it| (it.method, it.is_told_anew));
        let Some((Some(there), is_told_anew)) = there else { return };
        // The JVM is not asked with the lock held.
        if there != method && is_told_anew && !is_same(there) {
            return;
        }
        let mut state = self.state();
        if state.by_address.get(&address).is_some_and(|now| now.method == Some(there)) {
            drop(state.by_address.remove(&address));
        }
    }

    /// From now on code is taken.
    pub(crate) fn open(&self) {
        self.state().is_open = true;
    }

    /// All code is gone, as far as anybody is told, and none is taken any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Attempts: scopes in which a refused allocation is an ordinary result.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::fmt;

/// An allocation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

impl std::error::Error for Refused {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No attempt is in progress in this thread.
    None,
    Attempting,
    /// An attempt is in progress, and an allocation in it was refused.
    Refused,
}

thread_local! {
    // The type has no destructor, so that no memory is needed to register one.
    static STATE: Cell<State> = const { Cell::new(State::None) };
}

/// Runs `work` and returns its value if no allocation in it was refused. Refused allocations do not stop `work`.
///
/// A nested attempt is independent: a refusal in it is not reported to the outer attempt.
///
/// # Errors
/// An allocation was refused. Changes that `work` made to longer-lived values may be incomplete.
#[inline]
pub fn attempt<R>(work: impl FnOnce() -> R) -> Result<R, Refused> {
    let outer = Outer(STATE.replace(State::Attempting));
    let value = work();
    let is_refused = STATE.get() == State::Refused;
    drop(outer);
    if is_refused { Err(Refused) } else { Ok(value) }
}

/// Restores the state of the enclosing attempt, also if `work` panics.
struct Outer(State);

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        STATE.set(self.0);
    }
}

/// Checks whether the attempt in progress in this thread can still succeed. Call this before work that would be
/// pointless or wrong after a refusal.
///
/// # Errors
/// An allocation was refused.
pub fn so_far() -> Result<(), Refused> {
    if STATE.get() == State::Refused { Err(Refused) } else { Ok(()) }
}

/// Whether an attempt is in progress in this thread. If so, do not call anything that aborts when an allocation is
/// refused.
#[must_use]
pub fn is_attempting() -> bool {
    STATE.get() != State::None
}

/// Fails the attempt that is in progress in this thread.
///
/// Without an attempt, this aborts the process, as the collections of `std` do.
#[cold]
#[inline(never)]
pub fn refuse() {
    if STATE.get() == State::None {
        abort();
    }
    STATE.set(State::Refused);
}

/// A function with C's convention does not unwind. So the compiler knows that `push` does not either, and its callers contain no code
/// that cleans up after it.
#[cold]
extern "C" fn abort() -> ! {
    handle_alloc_error(Layout::new::<u8>())
}

#[cfg(test)]
mod tests {
    use super::{Refused, attempt, refuse};

    #[test]
    fn a_refusal_fails_the_attempt_that_it_happens_in() {
        assert_eq!(attempt(|| 7), Ok(7));
        assert_eq!(attempt(refuse), Err(Refused));
        assert_eq!(attempt(|| attempt(refuse)), Ok(Err(Refused)));
        let outer = attempt(|| {
            refuse();
            attempt(|| 7)
        });
        assert_eq!(outer, Err(Refused));
        assert_eq!(attempt(|| 7), Ok(7));
    }

    #[test]
    fn a_panic_ends_the_attempt() {
        let caught =
            std::panic::catch_unwind(|| attempt(|| std::panic::resume_unwind(Box::new(()))));
        assert!(caught.is_err());
        assert!(super::STATE.get() == super::State::None);
    }
}

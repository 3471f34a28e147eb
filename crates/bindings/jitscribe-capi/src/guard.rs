//! Stops panics at the boundary to C.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::outcome::{Failure, Outcome};

/// Runs the body of an API function.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> Outcome {
    guard_value(Outcome::ErrorInternal, || match body() {
        Ok(()) => Outcome::Ok,
        Err(failure) => failure.into(),
    })
}

/// Like [`guard`], for a function that returns a value: `otherwise` if it panics.
#[inline]
pub(crate) fn guard_value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let _unchecked = guest::sanitizers::unchecked();
    // A panic leaves no broken invariant behind: the library consists of atomics, and holds no lock
    // while it calls out.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::{guard, guard_value};
    use crate::outcome::{Failure, Outcome};

    #[test]
    fn a_panic_becomes_a_result() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let outcome = guard(|| panic!("a fault"));
        let value = guard_value(-1, || panic!("a fault"));
        std::panic::set_hook(hook);
        assert_eq!(outcome, Outcome::ErrorInternal);
        assert_eq!(value, -1);
    }

    #[test]
    fn results_are_returned_unchanged() {
        assert_eq!(guard(|| Ok(())), Outcome::Ok);
        assert_eq!(guard(|| Err(Failure::Null)), Outcome::ErrorNull);
        assert_eq!(guard_value(1, || 2), 2);
    }
}

//! What unwinders in the process know: how to walk through code, from before it runs until it is gone.
//!
//! Without the feature `unwinders` there is nothing behind the same names.

#[cfg(feature = "unwinders")]
pub(crate) use known::Unwinders;

/// Nobody knows anything.
#[cfg(not(feature = "unwinders"))]
#[derive(Debug)]
pub(crate) struct Unwinders;

#[cfg(not(feature = "unwinders"))]
mod unknown {
    use super::Unwinders;
    use crate::code::Code;
    use crate::log::{Log, Position};
    use crate::scribe::Shared;

    impl Unwinders {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) fn begin(&self, _: &Shared) {}

        pub(crate) fn is_on(&self) -> bool {
            false
        }

        pub(crate) fn load(&self, _: &Code<'_>) {}

        pub(crate) fn moved(&self, _: &Log, _: (Position, u32), _: Option<(Position, u32)>) {}

        pub(crate) fn unload(&self, _: &Log, _: Position, _: u32) {}

        pub(crate) fn forked(&self) {}
    }
}

#[cfg(feature = "unwinders")]
mod known {
    use std::sync::OnceLock;

    #[cfg(unix)]
    use publish_unwind::Unwinders as Known;
    #[cfg(windows)]
    use publish_unwind_windows::Unwinders as Known;

    use crate::code::Code;
    use crate::image::announced;
    use crate::log::{Log, Position};
    use crate::notice::Subject;
    use crate::scribe::Shared;

    /// What unwinders know; nothing until it [begins](Self::begin).
    #[derive(Debug)]
    pub(crate) struct Unwinders(OnceLock<Known>);

    impl Unwinders {
        pub(crate) const fn new() -> Self {
            Self(OnceLock::new())
        }

        /// Tells of all that comes from now on.
        pub(crate) fn begin(&self, shared: &Shared) {
            match Known::find() {
                Some(unwinders) => drop(self.0.set(unwinders)),
                None => shared.say(
                    Subject::Unwinders,
                    "no unwinder of this process takes frames: there is no __register_frame",
                ),
            }
        }

        /// Whether it has begun.
        #[inline]
        pub(crate) fn is_on(&self) -> bool {
            self.0.get().is_some()
        }

        pub(crate) fn load(&self, code: &Code<'_>) {
            if let Some(unwinders) = self.for_code_at(code.address) {
                // They want no lines.
                let bare = Code { lines: &[], inlined: &[], ..*code };
                announced(&bare, |shown| unwinders.load(shown, code.unwind.as_ref()));
            }
        }

        /// The code has moved, or is in the log no more.
        #[cfg(unix)]
        pub(crate) fn moved(&self, log: &Log, old: (Position, u32), new: Option<(Position, u32)>) {
            // Before, as the two places may overlap.
            self.unload(log, old.0, old.1);
            if let Some((position, index)) = new
                && let Some((address, _)) = log.place(position, index)
                && let Some(unwinders) = self.for_code_at(address)
                && let Some(dump) = log.dump_of(position, index)
            {
                crate::image::logged(&dump, |shown| unwinders.load(shown, None));
            }
        }

        /// The code has moved, or is in the log no more. What is known of its frames is good wherever it lies, and could
        /// not be made of what is in the log.
        #[cfg(windows)]
        pub(crate) fn moved(&self, log: &Log, old: (Position, u32), new: Option<(Position, u32)>) {
            let place = |(position, index)| log.place(position, index);
            if let Some((unwinders, (from, size))) = self.0.get().zip(place(old)) {
                match new.and_then(place) {
                    Some((to, _)) => unwinders.moved(from, to, size),
                    None => unwinders.unload(from, size),
                }
            }
        }

        pub(crate) fn unload(&self, log: &Log, position: Position, index: u32) {
            if let Some((address, size)) = log.place(position, index)
                && let Some(unwinders) = self.for_code_at(address)
            {
                unwinders.unload(address, size);
            }
        }

        pub(crate) fn forked(&self) {
            #[cfg(unix)]
            if let Some(unwinders) = self.0.get() {
                unwinders.forked();
            }
        }

        /// What is to be told of code there: a linked arena tells by itself.
        fn for_code_at(&self, address: u64) -> Option<&Known> {
            self.0.get().filter(|_| !crate::arenas::is_linked(address))
        }
    }
}

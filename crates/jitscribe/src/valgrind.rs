//! What the valgrind that runs the process is shown: all code, as it comes.
//!
//! Without the feature `valgrind`, and on Windows, there is nothing behind the same names.

#[cfg(all(feature = "valgrind", unix))]
pub(crate) use shown::Valgrind;

/// Nobody is shown anything.
#[cfg(not(all(feature = "valgrind", unix)))]
#[derive(Debug)]
pub(crate) struct Valgrind;

#[cfg(not(all(feature = "valgrind", unix)))]
mod hidden {
    use std::path::PathBuf;

    use super::Valgrind;
    use crate::code::Code;
    use crate::log::{Log, Position};
    use crate::scribe::Shared;

    impl Valgrind {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) fn is_running() -> bool {
            false
        }

        pub(crate) fn begin(&self, _: &'static Shared, _: PathBuf) {}

        pub(crate) fn is_on(&self) -> bool {
            false
        }

        pub(crate) fn load(&self, _: &Code<'_>) {}

        pub(crate) fn moved(&self, _: &Log, _: Position, _: u32, _: u64) {}

        pub(crate) fn unload(&self, _: &Log, _: Position, _: u32) {}

        pub(crate) fn forked(&self) {}
    }
}

#[cfg(all(feature = "valgrind", unix))]
mod shown {
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use publish_valgrind::{Code as Shown, Inlined, Line, Options};

    use crate::code::Code;
    use crate::log::{Log, Position};
    use crate::notice::Subject;
    use crate::scribe::Shared;

    /// What valgrind is shown; nothing until it [begins](Self::begin).
    #[derive(Debug)]
    pub(crate) struct Valgrind(OnceLock<publish_valgrind::Valgrind>);

    impl Valgrind {
        pub(crate) const fn new() -> Self {
            Self(OnceLock::new())
        }

        /// Whether there is anybody to show it to.
        pub(crate) fn is_running() -> bool {
            publish_valgrind::Valgrind::is_running()
        }

        /// Shows all that comes from now on, by way of object files in `directory`.
        pub(crate) fn begin(&self, shared: &'static Shared, directory: PathBuf) {
            let report = move |why: &str| shared.say(Subject::Valgrind, why);
            match publish_valgrind::Valgrind::create(Options::new(directory).reporter(report)) {
                Ok(valgrind) => drop(self.0.set(valgrind)),
                Err(error) => shared.say(Subject::Valgrind, error),
            }
        }

        /// Whether it has begun.
        #[inline]
        pub(crate) fn is_on(&self) -> bool {
            self.0.get().is_some()
        }

        pub(crate) fn load(&self, code: &Code<'_>) {
            if let Some(valgrind) = self.0.get() {
                let lines = code.lines.iter();
                let lines = lines.map(|line| Line {
                    offset: line.offset,
                    file: line.file,
                    line: line.line,
                });
                let shown = Shown {
                    address: code.address,
                    size: code.size,
                    name: code.name,
                    bytes: code.bytes,
                    unwind: code.unwind,
                };
                let inlined = code.inlined.iter();
                let inlined = inlined.map(|call| Inlined {
                    name: call.name,
                    parent: call.parent,
                    file: call.file,
                    line: call.line,
                    ranges: call.ranges,
                });
                valgrind.load(&shown, lines, inlined);
            }
        }

        pub(crate) fn moved(&self, log: &Log, position: Position, index: u32, to: u64) {
            if let Some((valgrind, (from, size))) = self.0.get().zip(log.place(position, index)) {
                valgrind.moved(from, to, size);
            }
        }

        pub(crate) fn unload(&self, log: &Log, position: Position, index: u32) {
            if let Some((valgrind, (from, size))) = self.0.get().zip(log.place(position, index)) {
                valgrind.unload(from, size);
            }
        }

        pub(crate) fn forked(&self) {
            if let Some(valgrind) = self.0.get() {
                valgrind.forked();
            }
        }
    }
}

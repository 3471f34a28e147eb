//! The perf map: kept true from when it is asked for.
//!
//! On Windows, where no tool reads one, there is nothing behind the same names.

#[cfg(unix)]
pub(crate) use kept::PerfMaps;

/// None is kept.
#[cfg(windows)]
#[derive(Debug)]
pub(crate) struct PerfMaps;

#[cfg(windows)]
mod none {
    use super::PerfMaps;
    use crate::code::Code;
    use crate::log::{Log, Position};
    use crate::scribe::Shared;

    impl PerfMaps {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) fn begin(&self, _: &'static Shared, _: &Log) {}

        pub(crate) fn load(&self, _: &Code<'_>) {}

        pub(crate) fn moved(&self, _: &Log, _: Position, _: u32, _: u64) {}

        pub(crate) fn unload(&self, _: &Log, _: Position, _: u32) {}

        pub(crate) fn forked(&self) {}
    }
}

#[cfg(unix)]
mod kept {
    use std::sync::OnceLock;

    use publish_perf_map::{Options, PerfMap};

    use crate::code::Code;
    use crate::log::{Log, Position};
    use crate::notice::Subject;
    use crate::scribe::Shared;

    /// Made when it is asked for the first time.
    #[derive(Debug)]
    pub(crate) struct PerfMaps(OnceLock<PerfMap>);

    impl PerfMaps {
        pub(crate) const fn new() -> Self {
            Self(OnceLock::new())
        }

        /// Opens the map, if it is not, and writes down what is alive.
        pub(crate) fn begin(&self, shared: &'static Shared, log: &Log) {
            if self.0.get().is_none() {
                let report = move |why: &str| shared.say(Subject::PerfMap, why);
                let mut options = Options::new().reporter(report);
                if let Some(dir) = shared.perf_map_dir() {
                    options = options.directory(dir);
                }
                match PerfMap::create(options) {
                    Ok(map) => drop(self.0.set(map)),
                    Err(error) => shared.say(Subject::PerfMap, error),
                }
            }
            if let Some(map) = self.0.get() {
                map.load_many(log.alive());
            }
        }

        pub(crate) fn load(&self, code: &Code<'_>) {
            if let Some(map) = self.0.get() {
                map.load(code.address, code.size, code.name);
            }
        }

        pub(crate) fn moved(&self, log: &Log, position: Position, index: u32, to: u64) {
            if let Some((map, (from, size))) = self.0.get().zip(log.place(position, index)) {
                map.moved(from, to, size);
            }
        }

        pub(crate) fn unload(&self, log: &Log, position: Position, index: u32) {
            if let Some((map, (address, size))) = self.0.get().zip(log.place(position, index)) {
                map.unload(address, size);
            }
        }

        pub(crate) fn forked(&self) {
            if let Some(map) = self.0.get() {
                map.forked();
            }
        }
    }
}

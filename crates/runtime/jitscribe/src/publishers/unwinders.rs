//! The unwinders of this process (libgcc, LLVM's and nongnu's libunwind, Windows): they walk through code from before it runs
//! until it is unloaded.

use std::sync::OnceLock;

use publish_unwind::Unwinders as Registry;

use super::Publisher;
use crate::host::Host;
use crate::log::{Log, LogEntry};
use crate::notice::Subject;
use jit_code::Code;

/// Publishes from the start, if the settings request it and the process has an unwinder.
#[derive(Debug)]
pub(super) struct Unwinders(OnceLock<Registry>);

impl Unwinders {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Runs `work`, which allocates. If an allocation fails, nothing is registered from then on.
    fn attempt(&self, work: impl FnOnce()) {
        if fallible::attempt(work).is_err()
            && let Some(registry) = self.0.get()
        {
            registry.give_up();
        }
    }

    /// The registry for code at this address; `None` for code in an arena, which unwinders find through the arena's own tables.
    fn for_code_at(&self, address: u64) -> Option<&Registry> {
        let registry = self.0.get()?;
        #[cfg(all(feature = "arena", target_os = "linux"))]
        if super::arena::is_linked(address) {
            return None;
        }
        #[cfg(not(all(feature = "arena", target_os = "linux")))]
        let _ = address;
        Some(registry)
    }
}

impl Publisher for Unwinders {
    fn subject(&self) -> Subject {
        Subject::Unwinders
    }

    fn prepare(&self, host: &'static Host) {
        if !host.settings.unwinders {
            return;
        }
        match Registry::find() {
            Some(registry) => drop(self.0.set(registry)),
            None => host.report(
                Subject::Unwinders,
                "no in-process unwinder supports __register_frame; exceptions and backtraces end at jitted code",
            ),
        }
    }

    fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    fn load(&self, _: &Log, code: &Code<'_>, entry: Option<LogEntry>) {
        // Without an entry, there is no handle that could unload it.
        if entry.is_none() {
            return;
        }
        self.attempt(|| {
            if let Some(registry) = self.for_code_at(code.address) {
                registry.load(code);
            }
        });
    }

    #[cfg(unix)]
    fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, _: u64) {
        // Unload it first, as the two places may overlap.
        self.unload(log, from);
        self.attempt(|| {
            if let Some((position, index)) = to
                && let Some((address, _)) = log.place(position, index)
                && let Some(registry) = self.for_code_at(address)
                && let Some(dump) = log.dump_of(position, index)
            {
                crate::image::logged(&dump, |code| registry.load(code));
            }
        });
    }

    /// The registered unwind info does not depend on the address, and cannot be restored from the log.
    #[cfg(windows)]
    fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, _: u64) {
        let place = |(position, index)| log.place(position, index);
        if let Some((registry, (from, size))) = self.0.get().zip(place(from)) {
            match to.and_then(place) {
                Some((to, _)) => registry.moved(from, to, size),
                None => registry.unload(from, size),
            }
        }
    }

    fn unload(&self, log: &Log, entry: LogEntry) {
        if let Some((address, size)) = log.place(entry.0, entry.1)
            && let Some(registry) = self.for_code_at(address)
        {
            registry.unload(address, size);
        }
    }

    fn forked(&self, _: &Log) {
        #[cfg(unix)]
        if let Some(registry) = self.0.get() {
            registry.forked();
        }
    }

    fn take_refusal(&self) -> bool {
        self.0.get().is_some_and(Registry::take_refusal)
    }
}

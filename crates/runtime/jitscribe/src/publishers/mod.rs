//! The publishers: one file for each tool, apart from the log, that code is published to.
//!
//! A publisher implements [`Publisher`], and has its line in [`Publishers`]. Everything that happens to code is passed to all
//! publishers that are on, in the order of that list. What a build or a system does not have is not in the list.

#[cfg(all(feature = "arena", target_os = "linux"))]
mod arena;
#[cfg(feature = "gdb")]
mod breakpoints;
#[cfg(all(feature = "etw", windows))]
mod etw;
#[cfg(feature = "gdb")]
mod gdb;
#[cfg(all(feature = "perf-map", target_os = "linux"))]
mod perf_map;
mod publisher;
#[cfg(test)]
mod trace_events;
#[cfg(feature = "unwinders")]
mod unwinders;
#[cfg(all(feature = "valgrind", target_os = "linux"))]
mod valgrind;
#[cfg(all(feature = "vtune", target_os = "linux"))]
mod vtune;

pub(crate) use publisher::Publisher;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::host::Host;
use crate::log::{Log, LogEntry};
use jit_code::Code;
use jitdump::extension::control;

/// All publishers of this build, and whether any was ever started.
#[derive(Debug)]
pub(crate) struct Publishers {
    #[cfg(all(feature = "perf-map", target_os = "linux"))]
    perf_map: perf_map::PerfMap,
    #[cfg(feature = "gdb")]
    gdb: gdb::Gdb,
    #[cfg(feature = "gdb")]
    breakpoints: breakpoints::Breakpoints,
    #[cfg(all(feature = "arena", target_os = "linux"))]
    arena: arena::Arena,
    #[cfg(feature = "unwinders")]
    unwinders: unwinders::Unwinders,
    #[cfg(all(feature = "valgrind", target_os = "linux"))]
    valgrind: valgrind::Valgrind,
    #[cfg(all(feature = "vtune", target_os = "linux"))]
    vtune: vtune::Vtune,
    #[cfg(all(feature = "etw", windows))]
    etw: etw::Etw,
    #[cfg(test)]
    trace_events: trace_events::TraceEvents,
    was_started: AtomicBool,
}

/// The bits of the control word that request a publisher.
const REQUESTS: u32 = control::PERF_MAP | control::GDB | control::BREAKPOINTS;

/// Number of publishers.
const COUNT: usize = cfg!(all(feature = "perf-map", target_os = "linux")) as usize
    + 2 * cfg!(feature = "gdb") as usize
    + cfg!(all(feature = "arena", target_os = "linux")) as usize
    + cfg!(feature = "unwinders") as usize
    + cfg!(all(feature = "valgrind", target_os = "linux")) as usize
    + cfg!(all(feature = "vtune", target_os = "linux")) as usize
    + cfg!(all(feature = "etw", windows)) as usize
    + cfg!(test) as usize;

impl Publishers {
    /// A list in which none is on.
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(all(feature = "perf-map", target_os = "linux"))]
            perf_map: perf_map::PerfMap::new(),
            #[cfg(feature = "gdb")]
            gdb: gdb::Gdb::new(),
            #[cfg(feature = "gdb")]
            breakpoints: breakpoints::Breakpoints::new(),
            #[cfg(all(feature = "arena", target_os = "linux"))]
            arena: arena::Arena,
            #[cfg(feature = "unwinders")]
            unwinders: unwinders::Unwinders::new(),
            #[cfg(all(feature = "valgrind", target_os = "linux"))]
            valgrind: valgrind::Valgrind::new(),
            #[cfg(all(feature = "vtune", target_os = "linux"))]
            vtune: vtune::Vtune::new(),
            #[cfg(all(feature = "etw", windows))]
            etw: etw::Etw::new(),
            #[cfg(test)]
            trace_events: trace_events::TraceEvents::new(),
            was_started: AtomicBool::new(false),
        }
    }

    /// The publishers in the order in which they are called.
    fn list(&self) -> [&dyn Publisher; COUNT] {
        [
            #[cfg(all(feature = "perf-map", target_os = "linux"))]
            &self.perf_map,
            #[cfg(feature = "gdb")]
            &self.gdb,
            #[cfg(feature = "gdb")]
            &self.breakpoints,
            #[cfg(all(feature = "arena", target_os = "linux"))]
            &self.arena,
            #[cfg(feature = "unwinders")]
            &self.unwinders,
            #[cfg(all(feature = "valgrind", target_os = "linux"))]
            &self.valgrind,
            #[cfg(all(feature = "vtune", target_os = "linux"))]
            &self.vtune,
            #[cfg(all(feature = "etw", windows))]
            &self.etw,
            #[cfg(test)]
            &self.trace_events,
        ]
    }

    /// See [`Publisher::prepare`].
    pub(crate) fn prepare(&self, host: &'static Host) {
        for publisher in self.list() {
            publisher.prepare(host);
        }
        if self.list().iter().any(|publisher| publisher.is_on()) {
            self.was_started.store(true, Relaxed);
        }
    }

    /// Starts those that are `requested` in the control word. Returns the word without the requests that cannot be fulfilled: a
    /// publisher that is not available, or not in this build, does not count as on, so that debuggers then read the log themselves.
    pub(crate) fn start(&self, requested: u32, host: &'static Host, log: &Log) -> u32 {
        let mut fulfilled = requested & !REQUESTS;
        for publisher in self.list() {
            let bit = publisher.request_bit();
            if requested & bit != 0 {
                // Set before it is started: from then on, other threads publish the code that they load.
                self.was_started.store(true, Relaxed);
                if publisher.start(host, log) {
                    fulfilled |= bit;
                }
            }
        }
        fulfilled
    }

    /// Whether any publisher may be on that is called when code ends.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        self.was_started.load(Relaxed)
    }

    /// Whether any publisher may be on for code at this address. Each announcement checks this: an arena is only for its own code.
    #[inline]
    pub(crate) fn are_there_for(&self, address: u64) -> bool {
        #[cfg(all(feature = "arena", target_os = "linux"))]
        if arena::contains(address) {
            return true;
        }
        #[cfg(not(all(feature = "arena", target_os = "linux")))]
        let _ = address;
        self.are_there()
    }

    /// The publishers that are on.
    fn active(&self) -> impl Iterator<Item = &dyn Publisher> {
        self.list().into_iter().filter(|publisher| publisher.is_on())
    }

    /// Whether any of them is on.
    pub(crate) fn are_on(&self) -> bool {
        self.active().next().is_some()
    }

    /// Whether signals must be held while the publishers are called.
    pub(crate) fn must_hold_signals(&self) -> bool {
        #[cfg(target_os = "linux")]
        let may_be_interrupted = guest::handlers_may_run();
        #[cfg(not(target_os = "linux"))]
        let may_be_interrupted = true;
        may_be_interrupted || self.active().any(|publisher| publisher.must_hold_signals())
    }

    /// See [`Publisher::load`].
    pub(crate) fn load(&self, log: &Log, code: &Code<'_>, entry: Option<LogEntry>) {
        let requested = log.control().load(Relaxed);
        for publisher in self.active() {
            let bit = publisher.request_bit();
            if bit == 0 || requested & bit != 0 {
                publisher.load(log, code, entry);
            }
        }
    }

    /// See [`Publisher::moved`].
    pub(crate) fn moved(&self, log: &Log, from: LogEntry, to: Option<LogEntry>, address: u64) {
        for publisher in self.active() {
            publisher.moved(log, from, to, address);
        }
    }

    /// See [`Publisher::unload`].
    pub(crate) fn unload(&self, log: &Log, entry: LogEntry) {
        for publisher in self.active() {
            publisher.unload(log, entry);
        }
    }

    /// See [`Publisher::awaits_end`].
    pub(crate) fn awaits_end(&self, log: &Log, entry: LogEntry) -> bool {
        self.active().any(|publisher| publisher.awaits_end(log, entry))
    }

    /// See [`Publisher::ended`].
    pub(crate) fn ended(&self) {
        for publisher in self.active() {
            publisher.ended();
        }
    }

    /// See [`Publisher::forked`].
    pub(crate) fn forked(&self, log: &Log) {
        // Also one that has given up: it may succeed in the child.
        for publisher in self.list() {
            publisher.forked(log);
        }
    }

    /// Reports which ones turned themselves off because an allocation failed.
    pub(crate) fn report_refusals(&self, host: &Host) {
        for publisher in self.list() {
            if publisher.take_refusal() {
                host.withdraw(publisher.request_bit());
                host.report_out_of_memory(publisher.subject());
            }
        }
    }
}

//! What a scribe is to do, as the [`Builder`](crate::Builder) resolved it.

use fallible::PathText;

use crate::clock::Clock;
use crate::log::LogOptions;
use crate::notice::Listener;

/// The settings of a scribe. What the system does not have is resolved already.
pub(crate) struct Settings {
    pub(crate) log: LogOptions,
    /// Whether each code is shown to debuggers before its announcement is done.
    pub(crate) gdb_each: bool,
    /// Whether a debugger that comes later is to be noticed by who watches.
    pub(crate) look_for_debuggers: bool,
    /// Whether all that is alive is shown to debuggers before a crash signal ends the process.
    pub(crate) gdb_on_crash: bool,
    /// Whether unwinders in the process are told.
    pub(crate) unwinders: bool,
    /// Where the object files for valgrind go, if it is to be shown any.
    pub(crate) valgrind: Option<PathText>,
    /// Where the files of arenas go, if not where the user keeps such files.
    pub(crate) arena_dir: Option<PathText>,
    /// Whether there may be a perf map at all.
    pub(crate) perf_map: bool,
    /// Where the perf map is kept, if not where perf looks for it.
    pub(crate) perf_map_dir: Option<PathText>,
    pub(crate) watch: bool,
    pub(crate) listener: Option<Listener>,
}

impl Settings {
    pub(crate) const fn off() -> Self {
        Self {
            log: LogOptions {
                file: None,
                limit: 0,
                control: 0,
                reuse: false,
                clock: Clock::Monotonic,
            },
            gdb_each: false,
            look_for_debuggers: false,
            gdb_on_crash: false,
            unwinders: false,
            valgrind: None,
            arena_dir: None,
            perf_map: false,
            perf_map_dir: None,
            watch: false,
            listener: None,
        }
    }
}

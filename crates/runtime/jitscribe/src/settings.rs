//! The settings of a scribe, as the [`Builder`](crate::Builder) has evaluated them.

use fallible::{PathText, Text};

use crate::clock::Clock;
use crate::log::LogOptions;
use crate::notice::Listener;

/// The settings of a scribe. Features that the system does not have are already turned off.
pub(crate) struct Settings {
    pub(crate) log: LogOptions,
    /// Whether code may be shown to debuggers.
    pub(crate) gdb: bool,
    /// Whether each code is shown to debuggers before its announcement returns.
    pub(crate) gdb_synchronous: bool,
    /// Whether the control thread checks for debuggers that attach later.
    pub(crate) look_for_debuggers: bool,
    /// Whether all live code is shown to debuggers before a crash signal ends the process.
    pub(crate) gdb_on_crash: bool,
    /// Whether code is registered with the unwinders in the process.
    pub(crate) unwinders: bool,
    /// The directory of the object files for Valgrind; `None` if none are shown.
    pub(crate) valgrind: Option<PathText>,
    /// Whether the user asked for that: then Valgrind's log says why it is not possible.
    pub(crate) valgrind_is_requested: bool,
    /// Whether code is reported to the collector of VTune that the environment names, if any.
    pub(crate) vtune: bool,
    /// Whether the user asked for that: then it is reported if there is none.
    pub(crate) vtune_is_requested: bool,
    /// The name of the module in which VTune shows the code; `None` for the default.
    pub(crate) vtune_module: Option<Text>,
    /// Whether code is reported to Windows' profilers, if something records.
    pub(crate) etw: bool,
    /// The directory of the files of arenas; `None` for the default.
    pub(crate) arena_dir: Option<PathText>,
    /// Whether a perf map is allowed.
    pub(crate) perf_map: bool,
    /// The directory of the perf map; `None` for the one in which perf looks for it.
    pub(crate) perf_map_dir: Option<PathText>,
    /// Whether a thread waits for requests.
    pub(crate) control_thread: bool,
    /// Whether each mistake in the descriptions of codes is reported, not only the first of its kind.
    pub(crate) strict: bool,
    /// Whether OpenTelemetry's process context says where the log is.
    pub(crate) process_context: bool,
    /// The `service.name` for it.
    pub(crate) service_name: Option<Text>,
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
            gdb: false,
            gdb_synchronous: false,
            look_for_debuggers: false,
            gdb_on_crash: false,
            unwinders: false,
            valgrind: None,
            valgrind_is_requested: false,
            vtune: false,
            vtune_is_requested: false,
            vtune_module: None,
            etw: false,
            arena_dir: None,
            perf_map: false,
            perf_map_dir: None,
            control_thread: false,
            strict: false,
            process_context: false,
            service_name: None,
            listener: None,
        }
    }
}

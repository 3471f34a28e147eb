//! The settings of a scribe, as a runtime or the environment gives them.

use std::ffi::CStr;
use std::path::Path;

use fallible::{PathText, Text, Vec};
use jitdump::extension::control;

use crate::clock::Clock;
use crate::log::{LogOptions, MEMORY_LIMIT};
use crate::notice::{self, Listener, Notice, Subject};
use crate::scribe::{Replay, Scribe};
use crate::settings::Settings;
use crate::system;

/// 4 GiB, for a dump that keeps everything that is announced.
const FILE_LIMIT: usize = 4 << 30;

/// Settings of a [`Scribe`]. By default, it keeps a log in memory, without the bytes of code.
#[derive(Default)]
#[must_use = "nothing is announced to a builder; `build` makes the scribe"]
pub struct Builder {
    is_off: bool,
    bytes: bool,
    perf_map: bool,
    no_perf_map: bool,
    perf_map_dir: Option<PathText>,
    debuggers: Debuggers,
    gdb_each: bool,
    gdb_on_crash: bool,
    unwinders: bool,
    valgrind: Option<bool>,
    valgrind_dir: Option<PathText>,
    vtune: Option<bool>,
    vtune_module: Option<Text>,
    arena_dir: Option<PathText>,
    dump_dir: Option<Option<PathText>>,
    limit: Option<usize>,
    arch_clock: bool,
    watch: bool,
    strict: bool,
    process_context: bool,
    service_name: Option<Text>,
    replay: Option<Replay>,
    listener: Option<Listener>,
    wrong: Vec<Text>,
    /// Memory was refused for a setting.
    is_refused: bool,
}

/// When code is shown to debuggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Debuggers {
    /// If one is there at the start.
    #[default]
    Present,
    Always,
    Never,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("is_off", &self.is_off)
            .field("bytes", &self.bytes)
            .field("dump_dir", &self.dump_dir)
            .field("limit", &self.limit)
            .field("watch", &self.watch)
            .field("strict", &self.strict)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Writes nothing until `jitscribe ctl -p PID on` turns the log on. The runtime must then announce again all code that is
    /// live: see [`Self::replay`].
    pub fn start_disabled(mut self) -> Self {
        self.is_off = true;
        self
    }

    /// Writes the bytes of code to the log, too: tools can then show the assembly of code that was freed. It costs the time to
    /// copy them, and the space.
    pub fn with_bytes(mut self) -> Self {
        self.bytes = true;
        self
    }

    /// Keeps `/tmp/perf-PID.map` up to date, for `perf report` and other readers of perf maps.
    ///
    /// On Linux; elsewhere this has no effect, and is reported.
    pub fn perf_map(mut self) -> Self {
        self.perf_map = self.has(cfg!(target_os = "linux"), "a perf map", "on this system");
        self
    }

    /// [`Self::perf_map`] in another directory than `/tmp`, which must exist. perf does not look there.
    pub fn perf_map_in(mut self, dir: impl AsRef<Path>) -> Self {
        self.perf_map_dir = self.path(dir.as_ref());
        self.perf_map()
    }

    /// Ignores all requests for a perf map, also from other processes. For a process that writes one itself: the two would
    /// describe each code twice.
    pub fn no_perf_map(mut self) -> Self {
        self.no_perf_map = true;
        self
    }

    /// Shows code to gdb, lldb and other users of the GDB JIT interface. Without this setting, code is shown if a debugger
    /// is attached when the scribe is made, or on request (`jitscribe ctl -p PID on --gdb`).
    ///
    /// Without the cargo feature `gdb` this has no effect, and is reported.
    pub fn gdb(mut self) -> Self {
        let has =
            self.has(cfg!(feature = "gdb"), "code for debuggers", "without the feature `gdb`");
        self.debuggers = if has { Debuggers::Always } else { Debuggers::Never };
        self
    }

    /// [`Self::gdb`], and [`Scribe::load`] returns only when the debugger has been shown the code. Without this setting,
    /// if more than 256 codes are announced so fast that the debugger would take more than half of the time, those
    /// that come too fast are shown up to 200 ms later.
    pub fn gdb_synchronous(mut self) -> Self {
        self.gdb_each = true;
        self.gdb()
    }

    /// Shows all live code as [`Self::gdb`] does, before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the
    /// process. So any debugger finds the code in the core file. Until then, the only cost is a thread that waits.
    ///
    /// Signal handlers are installed when the scribe is made, on Linux. A previously installed handler runs first. Code is shown
    /// only if that handler restores SIG_DFL and returns, or calls `abort()`. A runtime that installs a handler later, or whose
    /// handler starts a debugger, calls [`Scribe::show_before_crash`] from there. The crash is delayed by at most five seconds:
    /// if the crashing thread holds a lock that is needed, the code is not shown. A child of `fork` takes part from its first
    /// announcement on.
    ///
    /// Without the cargo feature `gdb` this has no effect, and is reported.
    pub fn gdb_on_crash(mut self) -> Self {
        self.gdb_on_crash =
            self.has(cfg!(feature = "gdb"), "code for debuggers", "without the feature `gdb`");
        self
    }

    /// Shows nothing to debuggers, even if one is attached, unless it is requested (`jitscribe ctl -p PID on --gdb`).
    pub fn no_gdb(mut self) -> Self {
        self.debuggers = Debuggers::Never;
        self
    }

    /// Registers code with the unwinders in the process, from before [`Scribe::load`] returns until the code is dropped: C++
    /// exceptions and panics pass through it, and backtraces do not end at it. It must be announced with its
    /// [`Unwind`](crate::Unwind) info. Code in a `CodeArena` needs no such setting.
    ///
    /// Code that the log does not take (it is full, or off) is not registered either: a runtime whose own exceptions depend on it
    /// uses the crate `publish-unwind` directly. Without the cargo feature `unwinders` this has no effect, and is reported.
    pub fn unwinders(mut self) -> Self {
        let where_not = "without the feature `unwinders`";
        self.unwinders = self.has(cfg!(feature = "unwinders"), "code for unwinders", where_not);
        self
    }

    /// Reports each mistake in the description of a code ([`Subject::Description`]): unwind info that cannot be used, lines behind the
    /// code's end. Otherwise only the first of each kind is reported. For tests of a runtime: `JITSCRIBE=strict`.
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Does not register code with unwinders. This is the default.
    pub fn no_unwinders(mut self) -> Self {
        self.unwinders = false;
        self
    }

    /// Shows code to the Valgrind that runs the process, through object files, which stay, as profiles refer to them. They are in
    /// the same directory as for [`Self::jitdump`]. Enabled by default under Valgrind; calling this also emits a notice if
    /// Valgrind is not running.
    ///
    /// Without the cargo feature `valgrind`, and on other systems than Linux, this has no effect, and is reported.
    pub fn valgrind(mut self) -> Self {
        let where_not = "without the feature `valgrind`, or on this system";
        let is_there = cfg!(all(feature = "valgrind", target_os = "linux"));
        self.valgrind = Some(self.has(is_there, "code for valgrind", where_not));
        self
    }

    /// [`Self::valgrind`] with the object files in `dir`: a directory to which only this user can write.
    pub fn valgrind_in(mut self, dir: impl AsRef<Path>) -> Self {
        self.valgrind_dir = self.path(dir.as_ref());
        self.valgrind()
    }

    /// Shows nothing to Valgrind.
    pub fn no_valgrind(mut self) -> Self {
        self.valgrind = Some(false);
        self
    }

    /// Reports code to VTune, or another tool that sets `INTEL_JIT_PROFILER64` to the path of its collector: a library for Intel's
    /// JIT Profiling API. The collector is loaded into the process when the scribe is made. Enabled by default where the variable
    /// is set; calling this also emits a notice if it is not, or if the collector is not running.
    ///
    /// Without the cargo feature `vtune`, and on other systems than Linux, this has no effect, and is reported.
    pub fn vtune(mut self) -> Self {
        let where_not = "without the feature `vtune`, or on this system";
        let is_there = cfg!(all(feature = "vtune", target_os = "linux"));
        self.vtune = Some(self.has(is_there, "code for VTune", where_not));
        self
    }

    /// Sets the name of the module in which VTune shows the code: that of the runtime. The default is `jit`.
    pub fn vtune_module(mut self, name: &str) -> Self {
        match fallible::attempt(|| Text::from(name)) {
            Ok(name) => self.vtune_module = Some(name),
            Err(fallible::Refused) => self.is_refused = true,
        }
        self
    }

    /// Loads no collector, whatever the environment names, and reports nothing to VTune.
    pub fn no_vtune(mut self) -> Self {
        self.vtune = Some(false);
        self
    }

    /// Puts the files of arenas (see `Scribe::code_arena`) into `dir`: a directory to which only this user can write, on a
    /// file system whose files may be executed. Without this setting, the same directory as for [`Self::jitdump`].
    pub fn arena_in(mut self, dir: impl AsRef<Path>) -> Self {
        self.arena_dir = self.path(dir.as_ref());
        self
    }

    /// Keeps the log in a file, `jit-PID.dump`, with all that `perf inject --jit` needs: the code's bytes, and the marker by
    /// which perf finds it. The file is in the folder `jitscribe` of the user's runtime directory (`XDG_RUNTIME_DIR`, else
    /// `.cache` in the home directory).
    ///
    /// On Linux and macOS, where samply finds it; on Windows this has no effect, and is reported.
    pub fn jitdump(mut self) -> Self {
        self.dump_dir = self.has(cfg!(unix), "a jitdump", "on this system").then_some(None);
        self
    }

    /// [`Self::jitdump`] in `dir`: a directory to which only this user can write.
    pub fn jitdump_in(self, dir: impl AsRef<Path>) -> Self {
        let mut builder = self.jitdump();
        if builder.dump_dir.is_some() {
            builder.dump_dir = Some(builder.path(dir.as_ref()));
        }
        builder
    }

    /// Returns `is_there`: whether this build supports something. If not, this is reported when the scribe is made.
    fn has(&mut self, is_there: bool, what: &str, where_not: &str) -> bool {
        if !is_there {
            match fallible::attempt(|| fallible::text!("{what}: there is none {where_not}")) {
                Ok(text) if self.wrong.try_reserve(1).is_ok() => self.wrong.push(text),
                _ => self.is_refused = true,
            }
        }
        is_there
    }

    /// Copies a path, or notes that there is no memory for the copy.
    fn path(&mut self, path: &Path) -> Option<PathText> {
        let copy = PathText::new(path);
        self.is_refused |= copy.is_none();
        copy
    }

    /// Maximum size of the log in bytes. The default is 64 MiB, or a quarter of the limit of the process's memory cgroup if that
    /// is less; 4 GiB if the log is a file. In memory, the space of dead code is reused: from a quarter of the limit on, where
    /// most code of a chunk is dead; at the limit, wherever any code is dead. If there is still no space, codes are left out, and
    /// the log counts them. If the memory cgroup has less memory left than the limit, the kernel kills the process when the log
    /// fills it, as with any other memory.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Takes timestamps from the processor's clock (x86-64's `rdtsc`) instead of `CLOCK_MONOTONIC`. For recordings that cannot be
    /// made with `perf record -k mono`, such as those of Intel PT. perf converts the timestamps with the parameters that the
    /// kernel recorded (`PERF_RECORD_TIME_CONV`). On machines without such a clock, this has no effect, and is reported.
    pub fn arch_clock(mut self) -> Self {
        self.arch_clock = true;
        self
    }

    /// Starts a thread that applies requests of `jitscribe ctl` at once; otherwise, the next announcement applies them. Once a
    /// second, the thread also checks whether a debugger is attached, and then shows it all code, unless [`Self::no_gdb`] is set.
    ///
    /// On Linux; elsewhere this has no effect, and is reported.
    pub fn control_thread(mut self) -> Self {
        self.watch = self.has(cfg!(target_os = "linux"), "a control thread", "on this system");
        self
    }

    /// Publishes OpenTelemetry's process context ([OTEP 4719]), which says to profilers and other readers outside where the log is:
    /// the attributes `code.log.address`, `code.log.size` and `code.log.version`. It costs one page of memory.
    ///
    /// Off by default, as a process has at most one context, and an SDK does not look for ours before it publishes its own. If the
    /// process has another context when the scribe is made, none is published, and this is reported. If another appears later,
    /// ours is withdrawn within a second by [`Self::control_thread`], or by the next [`Scribe::poll`] or the next announcement that
    /// takes a new part of the log. A program with such an SDK adds the attributes to its context instead: see
    /// [`CodeContext`](crate::CodeContext).
    ///
    /// All scribes share one context, which lists the logs of all, also of those without this setting.
    ///
    /// On Linux; elsewhere this has no effect, and is reported.
    ///
    /// [OTEP 4719]: https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4719-process-ctx.md
    pub fn process_context(mut self) -> Self {
        self.process_context =
            self.has(cfg!(target_os = "linux"), "a process context", "on this system");
        self
    }

    /// Publishes no process context. This is the default.
    pub fn no_process_context(mut self) -> Self {
        self.process_context = false;
        self
    }

    /// Sets a callback for when another process turns the log on: it announces all live code. It is called by a thread that
    /// announces or polls, or by the control thread. The thread holds no lock of the scribe, and no signals. It may be in a
    /// signal handler, if that handler announces code: an announcement applies pending requests.
    pub fn replay(mut self, replay: impl Fn(Scribe) + Send + Sync + 'static) -> Self {
        match fallible::boxed(replay) {
            Ok(replay) => self.replay = Some(replay),
            Err(fallible::Refused) => self.is_refused = true,
        }
        self
    }

    /// Sets a callback for notices: it is called once for each feature that is not available, by the thread that detects this.
    ///
    /// The caller may hold locks of the scribe, and signals; in the child of a fork, other threads may be waiting for it. If a
    /// signal handler announces code, the callback may be called there, too: a full log is reported by the announcement that
    /// finds no space. So the callback must only store the notice and return. It must not announce, make a scribe, or wait for
    /// another thread. If handlers announce, it must be async-signal-safe. Formatting a notice (`Display`) does not allocate.
    /// With the feature `log`, the logger is called in the same situations.
    pub fn on_notice(mut self, listener: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        match fallible::Place::new() {
            Ok(place) => self.listener = Some(place.fill(listener)),
            Err(fallible::Refused) => {
                self.is_refused = true;
                // The listener cannot be called later.
                listener(&Notice::out_of_memory(Subject::Log));
            }
        }
        self
    }

    /// Adds the settings of the environment:
    ///
    /// - `JITSCRIBE`, a comma-separated list of: `log` (the default), `off`, `bytes`, `strict`, `arch-clock`, `perf-map`, `jitdump`,
    ///   `gdb`, `gdb-each`, `gdb-on-crash`, `no-gdb`, `unwinders`, `no-unwinders`, `valgrind`, `no-valgrind`, `vtune`, `no-vtune`,
    ///   `process-context`, `no-process-context`;
    /// - `OTEL_SERVICE_NAME`, the `service.name` of a process context;
    /// - `JITSCRIBE_DIR`, the directory for a dump, the object files for Valgrind, and the files of arenas;
    /// - `JITSCRIBE_LIMIT`, in bytes, or with `K`, `M`, `G`.
    ///
    /// A program that runs with more privileges than its caller (set-user-id) ignores the environment.
    pub fn environment(self) -> Self {
        if system::has_more_rights() {
            return self;
        }
        let mut listener = None;
        let with_environment = fallible::attempt(|| {
            let mut with_environment = self.environment_from(system::variable);
            listener = with_environment.listener.take();
            with_environment
        });
        match with_environment {
            Ok(builder) => Self { listener, ..builder },
            Err(fallible::Refused) => Self { listener, is_refused: true, ..Self::default() },
        }
    }

    fn environment_from(mut self, variable: impl Fn(&CStr) -> Option<Vec<u8>>) -> Self {
        let dir = variable(c"JITSCRIBE_DIR").filter(|dir| !dir.is_empty());
        let dir = dir.and_then(|dir| system::path(&dir));
        let words = variable(c"JITSCRIBE").unwrap_or_default();
        for word in words.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if word.is_empty() {
                continue;
            }
            // An unknown word need not be shown completely.
            let word = word.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            match word {
                "log" => self.is_off = false,
                "off" => self.is_off = true,
                "bytes" => self.bytes = true,
                "strict" => self.strict = true,
                "arch-clock" => self = self.arch_clock(),
                "perf-map" => self = self.perf_map(),
                "jitdump" => {
                    self = self.jitdump();
                    self.dump_dir = self.dump_dir.and(Some(dir.clone()));
                }
                "gdb" => self = self.gdb(),
                "gdb-each" => self = self.gdb_synchronous(),
                "gdb-on-crash" => self = self.gdb_on_crash(),
                "no-gdb" => self = self.no_gdb(),
                "unwinders" => self = self.unwinders(),
                "no-unwinders" => self = self.no_unwinders(),
                "valgrind" => self = self.valgrind(),
                "no-valgrind" => self = self.no_valgrind(),
                "vtune" => self = self.vtune(),
                "no-vtune" => self = self.no_vtune(),
                "process-context" => self = self.process_context(),
                "no-process-context" => self = self.no_process_context(),
                _ => self.wrong.push(fallible::text!(
                    "unknown JITSCRIBE value `{word}`; known values: log, off, bytes, strict, arch-clock, perf-map, jitdump, gdb, gdb-each, \
                     gdb-on-crash, no-gdb, unwinders, no-unwinders, valgrind, no-valgrind, vtune, no-vtune, process-context, \
                     no-process-context",
                )),
            }
        }
        if self.arena_dir.is_none() {
            self.arena_dir.clone_from(&dir);
        }
        if self.valgrind_dir.is_none() {
            self.valgrind_dir = dir;
        }
        // Readers know no service without a name.
        let name = variable(c"OTEL_SERVICE_NAME").filter(|name| !name.is_empty());
        self.service_name =
            name.and_then(|name| Some(fallible::text!("{}", str::from_utf8(&name).ok()?)));
        if let Some(limit) = variable(c"JITSCRIBE_LIMIT") {
            let limit = limit.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            match parse_size(limit) {
                Some(limit) => self.limit = Some(limit),
                None => self.wrong.push(fallible::text!(
                    "JITSCRIBE_LIMIT={limit} is no size: write a number, or one with K, M or G",
                )),
            }
        }
        self
    }

    /// Makes the scribe. This never fails: features that are not available are turned off, and reported once.
    #[must_use]
    pub fn build(mut self) -> Scribe {
        if self.is_refused {
            return self.refused();
        }
        // Taken out first, so that a refused allocation can be reported.
        let listener = self.listener.take();
        let replay = self.replay.take();
        match fallible::attempt(|| self.settings(listener.as_ref())) {
            Ok(settings) => Scribe::new(Settings { listener, ..settings }, replay),
            Err(fallible::Refused) => Self { listener, ..Self::default() }.refused(),
        }
    }

    /// Makes a scribe that is off, because there is no memory for the settings.
    fn refused(self) -> Scribe {
        notice::report(self.listener.as_ref(), &Notice::out_of_memory(Subject::Log));
        Scribe::off()
    }

    /// Evaluates the settings, except the listener.
    fn settings(self, listener: Option<&Listener>) -> Settings {
        for text in &self.wrong {
            notice::report(listener, &Notice::new(Subject::Setting, text));
        }
        let ticks = self.arch_clock.then(Clock::ticks).flatten();
        if self.arch_clock && ticks.is_none() {
            let text = "this machine has no clock of the processor that perf converts: times are CLOCK_MONOTONIC's";
            notice::report(listener, &Notice::new(Subject::Setting, text));
        }
        let clock = ticks.unwrap_or_default();
        let mut bits = control::LOG;
        if self.bytes || self.dump_dir.is_some() {
            bits |= control::BYTES;
        }
        if self.perf_map && !self.no_perf_map {
            // Opened by the same code as a perf map that is requested later.
            bits |= control::PERF_MAP | control::REQUEST;
        }
        let for_debuggers = match self.debuggers {
            Debuggers::Present => cfg!(feature = "gdb") && system::is_traced(),
            Debuggers::Always => true,
            Debuggers::Never => false,
        };
        if for_debuggers {
            bits |= control::GDB | control::REQUEST;
        }
        if self.is_off {
            bits = 0;
        }
        let file = match self.dump_dir {
            None => None,
            Some(dir) => match dump_file(dir) {
                Ok(path) => Some(path),
                Err(error) => {
                    notice::report(
                        listener,
                        &Notice::new(
                            Subject::Log,
                            format_args!(
                                "no directory for the dump: {error}; the log stays in memory"
                            ),
                        ),
                    );
                    None
                }
            },
        };
        let is_shown = || {
            cfg!(all(feature = "valgrind", target_os = "linux"))
                && guest::valgrind::is_under_valgrind()
        };
        let for_valgrind = self.valgrind.unwrap_or_else(is_shown) && !self.is_off;
        let valgrind_is_requested = self.valgrind == Some(true);
        let valgrind = for_valgrind.then(|| self.valgrind_dir.map_or_else(system::private_dir, Ok));
        let valgrind = valgrind.and_then(|dir| {
            let complain = |error: &system::NoDirectory| {
                let notice = Notice::new(
                    Subject::Valgrind,
                    format_args!("no directory for what valgrind is shown: {error}"),
                );
                if valgrind_is_requested {
                    notice.write_to_valgrind();
                }
                notice::report(listener, &notice);
            };
            dir.inspect_err(complain).ok()
        });
        let limit = self.limit.unwrap_or_else(|| match file {
            Some(_) => FILE_LIMIT,
            None => memory_limit(system::memory_limit()),
        });
        Settings {
            log: LogOptions { reuse: file.is_none(), file, limit, control: bits, clock },
            gdb_each: self.gdb_each,
            look_for_debuggers: cfg!(feature = "gdb") && self.debuggers == Debuggers::Present,
            // Code that is already shown need not be shown again.
            gdb_on_crash: self.gdb_on_crash && bits & control::GDB == 0,
            unwinders: self.unwinders && !self.is_off,
            valgrind,
            valgrind_is_requested,
            vtune: self.vtune != Some(false) && !self.is_off,
            vtune_is_requested: self.vtune == Some(true),
            vtune_module: self.vtune_module,
            etw: !self.is_off,
            arena_dir: self.arena_dir,
            perf_map: !self.no_perf_map,
            perf_map_dir: self.perf_map_dir,
            watch: self.watch,
            strict: self.strict,
            process_context: self.process_context,
            service_name: self.service_name,
            listener: None,
        }
    }
}

/// The default limit, or a quarter of the memory cgroup's: the log's memory counts for the group, and the kernel kills processes
/// of a group that exceeds its limit.
fn memory_limit(group: Option<u64>) -> usize {
    let quarter = group.and_then(|limit| usize::try_from(limit / 4).ok()).unwrap_or(usize::MAX);
    quarter.min(MEMORY_LIMIT)
}

/// The path of this process's dump, in a directory that exists.
fn dump_file(dir: Option<PathText>) -> Result<PathText, system::NoDirectory> {
    let dir = match dir {
        Some(dir) => dir,
        None => system::private_dir()?,
    };
    // perf finds the marker by the path as it was mapped, from wherever it is run.
    let file = || dir.absolute()?.join(&*crate::log::dump_name(crate::log::process_id()).ok()?);
    file().ok_or(system::NoDirectory::Memory)
}

fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

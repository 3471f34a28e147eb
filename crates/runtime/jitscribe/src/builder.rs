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

/// All words of `JITSCRIBE`, for messages.
const WORDS: &str = "log, off, bytes, strict, arch-clock, control-thread, gdb-synchronous, gdb-on-crash; and alone or with =auto, =on, =off: \
                     perf-map, jitdump, gdb, unwinders, valgrind, vtune, process-context";

/// 4 GiB, for a dump that keeps everything that is announced.
const FILE_LIMIT: usize = 4 << 30;

/// When a publisher shows code to its tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// When the tool is there, or is requested: see the publisher's setting.
    #[default]
    Auto,
    /// From the beginning.
    On,
    /// Never: requests of other processes are refused, too.
    Off,
}

/// Settings of a [`Scribe`]. By default, it keeps a log in memory, without the bytes of code, and each publisher is
/// [`Mode::Auto`].
///
/// The environment and the C API have the same settings under the same names: [`Self::gdb_on_crash`] is the word `gdb-on-crash` of
/// `JITSCRIBE` and C's `JITSCRIBE_FLAG_GDB_ON_CRASH`; [`Self::perf_map`] is `perf-map`, `perf-map=off` and so on, and the field
/// `perf_map`. The methods of a publisher that this build lacks do not exist; a word for it is reported.
#[derive(Default)]
#[must_use = "nothing is announced to a builder; `build` makes the scribe"]
pub struct Builder {
    flags: Flags,
    modes: Modes,
    dir: Option<PathText>,
    perf_map_dir: Option<PathText>,
    vtune_module: Option<Text>,
    service_name: Option<Text>,
    limit: Option<usize>,
    replay: Option<Replay>,
    listener: Option<Listener>,
    wrong: Vec<Text>,
    /// Memory was refused for a setting.
    is_refused: bool,
}

/// What is set or not.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    off: bool,
    bytes: bool,
    strict: bool,
    arch_clock: bool,
    control_thread: bool,
    gdb_synchronous: bool,
    gdb_on_crash: bool,
}

/// The mode of each publisher.
#[derive(Clone, Copy, Debug, Default)]
struct Modes {
    perf_map: Mode,
    jitdump: Mode,
    gdb: Mode,
    unwinders: Mode,
    valgrind: Mode,
    vtune: Mode,
    process_context: Mode,
}

/// Why a word of `JITSCRIBE` has no effect.
enum Wrong {
    Unknown,
    /// The publisher is not part of this build.
    NotBuilt,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("flags", &self.flags)
            .field("modes", &self.modes)
            .field("dir", &self.dir)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Writes nothing until `jitscribe ctl -p PID on` turns the log on. The runtime must then announce again all code that is
    /// live: see [`Self::replay`].
    pub fn off(mut self) -> Self {
        self.flags.off = true;
        self
    }

    /// Writes the bytes of code to the log, too: tools can then show the assembly of code that was freed. It costs the time to
    /// copy them, and the space.
    pub fn bytes(mut self) -> Self {
        self.flags.bytes = true;
        self
    }

    /// Reports each mistake in the description of a code ([`Subject::Description`]): unwind info that cannot be used, lines behind the
    /// code's end. Otherwise only the first of each kind is reported. For tests of a runtime.
    pub fn strict(mut self) -> Self {
        self.flags.strict = true;
        self
    }

    /// Takes timestamps from the processor's clock (x86-64's `rdtsc`) instead of `CLOCK_MONOTONIC`. For recordings that cannot be
    /// made with `perf record -k mono`, such as those of Intel PT. perf converts the timestamps with the parameters that the
    /// kernel recorded (`PERF_RECORD_TIME_CONV`). On machines without such a clock, this has no effect, and is reported.
    pub fn arch_clock(mut self) -> Self {
        self.flags.arch_clock = true;
        self
    }

    /// Starts a thread that applies requests of `jitscribe ctl` at once; otherwise, the next announcement applies them. Once a
    /// second, the thread also checks whether a debugger is attached, and then shows it all code, if `Self::gdb` is
    /// [`Mode::Auto`].
    #[cfg(target_os = "linux")]
    pub fn control_thread(mut self) -> Self {
        self.flags.control_thread = true;
        self
    }

    /// Keeps `/tmp/perf-PID.map` up to date, for `perf report` and other readers of perf maps.
    ///
    /// [`Mode::Auto`]: if another process requests it (`jitscribe ctl -p PID on --perf-map`). [`Mode::Off`] is for a process that
    /// writes a map itself: the two would describe each code twice.
    #[cfg(all(feature = "perf-map", target_os = "linux"))]
    pub fn perf_map(mut self, mode: Mode) -> Self {
        self.modes.perf_map = mode;
        self
    }

    /// The directory of the perf map, instead of `/tmp`. It must exist. perf does not look there.
    #[cfg(all(feature = "perf-map", target_os = "linux"))]
    pub fn perf_map_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.perf_map_dir = self.path(dir.as_ref());
        self
    }

    /// Keeps the log in a file, `jit-PID.dump` in [`Self::dir`], with all that `perf inject --jit` and samply need: the code's bytes,
    /// and the marker by which they find it.
    ///
    /// [`Mode::Auto`]: as [`Mode::Off`], the log is in memory.
    #[cfg(unix)]
    pub fn jitdump(mut self, mode: Mode) -> Self {
        self.modes.jitdump = mode;
        self
    }

    /// Shows code to gdb, lldb and other users of the GDB JIT interface.
    ///
    /// [`Mode::Auto`]: if a debugger is attached when the scribe is made, if one is found later by the [control
    /// thread](Self::control_thread), or if another process requests it (`jitscribe ctl -p PID on --gdb`).
    #[cfg(feature = "gdb")]
    pub fn gdb(mut self, mode: Mode) -> Self {
        self.modes.gdb = mode;
        self
    }

    /// [`Scribe::load`] returns only when a debugger to which code is shown has been shown the code. Without this setting, if more
    /// than 256 codes are announced so fast that the debugger would take more than half of the time, those that come too fast are
    /// shown up to 200 ms later.
    #[cfg(feature = "gdb")]
    pub fn gdb_synchronous(mut self) -> Self {
        self.flags.gdb_synchronous = true;
        self
    }

    /// Shows all live code to debuggers, unless [`Self::gdb`] is off, before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or
    /// SIGSYS ends the process. So any debugger finds the code in the core file. Until then, the only cost is a thread that waits.
    ///
    /// Signal handlers are installed when the scribe is made, on Linux. A previously installed handler runs first. Code is shown
    /// only if that handler restores SIG_DFL and returns, or calls `abort()`. A runtime that installs a handler later, or whose
    /// handler starts a debugger, calls [`show_to_debuggers`](crate::crash::show_to_debuggers) from there. The crash is delayed by at most five seconds:
    /// if the crashing thread holds a lock that is needed, the code is not shown. A child of `fork` takes part from its first
    /// announcement on.
    #[cfg(feature = "gdb")]
    pub fn gdb_on_crash(mut self) -> Self {
        self.flags.gdb_on_crash = true;
        self
    }

    /// Registers code with the unwinders in the process, from before [`Scribe::load`] returns until the code is dropped: C++
    /// exceptions and panics pass through it, and backtraces do not end at it. It must be announced with its
    /// [`Unwind`](crate::Unwind) info. Code in a `CodeArena` needs no such setting.
    ///
    /// [`Mode::Auto`]: as [`Mode::Off`]. Code that the log does not take (it is full, or off) is not registered either: a runtime
    /// whose own exceptions depend on it uses the crate `publish-unwind` directly.
    #[cfg(feature = "unwinders")]
    pub fn unwinders(mut self, mode: Mode) -> Self {
        self.modes.unwinders = mode;
        self
    }

    /// Shows code to the Valgrind that runs the process, through object files in [`Self::dir`], which stay, as profiles refer to
    /// them.
    ///
    /// [`Mode::Auto`]: under Valgrind. With [`Mode::On`], it is reported if Valgrind does not run the process.
    #[cfg(all(feature = "valgrind", target_os = "linux"))]
    pub fn valgrind(mut self, mode: Mode) -> Self {
        self.modes.valgrind = mode;
        self
    }

    /// Reports code to VTune, or another tool that sets `INTEL_JIT_PROFILER64` to the path of its collector: a library for Intel's
    /// JIT Profiling API. The collector is loaded into the process when the scribe is made.
    ///
    /// [`Mode::Auto`]: where the variable is set. With [`Mode::On`], it is reported if it is not, or if the collector is not
    /// running. With [`Mode::Off`], no library is loaded.
    #[cfg(all(feature = "vtune", target_os = "linux"))]
    pub fn vtune(mut self, mode: Mode) -> Self {
        self.modes.vtune = mode;
        self
    }

    /// Sets the name of the module in which VTune shows the code: that of the runtime. The default is `jit`.
    #[cfg(all(feature = "vtune", target_os = "linux"))]
    pub fn vtune_module(mut self, name: &str) -> Self {
        self.vtune_module = self.text(name);
        self
    }

    /// Publishes OpenTelemetry's process context ([OTEP 4719]), which says to profilers and other readers outside where the log is:
    /// the attributes `code.log.address`, `code.log.size` and `code.log.version`. It costs one page of memory.
    ///
    /// [`Mode::Auto`]: as [`Mode::Off`], as a process has at most one context, and an SDK does not look for ours before it publishes
    /// its own. If the process has another context when the scribe is made, none is published, and this is reported. If another
    /// appears later, ours is withdrawn within a second by [`Self::control_thread`], or by the next [`Scribe::poll`] or the next
    /// announcement that takes a new part of the log. A program with such an SDK adds the attributes to its context instead: see
    /// [`CodeContext`](crate::CodeContext).
    ///
    /// All scribes share one context, which lists the logs of all, also of those without this setting.
    ///
    /// [OTEP 4719]: https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4719-process-ctx.md
    #[cfg(target_os = "linux")]
    pub fn process_context(mut self, mode: Mode) -> Self {
        self.modes.process_context = mode;
        self
    }

    /// Sets the `service.name` of a process context, without which readers know no service.
    #[cfg(target_os = "linux")]
    pub fn service_name(mut self, name: &str) -> Self {
        self.service_name = self.text(name);
        self
    }

    /// The directory for files: the dump, the object files for Valgrind, and the files of arenas. Only this user may be able to
    /// write to it, and for arenas its file system must allow files to be executed.
    ///
    /// By default, it is the directory `jitscribe` in the user's runtime directory (`XDG_RUNTIME_DIR`), or in `.cache` in the home
    /// directory.
    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = self.path(dir.as_ref());
        self
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
    /// The thread may hold locks of the scribe, and signals; in the child of a fork, other threads may be waiting for it. If a
    /// signal handler announces code, the callback may be called there, too: a full log is reported by the announcement that
    /// finds no space. So the callback must only store the notice and return. It must not announce, make a scribe, or wait for
    /// another thread. If handlers announce, it must be async-signal-safe. Formatting a notice (`Display`) does not allocate.
    /// With the feature `log`, the logger is called in the same situations.
    pub fn notice(mut self, listener: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
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

    /// Adds settings that are written as in the environment's `JITSCRIBE`: a comma-separated list of words. For a runtime that has
    /// an option for them. A word that is not known is reported when the scribe is made.
    ///
    /// - `off` and its opposite `log`, `bytes`, `strict`, `arch-clock`, `control-thread`, `gdb-synchronous`, `gdb-on-crash`;
    /// - `perf-map`, `jitdump`, `gdb`, `unwinders`, `valgrind`, `vtune`, `process-context`: each alone for [`Mode::On`], or with
    ///   `=auto`, `=on` or `=off`.
    pub fn words(self, words: &str) -> Self {
        self.words_from(words.as_bytes())
    }

    fn words_from(mut self, words: &[u8]) -> Self {
        for word in words.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            // An unknown word need not be shown completely.
            let word = word.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            match self.word(word) {
                Ok(()) => {}
                Err(Wrong::Unknown) => {
                    self.complain(|| {
                        fallible::text!("unknown JITSCRIBE value `{word}`; known values: {WORDS}")
                    });
                }
                Err(Wrong::NotBuilt) => self.complain(|| {
                    fallible::text!("`{word}` has no effect: this build of the library does not support it on this system")
                }),
            }
        }
        self
    }

    fn word(&mut self, word: &str) -> Result<(), Wrong> {
        let Self { flags, modes, .. } = self;
        const LINUX: bool = cfg!(target_os = "linux");
        let (flag, is_built) = match word {
            "" => return Ok(()),
            "log" => {
                flags.off = false;
                return Ok(());
            }
            "off" => (&mut flags.off, true),
            "bytes" => (&mut flags.bytes, true),
            "strict" => (&mut flags.strict, true),
            "arch-clock" => (&mut flags.arch_clock, true),
            "control-thread" => (&mut flags.control_thread, LINUX),
            "gdb-synchronous" => (&mut flags.gdb_synchronous, cfg!(feature = "gdb")),
            "gdb-on-crash" => (&mut flags.gdb_on_crash, cfg!(feature = "gdb")),
            _ => {
                let (name, mode) = word.split_once('=').unwrap_or((word, "on"));
                let mode = match mode {
                    "auto" => Mode::Auto,
                    "on" => Mode::On,
                    "off" => Mode::Off,
                    _ => return Err(Wrong::Unknown),
                };
                let (place, is_built) = match name {
                    "perf-map" => (&mut modes.perf_map, LINUX && cfg!(feature = "perf-map")),
                    "jitdump" => (&mut modes.jitdump, cfg!(unix)),
                    "gdb" => (&mut modes.gdb, cfg!(feature = "gdb")),
                    "unwinders" => (&mut modes.unwinders, cfg!(feature = "unwinders")),
                    "valgrind" => (&mut modes.valgrind, LINUX && cfg!(feature = "valgrind")),
                    "vtune" => (&mut modes.vtune, LINUX && cfg!(feature = "vtune")),
                    "process-context" => (&mut modes.process_context, LINUX),
                    _ => return Err(Wrong::Unknown),
                };
                // What is not there is off.
                if !is_built && mode == Mode::On {
                    return Err(Wrong::NotBuilt);
                }
                if is_built {
                    *place = mode;
                }
                return Ok(());
            }
        };
        *flag = is_built;
        if is_built { Ok(()) } else { Err(Wrong::NotBuilt) }
    }

    /// Keeps a message for when the scribe is made.
    fn complain(&mut self, text: impl FnOnce() -> Text) {
        match fallible::attempt(text) {
            Ok(text) if self.wrong.try_reserve(1).is_ok() => self.wrong.push(text),
            _ => self.is_refused = true,
        }
    }

    /// Copies a path, or notes that there is no memory for the copy.
    fn path(&mut self, path: &Path) -> Option<PathText> {
        let copy = PathText::new(path);
        self.is_refused |= copy.is_none();
        copy
    }

    /// Copies a text, likewise.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "names are Linux's"))]
    fn text(&mut self, text: &str) -> Option<Text> {
        let copy = fallible::attempt(|| Text::from(text)).ok();
        self.is_refused |= copy.is_none();
        copy
    }

    /// Adds the settings of the environment, which override those of the program:
    ///
    /// - `JITSCRIBE`: see [`Self::words`];
    /// - `JITSCRIBE_DIR`: see [`Self::dir`];
    /// - `JITSCRIBE_LIMIT`, in bytes, or with `K`, `M`, `G`: see [`Self::limit`];
    /// - `OTEL_SERVICE_NAME`, the `service.name` of a process context.
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
        if let Some(words) = variable(c"JITSCRIBE") {
            self = self.words_from(&words);
        }
        let dir = variable(c"JITSCRIBE_DIR").filter(|dir| !dir.is_empty());
        if let Some(dir) = dir.and_then(|dir| system::path(&dir)) {
            self.dir = Some(dir);
        }
        let name = variable(c"OTEL_SERVICE_NAME").filter(|name| !name.is_empty());
        if let Some(name) = name.as_deref().and_then(|name| str::from_utf8(name).ok()) {
            self.service_name = Some(fallible::text!("{name}"));
        }
        if let Some(limit) = variable(c"JITSCRIBE_LIMIT") {
            let limit = limit.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            match parse_size(limit) {
                Some(limit) => self.limit = Some(limit),
                None => self.complain(|| {
                    fallible::text!(
                        "JITSCRIBE_LIMIT={limit} is no size: write a number, or one with K, M or G",
                    )
                }),
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
        let Self { flags, modes, .. } = self;
        let ticks = flags.arch_clock.then(Clock::ticks).flatten();
        if flags.arch_clock && ticks.is_none() {
            let text = "this machine has no clock of the processor that perf converts: times are CLOCK_MONOTONIC's";
            notice::report(listener, &Notice::new(Subject::Setting, text));
        }
        let clock = ticks.unwrap_or_default();
        let is_on = |mode: Mode| mode == Mode::On && !flags.off;
        let mut bits = control::LOG;
        if flags.bytes || modes.jitdump == Mode::On {
            bits |= control::BYTES;
        }
        // Opened by the same code as what is requested later.
        if is_on(modes.perf_map) {
            bits |= control::PERF_MAP | control::REQUEST;
        }
        let is_debugged =
            || cfg!(feature = "gdb") && modes.gdb == Mode::Auto && system::is_traced();
        if is_on(modes.gdb) || is_debugged() {
            bits |= control::GDB | control::REQUEST;
        }
        if flags.off {
            bits = 0;
        }
        let file = if modes.jitdump == Mode::On {
            let complain = |error: &system::NoDirectory| {
                let notice = Notice::new(
                    Subject::Log,
                    format_args!("no directory for the dump: {error}; the log stays in memory"),
                );
                notice::report(listener, &notice);
            };
            dump_file(self.dir.clone()).inspect_err(complain).ok()
        } else {
            None
        };
        let is_under_valgrind = || {
            cfg!(all(feature = "valgrind", target_os = "linux"))
                && modes.valgrind == Mode::Auto
                && !flags.off
                && guest::valgrind::is_under_valgrind()
        };
        let for_valgrind = is_on(modes.valgrind) || is_under_valgrind();
        let valgrind = for_valgrind.then(|| self.dir.clone().map_or_else(system::private_dir, Ok));
        let valgrind = valgrind.and_then(|dir| {
            let complain = |error: &system::NoDirectory| {
                let notice = Notice::new(
                    Subject::Valgrind,
                    format_args!("no directory for what valgrind is shown: {error}"),
                );
                if modes.valgrind == Mode::On {
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
            gdb: modes.gdb != Mode::Off,
            gdb_synchronous: flags.gdb_synchronous,
            look_for_debuggers: cfg!(feature = "gdb") && modes.gdb == Mode::Auto,
            // Code that is already shown need not be shown again.
            gdb_on_crash: flags.gdb_on_crash && modes.gdb != Mode::Off && bits & control::GDB == 0,
            unwinders: is_on(modes.unwinders),
            valgrind,
            valgrind_is_requested: modes.valgrind == Mode::On,
            vtune: modes.vtune != Mode::Off && !flags.off,
            vtune_is_requested: modes.vtune == Mode::On,
            vtune_module: self.vtune_module,
            etw: !flags.off,
            arena_dir: self.dir,
            perf_map: modes.perf_map != Mode::Off,
            perf_map_dir: self.perf_map_dir,
            control_thread: flags.control_thread,
            strict: flags.strict,
            process_context: modes.process_context == Mode::On,
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

//! What a scribe is to do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use jitdump::extension::control;

use crate::clock::Clock;
use crate::log::{LogOptions, MEMORY_LIMIT};
use crate::notice::{self, Listener, Notice, Subject};
use crate::scribe::Scribe;
use crate::system;
use crate::valgrind::Valgrind;

/// 4 GiB, for a dump that keeps all it was told.
const FILE_LIMIT: usize = 4 << 30;

/// Announces again all that is alive.
pub(crate) type Replay = Box<dyn Fn(Scribe) + Send + Sync>;

/// Settings of a [`Scribe`]. Without any, it keeps a lean log in memory.
#[derive(Default)]
#[must_use = "nothing is announced to a builder; `build` makes the scribe"]
pub struct Builder {
    is_off: bool,
    bytes: bool,
    perf_map: bool,
    no_perf_map: bool,
    perf_map_dir: Option<PathBuf>,
    debuggers: Debuggers,
    gdb_each: bool,
    gdb_on_crash: bool,
    unwinders: bool,
    valgrind: Option<bool>,
    valgrind_dir: Option<PathBuf>,
    arena_dir: Option<PathBuf>,
    dump_dir: Option<Option<PathBuf>>,
    limit: Option<usize>,
    arch_clock: bool,
    watch: bool,
    replay: Option<Replay>,
    listener: Option<Listener>,
    wrong: Vec<String>,
}

/// When code is shown to debuggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Debuggers {
    /// If one is there at the start.
    #[default]
    Present,
    #[cfg(feature = "gdb")]
    Always,
    Never,
}

/// What the builder came to.
pub(crate) struct Settings {
    pub(crate) log: LogOptions,
    /// Whether each code is shown to debuggers before its announcement is done.
    pub(crate) gdb_each: bool,
    /// Whether a debugger that comes later is to be noticed by who watches.
    #[cfg_attr(windows, allow(dead_code))]
    pub(crate) look_for_debuggers: bool,
    /// Whether all that is alive is shown to debuggers before a crash signal ends the process.
    pub(crate) gdb_on_crash: bool,
    /// Whether unwinders in the process are told.
    pub(crate) unwinders: bool,
    /// Where the object files for valgrind go, if it is to be shown any.
    pub(crate) valgrind: Option<PathBuf>,
    /// Where the files of arenas go, if not where the user keeps such files.
    #[cfg_attr(not(all(feature = "arena", unix)), allow(dead_code))]
    pub(crate) arena_dir: Option<PathBuf>,
    /// Whether there may be a perf map at all.
    pub(crate) perf_map: bool,
    /// Where the perf map is kept, if not where perf looks for it.
    #[cfg_attr(windows, allow(dead_code))]
    pub(crate) perf_map_dir: Option<PathBuf>,
    #[cfg_attr(windows, allow(dead_code))]
    pub(crate) watch: bool,
    pub(crate) replay: Option<Replay>,
    pub(crate) listener: Option<Listener>,
    /// Whether the log was on when it was looked at last.
    pub(crate) was_on: AtomicBool,
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
            replay: None,
            listener: None,
            was_on: AtomicBool::new(false),
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("is_off", &self.is_off)
            .field("bytes", &self.bytes)
            .field("dump_dir", &self.dump_dir)
            .field("limit", &self.limit)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Nothing is written until someone asks for it by `jitscribe ctl -p PID on`. Then the runtime is to
    /// announce what is alive, see [`Self::replay`].
    pub fn off(mut self) -> Self {
        self.is_off = true;
        self
    }

    /// The log gets the code's bytes too: tools show the assembly of code that is long gone. It costs what
    /// copying them costs, and the room they take.
    pub fn with_bytes(mut self) -> Self {
        self.bytes = true;
        self
    }

    /// `/tmp/perf-PID.map` is kept true too, for `perf report` and whoever else reads such maps.
    #[cfg(unix)]
    pub fn perf_map(mut self) -> Self {
        self.perf_map = true;
        self
    }

    /// [`Self::perf_map`] in another folder than `/tmp`, which must be there. perf does not look into it.
    #[cfg(unix)]
    pub fn perf_map_in(mut self, dir: impl Into<PathBuf>) -> Self {
        self.perf_map_dir = Some(dir.into());
        self.perf_map()
    }

    /// No perf map, whoever asks for one: the process has a writer of its own for it, and the two would tell of each
    /// code twice.
    pub fn no_perf_map(mut self) -> Self {
        self.no_perf_map = true;
        self
    }

    /// The code is shown to gdb, lldb and whoever else knows the GDB JIT interface. Without this it is if a debugger
    /// is attached when the scribe is made, or once someone asks (`jitscribe ctl -p PID on --gdb`).
    #[cfg(feature = "gdb")]
    pub fn gdb(mut self) -> Self {
        self.debuggers = Debuggers::Always;
        self
    }

    /// [`Self::gdb`], and a code that is announced has been shown when [`Scribe::load`] returns, always. Without this,
    /// where more than 256 codes are announced so fast that the debugger would take more than half of the time, those
    /// that come too fast wait for up to 200 ms.
    #[cfg(feature = "gdb")]
    pub fn gdb_each(mut self) -> Self {
        self.gdb_each = true;
        self.gdb()
    }

    /// Before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process, all code that is alive is shown as
    /// by [`Self::gdb`]: any debugger knows it in the core file. Until then, nothing is paid for it but a thread that waits.
    ///
    /// Signal handlers are installed when the scribe is made, on Linux. What was there before decides whether a signal is a
    /// crash: a handler is called first, and all is shown when it has set the signal to its default and returns,
    /// or aborts. A runtime with a handler that is installed later, or that has a debugger look while it runs, calls
    /// [`Scribe::show_before_crash`] from there. The crash waits for it for five seconds at most, and goes on without
    /// if what it needs is held by who crashed. A child of fork takes part from its first announcement on.
    #[cfg(feature = "gdb")]
    pub fn gdb_on_crash(mut self) -> Self {
        self.gdb_on_crash = true;
        self
    }

    /// Nothing is shown to debuggers unless someone asks, even if one is attached.
    pub fn no_gdb(mut self) -> Self {
        self.debuggers = Debuggers::Never;
        self
    }

    /// Unwinders in the process learn of code before its announcement is done, until it is dropped: then C++ exceptions and
    /// panics pass through it, and backtraces do not end at it. It must be announced with its [`Unwind`](crate::Unwind)
    /// info. Code that lies in a [`CodeArena`](crate::CodeArena) needs no asking.
    ///
    /// What the log does not take (it is full, or off) unwinders do not learn either: a runtime whose own exceptions
    /// depend on it calls the crate `publish-unwind` by itself.
    #[cfg(feature = "unwinders")]
    pub fn unwinders(mut self) -> Self {
        self.unwinders = true;
        self
    }

    /// Unwinders in the process are not told. This is the default.
    pub fn no_unwinders(mut self) -> Self {
        self.unwinders = false;
        self
    }

    /// The code is shown to the valgrind that runs the process, by way of object files in `dir`, which stay: profiles
    /// name them. `dir` must be a directory to which only this user can write; `None`: as for [`Self::dump`]. This is
    /// the default, but that nothing is said where no valgrind is.
    #[cfg(all(feature = "valgrind", unix))]
    pub fn valgrind(mut self, dir: Option<PathBuf>) -> Self {
        self.valgrind = Some(true);
        self.valgrind_dir = dir;
        self
    }

    /// Nothing is shown to valgrind.
    pub fn no_valgrind(mut self) -> Self {
        self.valgrind = Some(false);
        self
    }

    /// The files of arenas (see [`Scribe::code_arena`]) go to `dir`: a directory to which only this user can write, on a
    /// file system whose files may be executed. Without this, as for [`Self::dump`].
    #[cfg(all(feature = "arena", unix))]
    pub fn arena_in(mut self, dir: impl Into<PathBuf>) -> Self {
        self.arena_dir = Some(dir.into());
        self
    }

    /// The log is a file, `jit-PID.dump`, with all that `perf inject --jit` wants: the code's bytes, and the
    /// marker by which perf finds it. `dir` must be a directory to which only this user can write; `None`: a
    /// folder `jitscribe` in the user's directory for such files (`XDG_RUNTIME_DIR`, else the home's
    /// `.cache`).
    #[cfg(unix)]
    pub fn dump(mut self, dir: Option<PathBuf>) -> Self {
        self.dump_dir = Some(dir);
        self
    }

    /// How many bytes the log may take: 64 MiB unless set, or a quarter of what the process's memory cgroup may have
    /// if that is less; 4 GiB if it is a file. From a quarter of them on, room of dead codes is used anew (in memory, not
    /// in a file) where most of a part has died; when they are used up, wherever some has. Then codes are left out, and
    /// the log says how many. With a limit above what its memory cgroup has left, the kernel ends the process when
    /// the log fills it, as with any other memory.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Times are counts of the processor's own clock (x86-64's `rdtsc`) instead of nanoseconds of `CLOCK_MONOTONIC`: for recordings
    /// that are not made with `perf record -k mono`, as those of Intel PT cannot be. perf converts them by what the kernel says of
    /// that clock (`PERF_RECORD_TIME_CONV`). Where there is no such clock, that is said, and times stay as they are.
    pub fn arch_clock(mut self) -> Self {
        self.arch_clock = true;
        self
    }

    /// A thread waits for `jitscribe ctl`, which else is heard with the next announcement; and looks once a second whether
    /// a debugger is attached, to which all is shown then, unless [`Self::no_gdb`] was said.
    #[cfg(unix)]
    pub fn watch(mut self) -> Self {
        self.watch = true;
        self
    }

    /// Called when the log is turned on from outside, from a thread that announces, polls or watches, with no
    /// lock held: announce all that is alive.
    pub fn replay(mut self, replay: impl Fn(Scribe) + Send + Sync + 'static) -> Self {
        self.replay = Some(Box::new(replay));
        self
    }

    /// Called for each thing that could not be had, once.
    pub fn on_notice(mut self, listener: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Takes over what the environment says:
    ///
    /// - `JITSCRIBE`, a list with commas of: `log` (the default), `off`, `bytes`, `arch-clock`, `perf-map`,
    ///   `jitdump`, `gdb`, `gdb-each`, `gdb-on-crash`, `no-gdb`, `unwinders`, `no-unwinders`, `valgrind`, `no-valgrind`;
    /// - `JITSCRIBE_DIR`, where to write a dump, the object files for valgrind, and the files of arenas;
    /// - `JITSCRIBE_LIMIT`, in bytes, or with `K`, `M`, `G`.
    ///
    /// A program that runs with more rights than its caller (set-user-id) takes nothing from the
    /// environment.
    pub fn environment(self) -> Self {
        if system::has_more_rights() {
            return self;
        }
        self.environment_from(|name| std::env::var_os(name))
    }

    fn environment_from(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let dir = variable("JITSCRIBE_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let words = variable("JITSCRIBE").unwrap_or_default();
        for word in
            words.to_string_lossy().split(',').map(str::trim).filter(|word| !word.is_empty())
        {
            match word {
                "log" => self.is_off = false,
                "off" => self.is_off = true,
                "bytes" => self.bytes = true,
                "arch-clock" => self = self.arch_clock(),
                #[cfg(unix)]
                "perf-map" => self.perf_map = true,
                #[cfg(unix)]
                "jitdump" => self.dump_dir = Some(dir.clone()),
                #[cfg(feature = "gdb")]
                "gdb" => self = self.gdb(),
                #[cfg(feature = "gdb")]
                "gdb-each" => self = self.gdb_each(),
                #[cfg(feature = "gdb")]
                "gdb-on-crash" => self = self.gdb_on_crash(),
                "no-gdb" => self = self.no_gdb(),
                #[cfg(feature = "unwinders")]
                "unwinders" => self = self.unwinders(),
                "no-unwinders" => self = self.no_unwinders(),
                #[cfg(all(feature = "valgrind", unix))]
                "valgrind" => self.valgrind = Some(true),
                "no-valgrind" => self = self.no_valgrind(),
                _ => self.wrong.push(format!(
                    "JITSCRIBE={word} means nothing: it takes log, off, bytes, arch-clock, {}{}, {}, {}",
                    if cfg!(unix) { "perf-map, jitdump, " } else { "" },
                    if cfg!(feature = "gdb") {
                        "gdb, gdb-each, gdb-on-crash, no-gdb"
                    } else {
                        "no-gdb"
                    },
                    if cfg!(feature = "unwinders") {
                        "unwinders, no-unwinders"
                    } else {
                        "no-unwinders"
                    },
                    if cfg!(all(feature = "valgrind", unix)) {
                        "valgrind, no-valgrind"
                    } else {
                        "no-valgrind"
                    },
                )),
            }
        }
        if self.arena_dir.is_none() {
            self.arena_dir.clone_from(&dir);
        }
        if self.valgrind_dir.is_none() {
            self.valgrind_dir = dir;
        }
        if let Some(limit) = variable("JITSCRIBE_LIMIT") {
            match parse_size(&limit.to_string_lossy()) {
                Some(limit) => self.limit = Some(limit),
                None => self.wrong.push(format!(
                    "JITSCRIBE_LIMIT={} is no size: write a number, or one with K, M or G",
                    limit.to_string_lossy()
                )),
            }
        }
        self
    }

    /// Makes the scribe. It never fails: what cannot be had is off, and said once.
    #[must_use]
    pub fn build(self) -> Scribe {
        for text in &self.wrong {
            notice::say(self.listener.as_ref(), &Notice::new(Subject::Setting, text));
        }
        let ticks = self.arch_clock.then(Clock::ticks).flatten();
        if self.arch_clock && ticks.is_none() {
            let text = "this machine has no clock of the processor that perf converts: times are CLOCK_MONOTONIC's";
            notice::say(self.listener.as_ref(), &Notice::new(Subject::Setting, text));
        }
        let clock = ticks.unwrap_or_default();
        let mut bits = control::LOG;
        if self.bytes || self.dump_dir.is_some() {
            bits |= control::BYTES;
        }
        if self.perf_map && !self.no_perf_map {
            // Opened by the same path as one that is asked for later.
            bits |= control::PERF_MAP | control::WISH;
        }
        let for_debuggers = match self.debuggers {
            Debuggers::Present => cfg!(feature = "gdb") && system::is_traced(),
            #[cfg(feature = "gdb")]
            Debuggers::Always => true,
            Debuggers::Never => false,
        };
        if for_debuggers {
            bits |= control::GDB | control::WISH;
        }
        if self.is_off {
            bits = 0;
        }
        let file = match self.dump_dir {
            None => None,
            Some(dir) => match dump_file(dir) {
                Ok(path) => Some(path),
                Err(error) => {
                    let text =
                        format!("no directory for the dump: {error}; the log stays in memory");
                    notice::say(self.listener.as_ref(), &Notice::new(Subject::Log, text));
                    None
                }
            },
        };
        let for_valgrind = self.valgrind.unwrap_or_else(Valgrind::is_running) && !self.is_off;
        let valgrind = for_valgrind.then(|| self.valgrind_dir.map_or_else(system::private_dir, Ok));
        let valgrind = valgrind.and_then(|dir| {
            let complain = |error: &std::io::Error| {
                let text = format!("no directory for what valgrind is shown: {error}");
                notice::say(self.listener.as_ref(), &Notice::new(Subject::Valgrind, text));
            };
            dir.inspect_err(complain).ok()
        });
        let limit = self.limit.unwrap_or_else(|| match file {
            Some(_) => FILE_LIMIT,
            None => memory_limit(system::memory_limit()),
        });
        Scribe::new(Settings {
            log: LogOptions { reuse: file.is_none(), file, limit, control: bits, clock },
            gdb_each: self.gdb_each,
            look_for_debuggers: cfg!(feature = "gdb") && self.debuggers == Debuggers::Present,
            // What is shown anyhow need not be shown then.
            gdb_on_crash: self.gdb_on_crash && bits & control::GDB == 0,
            unwinders: self.unwinders && !self.is_off,
            valgrind,
            arena_dir: self.arena_dir,
            perf_map: !self.no_perf_map,
            perf_map_dir: self.perf_map_dir,
            watch: self.watch,
            replay: self.replay,
            listener: self.listener,
            was_on: AtomicBool::new(bits != 0),
        })
    }
}

/// The usual limit, or a quarter of what the process's group may have: the log's memory is counted as the group's,
/// and where that ends the kernel kills.
fn memory_limit(group: Option<u64>) -> usize {
    let quarter = group.and_then(|limit| usize::try_from(limit / 4).ok()).unwrap_or(usize::MAX);
    quarter.min(MEMORY_LIMIT)
}

/// The path of this process's dump, in a directory that is there.
fn dump_file(dir: Option<PathBuf>) -> std::io::Result<PathBuf> {
    let dir = match dir {
        Some(dir) => dir,
        None => system::private_dir()?,
    };
    // perf finds the marker by the path as it was mapped, from wherever it is run.
    let dir = std::path::absolute(dir)?;
    Ok(dir.join(format!("jit-{}.dump", crate::log::process_id())))
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

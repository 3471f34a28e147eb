//! What a run is asked for, and what it tells.

use std::path::PathBuf;
use std::time::Duration;

use crate::memory::MemoryKind;
use crate::native::Printed;
use crate::truth::CodeVersion;

/// What a run is to do. The default announces nothing and takes 1.75 s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long each phase goes on.
    pub pace: Pace,
    /// Whether generated code keeps `rbp` as frame pointer. Without, `rbp` is spoilt in every
    /// generated function, and stacks can be unwound by the announced CFI alone.
    pub frame_pointers: bool,
    /// What the code lies in.
    pub memory: MemoryKind,
    /// Where to write `jit-PID.dump`, which must not exist; `None` for no dump. The directory must
    /// not be mounted `noexec`, as the marker is an executable mapping of the file.
    pub dump_dir: Option<PathBuf>,
    /// Where to write `perf-PID.map`, which must not exist; perf looks in `/tmp`.
    pub perf_map_dir: Option<PathBuf>,
    /// Whether to keep the code log that `jitscribe record -p` and `jitscribe dump -p` read: in memory
    /// unless there is a dump, and with whatever `JITSCRIBE` in the environment asks for.
    pub log: bool,
    /// Where to write a listing of each code's intermediate representation, `TIER-FUNCTION.clif`, which
    /// the second line table then names.
    pub ir_dir: Option<PathBuf>,
    /// Where to write the program's source, so that tools can show its lines; the debug
    /// information names it by its absolute path. `None` writes none and names the bare file.
    pub source_dir: Option<PathBuf>,
    /// Instead of the demo program, compile this many generated functions of four lines each.
    pub many: Option<u32>,
    /// Compile everything as ever, but run the code that this shared object has under the same names
    /// ([`CodeVersion::symbol`]): what a profiler says of it by itself is what it should say of the
    /// code in memory. The file is trusted.
    pub library: Option<PathBuf>,
    /// Where to write the truth: one JSON object ([`CodeVersion`]) a line.
    pub truth: Option<PathBuf>,
    /// Wait before the first phase until this file exists: a recorder may come late to a process whose code was announced.
    pub start_when: Option<PathBuf>,
    /// Wait after the last phase, with the truth written, until this file exists: a recorder may have to find the process alive.
    pub end_when: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pace: Pace::Time(Duration::from_millis(350)),
            frame_pointers: true,
            memory: MemoryKind::default(),
            dump_dir: None,
            perf_map_dir: None,
            log: false,
            ir_dir: None,
            source_dir: None,
            many: None,
            library: None,
            truth: None,
            start_when: None,
            end_when: None,
        }
    }
}

/// How long a phase goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// For this long, divided evenly among the functions it calls; each is called at least once.
    Time(Duration),
    /// Until each function was called so often.
    Calls(u32),
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// What the program printed.
    pub printed: Printed,
    /// Every code there was, in the order of announcement.
    pub versions: Vec<CodeVersion>,
    /// How many codes were loaded, re-jitted ones included.
    pub loads: usize,
    /// How many were moved.
    pub moves: usize,
    /// The dump, if one was written.
    pub dump: Option<PathBuf>,
    /// The perf map, if one was written.
    pub perf_map: Option<PathBuf>,
    /// The source, if it was written.
    pub source: Option<PathBuf>,
}

/// What a phase did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// The functions it called.
    pub calls: Vec<Called>,
}

/// A function that a phase called again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Its name.
    pub function: String,
    /// Its argument.
    pub argument: i64,
    /// What it returned, every time.
    pub value: i64,
    /// How often it was called; with [`Pace::Time`], no two runs agree.
    pub count: u64,
}

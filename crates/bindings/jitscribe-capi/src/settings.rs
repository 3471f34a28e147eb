//! Settings of a scribe.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::mem::offset_of;
use std::path::Path;
use std::sync::OnceLock;

use fallible::Shared;
use guest::sanitizers::{self, call_host};
use jitscribe::{Builder, Notice, Scribe};

use crate::notice::Subject;
use crate::opaque::OpaqueScribe;
use crate::outcome::Failure;
use crate::raw::Versioned;
use crate::text::Str;

/// Announces all code that is alive with jitscribe_load, each with a new handle. It is called when the log is turned on from
/// outside, on whichever thread announces, polls or waits for requests at that time, with no lock held.
///
/// It must return: no exception, no longjmp.
pub type ReplayFn = Option<unsafe extern "C" fn(data: *mut c_void, scribe: *const OpaqueScribe)>;

/// Receives a notice: a feature is not available, and is off from now on. The program is not affected. Each notice is reported
/// once, on the thread that met the problem. `subject` is a jitscribe_subject. `text` is one line of English that ends with a
/// NUL, and is invalid after the function returns.
///
/// The thread may hold locks of the library: the function must not call it, nor wait for another thread. If code is announced in
/// a signal handler, this function may be called there, and must then be async-signal-safe.
///
/// It must return: no exception, no longjmp.
pub type NoticeFn =
    Option<unsafe extern "C" fn(data: *mut c_void, subject: u32, text: *const c_char)>;

/// What is set or not. The library ignores bits that it does not know. The environment has the same as words of JITSCRIBE:
/// gdb-on-crash is JITSCRIBE_FLAG_GDB_ON_CRASH.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing is written until `jitscribe ctl -p PID on` requests it. Then `replay` is called.
    Off = 1,
    /// The log also contains the code's bytes, so tools show the assembly of code that is long gone. This costs the time to copy
    /// the bytes, and the space for them.
    Bytes = 2,
    /// Each mistake in the description of a code is reported (JITSCRIBE_SUBJECT_DESCRIPTION), not only the first of its kind.
    Strict = 4,
    /// Timestamps are counts of the processor's own clock (x86-64's rdtsc) instead of nanoseconds of CLOCK_MONOTONIC: for
    /// recordings that are not made with `perf record -k mono`. A notice reports if there is no such clock.
    ArchClock = 8,
    /// A thread applies requests of `jitscribe ctl` at once. Without it, the next announcement or poll applies them. Once a second,
    /// the thread also checks whether a debugger is attached, if `gdb` is JITSCRIBE_MODE_AUTO.
    ControlThread = 16,
    /// jitscribe_load returns only when a debugger to which code is shown has been shown the code. Without this flag, in a fast
    /// burst, some are shown up to 200 ms later.
    GdbSynchronous = 32,
    /// Before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process, all code that is alive is shown to
    /// debuggers, so that any debugger finds it in the core file. A thread waits for that. jitscribe_open installs signal
    /// handlers. A previously installed handler runs first, and the code is shown if that handler sets the signal to SIG_DFL and
    /// returns.
    GdbOnCrash = 64,
    /// Settings from the environment override these: JITSCRIBE is a comma-separated list as `words`, JITSCRIBE_DIR is `dir`,
    /// JITSCRIBE_LIMIT is `limit` in bytes, or with K, M, G, and OTEL_SERVICE_NAME is `service_name`. A program that runs set-user-ID
    /// ignores these variables.
    Environment = 128,
}

/// When a publisher shows code to its tool. The environment has the same as JITSCRIBE=perf-map=auto, perf-map=on (or perf-map alone)
/// and perf-map=off. A number that the library does not know means JITSCRIBE_MODE_AUTO.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When the tool is there, or is requested: see the publisher's field.
    Auto = 0,
    /// From the beginning. A notice reports if the library has no such publisher.
    On = 1,
    /// Never: requests of other processes are refused, too.
    Off = 2,
}

/// Settings of a scribe. Set struct_size, set everything else to zero, and then set what you need.
///
/// Later versions have more fields at the end. A library that does not know them ignores them, and a newer library takes fields
/// that an older program does not have as zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// sizeof(jitscribe_settings)
    pub struct_size: usize,
    /// Bits of jitscribe_flag. 0: a log in memory, without the code's bytes.
    pub flags: u32,
    /// A jitscribe_mode. The perf map /tmp/perf-PID.map is kept up to date. AUTO: when `jitscribe ctl` requests it.
    pub perf_map: u32,
    /// A jitscribe_mode. The log is a file, jit-PID.dump in `dir`, as `perf inject --jit` and samply expect it. AUTO: as OFF, the log
    /// is in memory.
    pub jitdump: u32,
    /// A jitscribe_mode. Code is shown to gdb, lldb and other users of GDB's JIT interface. AUTO: if a debugger is attached at the
    /// beginning, if the control thread finds one later, or when `jitscribe ctl` requests it.
    pub gdb: u32,
    /// A jitscribe_mode. Code is registered with the unwinders in the process before its announcement returns, and until it is
    /// unloaded: exceptions pass through it, and backtraces do not end at it. It must be announced with its unwind info. Code that
    /// the log does not accept (because it is full, or off) is not registered. Code in an arena needs no registration. AUTO: as OFF.
    pub unwinders: u32,
    /// A jitscribe_mode. Code is shown to the Valgrind that runs the process, by object files in `dir`. AUTO: under Valgrind.
    pub valgrind: u32,
    /// A jitscribe_mode. Code is reported to VTune, or another tool that sets INTEL_JIT_PROFILER64 to the path of its collector, which
    /// is loaded into the process. AUTO: where the variable is set. A program that runs set-user-ID never loads it.
    pub vtune: u32,
    /// A jitscribe_mode. OpenTelemetry's process context (OTEP 4719) says to profilers and other readers outside where the log is. A
    /// process has one context at most: if another part of it, such as an SDK, publishes one, ours is not published, or withdrawn.
    /// Such a program adds what jitscribe_code_context returns to its own context. AUTO: as OFF.
    pub process_context: u32,
    /// Maximum size of the log in bytes. 0: 64 MiB, or 4 GiB if it is a file.
    pub limit: u64,
    /// The directory for the dump, the object files for Valgrind, and the files of arenas: only this user may be able to write to
    /// it, and for arenas its file system must allow files to be executed. Empty: the directory `jitscribe` in XDG_RUNTIME_DIR, or in
    /// ~/.cache.
    pub dir: Str,
    /// The directory of the perf map. Empty: /tmp, the only one in which perf looks.
    pub perf_map_dir: Str,
    /// The name of the module in which VTune shows the code. Empty: `jit`.
    pub vtune_module: Str,
    /// The `service.name` of the process context, without which readers know no service.
    pub service_name: Str,
    /// Settings as words of the environment's JITSCRIBE, for a runtime that has an option for them: a comma-separated list of the
    /// flags, and of publishers with their mode, such as "bytes,gdb=off". They override the fields.
    pub words: Str,
    /// NULL: nothing is announced again when the log is turned on from outside.
    pub replay: ReplayFn,
    /// Passed to `replay`. It must live as long as the process, and be usable from any thread.
    pub replay_data: *mut c_void,
    /// NULL: notices are discarded.
    pub notice: NoticeFn,
    /// Like `replay_data`.
    pub notice_data: *mut c_void,
}

/// The flags, as words.
const FLAGS: [(Flag, &str); 7] = [
    (Flag::Off, "off"),
    (Flag::Bytes, "bytes"),
    (Flag::Strict, "strict"),
    (Flag::ArchClock, "arch-clock"),
    (Flag::ControlThread, "control-thread"),
    (Flag::GdbSynchronous, "gdb-synchronous"),
    (Flag::GdbOnCrash, "gdb-on-crash"),
];

impl Settings {
    /// The modes, each with the words for [`Mode::On`] and [`Mode::Off`].
    fn modes(&self) -> [(u32, [&'static str; 2]); 7] {
        [
            (self.perf_map, ["perf-map=on", "perf-map=off"]),
            (self.jitdump, ["jitdump=on", "jitdump=off"]),
            (self.gdb, ["gdb=on", "gdb=off"]),
            (self.unwinders, ["unwinders=on", "unwinders=off"]),
            (self.valgrind, ["valgrind=on", "valgrind=off"]),
            (self.vtune, ["vtune=on", "vtune=off"]),
            (self.process_context, ["process-context=on", "process-context=off"]),
        ]
    }
}

// SAFETY: only integers, pointers and nullable function pointers. By the contract of the header, bytes other than NULL are a
// valid function pointer, and it is called only under that contract.
unsafe impl Versioned for Settings {
    const LEAST: usize = offset_of!(Settings, limit);
}

/// The data of a callback.
#[derive(Clone, Copy)]
struct Data(*mut c_void);
// SAFETY: it is passed on and never dereferenced here. The header requires of the caller that the data is usable
// from any thread.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Creates a scribe.
///
/// # Safety
/// `settings` fulfils the contract of the header: its string is readable, and its callbacks may be called with their data from
/// any thread as long as the process lives.
pub(crate) unsafe fn open(settings: Option<&Settings>) -> Result<&'static OpaqueScribe, Failure> {
    let mut builder = Scribe::builder();
    // A callback may be called before `build` returns.
    let Ok(opened) = Shared::new(OnceLock::new()) else {
        return Ok(refused(settings));
    };
    if let Some(settings) = settings {
        // SAFETY: guaranteed by the caller.
        builder = unsafe { apply(settings, builder, &opened) }?;
    }
    let scribe = builder.build();
    Ok(opened.get_or_init(|| OpaqueScribe::new(scribe)))
}

/// The scribe that writes nothing, used when there is no memory for another.
fn refused(settings: Option<&Settings>) -> &'static OpaqueScribe {
    if let Some(settings) = settings
        && let Some(notice) = settings.notice
    {
        let text = c"out of memory: no code is announced";
        // SAFETY: the caller that set the callback guarantees that it may be called with its data; the text ends with a NUL.
        unsafe { notice(settings.notice_data, Subject::Log as u32, text.as_ptr()) }
    }
    OpaqueScribe::new(Scribe::off())
}

/// A path of the caller's.
#[cfg(unix)]
fn path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// A path of the caller's, which is UTF-8 on Windows; other bytes end it.
#[cfg(windows)]
fn path(bytes: &[u8]) -> &Path {
    Path::new(start(bytes))
}

/// The part of a text before its first byte that is not UTF-8.
fn start(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Settings of publishers that other systems lack.
#[cfg(target_os = "linux")]
unsafe fn apply_names(settings: &Settings, mut builder: Builder) -> Result<Builder, Failure> {
    let Settings { perf_map_dir, vtune_module, service_name, .. } = settings;
    // SAFETY: guaranteed by the caller.
    let (dir, module, service) =
        unsafe { (perf_map_dir.bytes()?, vtune_module.bytes()?, service_name.bytes()?) };
    #[cfg(feature = "perf-map")]
    if !dir.is_empty() {
        builder = builder.perf_map_dir(path(dir));
    }
    #[cfg(not(feature = "perf-map"))]
    let _ = dir;
    #[cfg(feature = "vtune")]
    if !module.is_empty() {
        builder = builder.vtune_module(start(module));
    }
    #[cfg(not(feature = "vtune"))]
    let _ = module;
    if !service.is_empty() {
        builder = builder.service_name(start(service));
    }
    Ok(builder)
}

#[cfg(not(target_os = "linux"))]
unsafe fn apply_names(_: &Settings, builder: Builder) -> Result<Builder, Failure> {
    Ok(builder)
}

/// # Safety
/// As [`open`].
unsafe fn apply(
    settings: &Settings,
    mut builder: Builder,
    opened: &Shared<OnceLock<&'static OpaqueScribe>>,
) -> Result<Builder, Failure> {
    // SAFETY: guaranteed by the caller.
    let (dir, words) = unsafe { (settings.dir.bytes()?, settings.words.bytes()?) };
    for (flag, word) in FLAGS {
        if settings.flags & flag as u32 != 0 {
            builder = builder.words(word);
        }
    }
    for (mode, [on, off]) in settings.modes() {
        if mode == Mode::On as u32 {
            builder = builder.words(on);
        } else if mode == Mode::Off as u32 {
            builder = builder.words(off);
        }
    }
    builder = builder.words(start(words));
    // SAFETY: guaranteed by the caller.
    builder = unsafe { apply_names(settings, builder) }?;
    if !dir.is_empty() {
        builder = builder.dir(path(dir));
    }
    if settings.limit != 0 {
        builder = builder.limit(usize::try_from(settings.limit).unwrap_or(usize::MAX));
    }
    if let Some(replay) = settings.replay {
        let data = Data(settings.replay_data);
        let opened = Shared::clone(opened);
        builder = builder.replay(move |scribe| {
            let scribe = *opened.get_or_init(|| OpaqueScribe::new(scribe));
            // SAFETY: the caller guarantees that it may be called from any thread with its data.
            call_host(|| unsafe { replay(data.get(), scribe) });
        });
    }
    if let Some(notice) = settings.notice {
        let data = Data(settings.notice_data);
        builder = builder.notice(move |said: &Notice| {
            // Longer than any notice, including the NUL. On the stack, because this may be a signal handler.
            let mut text = [0; 1024];
            let mut space = text.split_last_mut().map_or(&mut [][..], |(_, space)| space);
            let size = space.len();
            let _ = write!(space, "{said}");
            let length = size.saturating_sub(space.len());
            let written = text.iter_mut().take(length);
            written.filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
            let said_text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
            let subject = Subject::from(said.subject()) as u32;
            sanitizers::written(text.as_ptr(), text.len());
            // SAFETY: as above; the text ends with a NUL and outlives the call.
            call_host(|| unsafe { notice(data.get(), subject, said_text.as_ptr()) });
        });
    }
    // Last, so that the environment overrides the program.
    let is_wanted = settings.flags & Flag::Environment as u32 != 0;
    Ok(if is_wanted { builder.environment() } else { builder })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What the library reports of a scribe with these words.
    fn said(words: &str) -> Vec<String> {
        let said = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&said);
        let keep = move |notice: &Notice| list.lock().expect("a list").push(notice.to_string());
        let _ = Scribe::builder().words(words).notice(keep).build();
        let said = said.lock().expect("a list").clone();
        said.into_iter().filter(|text| text.contains("JITSCRIBE value")).collect()
    }

    #[test]
    fn each_flag_and_each_mode_is_a_word_of_the_environment() {
        for (_, word) in FLAGS {
            assert!(said(&format!("off,{word}")).is_empty(), "{word}");
        }
        let settings = Settings {
            perf_map: 0,
            jitdump: 1,
            gdb: 2,
            unwinders: 3,
            valgrind: 4,
            vtune: 5,
            process_context: 6,
            // SAFETY: zeros are numbers, empty texts, and no functions.
            ..unsafe { std::mem::zeroed() }
        };
        for (number, (field, [on, off])) in (0..).zip(settings.modes()) {
            assert_eq!(field, number, "{on} has another field");
            assert!(off.ends_with("=off") && said(off).is_empty(), "{off}");
            assert_eq!(on.strip_suffix("=on"), off.strip_suffix("=off"));
        }
        assert_eq!(said("gdb=never,off").len(), 1);
    }
}

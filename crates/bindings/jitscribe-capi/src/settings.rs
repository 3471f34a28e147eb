//! Settings of a scribe.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::mem::offset_of;
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
/// outside, on whichever thread announces, polls or watches at that time, with no lock held.
///
/// It must return: no exception, no longjmp.
pub type ReplayFn = Option<unsafe extern "C" fn(data: *mut c_void, scribe: *const OpaqueScribe)>;

/// Receives a notice: a feature is not available, and is off from now on. The program is not affected. Each notice is reported
/// once, on the thread that met the problem. `subject` is a jitscribe_subject. `text` is one line of English that ends with a
/// NUL, and is invalid after the function returns.
///
/// If code is announced in a signal handler, this function may be called there, and must then be async-signal-safe.
///
/// It must return: no exception, no longjmp.
pub type NoticeFn =
    Option<unsafe extern "C" fn(data: *mut c_void, subject: u32, text: *const c_char)>;

/// What a scribe does. The library ignores bits that it does not know.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing is written until `jitscribe ctl -p PID on` requests it. Then `replay` is called.
    Off = 1,
    /// The log also contains the code's bytes, so tools show the assembly of code that is long gone. This costs the time to copy
    /// the bytes, and the space for them.
    Bytes = 2,
    /// Also write /tmp/perf-PID.map, and keep it up to date.
    PerfMap = 4,
    /// The log is a file, jit-PID.dump in `dump_dir`, as `perf inject --jit` expects it.
    Dump = 8,
    /// A thread waits for requests of `jitscribe ctl`. Without it, the next announcement or poll applies them.
    Watch = 16,
    /// Settings from the environment are added. JITSCRIBE is a comma-separated list of log, off, bytes, strict, arch-clock, perf-map,
    /// jitdump, gdb, gdb-each, gdb-on-crash, no-gdb, unwinders, no-unwinders, vtune, no-vtune, process-context, no-process-context.
    /// JITSCRIBE_DIR is the directory for a dump. OTEL_SERVICE_NAME is the name of the service in a process context.
    /// JITSCRIBE_LIMIT is a size in bytes, or with K, M, G. A program that runs set-user-ID ignores these variables.
    Environment = 32,
    /// Code is registered with the unwinders in the process before its announcement returns, and until it is unloaded: exceptions
    /// pass through it, and backtraces do not end at it. It must be announced with its unwind info. Code that the log does not
    /// accept (because it is full, or off) is not registered. Code in an arena needs no registration.
    Unwinders = 64,
    /// Before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process, all code that is alive is shown to
    /// debuggers, so that any debugger finds it in the core file. A thread waits for that. jitscribe_open installs signal
    /// handlers. A previously installed handler runs first, and the code is shown if that handler sets the signal to SIG_DFL and
    /// returns.
    ShowOnCrash = 128,
    /// Timestamps are counts of the processor's own clock (x86-64's rdtsc) instead of nanoseconds of CLOCK_MONOTONIC: for
    /// recordings that are not made with `perf record -k mono`. A notice reports if there is no such clock.
    ArchClock = 256,
    /// OpenTelemetry's process context (OTEP 4719) says to profilers and other readers outside where the log is. A process has one
    /// context at most: if another part of it, such as an SDK, publishes one, ours is not published, or withdrawn. Such a program
    /// adds what jitscribe_code_context returns to its own context. Not on Windows.
    ProcessContext = 512,
    /// No code is reported to VTune, and no collector is loaded. Without this flag, a program in whose environment
    /// INTEL_JIT_PROFILER64 is set, as VTune does, loads the library that it names. A program that runs set-user-ID never does.
    NoVtune = 1024,
    /// Each mistake in the description of a code is reported (JITSCRIBE_SUBJECT_DESCRIPTION), not only the first of its kind.
    Strict = 2048,
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
    /// Reserved: set to 0.
    pub reserved: u32,
    /// Maximum size of the log in bytes. 0: 64 MiB, or 4 GiB if it is a file.
    pub limit: u64,
    /// For JITSCRIBE_FLAG_DUMP: a directory to which only this user can write. Empty: the directory `jitscribe` in
    /// XDG_RUNTIME_DIR, or in ~/.cache.
    pub dump_dir: Str,
    /// NULL: nothing is announced again when the log is turned on from outside.
    pub replay: ReplayFn,
    /// Passed to `replay`. It must live as long as the process, and be usable from any thread.
    pub replay_data: *mut c_void,
    /// NULL: notices are discarded.
    pub notice: NoticeFn,
    /// Like `replay_data`.
    pub notice_data: *mut c_void,
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

/// Settings for what other processes read.
#[cfg(unix)]
fn apply_shared(mut builder: Builder, has: impl Fn(Flag) -> bool, dump_dir: &[u8]) -> Builder {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    if has(Flag::PerfMap) {
        builder = builder.perf_map();
    }
    if has(Flag::Dump) {
        builder = match dump_dir {
            [] => builder.jitdump(),
            dir => builder.jitdump_in(Path::new(OsStr::from_bytes(dir))),
        };
    }
    if has(Flag::Watch) {
        builder = builder.control_thread();
    }
    if has(Flag::ProcessContext) {
        builder = builder.process_context();
    }
    builder
}

/// Windows has none of these; unknown flags are ignored.
#[cfg(windows)]
fn apply_shared(builder: Builder, _: impl Fn(Flag) -> bool, _: &[u8]) -> Builder {
    builder
}

/// # Safety
/// As [`open`].
unsafe fn apply(
    settings: &Settings,
    mut builder: Builder,
    opened: &Shared<OnceLock<&'static OpaqueScribe>>,
) -> Result<Builder, Failure> {
    let has = |flag: Flag| settings.flags & flag as u32 != 0;
    // SAFETY: guaranteed by the caller.
    let dump_dir = unsafe { settings.dump_dir.bytes() }?;
    if has(Flag::Off) {
        builder = builder.start_disabled();
    }
    if has(Flag::Bytes) {
        builder = builder.with_bytes();
    }
    builder = apply_shared(builder, has, dump_dir);
    if has(Flag::Strict) {
        builder = builder.strict();
    }
    if has(Flag::Unwinders) {
        builder = builder.unwinders();
    }
    if has(Flag::ShowOnCrash) {
        builder = builder.gdb_on_crash();
    }
    if has(Flag::NoVtune) {
        builder = builder.no_vtune();
    }
    if has(Flag::ArchClock) {
        builder = builder.arch_clock();
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
        builder = builder.on_notice(move |said: &Notice| {
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
    Ok(if has(Flag::Environment) { builder.environment() } else { builder })
}

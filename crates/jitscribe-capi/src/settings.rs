//! Settings of a scribe.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

use jitscribe::{Builder, Notice, Scribe};

use crate::notice::Subject;
use crate::opaque::OpaqueScribe;
use crate::outcome::Failure;
use crate::raw::Versioned;
use crate::text::Str;

/// Announces all code that is alive by jitscribe_load, each with a new handle. Called when the log is turned on from
/// outside, from whatever thread announces, polls or watches at that time, with no lock held.
///
/// It must return: no exception, no longjmp.
pub type ReplayFn = Option<unsafe extern "C" fn(data: *mut c_void, scribe: *const OpaqueScribe)>;

/// Takes a notice: something could not be had, and is off from now on; the program is not affected. Each is said once,
/// from whatever thread met it. `subject` is a jitscribe_subject; `text` is one line of English that ends with a NUL,
/// and is gone when the function returns.
///
/// It must return: no exception, no longjmp.
pub type NoticeFn =
    Option<unsafe extern "C" fn(data: *mut c_void, subject: u32, text: *const c_char)>;

/// What a scribe does. Bits that a library does not know are ignored.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing is written until someone asks for it by `jitscribe ctl -p PID on`. Then `replay` is
    /// called.
    Off = 1,
    /// The log gets the code's bytes too: tools show the assembly of code that is long gone. It costs
    /// what copying them costs, and the room they take.
    Bytes = 2,
    /// /tmp/perf-PID.map is kept true too.
    PerfMap = 4,
    /// The log is a file, jit-PID.dump in `dump_dir`, as `perf inject --jit` wants it.
    Dump = 8,
    /// A thread waits for `jitscribe ctl`, which else is heard with the next announcement or poll.
    Watch = 16,
    /// What the environment says is added: JITSCRIBE, a list with commas of log, off, bytes, arch-clock,
    /// perf-map, jitdump, gdb, gdb-each, gdb-on-crash, no-gdb, unwinders, no-unwinders; JITSCRIBE_DIR, where to write a dump;
    /// JITSCRIBE_LIMIT, in bytes or with K, M, G. A program that runs set-user-id takes nothing from there.
    Environment = 32,
    /// Unwinders in the process learn of code before its announcement is done, until it is unloaded: then exceptions pass
    /// through it, and backtraces do not end at it. It must be announced with its unwind info. What the log does not take
    /// (it is full, or off) they do not learn. Code in an arena needs no asking.
    Unwinders = 64,
    /// Before SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP or SIGSYS ends the process, debuggers are shown all code that
    /// is alive: any of them knows it in the core file. A thread waits for that. Signal handlers are installed by jitscribe_open;
    /// one that was there is called first, and all is shown when it has set the signal to its default and returns.
    ShowOnCrash = 128,
    /// Times are counts of the processor's own clock (x86-64's rdtsc) instead of nanoseconds of CLOCK_MONOTONIC: for recordings
    /// that are not made with `perf record -k mono`. Where there is no such clock, a notice says so.
    ArchClock = 256,
}

/// Settings of a scribe. Set all to zero but struct_size, and then what you want.
///
/// Later versions have more fields at the end; a library that does not know them ignores them, and takes those that
/// an older program does not have for zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// sizeof(jitscribe_settings)
    pub struct_size: usize,
    /// Bits of jitscribe_flag. 0: a log in memory, without the code's bytes.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
    /// How many bytes the log may take. 0: 64 MiB, or 4 GiB if it is a file.
    pub limit: u64,
    /// For JITSCRIBE_FLAG_DUMP: a directory to which only this user can write. Empty: a folder `jitscribe`
    /// in XDG_RUNTIME_DIR, or in the home's .cache.
    pub dump_dir: Str,
    /// NULL: nothing is announced again when the log is turned on from outside.
    pub replay: ReplayFn,
    /// Passed to `replay`. It must be there as long as the process, and bear use from any thread.
    pub replay_data: *mut c_void,
    /// NULL: notices go nowhere.
    pub notice: NoticeFn,
    /// As `replay_data`.
    pub notice_data: *mut c_void,
}

// SAFETY: integers, pointers and nullable function pointers alone. A function pointer from other
// bytes than NULL is one by the contract of the header, and is called only by that.
unsafe impl Versioned for Settings {
    const LEAST: usize = offset_of!(Settings, limit);
}

/// The data of a callback.
#[derive(Clone, Copy)]
struct Data(*mut c_void);
// SAFETY: it is passed on and never followed here; that what it points to bears use from any thread is
// what the header asks of whoever sets a callback.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Makes a scribe.
///
/// # Safety
/// `settings` keeps to the contract of the header: its string is readable, its callbacks may be called with
/// their data from any thread as long as the process lives.
pub(crate) unsafe fn open(settings: Option<&Settings>) -> Result<&'static OpaqueScribe, Failure> {
    let mut builder = Scribe::builder();
    // A callback may come before `build` has returned.
    let opened = Arc::new(OnceLock::new());
    if let Some(settings) = settings {
        // SAFETY: the caller's promise.
        builder = unsafe { apply(settings, builder, &opened) }?;
    }
    let scribe = builder.build();
    Ok(opened.get_or_init(|| OpaqueScribe::new(scribe)))
}

/// What other processes read.
#[cfg(unix)]
fn apply_shared(mut builder: Builder, has: impl Fn(Flag) -> bool, dump_dir: &[u8]) -> Builder {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    if has(Flag::PerfMap) {
        builder = builder.perf_map();
    }
    if has(Flag::Dump) {
        let dir = (!dump_dir.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(dump_dir)));
        builder = builder.dump(dir);
    }
    if has(Flag::Watch) {
        builder = builder.watch();
    }
    builder
}

/// There is no such thing on Windows; flags that a library does not know are ignored.
#[cfg(windows)]
fn apply_shared(builder: Builder, _: impl Fn(Flag) -> bool, _: &[u8]) -> Builder {
    builder
}

/// # Safety
/// As [`open`].
unsafe fn apply(
    settings: &Settings,
    mut builder: Builder,
    opened: &Arc<OnceLock<&'static OpaqueScribe>>,
) -> Result<Builder, Failure> {
    let has = |flag: Flag| settings.flags & flag as u32 != 0;
    // SAFETY: the caller's promise.
    let dump_dir = unsafe { settings.dump_dir.bytes() }?;
    if has(Flag::Off) {
        builder = builder.off();
    }
    if has(Flag::Bytes) {
        builder = builder.with_bytes();
    }
    builder = apply_shared(builder, has, dump_dir);
    if has(Flag::Unwinders) {
        builder = builder.unwinders();
    }
    if has(Flag::ShowOnCrash) {
        builder = builder.gdb_on_crash();
    }
    if has(Flag::ArchClock) {
        builder = builder.arch_clock();
    }
    if settings.limit != 0 {
        builder = builder.limit(usize::try_from(settings.limit).unwrap_or(usize::MAX));
    }
    if let Some(replay) = settings.replay {
        let data = Data(settings.replay_data);
        let opened = Arc::clone(opened);
        builder = builder.replay(move |scribe| {
            let scribe = *opened.get_or_init(|| OpaqueScribe::new(scribe));
            // SAFETY: the caller's promise: it may be called from any thread with its data.
            unsafe { replay(data.get(), scribe) }
        });
    }
    if let Some(notice) = settings.notice {
        let data = Data(settings.notice_data);
        builder = builder.on_notice(move |said: &Notice| {
            let text = said.to_string().replace('\0', " ");
            let Ok(text) = CString::new(text) else { return };
            let subject = Subject::from(said.subject()) as u32;
            // SAFETY: as above; the text ends with a NUL and outlives the call.
            unsafe { notice(data.get(), subject, text.as_ptr()) }
        });
    }
    // Last, so that who starts the program has the last word.
    Ok(if has(Flag::Environment) { builder.environment() } else { builder })
}

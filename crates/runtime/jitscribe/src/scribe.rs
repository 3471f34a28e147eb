//! The scribe: takes announcements, writes them to the log, and passes them on to the publishers.

use std::num::NonZeroU32;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::builder::Builder;
use crate::code_context;
#[cfg(feature = "gdb")]
use crate::crash_signal;
use crate::fork_state::{ForkState, ORPHAN, OWN, UNKNOWN, adopting};
use crate::host::Host;
use crate::log::{Failure, ForkPage, LiveCode, Log, LogEntry, Position};
use crate::mistakes;
use crate::notice::{self, Notice, Subject};
use crate::publishers::Publishers;
use crate::settings::Settings;
use crate::spin_lock::{Patience, SpinLock};
use crate::thread;
#[cfg(target_os = "linux")]
use fallible::IoError;
use fallible::{OsError, PathText, Place, Refused};
use guest::hold_signals;
use jit_code::Code;
use jitdump::extension::control;

/// Takes announcements of code. Copies refer to the same scribe, which lives as long as the process.
///
/// All methods may be called from any thread at any time. None of them fails, and none calls the runtime, except through the
/// callbacks [`Builder::notice`] and [`Builder::replay`]. An announcement waits for other threads only if more than 32
/// announce at the same moment, or if two need a new chunk of the log. It then sleeps for at most a second; after that, the code
/// is left out and counted. The publishers (perf map, debuggers, unwinders, Valgrind) have their own locks.
///
/// A signal handler may announce code, too, if no publisher is on and the code has no [`Unwind`](crate::Unwind) rows: publishers
/// and such rows need the allocator, which the signal may have interrupted.
#[derive(Clone, Copy, Debug)]
pub struct Scribe(pub(crate) &'static Shared);

/// Compares whether both refer to the same scribe.
impl PartialEq for Scribe {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Scribe {}

/// A code that was announced. Dropping it announces that the code is gone.
#[derive(Debug)]
#[must_use = "dropping it says that the code is gone; `leak` it if it lives as long as the process"]
pub struct LoadedCode {
    shared: &'static Shared,
    /// `None` if nothing was written.
    position: Option<Position>,
    index: u32,
}

/// Announces again all live code.
pub(crate) type Replay = Box<dyn Fn(Scribe) + Send + Sync>;

/// What all copies of a scribe share. It is never freed: a thread may be announcing while another one ends the process.
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) fork_state: ForkState,
    publishers: Publishers,
    replay: Option<Replay>,
    /// Whether the log was on when requests were applied last.
    was_on: AtomicBool,
    /// Held while requests are applied.
    applying: SpinLock,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("log", &self.host.log).finish_non_exhaustive()
    }
}

/// A scribe that writes nothing, for use before the settings are known.
static OFF: Shared = Shared {
    host: Host::new(None, Settings::off()),
    fork_state: ForkState::none(),
    publishers: Publishers::new(),
    replay: None,
    was_on: AtomicBool::new(false),
    applying: SpinLock::new(),
};

impl Scribe {
    /// The scribe of the process, with the settings of the environment; see [`Builder::environment`].
    ///
    /// The first call makes it. All others return the same scribe, also in other libraries of the process that use this crate. A
    /// second copy of the crate (another version, or one that is linked statically) has its own scribe. Readers merge the logs of
    /// a process.
    #[must_use]
    pub fn global() -> Self {
        // No `OnceLock`: the child of a fork would wait for ever for a thread that its parent had there.
        static MADE: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());
        /// The process and the thread that makes it, or has made it.
        static MAKER: AtomicU64 = AtomicU64::new(0);
        // SAFETY: it is null, or was stored below from a reference that is valid for ever, and that is never written through.
        #[allow(unsafe_code)]
        let made = || unsafe { MADE.load(Acquire).as_ref() }.map(Self);
        if let Some(scribe) = made() {
            return scribe;
        }
        let process = crate::log::process_id();
        let us = u64::from(process) << 32 | u64::from(crate::system::thread_id());
        loop {
            if let Some(scribe) = made() {
                return scribe;
            }
            let maker = MAKER.load(Acquire);
            if maker == us {
                // A callback of the builder called this.
                return Self::off();
            }
            if maker >> 32 == u64::from(process) {
                crate::system::nap(std::time::Duration::from_millis(1));
                continue;
            }
            let _signals = hold_signals();
            if MAKER.compare_exchange(maker, us, AcqRel, Relaxed).is_ok() {
                let scribe = Self::builder().environment().build();
                MADE.store(std::ptr::from_ref(scribe.0).cast_mut(), Release);
                return scribe;
            }
        }
    }

    /// A scribe with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A scribe that never writes anything.
    #[must_use]
    pub const fn off() -> Self {
        Self(&OFF)
    }

    pub(crate) fn new(settings: Settings, replay: Option<Replay>) -> Self {
        let _uncounted = guest::uncounted();
        let report = |subject, text: &dyn std::fmt::Display| {
            notice::report(settings.listener.as_ref(), &Notice::new(subject, text));
        };
        let Ok(place) = Place::new() else {
            notice::report(settings.listener.as_ref(), &Notice::out_of_memory(Subject::Log));
            return Self::off();
        };
        let log = fallible::attempt(|| {
            Log::create(settings.log.clone(), |failure, instead| {
                report(Subject::Log, &format_args!("{failure}; {instead}"));
            })
        })
        .unwrap_or_else(|Refused| Err(Failure::memory("the code log")))
        .map_err(|failure| report(Subject::Log, &format_args!("{failure}; no code is announced")))
        .ok();
        let page = ForkPage::new()
            .map_err(|error| {
                report(Subject::Fork, &format_args!("no page is cleared on fork ({}): each announcement asks for the process's id", OsError(error.raw_os_error())));
            })
            .ok();
        let was_on = AtomicBool::new(settings.log.control != 0);
        let shared = Box::leak(place.fill(Shared {
            host: Host::new(log, settings),
            fork_state: ForkState::new(page),
            publishers: Publishers::new(),
            replay,
            was_on,
            applying: SpinLock::new(),
        }));
        let scribe = Self(shared);
        scribe.begin();
        scribe
    }

    /// Whether announcements are written to the log. If not, a runtime can skip the preparation of announcements.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.control() != 0 || self.0.is_on_after_all()
    }

    /// [`Self::is_on`] as far as a few loads can tell; `None` while the child of a fork has no log of its own yet. It cannot
    /// panic, and calls nothing that a sanitizer of the host intercepts: for bindings, which need not prepare for either then.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn is_on_at_a_glance(&self) -> Option<bool> {
        let Some(log) = &self.0.host.log else { return Some(false) };
        // The state is read first: while another thread creates the child's log, the word may read 0. If a signal handler forks
        // between the two loads, the word is the parent's, which is what the child's log will begin with.
        if self.0.fork_state.get_from_page() != Some(OWN) {
            return None;
        }
        Some(log.control().load(Relaxed) != 0)
    }

    /// Announces code that is new, or that replaces other code at its addresses. Call it before the code runs.
    #[inline]
    pub fn load(&self, code: &Code<'_>) -> LoadedCode {
        if !self.is_on() {
            return LoadedCode { shared: self.0, position: None, index: 0 };
        }
        self.0.load(code)
    }

    /// Applies requests of other processes (`jitscribe ctl`). Announcements do this, too; a runtime that announces nothing for a
    /// long time may call this from time to time.
    pub fn poll(&self) {
        code_context::look();
        if self.0.control() & control::REQUEST != 0 {
            self.0.apply_requests();
        }
    }

    /// The descriptor of the log's file: a memfd, or the dump. It is closed when the process ends or executes another program; a
    /// process that has a copy of the descriptor can read the log after that.
    ///
    /// `None` if there is no file, or if the process has closed the descriptor, whose number may now refer to another file. The
    /// log works without it, and tools find the log by its mapping.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn log_fd(&self) -> Option<std::os::fd::BorrowedFd<'static>> {
        let log = self.0.host.log.as_ref()?;
        if self.0.fork_state.get() == OWN {
            log.copy_inherited();
        }
        log.fd()
    }

    /// The path of the dump, if the log is a file.
    #[must_use]
    #[allow(clippy::disallowed_types, reason = "the caller's, made in memory that was not refused")]
    pub fn dump_path(&self) -> Option<std::path::PathBuf> {
        self.0.host.log.as_ref()?.path().map(PathText::into_path_buf)
    }

    fn begin(&self) {
        let shared = self.0;
        let host = &shared.host;
        if let Some(log) = host.log.as_ref().filter(|_| host.settings.strict) {
            log.suspect(true);
        }
        #[cfg(target_os = "linux")]
        if host.settings.control_thread && host.log.is_some() {
            let watch = move || shared.watch();
            if let Err(error) = guest::spawn("jitscribe", watch) {
                host.report(
                    Subject::Log,
                    format_args!("cannot start the control thread: {}", IoError(&error)),
                );
            }
        }
        if let Some(log) = &host.log {
            shared.list(log);
        }
        shared.publishers.prepare(host);
        #[cfg(feature = "gdb")]
        if host.settings.gdb_on_crash && host.log.is_some() {
            crash_signal::begin(host, move || shared.show_all());
        }
        self.poll();
    }
}

impl LoadedCode {
    /// Announces that the code was moved to the address of `bytes`, and is otherwise unchanged. Call it before the code runs
    /// there.
    pub fn moved_to(&mut self, bytes: &[u8]) {
        self.moved(bytes.as_ptr().addr() as u64, Some(bytes));
    }

    /// [`Self::moved_to`] without the bytes, or for code that is written at another address than it runs at.
    pub fn moved_to_address(&mut self, address: u64) {
        self.moved(address, None);
    }

    /// Whether this is not a handle of live code: it was made by [`Self::from_raw`] from the number of a code that has moved or
    /// is gone since, or of a code that was left out of the log of a fork's child because there was no space. A stale handle does
    /// nothing.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        let log = self.shared.current().zip(self.position);
        log.is_some_and(|(log, position)| log.living(position, self.index).is_none())
    }

    fn moved(&mut self, address: u64, bytes: Option<&[u8]>) {
        let Some((log, position, living)) = self.living() else { return };
        let from = (position, self.index);
        let new = log.move_to(position, self.index, address, bytes, thread::id());
        let is_wanted = self.shared.publishers.are_there_for(address);
        let pass_on = |publishers: &Publishers| publishers.moved(log, from, new, address);
        self.shared.end(log, from, living, is_wanted, pass_on);
        self.position = new.map(|(position, _)| position);
        self.index = new.map_or(0, |(_, index)| index);
        if new.is_none() {
            self.shared.host.report_left_out();
        }
    }

    /// The log, and the code's place in it, if the code is live.
    #[inline]
    fn living(&self) -> Option<(&'static Log, Position, LiveCode<'static>)> {
        let (log, position) = self.shared.current().zip(self.position)?;
        Some((log, position, log.living(position, self.index)?))
    }

    /// Announces that the code is gone, as dropping does. `false`: the handle [is stale](Self::is_stale).
    pub fn unload(self) -> bool {
        let was_valid = self.end();
        std::mem::forget(self);
        was_valid
    }

    /// Announces that the code is gone, unless the handle is stale.
    #[inline]
    fn end(&self) -> bool {
        let Some((log, position)) = self.shared.current().zip(self.position) else { return true };
        let Some(living) = log.living(position, self.index) else { return false };
        let entry = (position, self.index);
        let is_wanted = self.shared.publishers.are_there();
        self.shared.end(log, entry, living, is_wanted, |publishers| publishers.unload(log, entry));
        true
    }

    /// Forgets the handle: the code lives as long as the process.
    pub fn leak(self) {
        let _ = self.into_raw();
    }

    /// The handle as a number, for example for a C API. 0 if nothing was written.
    #[must_use = "the code stays announced until `from_raw` gets it back"]
    pub fn into_raw(self) -> u64 {
        let position = self.position.map_or(0, NonZeroU32::get);
        let raw = u64::from(position) << 32 | u64::from(self.index);
        std::mem::forget(self);
        raw
    }

    /// The handle for a number from [`Self::into_raw`]. If the code is gone, or the number is 0 or was never given out, it does
    /// nothing: see [`Self::is_stale`].
    pub fn from_raw(scribe: Scribe, raw: u64) -> Self {
        let position = NonZeroU32::new((raw >> 32) as u32);
        Self { shared: scribe.0, position, index: raw as u32 }
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    #[inline]
    pub(crate) fn control(&self) -> u32 {
        self.host.log.as_ref().map_or(0, |log| log.control().load(Relaxed))
    }

    /// [`Scribe::is_on`] if the control word reads 0, which means nothing while the child of a fork creates its own log.
    #[inline]
    fn is_on_after_all(&'static self) -> bool {
        let Some(log) = &self.host.log else { return false };
        match self.fork_state.get() {
            // The word that was read is the parent's, or there is no log.
            UNKNOWN | ORPHAN => false,
            // Read again: the first read may have been of the parent's log.
            OWN => log.control().load(Relaxed) != 0,
            _ => self.after_fork(log).is_some_and(|log| log.control().load(Relaxed) != 0),
        }
    }

    /// The log of this process; in the child of a fork, not that of the parent.
    #[inline]
    pub(crate) fn current(&'static self) -> Option<&'static Log> {
        let log = self.host.log.as_ref()?;
        if self.fork_state.get() == OWN { Some(log) } else { self.after_fork(log) }
    }

    #[cold]
    fn after_fork(&'static self, log: &'static Log) -> Option<&'static Log> {
        // The cached thread id is the parent's.
        let us = adopting(crate::system::thread_id());
        let mut patience = Patience::default();
        loop {
            match self.fork_state.get() {
                OWN => return Some(log),
                ORPHAN => return None,
                UNKNOWN => {
                    let _signals = hold_signals();
                    if self.fork_state.begin(us) {
                        self.fork_state.set(if self.adopt(log) { OWN } else { ORPHAN });
                    }
                }
                who => {
                    if who == us || !patience.wait() {
                        return None;
                    }
                }
            }
        }
    }

    /// Adds the log to those of the process, which its process context lists.
    fn list(&'static self, log: &Log) {
        let (address, size) = log.mapped();
        let log = code_context::CodeLog { address, size, version: Log::VERSION };
        let settings = &self.host.settings;
        let wish = settings
            .process_context
            .then_some(code_context::Wish { service_name: settings.service_name.as_deref() });
        code_context::add(log, self.fork_state.page(), wish, |subject, text| {
            self.host.report(subject, text);
        });
    }

    fn adopt(&'static self, log: &Log) -> bool {
        // The thread id in lanes: this thread has a lane if a signal handler forked in the middle of an announcement.
        let before = thread::forget_ids(crate::log::process_id());
        self.applying.reset();
        // Publishers look up codes again and again.
        match log.adopt(before, !self.publishers.are_there()) {
            Ok(()) => {
                self.list(log);
                self.publishers.forked(log);
                #[cfg(feature = "gdb")]
                if self.host.settings.gdb_on_crash {
                    crash_signal::forked(&self.host);
                }
                true
            }
            Err(failure) => {
                self.host.report(
                    Subject::Fork,
                    format_args!("{failure}; this process announces no code"),
                );
                false
            }
        }
    }

    fn load(&'static self, code: &Code<'_>) -> LoadedCode {
        // Created only where it is returned: dropping an unused one would cost time.
        let nothing = || LoadedCode { shared: self, position: None, index: 0 };
        let Some(log) = self.current() else { return nothing() };
        let mut control_bits = log.control().load(Relaxed);
        if control_bits & control::REQUEST != 0 {
            self.apply_requests();
            control_bits = log.control().load(Relaxed);
        }
        if control_bits & control::LOG == 0 {
            return nothing();
        }
        let written = if self.publishers.are_there_for(code.address) {
            self.load_and_publish(log, control_bits, code)
        } else {
            log.load(code, control_bits & control::BYTES != 0, thread::id())
        };
        match written {
            Some((position, index)) => {
                if mistakes::may_be_in(log, code) {
                    self.host.report_mistakes(log, code);
                }
                LoadedCode { shared: self, position: Some(position), index }
            }
            None => {
                self.host.report_left_out();
                nothing()
            }
        }
    }

    /// Not inlined, for the same reason as [`Self::publish`].
    #[cold]
    #[inline(never)]
    fn load_and_publish(&self, log: &Log, control_bits: u32, code: &Code<'_>) -> Option<LogEntry> {
        let _uncounted = guest::uncounted();
        let written = log.load(code, control_bits & control::BYTES != 0, thread::id());
        self.publish(|publishers| publishers.load(log, code, written));
        written
    }

    /// Calls the publishers. Not inlined: otherwise every announcement would pay for the stack space that this needs.
    #[cold]
    #[inline(never)]
    fn publish(&self, pass_on: impl FnOnce(&Publishers)) {
        if !self.publishers.are_on() {
            return;
        }
        let _uncounted = guest::uncounted();
        if self.publishers.must_hold_signals() {
            // Publishers lock and allocate: a signal handler that announces would wait for the thread that it interrupted.
            let _signals = hold_signals();
            pass_on(&self.publishers);
        } else {
            let _thread = guest::without_cancellation();
            pass_on(&self.publishers);
        }
        self.publishers.report_refusals(&self.host);
    }

    /// Ends a code in the log, after `pass_on` has informed the publishers if one `is_wanted`.
    #[inline]
    fn end(
        &self,
        log: &Log,
        entry: LogEntry,
        living: LiveCode<'_>,
        is_wanted: bool,
        pass_on: impl FnOnce(&Publishers),
    ) {
        if !is_wanted {
            return log.end(living);
        }
        let mut is_awaited = false;
        self.publish(|publishers| {
            pass_on(publishers);
            is_awaited = publishers.awaits_end(log, entry);
        });
        log.end(living);
        if is_awaited {
            self.publish(Publishers::ended);
        }
    }

    /// Applies the requests in the control word.
    #[cold]
    fn apply_requests(&'static self) {
        let Some(log) = self.current() else { return };
        let mut is_new = false;
        if let Some(_applying) = self.applying.try_lock() {
            while let request @ control::REQUEST.. = log.control().load(Acquire) {
                let requested = request & !control::REQUEST;
                let is_on = requested & control::LOG != 0;
                let was_on = self.was_on.swap(is_on, Relaxed);
                if is_on != was_on {
                    log.paused(!is_on);
                }
                is_new = is_on && !was_on;
                let fulfilled = self.publishers.start(requested, &self.host, log);
                let _ = log.control().compare_exchange(request, fulfilled, AcqRel, Relaxed);
            }
        }
        self.publishers.report_refusals(&self.host);
        if is_new && let Some(replay) = &self.replay {
            replay(Scribe(self));
        }
    }

    /// Shows debuggers all live code, as if another process had requested it.
    #[cfg(feature = "gdb")]
    pub(crate) fn show_all(&'static self) {
        let Some(log) = self.current() else { return };
        log.control().fetch_or(control::GDB | control::REQUEST, AcqRel);
        loop {
            self.apply_requests();
            if log.control().load(Acquire) & control::REQUEST == 0 {
                return;
            }
            // Another thread is applying requests.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Waits for requests, for ever.
    #[cfg(target_os = "linux")]
    fn watch(&'static self) {
        use rustix::thread::futex;
        let Some(log) = self.current() else { return };
        let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        // A debugger that has requested breakpoints reads the log itself.
        let shown = control::GDB | control::BREAKPOINTS;
        let mut looks_for_debuggers = self.host.settings.look_for_debuggers;
        let mut asked_for_debuggers = false;
        loop {
            let control = log.control().load(Acquire);
            if control & control::REQUEST != 0 {
                self.apply_requests();
                continue;
            }
            // Debuggers do not support code of this machine.
            if std::mem::take(&mut asked_for_debuggers) && control & shown == 0 {
                looks_for_debuggers = false;
            }
            let looks = looks_for_debuggers && control & shown == 0;
            if looks && control & control::LOG != 0 && crate::system::is_traced() {
                log.control().fetch_or(control::GDB | control::REQUEST, AcqRel);
                asked_for_debuggers = true;
                continue;
            }
            code_context::look();
            // Interrupted, changed, woken or timed out: in each case, the word is read again.
            let time = (looks || code_context::is_wanted()).then_some(&second);
            if let Err(error) = futex::wait(log.control(), futex::Flags::empty(), control, time) {
                let second = std::time::Duration::from_secs(1);
                guest::sleep_if_refused(error.raw_os_error(), second);
            }
        }
    }
}

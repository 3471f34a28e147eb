//! What all scribes of this copy of the library share: their logs, and whether a context is published.

use crate::log::ForkPage;
use crate::notice::Subject;
#[cfg(target_os = "linux")]
use crate::spin_lock::Patience;
use crate::spin_lock::SpinLock;
use process_context::CodeLog;

use super::table::{MOST_LOGS, Table};

#[cfg(target_os = "linux")]
use {
    super::fork_word::{CLAIMED, CLAIMING, CLEARED, ForkWord},
    super::publication::{Publication, State},
    crate::system,
    std::sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// The shortest time between two searches for the context of another part of the process, in nanoseconds.
#[cfg(target_os = "linux")]
const BETWEEN_SEARCHES: u64 = 1_000_000_000;
/// A search may take at most this part of the time.
#[cfg(target_os = "linux")]
const SEARCH_SHARE: u64 = 1000;

/// What all scribes share.
pub(super) static CONTEXT: ProcessContext = ProcessContext::new();

pub(super) struct ProcessContext {
    lock: SpinLock,
    /// The logs of this process. Changed under the lock.
    table: Table,
    #[cfg(target_os = "linux")]
    fork_word: ForkWord,
    /// Changed under the lock.
    #[cfg(target_os = "linux")]
    publication: Publication,
    /// The time before which no search takes place.
    #[cfg(target_os = "linux")]
    next_search: AtomicU64,
}

/// How a scribe wants its log to be published.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is no process context"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'s> {
    /// The `service.name` of the resource, for a context that is created.
    pub(crate) service_name: Option<&'s str>,
}

/// Adds the log of a scribe to what this process has; in the child of a fork, this is the child's log. Publishes it with a `wish`,
/// and if another scribe had one. Calls `report` if this is not possible.
pub(crate) fn add(
    log: CodeLog,
    page: Option<&'static ForkPage>,
    wish: Option<Wish<'_>>,
    report: impl FnOnce(Subject, std::fmt::Arguments<'_>),
) {
    CONTEXT.add(log, page, wish, report);
}

/// Withdraws the context if another part of the process has published one since. At most once a second, as it reads the list of
/// mappings. May be called in a signal handler.
#[inline]
pub(crate) fn make_way() {
    #[cfg(target_os = "linux")]
    if CONTEXT.publication.state() == State::Published {
        CONTEXT.search(false);
    }
}

/// The same, and publishes the context again when that of the other part is gone. Not in a signal handler.
pub(crate) fn look() {
    #[cfg(target_os = "linux")]
    if CONTEXT.publication.state() != State::Unwanted {
        CONTEXT.search(true);
    }
}

/// Whether [`look`] may have something to do.
#[cfg(target_os = "linux")]
pub(crate) fn is_wanted() -> bool {
    CONTEXT.publication.state() != State::Unwanted
}

impl ProcessContext {
    const fn new() -> Self {
        Self {
            lock: SpinLock::new(),
            table: Table::new(),
            #[cfg(target_os = "linux")]
            fork_word: ForkWord::new(),
            #[cfg(target_os = "linux")]
            publication: Publication::new(),
            #[cfg(target_os = "linux")]
            next_search: AtomicU64::new(0),
        }
    }

    #[cfg(target_os = "linux")]
    fn add(
        &self,
        log: CodeLog,
        page: Option<&'static ForkPage>,
        wish: Option<Wish<'_>>,
        report: impl FnOnce(Subject, std::fmt::Arguments<'_>),
    ) {
        let has_word = self.claim(page);
        let (Some(_lock), _) = self.lock.lock_or_wait() else { return };
        let is_added = self.table.add(log);
        if let Some(wish) = wish {
            self.publication.want(wish.service_name);
        }
        if self.publication.state() == State::Unwanted {
            return;
        }
        let subject = Subject::ProcessContext;
        if !has_word {
            // Without it, a child could take the parent's mapping, which it does not have, for its own.
            let text = "no memory is cleared on fork: no process context is published";
            return report(subject, format_args!("{text}"));
        }
        if !is_added {
            report(
                subject,
                format_args!(
                    "the process context has {MOST_LOGS} code logs: no further ones are listed in it"
                ),
            );
            return;
        }
        self.next_search.store(system::nanoseconds().saturating_add(BETWEEN_SEARCHES), Relaxed);
        match self.publication.publish(&self.table) {
            Ok(State::Yielded) => report(
                subject,
                format_args!(
                    "this process has another OpenTelemetry process context, which can list the code log: see CodeContext (jitscribe_code_context in C)"
                ),
            ),
            Ok(_) => {}
            Err(failure) => {
                report(subject, format_args!("{failure}; no process context is published"))
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn add(
        &self,
        log: CodeLog,
        _: Option<&'static ForkPage>,
        _: Option<Wish<'_>>,
        _: impl FnOnce(Subject, std::fmt::Arguments<'_>),
    ) {
        let (Some(_lock), _) = self.lock.lock_or_wait() else { return };
        self.table.add(log);
    }

    /// Makes everything here this process's: in the child of a fork, it describes the parent, whose context the child does not
    /// have. False if the system has no memory that is cleared in a child.
    #[cfg(target_os = "linux")]
    fn claim(&self, page: Option<&'static ForkPage>) -> bool {
        let Some(word) = self.fork_word.get_or_set(page) else { return false };
        let mut patience = Patience::default();
        loop {
            match word.load(Acquire) {
                CLAIMED => return true,
                CLEARED if word.compare_exchange(CLEARED, CLAIMING, AcqRel, Relaxed).is_ok() => {
                    // A thread may have held it that is not in this process.
                    self.lock.reset();
                    self.table.clear();
                    self.publication.forget();
                    word.store(CLAIMED, Release);
                    return true;
                }
                _ if !patience.wait() => return false,
                _ => {}
            }
        }
    }

    /// Whether the state here is this process's, and not that of its parent.
    #[cfg(target_os = "linux")]
    fn is_ours(&self) -> bool {
        self.fork_word.get().is_some_and(|word| word.load(Acquire) == CLAIMED)
    }

    #[cfg(target_os = "linux")]
    #[cold]
    #[inline(never)]
    fn search(&self, may_publish: bool) {
        let now = system::nanoseconds();
        if now < self.next_search.load(Relaxed) || !self.is_ours() {
            return;
        }
        let Some(_lock) = self.lock.try_lock() else { return };
        if may_publish && self.publication.state() != State::Published {
            // Reported when it was tried first.
            let _ = self.publication.publish(&self.table);
        } else {
            self.publication.make_way();
        }
        let took = system::nanoseconds().saturating_sub(now);
        let pause = BETWEEN_SEARCHES.max(took.saturating_mul(SEARCH_SHARE));
        self.next_search.store(now.saturating_add(pause), Relaxed);
    }

    /// Copies the logs of this process. None in the child of a fork that has announced nothing.
    pub(super) fn logs(&self, logs: &mut [CodeLog; MOST_LOGS]) -> usize {
        #[cfg(target_os = "linux")]
        if self.fork_word.get().is_some() && !self.is_ours() {
            return 0;
        }
        let (Some(_lock), _) = self.lock.lock_or_wait() else { return 0 };
        self.table.copy(logs)
    }
}

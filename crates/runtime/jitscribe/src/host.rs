//! The parts of a scribe that publishers use: the log, the settings, and notices.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed},
};

use fallible::OsError;

use crate::log::{LeftOutReason, Log};
use crate::notice::{self, Notice, Subject};
use crate::settings::Settings;

/// The part of a scribe that its publishers use.
pub(crate) struct Host {
    /// `None`: nothing is announced.
    pub(crate) log: Option<Log>,
    pub(crate) settings: Settings,
    /// The kinds of [`LeftOutReason`] and of mistakes that were reported.
    reported: AtomicU32,
}

impl Host {
    pub(crate) const fn new(log: Option<Log>, settings: Settings) -> Self {
        Self { log, settings, reported: AtomicU32::new(0) }
    }

    /// Clears requests in the control word that are not fulfilled any more.
    pub(crate) fn withdraw(&self, bits: u32) {
        if let Some(log) = &self.log {
            log.control().fetch_and(!bits, AcqRel);
        }
    }

    /// Reports why code is left out of the log, once for each reason.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_left_out(&self) {
        let Some(log) = &self.log else { return };
        let reason = log.left_out_reason();
        let kind = match reason {
            LeftOutReason::Full => 1,
            LeftOutReason::TooLarge => 2,
            LeftOutReason::Busy => 4,
            LeftOutReason::Refused(_) => 8,
            LeftOutReason::Memory => 16,
        };
        if !self.is_first(kind) {
            return;
        }
        let (taken, limit) = log.extent();
        let (taken, limit) = (taken >> 10, limit >> 10);
        match reason {
            LeftOutReason::Full => self.report(
                Subject::Full,
                format_args!("the code log is full ({taken} KiB taken, the limit is {limit} KiB): new codes are left out until old ones die; JITSCRIBE_LIMIT sets another limit"),
            ),
            LeftOutReason::TooLarge => self.report(
                Subject::Full,
                format_args!("a code was left out whose name, lines and bytes take more room than the code log may have ({limit} KiB)"),
            ),
            LeftOutReason::Busy => self.report(
                Subject::Full,
                "a code was left out: a signal handler announced it while its thread was writing to the code log, or other threads got no processor for a second",
            ),
            LeftOutReason::Memory => self.report_out_of_memory(Subject::Full),
            LeftOutReason::Refused(cause) => self.report(
                Subject::Full,
                format_args!("the code log does not grow beyond {taken} KiB (its limit is {limit} KiB): the system refuses more memory ({}); new codes are left out until old ones die", OsError(cause.raw_os_error())),
            ),
        }
    }

    /// Kinds of mistakes in descriptions of codes, as bits of what was reported.
    pub(crate) const UNWIND: u32 = 32;
    pub(crate) const LINES: u32 = 64;
    pub(crate) const FILES: u32 = 128;

    /// Whether nothing of this kind was reported before.
    pub(crate) fn is_first(&self, kind: u32) -> bool {
        self.reported.fetch_or(kind, Relaxed) & kind == 0
    }

    /// Reports that an allocation failed. Does not allocate.
    pub(crate) fn report_out_of_memory(&self, subject: Subject) {
        notice::report(self.settings.listener.as_ref(), &Notice::out_of_memory(subject));
    }

    /// Reports why Valgrind is shown no code.
    #[cfg(all(feature = "valgrind", target_os = "linux"))]
    pub(crate) fn report_valgrind(&self, text: impl std::fmt::Display) {
        let notice = Notice::new(Subject::Valgrind, text);
        if self.settings.valgrind_is_requested {
            notice.write_to_valgrind();
        }
        notice::report(self.settings.listener.as_ref(), &notice);
    }

    /// Reports something that is not available.
    pub(crate) fn report(&self, subject: Subject, text: impl std::fmt::Display) {
        notice::report(self.settings.listener.as_ref(), &Notice::new(subject, text));
    }
}

//! The subjects of notices, as numbers.

/// What a notice is about. Later versions may add more.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// None of the others.
    Other = 0,
    /// The code log: there is none, or it is in another kind of memory than requested.
    Log = 1,
    /// The code log is full: from now on codes are left out, until others are unloaded.
    Full = 2,
    /// The child of a fork has no log.
    Fork = 3,
    /// The perf map.
    PerfMap = 4,
    /// A setting in the environment that is not valid.
    Setting = 5,
    /// The debug info that is passed to Valgrind.
    Valgrind = 6,
    /// An arena for code.
    Arena = 7,
    /// Registration with the unwinders in the process.
    Unwinders = 8,
    /// The code that is shown to debuggers.
    Debuggers = 9,
    /// OpenTelemetry's process context.
    ProcessContext = 10,
    /// The code that is reported to VTune.
    Vtune = 11,
    /// The code that is reported to Windows' profilers.
    Etw = 12,
    /// A part of a code's description that cannot be true, and is not used: unwind info, lines behind the end, or files that are
    /// not in the list.
    Description = 13,
}

impl From<jitscribe::Subject> for Subject {
    fn from(subject: jitscribe::Subject) -> Self {
        match subject {
            jitscribe::Subject::Log => Self::Log,
            jitscribe::Subject::Full => Self::Full,
            jitscribe::Subject::Fork => Self::Fork,
            jitscribe::Subject::PerfMap => Self::PerfMap,
            jitscribe::Subject::Setting => Self::Setting,
            jitscribe::Subject::Valgrind => Self::Valgrind,
            jitscribe::Subject::Arena => Self::Arena,
            jitscribe::Subject::Unwinders => Self::Unwinders,
            jitscribe::Subject::Debuggers => Self::Debuggers,
            jitscribe::Subject::ProcessContext => Self::ProcessContext,
            jitscribe::Subject::Vtune => Self::Vtune,
            jitscribe::Subject::Etw => Self::Etw,
            jitscribe::Subject::Description => Self::Description,
            _ => Self::Other,
        }
    }
}

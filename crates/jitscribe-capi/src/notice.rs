//! What notices are about, as numbers.

/// What a notice is about. There may be more in later versions.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Something that is none of the others.
    Other = 0,
    /// The code log: there is none, or it lies in another kind of memory than asked for.
    Log = 1,
    /// The code log is full: from now on codes are left out, until others die.
    Full = 2,
    /// The child of a fork has no log.
    Fork = 3,
    /// The perf map.
    PerfMap = 4,
    /// A setting in the environment that means nothing.
    Setting = 5,
    /// What valgrind is shown.
    Valgrind = 6,
    /// An arena for code.
    Arena = 7,
    /// What unwinders in the process know.
    Unwinders = 8,
    /// What debuggers are shown.
    Debuggers = 9,
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
            _ => Self::Other,
        }
    }
}

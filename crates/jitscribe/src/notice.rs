//! What the library has to say to its host.

use std::fmt;

/// Something that could not be had, and is off from now on. The program is not affected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    subject: Subject,
    text: String,
}

/// What a [`Notice`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// The code log: there is none, or it lies in another kind of memory than asked for.
    Log,
    /// The code log is full: from now on codes are left out, until others die.
    Full,
    /// The child of a fork has no log.
    Fork,
    /// The perf map.
    PerfMap,
    /// What valgrind is shown.
    Valgrind,
    /// An arena for code.
    Arena,
    /// What debuggers are shown.
    Debuggers,
    /// What unwinders in the process know.
    Unwinders,
    /// A setting in the environment that means nothing.
    Setting,
}

impl Notice {
    pub(crate) fn new(subject: Subject, text: impl fmt::Display) -> Self {
        Self { subject, text: text.to_string() }
    }

    /// What it is about.
    #[must_use]
    pub fn subject(&self) -> Subject {
        self.subject
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whoever takes notices.
pub(crate) type Listener = Box<dyn Fn(&Notice) + Send + Sync>;

/// Says it to the listener, if there is one, and to `log`.
pub(crate) fn say(listener: Option<&Listener>, notice: &Notice) {
    #[cfg(feature = "log")]
    log::warn!(target: "jitscribe", "{notice}");
    if let Some(listener) = listener {
        listener(notice);
    }
}

//! Notices from the library to its host.

use std::fmt::{self, Write};

/// A report that something is not available, and was turned off. The program is not affected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    subject: Subject,
    text: Text,
}

/// The text of a notice. It is stored in the notice itself, because code may be announced, and left out, in a signal handler that
/// interrupted the allocator.
#[derive(Clone, PartialEq, Eq)]
struct Text {
    bytes: [u8; Self::SIZE],
    length: usize,
}

impl Text {
    /// It must fit on the stack of a signal handler.
    const SIZE: usize = 512;
    /// The end of a text that was cut.
    const DOTS: &str = "...";

    fn new(text: impl fmt::Display) -> Self {
        let mut new = Self { bytes: [0; Self::SIZE], length: 0 };
        // A text that does not fit is cut; there is no other error.
        let _ = write!(new, "{text}");
        new
    }

    fn as_str(&self) -> &str {
        // It consists of whole strings, so it is always valid.
        self.bytes.get(..self.length).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        let end = self.length + text.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(text.as_bytes());
            self.length = end;
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let space = Self::SIZE - Self::DOTS.len() - self.length;
        let fits = printable::floor_char_boundary(text, space);
        self.push(text.get(..fits).unwrap_or_default());
        if fits < text.len() {
            self.push(Self::DOTS);
            return Err(fmt::Error);
        }
        Ok(())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The subject of a [`Notice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// The code log: there is none, or it is in another kind of memory than requested.
    Log,
    /// Codes are left out: the log is full or cannot grow, or the code is too large. The text has the reason.
    Full,
    /// The child of a fork has no log.
    Fork,
    /// The perf map.
    PerfMap,
    /// Code for Valgrind.
    Valgrind,
    /// Code for VTune.
    Vtune,
    /// Code for Windows' profilers.
    Etw,
    /// An arena for code.
    Arena,
    /// Code for debuggers.
    Debuggers,
    /// Code for the unwinders in the process.
    Unwinders,
    /// OpenTelemetry's process context.
    ProcessContext,
    /// An unknown setting in the environment.
    Setting,
    /// A part of a code's description that cannot be true, and is not used: unwind info, lines behind the end, or files that are
    /// not in the list.
    Description,
}

impl Notice {
    pub(crate) fn new(subject: Subject, text: impl fmt::Display) -> Self {
        // Formatting does not allocate, but the arguments may.
        match fallible::attempt(|| Text::new(text)) {
            Ok(text) => Self { subject, text },
            Err(fallible::Refused) => Self::out_of_memory(subject),
        }
    }

    /// The subject is not available, because an allocation failed. This does not allocate.
    pub(crate) fn out_of_memory(subject: Subject) -> Self {
        let text = match subject {
            Subject::Log => "out of memory: no code is announced",
            Subject::Full => "out of memory: a code was left out",
            Subject::Fork => "out of memory: this process announces no code",
            Subject::PerfMap => "out of memory: the perf map is given up",
            Subject::Valgrind => "out of memory: valgrind is shown no code",
            Subject::Vtune => "out of memory: VTune is passed no code",
            Subject::Etw => "out of memory: profilers are passed no code any more",
            Subject::Arena => "out of memory: no memory for code in an arena",
            Subject::Debuggers => "out of memory: debuggers are shown no code any more",
            Subject::ProcessContext => "out of memory: no process context is published",
            Subject::Unwinders => "out of memory: unwinders know no code any more",
            Subject::Setting => "out of memory: settings were not read",
            Subject::Description => "out of memory: a code's description was not checked",
        };
        Self { subject, text: Text::new(text) }
    }

    /// Writes it to the log of the Valgrind that runs the process, if any. This does not allocate.
    pub(crate) fn write_to_valgrind(&self) {
        guest::valgrind::log(["jitscribe: ", self.text.as_str()]);
    }

    /// The subject.
    #[must_use]
    pub fn subject(&self) -> Subject {
        self.subject
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text.as_str())
    }
}

/// A callback for notices.
pub(crate) type Listener = Box<dyn Fn(&Notice) + Send + Sync>;

/// Passes it to the listener, if there is one, and to `log`.
pub(crate) fn report(listener: Option<&Listener>, notice: &Notice) {
    #[cfg(feature = "log")]
    log::warn!(target: "jitscribe", "{notice}");
    if let Some(listener) = listener {
        listener(notice);
    }
}

#[cfg(test)]
mod tests {
    use super::{Notice, Subject, Text};

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let said = |text: &str| Notice::new(Subject::Full, text).to_string();
        for text in ["", "no code is announced", &"x".repeat(Text::SIZE - 3)] {
            assert_eq!(said(text), text);
        }
        for filler in 0..4 {
            let text = "x".repeat(filler) + &"😀".repeat(Text::SIZE);
            let cut = said(&text);
            assert!((Text::SIZE - 6..=Text::SIZE).contains(&cut.len()), "{}", cut.len());
            assert!(text.starts_with(cut.strip_suffix("...").unwrap()));
        }
        let pieces = format_args!("{}{}{}", "a".repeat(500), "b".repeat(500), "c").to_string();
        assert_eq!(said(&pieces), pieces[..509].to_owned() + "...");
    }
}

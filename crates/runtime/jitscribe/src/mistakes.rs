//! What hosts say of a code that cannot be true. It is left out, and reported: once for each kind, or for each code if the settings
//! are strict.

use fallible::Vec;
use jit_code::{Code, Unwind};
use unwind_info::{Error, Machine};

use crate::host::Host;
use crate::log::{Log, MACHINE};
use crate::notice::Subject;

/// Whether this code's description should be [checked](Host::report_mistakes), as far as that is known without looking at all of it.
#[inline]
pub(crate) fn may_be_in(log: &Log, code: &Code<'_>) -> bool {
    let last = code.lines.last().map_or(0, |line| u64::from(line.offset));
    (last >= code.size && last != 0) | log.is_suspicious()
}

impl Host {
    /// Reports what was left out of a code's description because it cannot be true.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_mistakes(&self, log: &Log, code: &Code<'_>) {
        log.suspect(self.settings.strict);
        let name = printable::Escaped(code.name);
        if let Some(error) = refusal(code) {
            self.report_mistake(
                Self::UNWIND,
                format_args!("the unwind info of {name} is not used: {error}"),
            );
        }
        let is_outside = |offset: u32| offset != 0 && u64::from(offset) >= code.size;
        if let Some(line) = code.lines.iter().find(|line| is_outside(line.offset)) {
            self.report_mistake(
                Self::LINES,
                format_args!(
                    "line {} of {name} is at offset {}, but the code has {} bytes",
                    line.line, line.offset, code.size
                ),
            );
        }
    }

    /// Reports that lines or inlined calls of a code refer to files that it does not have.
    #[cold]
    pub(crate) fn report_missing_files(&self, name: &[u8]) {
        let name = printable::Escaped(name);
        self.report_mistake(
            Self::FILES,
            format_args!(
                "lines of {name} refer to files that are not in its list, and are left out"
            ),
        );
    }

    fn report_mistake(&self, kind: u32, text: std::fmt::Arguments<'_>) {
        if self.is_first(kind) || self.settings.strict {
            self.report(Subject::Description, text);
        }
    }
}

/// Why the unwind info of a code cannot be used.
fn refusal(code: &Code<'_>) -> Option<Error> {
    let unwind = code.unwind?;
    // It needs no memory, and may be announced in a signal handler that interrupted the allocator.
    if matches!(unwind, Unwind::FRAME_POINTER | Unwind::FramePointerAlways { .. }) {
        return None;
    }
    let machine = Machine::from_elf(MACHINE)?;
    let mut buffer = Vec::new();
    let done = unwind_info::behind_code(machine, code.size, &unwind, buffer.inner_mut());
    done.err().filter(|error| *error != Error::Memory)
}

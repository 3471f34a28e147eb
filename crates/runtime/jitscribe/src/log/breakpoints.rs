//! The breakpoints that a debugger waits to place, which it writes into the head of the log.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

#[cfg(feature = "gdb")]
use jitdump::extension::Breakpoint;

use super::Log;
use super::layout::control;
#[cfg(feature = "gdb")]
use jit_code::Code;

pub(crate) use super::layout::control::BREAKPOINTS_ROOM;

impl Log {
    /// The text of the breakpoints, in `space`. The debugger writes it while the process is stopped.
    pub(crate) fn breakpoints<'s>(&self, space: &'s mut [u8; BREAKPOINTS_ROOM]) -> &'s [u8] {
        let length = self.mapping.half(control::BREAKPOINTS_LENGTH).load(Acquire) as usize;
        let length = length.min(space.len());
        for (number, bytes) in space.chunks_exact_mut(8).enumerate().take(length.div_ceil(8)) {
            let word = self.mapping.word(control::BREAKPOINTS_TEXT + 8 * number).load(Relaxed);
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        space.get(..length).unwrap_or_default()
    }

    /// Replaces the text of the breakpoints.
    pub(super) fn set_breakpoints(&self, text: &[u8]) {
        let text = text.get(..BREAKPOINTS_ROOM).unwrap_or(text);
        for (number, bytes) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            for (place, byte) in word.iter_mut().zip(bytes) {
                *place = *byte;
            }
            let at = control::BREAKPOINTS_TEXT + 8 * number;
            self.mapping.word(at).store(u64::from_ne_bytes(word), Relaxed);
        }
        self.mapping.half(control::BREAKPOINTS_LENGTH).store(text.len() as u32, Relaxed);
    }

    /// Counts a change of the code, which makes a debugger read the log again.
    #[cfg(feature = "gdb")]
    pub(crate) fn count_change(&self) {
        self.mapping.word(control::CHANGES).fetch_add(1, Relaxed);
    }
}

/// Whether one of the breakpoints of `text` may be in this code.
#[cfg(feature = "gdb")]
pub(crate) fn has_breakpoint(text: &[u8], code: &Code<'_>) -> bool {
    Breakpoint::parse(text).any(|breakpoint| match breakpoint {
        Breakpoint::Function(name) => {
            let mut inlined = code.inlined.iter().map(|call| call.name);
            contains_word(code.name, name) || inlined.any(|callee| contains_word(callee, name))
        }
        Breakpoint::Line(line, file) => {
            let mut lines = code.lines.iter().filter(|row| row.line > 0 && ends_in(row.file, file));
            // A debugger takes the next line that has code, up to the end of the function.
            let Some(first) = lines.next().map(|row| row.line) else { return false };
            let (least, most) = lines.fold((first, first), |(least, most), row| {
                (least.min(row.line), most.max(row.line))
            });
            (least..=most).contains(&line)
        }
    })
}

/// Whether `name` contains `word`, with no character of an identifier before or behind it.
#[cfg(feature = "gdb")]
fn contains_word(name: &[u8], word: &[u8]) -> bool {
    let is_part = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80)
    };
    if word.is_empty() {
        return false;
    }
    name.windows(word.len()).enumerate().any(|(at, window)| {
        window == word
            && !is_part(at.checked_sub(1).and_then(|before| name.get(before)))
            && !is_part(name.get(at.saturating_add(word.len())))
    })
}

/// Whether a path is `end`, or ends in it behind a separator.
#[cfg(feature = "gdb")]
fn ends_in(path: &[u8], end: &[u8]) -> bool {
    path.strip_suffix(end).is_some_and(|front| front.last().is_none_or(|last| *last == b'/'))
}

#[cfg(all(test, feature = "gdb"))]
mod tests {
    use super::has_breakpoint;
    use jit_code::{Code, Inlined, Line};

    #[test]
    fn a_breakpoint_is_in_code_by_name_inlined_call_or_line() {
        let lines = [Line::new(0, "/src/a.js", 20), Line::new(4, "/src/a.js", 10)];
        let range = 1..2;
        let calls = [Inlined::new("inner", std::slice::from_ref(&range))];
        let code = Code::at(16, 8).named("outer::f(int)").lines(&lines).inlined(&calls);
        for text in [
            "f f",
            "f outer",
            "f inner",
            "f f(int)",
            "l 10 a.js",
            "l 15 a.js",
            "l 20 src/a.js",
            "x\nf f",
        ] {
            assert!(has_breakpoint(text.as_bytes(), &code), "{text}");
        }
        for text in [
            "",
            "f g",
            "f oute",
            "f inne",
            "f nner",
            "l 9 a.js",
            "l 21 a.js",
            "l 10 .js",
            "l 10 b.js",
            "f ",
        ] {
            assert!(!has_breakpoint(text.as_bytes(), &code), "{text}");
        }
    }
}

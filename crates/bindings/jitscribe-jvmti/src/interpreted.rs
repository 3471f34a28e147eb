//! Announces the methods that the interpreter may execute: all methods of all classes.
//!
//! The interpreter's code is the same for all methods. Which one it executes is in its frame, which refers to the method's
//! bytecode. With the methods' names by the address of their bytecode, a reader of the stack can name the frame.
//!
//! A thread of our own looks for new classes when the JVM reports that there are some ([`Classes::scan`]), so the JVM's threads
//! do nothing but ask for that.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jitscribe::{Code, Kind, Line, LoadedCode, Scribe, Unwind};

use crate::hotspot::{ClassMethod, Classes, Seen};
use crate::interpreter;
use crate::methods::Style;
use crate::names;

/// The announced methods.
#[derive(Debug, Default)]
pub(crate) struct InterpretedMethods {
    state: Mutex<State>,
    /// Whether there are new classes.
    is_due: Mutex<bool>,
    due: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    has_thread: bool,
    seen: Seen,
    /// By the start of their addresses, with the end.
    announced: BTreeMap<u64, (u64, LoadedCode)>,
}

/// No more methods than this are announced: in a log that is in memory (64 MiB), compiled methods need the rest.
const MOST: usize = 150_000;
/// No more methods than this have lines: one takes 390 bytes with lines, and 263 without.
const MOST_WITH_LINES: usize = 60_000;

/// Between two scans: at least this long, so that classes that are loaded together are found together;
const SHORTEST: Duration = Duration::from_millis(10);
/// at most this long, so that methods are announced soon after they can run;
const LONGEST: Duration = Duration::from_millis(60);
/// and this many times as long as the last scan took.
const SHARE: u32 = 10;

impl InterpretedMethods {
    /// Announces methods from now on. Returns whether the caller has to run [`Self::watch`] on a thread.
    pub(crate) fn open(&self) -> bool {
        let mut state = self.state();
        state.is_open = true;
        let is_first = !std::mem::replace(&mut state.has_thread, true);
        drop(state);
        self.request();
        is_first
    }

    /// Removes all methods, and announces none any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        *state = State { has_thread: state.has_thread, ..State::default() };
    }

    /// Announces all methods again.
    pub(crate) fn again(&self) {
        let mut state = self.state();
        *state = State { has_thread: state.has_thread, is_open: state.is_open, ..State::default() };
        drop(state);
        self.request();
    }

    /// There may be new classes.
    pub(crate) fn request(&self) {
        let mut is_due = self.is_due.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_due, true) {
            self.due.notify_one();
        }
    }

    /// Announces the methods of new classes whenever that is requested.
    pub(crate) fn watch(&self, scan: impl Fn(&Self)) -> ! {
        loop {
            let is_due = self.is_due.lock().unwrap_or_else(PoisonError::into_inner);
            let mut is_due = self
                .due
                .wait_while(is_due, |is_due| !*is_due)
                .unwrap_or_else(PoisonError::into_inner);
            *is_due = false;
            drop(is_due);
            let begin = Instant::now();
            scan(self);
            std::thread::sleep((begin.elapsed() * SHARE).clamp(SHORTEST, LONGEST));
        }
    }

    /// Announces the methods of new classes.
    pub(crate) fn scan(&self, classes: &Classes, scribe: &Scribe, style: &Style, no_lines: bool) {
        let mut state = self.state();
        if !state.is_open || !scribe.is_on() {
            return;
        }
        let State { seen, announced, .. } = &mut *state;
        let mut file = SourceFile::default();
        let lines_left = if no_lines { 0 } else { MOST_WITH_LINES.saturating_sub(announced.len()) };
        classes.scan(seen, lines_left, |method| {
            let end = method.address.saturating_add(method.size);
            // Their memory was freed.
            while let Some((&start, (before, _))) = announced.range(..end).next_back()
                && *before > method.address
            {
                announced.remove(&start);
            }
            if announced.len() < MOST
                && let Some(code) = announce(scribe, style, method, &mut file)
            {
                announced.insert(method.address, (end, code));
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path of the source file of the last method: those of a class follow one another.
#[derive(Debug, Default)]
struct SourceFile {
    class: Vec<u8>,
    path: String,
}

impl SourceFile {
    fn of(&mut self, style: &Style, class: &str, method: ClassMethod<'_>) -> &str {
        // Without lines, nothing is in it.
        if method.lines.is_empty() {
            return "";
        }
        if method.class != self.class {
            self.class = method.class.to_vec();
            self.path.clear();
            if !method.source.is_empty() {
                self.path = style.place(&names::source_path(class, &names::text(method.source)));
            }
        }
        &self.path
    }
}

fn announce(
    scribe: &Scribe,
    style: &Style,
    method: ClassMethod<'_>,
    file: &mut SourceFile,
) -> Option<LoadedCode> {
    let eh_frame = interpreter::eh_frame(u32::try_from(method.size).ok()?)?;
    let class = ["L", &names::text(method.class), ";"].concat();
    let (name, descriptor) = (names::text(method.name), names::text(method.descriptor));
    let name = style.format.name(&class, &name, &descriptor);
    let file = file.of(style, &class, method);
    let lines = method.lines.iter().filter(|_| !file.is_empty());
    let lines: Vec<Line<'_>> =
        lines.map(|&(at, line)| Line::new(at.into(), file, line.into())).collect();
    let code = Code::at(method.address, method.size).named(&name).kind(Kind::JavaMethod);
    let code = code.tier("interpreted").lines(&lines).unwind(Unwind::EhFrame(&eh_frame));
    Some(scribe.load(&code))
}

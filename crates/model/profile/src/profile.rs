//! A profile.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::Code;
use crate::content_hash::ContentHash;
use crate::function::Function;
use crate::id::{
    CodeId, EventId, FrameId, FunctionId, ModuleId, ProcessId, StackId, StringId, ThreadId,
};
use crate::origin::{Event, Module, Process, Thread};
use crate::sample::Samples;
use crate::shared_lines::name_with_place;
use crate::stack::{Frame, Stack};
use crate::strings::Strings;

/// What was recorded, as tables: see the [crate](crate).
///
/// All numbers in a profile are of rows that exist: [`Builder`](crate::Builder) refuses others.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub(crate) strings: Strings,
    pub(crate) processes: Vec<Process>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) modules: Vec<Module>,
    pub(crate) events: Vec<Event>,
    pub(crate) functions: Vec<Function>,
    pub(crate) codes: Vec<Code>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) samples: Samples,
    pub(crate) sources: FxHashMap<StringId, ContentHash>,
    pub(crate) line_files: FxHashMap<FunctionId, StringId>,
    /// The functions that another one has name, file and line in common with.
    pub(crate) sharing_lines: FxHashSet<FunctionId>,
    /// What is known of the recording itself.
    pub about: About,
    /// The files whose names, lines or code are missing, each once.
    pub missing: Vec<Missing>,
}

/// What is known of the recording itself. Strings are empty if they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// The path of the recording.
    pub recording: Vec<u8>,
    /// The host's name.
    pub host: Vec<u8>,
    /// The machine, as `uname -m` says: `x86_64`.
    pub machine: Vec<u8>,
    /// The words of the command that recorded.
    pub command: Vec<Vec<u8>>,
    /// What to add to times of the recording to get nanoseconds since 1970, UTC.
    pub to_utc: Option<i64>,
    /// The number of samples each second, if the recording was made by frequency.
    pub frequency: Option<u64>,
    /// Whether it is of many hosts: processes are versions of services, and threads are hosts, whose ids mean nothing.
    pub of_fleet: bool,
}

/// A file that was sampled, and cannot be looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its path.
    pub path: StringId,
    /// Why: a sentence, without the path.
    pub cause: String,
    /// Number of samples whose innermost frame is in it.
    pub samples: u64,
}

macro_rules! rows {
    ($($(#[$doc:meta])* $table:ident, $one:ident: $id:ty => $row:ty;)*) => {
        impl Profile {$(
            $(#[$doc])*
            #[must_use]
            pub fn $table(&self) -> &[$row] {
                &self.$table
            }

            /// The row with this number.
            ///
            /// # Panics
            /// If the number is of another profile.
            #[must_use]
            #[expect(clippy::indexing_slicing, reason = "numbers of a profile are of rows that exist")]
            pub fn $one(&self, id: $id) -> &$row {
                &self.$table[id.index()]
            }
        )*}
    };
}

rows! {
    /// The processes.
    processes, process: ProcessId => Process;
    /// The threads.
    threads, thread: ThreadId => Thread;
    /// The files with code.
    modules, module: ModuleId => Module;
    /// The events.
    events, event: EventId => Event;
    /// The functions.
    functions, function: FunctionId => Function;
    /// The pieces of machine code.
    codes, code: CodeId => Code;
    /// The frames.
    frames, frame: FrameId => Frame;
    /// The stacks, callers first.
    stacks, stack: StackId => Stack;
}

impl Profile {
    /// The strings.
    #[must_use]
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// The bytes of a string.
    #[must_use]
    pub fn text(&self, id: StringId) -> &[u8] {
        self.strings.get(id)
    }

    /// The samples, in the order of time.
    #[must_use]
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// The hash of a source file's content; `None` if the recording does not have this content.
    #[must_use]
    pub fn source(&self, file: StringId) -> Option<ContentHash> {
        self.sources.get(&file).copied()
    }

    /// The file that the lines of a function's frames are in: its own or, if that is not known, the one that debug information has for them. Empty if
    /// none is known.
    #[must_use]
    pub fn file_of(&self, id: FunctionId) -> StringId {
        let own = self.function(id).file;
        if own.is_empty() { self.line_files.get(&id).copied().unwrap_or(own) } else { own }
    }

    /// The name of a function.
    #[must_use]
    pub fn function_name(&self, id: FunctionId) -> &[u8] {
        self.text(self.function(id).name)
    }

    /// Whether another function has the name, the file and the line of this one, so that the column has to be shown, too.
    #[must_use]
    pub fn shares_line(&self, id: FunctionId) -> bool {
        self.sharing_lines.contains(&id)
    }

    /// The name of a function for views that show names alone: with its place if it shares its line ([`name_with_place`]).
    #[must_use]
    pub fn distinct_name(&self, id: FunctionId) -> Cow<'_, [u8]> {
        let (function, name) = (self.function(id), self.function_name(id));
        // A function without a name has its place already.
        if !self.shares_line(id) {
            return name.into();
        }
        name_with_place(name, self.text(function.file), (function.line, function.column)).into()
    }

    /// A stack, that of its caller, and so on: the innermost first.
    pub fn stacks_of(&self, stack: StackId) -> impl Iterator<Item = &Stack> {
        let mut next = Some(stack);
        std::iter::from_fn(move || {
            let stack = self.stack(next?);
            next = stack.parent;
            Some(stack)
        })
    }

    /// The frames of a stack, the innermost first.
    pub fn frames_of(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.stacks_of(stack).map(|stack| self.frame(stack.frame))
    }

    /// Marks the callers of the stacks that are marked, by number.
    pub fn mark_callers(&self, is_marked: &mut [bool]) {
        // A caller has a smaller number.
        for (place, stack) in self.stacks.iter().enumerate().rev() {
            let parent = stack.parent.filter(|_| is_marked.get(place) == Some(&true));
            if let Some(is_marked) = parent.and_then(|parent| is_marked.get_mut(parent.index())) {
                *is_marked = true;
            }
        }
    }

    /// The numbers of the functions.
    pub fn function_ids(&self) -> impl Iterator<Item = FunctionId> + use<> {
        (0..).map(FunctionId).take(self.functions.len())
    }

    /// The codes with their numbers.
    pub fn numbered_codes(&self) -> impl Iterator<Item = (CodeId, &Code)> {
        (0..).map(CodeId).zip(&self.codes)
    }

    /// The tier of the code that a frame is in; empty if none is known.
    #[must_use]
    pub fn tier_of(&self, frame: &Frame) -> StringId {
        frame.code.map_or(StringId::EMPTY, |code| self.code(code).tier)
    }

    /// The compilations of a function, by process and time.
    pub fn codes_of(&self, function: FunctionId) -> impl Iterator<Item = (CodeId, &Code)> {
        self.numbered_codes().filter(move |(_, code)| code.function == function)
    }
}

//! The frames of compiled code that its runtime does not describe, where the runtime's compiler makes only one kind of frame.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use code_image::VisibleCode;
use code_timeline::AddressSpaceId;
use jit_code::Unwind;

use super::php::InterpreterFrame;
use crate::files::RecordedFiles;
use crate::recording::recording_index::RecordingIndex;

/// The frame of a runtime's compiled code.
#[derive(Clone, Debug)]
pub enum RuntimeFrame {
    /// PHP's: that of the interpreter's main loop.
    Interpreter(InterpreterFrame),
    /// MoarVM's: a frame pointer behind the usual prologue (`src/jit/x64/emit.dasc`). Nothing is pushed afterwards.
    FramePointer,
}

/// The frames of compiled code, by address space. None are needed where stacks are not copied.
pub fn frames(
    index: &RecordingIndex,
    files: &RecordedFiles<'_>,
) -> HashMap<AddressSpaceId, RuntimeFrame> {
    let mut found = HashMap::new();
    if !index.stack_copies {
        return found;
    }
    let mut of_php = HashMap::new();
    let mut seen = HashSet::new();
    for map in index.maps.iter().filter(|map| !map.anonymous) {
        let path = Path::new(OsStr::from_bytes(index.name(map)));
        let file = path.file_name().map_or(&[][..], OsStr::as_bytes);
        let is_php = file.starts_with(b"php") || file.starts_with(b"libphp");
        let is_moarvm = file.starts_with(b"libmoar");
        if !(is_php || is_moarvm) || !seen.insert((map.space, map.name)) {
            continue;
        }
        let frame = match is_php {
            false => Some(RuntimeFrame::FramePointer),
            true => of_php
                .entry(map.name)
                .or_insert_with(|| InterpreterFrame::in_file(&files.frames(map.name)?))
                .clone()
                .map(RuntimeFrame::Interpreter),
        };
        found.extend(frame.map(|frame| (map.space, frame)));
    }
    found
}

impl RuntimeFrame {
    /// Passes `take` the code with its frame, if it is known and the code has none of its own.
    pub fn describe<T>(
        &self,
        shown: &VisibleCode<'_>,
        take: impl FnOnce(&VisibleCode<'_>) -> T,
    ) -> T {
        match self {
            Self::Interpreter(frame) => frame.describe(shown, take),
            Self::FramePointer if shown.code.unwind.is_none() => {
                let mut described = shown.clone();
                described.code.unwind = Some(Unwind::FramePointer { prologue: 0, signed: false });
                take(&described)
            }
            Self::FramePointer => take(shown),
        }
    }
}

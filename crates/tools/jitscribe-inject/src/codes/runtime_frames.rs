//! The frames of compiled code that its runtime does not describe, where the runtime's compiler makes only one kind of frame.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;

use code_image::VisibleCode;
use code_timeline::AddressSpaceId;
use jit_code::Unwind;
use unwind_info::Machine;

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
    /// Passes `take` the code with its frame, as the tables that are written into an image, if the frame is known and the code has
    /// no unwind info of its own.
    pub fn describe<T>(
        &self,
        shown: &VisibleCode<'_>,
        take: impl FnOnce(&VisibleCode<'_>) -> T,
    ) -> T {
        let code = &shown.code;
        let row;
        let unwind = match self {
            Self::Interpreter(frame) => {
                row = frame.of_code(code.name);
                row.as_ref().map(|row| Unwind::Rows(slice::from_ref(row)))
            }
            Self::FramePointer => Some(Unwind::FramePointer { prologue: 0, signed: false }),
        };
        let mut tables = Vec::new();
        if code.unwind.is_none()
            && let Some(unwind) = unwind
            && let Some(behind) = unwind_info::offset_behind(code.size)
            && let Ok(behind) = i64::try_from(behind)
            // Neither PHP nor MoarVM without a frame of its own compiles for another machine.
            && unwind_info::eh_frame(Machine::X86_64, code.size, behind, &unwind, &mut tables).is_ok()
        {
            let mut described = shown.clone();
            described.code.unwind = Some(Unwind::EhFrame(&tables));
            return take(&described);
        }
        take(shown)
    }
}

#[cfg(test)]
mod tests {
    use jit_code::Code;

    use super::*;

    /// An image contains ready tables only: a frame pointer that is not encoded is lost.
    #[test]
    fn a_frame_pointer_is_written_as_tables() {
        let code = Code::at(0x7000_0000, 0x40).named("fib(fib.raku:2)");
        let described = |code: Code<'_>| {
            RuntimeFrame::FramePointer.describe(&VisibleCode::whole(code), |shown| {
                match shown.code.unwind {
                    Some(Unwind::EhFrame(tables)) => Some(tables.to_vec()),
                    _ => None,
                }
            })
        };
        let mut expected = Vec::new();
        let unwind = Unwind::FramePointer { prologue: 0, signed: false };
        unwind_info::eh_frame(Machine::X86_64, 0x40, 0x40, &unwind, &mut expected).unwrap();
        assert_eq!(described(code), Some(expected));

        // What the runtime says stays.
        assert_eq!(described(code.unwind(Unwind::EhFrame(b"own"))), Some(b"own".to_vec()));
    }
}

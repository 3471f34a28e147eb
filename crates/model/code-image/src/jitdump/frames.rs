//! The unwind tables of a code.

use ::jitdump::CodeLoad;
use ::jitdump::extension::FramePointer;
use fallible::Vec;
use unwind_info::{Error, Machine, Reader, Unwind, eh_frame_for};

/// Tables in the form of `.eh_frame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames<'f> {
    /// The tables.
    pub bytes: &'f [u8],
    /// They are right where they lie so many bytes behind the code's beginning.
    pub offset: u64,
}

/// The tables that a dump has for a code, or those of a code that keeps a frame pointer, which are made in `room`.
///
/// `None` if it tells of neither, or of what cannot be described for this machine.
pub fn frames<'f>(
    load: &CodeLoad<'f>,
    machine: Option<Machine>,
    reader: Reader,
    room: &'f mut Vec<u8>,
) -> Option<Frames<'f>> {
    let behind = unwind_info::offset_behind(load.size)?;
    if let Some(unwind) = load.unwind() {
        let offset = behind.checked_add(unwind.eh_frame_offset)?;
        // No flag says of a frame pointer behind a landing pad that it has no list of saved registers, but its tables do.
        let landing = Unwind::FRAME_POINTER_BEHIND_LANDING;
        if let (Reader::Debugger, Some(machine)) = (reader, machine)
            && make(Reader::Unwinder, machine, load.size, behind, &landing, room).is_some()
            && (offset, unwind.eh_frame) == (behind, room.as_slice())
            && make(reader, machine, load.size, behind, &landing, room).is_some()
        {
            return Some(Frames { bytes: room, offset });
        }
        return (!unwind.eh_frame.is_empty()).then_some(Frames { bytes: unwind.eh_frame, offset });
    }
    make(reader, machine?, load.size, behind, &frame_pointer(load)?, room)?;
    Some(Frames { bytes: room, offset: behind })
}

/// Puts the tables for this position behind a code into `room`. `None` if they cannot be made.
fn make(
    reader: Reader,
    machine: Machine,
    size: u64,
    behind: u64,
    unwind: &Unwind<'_>,
    room: &mut Vec<u8>,
) -> Option<()> {
    room.clear();
    room.reserve(256);
    let distance = i64::try_from(behind).ok()?;
    match eh_frame_for(reader, machine, size, distance, unwind, room.inner_mut()) {
        Ok(_) => Some(()),
        Err(Error::Memory) => {
            fallible::refuse();
            None
        }
        Err(_) => None,
    }
}

/// How a code is unwound of which a dump says no more than that it keeps a frame pointer; `None` if it does not say that.
#[must_use]
pub fn frame_pointer(load: &CodeLoad<'_>) -> Option<Unwind<'static>> {
    Some(match load.frame_pointer()? {
        FramePointer::Prologue => Unwind::FRAME_POINTER,
        FramePointer::Throughout => Unwind::FramePointerAlways { signed: false },
    })
}

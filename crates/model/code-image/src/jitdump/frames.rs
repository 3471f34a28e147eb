//! The unwind tables of a code.

use ::jitdump::CodeLoad;
use ::jitdump::extension::FramePointer;
use fallible::Vec;
use unwind_info::{Error, Machine, Unwind};

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
    room: &'f mut Vec<u8>,
) -> Option<Frames<'f>> {
    let behind = unwind_info::offset_behind(load.size)?;
    if let Some(unwind) = load.unwind() {
        let offset = behind.checked_add(unwind.eh_frame_offset)?;
        return (!unwind.eh_frame.is_empty()).then_some(Frames { bytes: unwind.eh_frame, offset });
    }
    let unwind = frame_pointer(load)?;
    room.clear();
    room.reserve(256);
    let distance = i64::try_from(behind).ok()?;
    match unwind_info::eh_frame(machine?, load.size, distance, &unwind, room.inner_mut()) {
        Ok(_) => {}
        Err(Error::Memory) => {
            fallible::refuse();
            return None;
        }
        Err(_) => return None,
    }
    Some(Frames { bytes: room, offset: behind })
}

/// How a code is unwound of which a dump says no more than that it keeps a frame pointer; `None` if it does not say that.
#[must_use]
pub fn frame_pointer(load: &CodeLoad<'_>) -> Option<Unwind<'static>> {
    Some(match load.frame_pointer()? {
        FramePointer::Prologue => Unwind::FRAME_POINTER,
        FramePointer::Throughout => Unwind::FramePointerAlways { signed: false },
    })
}

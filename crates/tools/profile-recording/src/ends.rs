//! Why a stack ends before its bottom, in the words of a root frame.

use jitscribe_inject::files::base_name;
use jitscribe_inject::{End, SampledMemory, StackEnd, StackSample};

/// The kernel records this many addresses of a stack, unless `kernel.perf_event_max_stack` says otherwise.
const MOST_WALKED: usize = 127;

/// Why the stack of a sample does not reach its bottom; `None` if it does, or has none.
pub fn of_sample(memory: &mut SampledMemory<'_>, sample: &StackSample<'_>) -> Option<Vec<u8>> {
    let space = sample.space?;
    match sample.end {
        StackEnd::NotRecorded | StackEnd::Whole => None,
        StackEnd::Walked => {
            let &last = sample.user.last()?;
            let frames = sample.user.len().saturating_add(sample.kernel.len());
            (!memory.is_bottom(space, last, sample.time)).then(|| of_walked(frames))
        }
        StackEnd::Ended(end) => Some(of_copied(end, |address| {
            let at = memory.at(space, address, sample.time);
            base_name(at.name.unwrap_or(b"unknown memory")).to_vec()
        })),
    }
}

/// Of a stack with this many frames that the kernel walked.
fn of_walked(frames: usize) -> Vec<u8> {
    // Markers of the kernel's and the user's part count as well.
    let text = match frames.saturating_add(2) >= MOST_WALKED {
        true => "[stack cut off: deeper than recorded]",
        false => "[stack cut off: code without frame pointers]",
    };
    text.into()
}

/// Of a stack that was copied. `name_of` gives the name of what is mapped at an address.
fn of_copied(end: End, name_of: impl FnOnce(u64) -> Vec<u8>) -> Vec<u8> {
    let text = match end {
        End::BehindCopy { .. } => "[stack cut off: deeper than the copied part]",
        End::NoFile { .. } => "[stack cut off: no unwind tables for memory without a file]",
        End::NoTables { address } => {
            let name = name_of(address);
            return [b"[stack cut off: no unwind tables for ", &name[..], b"]"].concat();
        }
        End::NoFramePointer | End::BadFramePointer => {
            "[stack cut off: neither unwind tables nor frame pointer]"
        }
        End::OtherMemory { .. } => "[stack cut off: continues in memory that was not copied]",
        End::NoReturnAddress => "[stack cut off: no return address]",
        End::TooMany => "[stack cut off: too many frames]",
        _ => "[stack cut off: unwinding failed]",
    };
    text.into()
}

/// A number for each end that has its own words.
pub fn number_of(end: StackEnd) -> u64 {
    let (number, address) = match end {
        StackEnd::NotRecorded => (0, 0),
        StackEnd::Walked => (1, 0),
        StackEnd::Whole => (2, 0),
        StackEnd::Ended(end) => match end {
            End::BehindCopy { .. } => (3, 0),
            End::NoFile { .. } => (4, 0),
            End::NoTables { address } => (5, address),
            End::NoFramePointer | End::BadFramePointer => (6, 0),
            End::OtherMemory { .. } => (7, 0),
            End::NoReturnAddress => (8, 0),
            End::TooMany => (9, 0),
            _ => (10, 0),
        },
    };
    address.rotate_left(4) ^ number
}

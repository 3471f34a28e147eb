//! Why a stack ends before its bottom, in the words of a root frame.

use jitscribe_inject::End;

/// The kernel records this many addresses of a stack, unless `kernel.perf_event_max_stack` says otherwise.
const MOST_WALKED: usize = 127;

/// Of a stack with this many frames that the kernel walked.
pub fn of_walked(frames: usize) -> Vec<u8> {
    // Markers of the kernel's and the user's part count as well.
    let text = match frames.saturating_add(2) >= MOST_WALKED {
        true => "[stack cut off: deeper than recorded]",
        false => "[stack cut off: code without frame pointers]",
    };
    text.into()
}

/// Of a stack that was copied. `name_of` gives the name of what is mapped at an address.
pub fn of_copied(end: End, name_of: impl FnOnce(u64) -> Vec<u8>) -> Vec<u8> {
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

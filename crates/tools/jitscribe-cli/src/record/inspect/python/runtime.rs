//! The state of CPython in a process's memory, as the remote debugging protocol describes it (`Doc/howto/remote_debugging.rst`; PEP 768).
//!
//! It begins with a cookie, the version, and the offsets of the fields that debuggers need (`_Py_DebugOffsets` in `pycore_debug_offsets.h`). Where those offsets are is fixed for
//! each minor version; where the state is, in the writable data of the interpreter or its library.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The first bytes of the state, which is aligned to as many.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// Where the table has the offsets of the first interpreter, and of its threads and main thread, in each version.
const INTERPRETERS: usize = 40;
const THREADS: usize = 72;
const MAIN_THREAD: usize = 80;
/// The most bytes of a thread state in which a field may be. It has a kilobyte.
const LARGEST_STATE: u64 = 1 << 20;

/// Where CPython takes the requests of debuggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// The address of the path of a script.
    pub path: u64,
    /// The size of the space for that path, with the 0 at its end.
    pub space: u64,
    /// The address of the number that says that a script is to be run.
    pub pending: u64,
    /// The address of the bits that interrupt the interpreter.
    pub breaker: u64,
}

/// Why no request can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// There is no CPython of version 3.13 or later.
    Cookie,
    /// It is of a minor version that is too old, or not known here.
    Version(u8),
    /// It was started or built without the protocol.
    Disabled,
    /// It has no thread yet, or no longer.
    Thread,
}

/// Searches these writable parts of memory, of at most `largest` bytes in all, for CPython's state, and finds where its main thread takes requests.
///
/// # Errors
/// If there is no such place.
pub fn requests(
    memory: &File,
    parts: impl IntoIterator<Item = Range<u64>>,
    largest: u64,
) -> Result<Requests, Without> {
    let mut left = largest;
    let mut reason = Without::Cookie;
    for part in parts {
        let size = part.end.saturating_sub(part.start).min(left);
        left -= size;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
        let Ok(read) = memory.read_at(&mut bytes, part.start) else { continue };
        bytes.truncate(read);
        let words = bytes.as_chunks::<{ COOKIE.len() }>().0.iter().enumerate();
        for (nth, _) in words.filter(|(_, word)| *word == COOKIE) {
            let at = nth.saturating_mul(COOKIE.len());
            let table = bytes.get(at..).unwrap_or_default();
            let address = part.start.saturating_add(at as u64);
            let state = State { memory, address, table };
            match state.requests() {
                Err(Without::Cookie) => {}
                Err(why) => reason = why,
                found => return found,
            }
        }
    }
    Err(reason)
}

/// What may be the state of CPython, and the memory that it is in.
struct State<'m> {
    memory: &'m File,
    address: u64,
    /// What begins with the cookie.
    table: &'m [u8],
}

impl State<'_> {
    fn requests(&self) -> Result<Requests, Without> {
        let Ok([3, minor, ..]) = u32::try_from(self.offset(8)).map(u32::to_be_bytes) else {
            return Err(Without::Cookie);
        };
        let support = support(minor).ok_or(Without::Version(minor))?;
        let interpreter = self.pointer(self.address, self.offset(INTERPRETERS))?;
        let main = self.pointer(interpreter, self.offset(MAIN_THREAD));
        let thread = main.or_else(|_| self.pointer(interpreter, self.offset(THREADS)))?;
        // The last offset is that of the path's size.
        let [breaker, own, enabled, pending, path, size] =
            std::array::from_fn(|nth| self.offset(support + nth * size_of::<u64>()));
        if self.number(interpreter, enabled)? == 0 {
            return Err(Without::Disabled);
        }
        let field = |offset: u64| {
            let offset = own.checked_add(offset).filter(|offset| *offset < LARGEST_STATE);
            offset.and_then(|offset| thread.checked_add(offset)).ok_or(Without::Thread)
        };
        let breaker = thread.checked_add(breaker).filter(|_| breaker < LARGEST_STATE);
        Ok(Requests {
            path: field(path)?,
            space: size.min(LARGEST_STATE),
            pending: field(pending)?,
            breaker: breaker.ok_or(Without::Thread)?,
        })
    }

    /// A number of the table; 0 behind its end.
    fn offset(&self, at: usize) -> u64 {
        let bytes = self.table.get(at..).and_then(<[u8]>::first_chunk);
        bytes.copied().map_or(0, u64::from_le_bytes)
    }

    /// A pointer that is not null.
    fn pointer(&self, base: u64, offset: u64) -> Result<u64, Without> {
        let mut bytes = [0; 8];
        let at = base.checked_add(offset).ok_or(Without::Thread)?;
        self.memory.read_exact_at(&mut bytes, at).map_err(|_| Without::Thread)?;
        Some(u64::from_le_bytes(bytes)).filter(|pointer| *pointer != 0).ok_or(Without::Thread)
    }

    /// A number of 32 bits.
    fn number(&self, base: u64, offset: u64) -> Result<u32, Without> {
        let mut bytes = [0; 4];
        let at = base.checked_add(offset).ok_or(Without::Thread)?;
        self.memory.read_exact_at(&mut bytes, at).map_err(|_| Without::Thread)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

/// Where the offsets of the fields for debuggers begin in the table of this minor version (`debugger_support`).
fn support(minor: u8) -> Option<usize> {
    match minor {
        14 => Some(712),
        15 => Some(840),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// Where the state, an interpreter and a thread are in the made memory.
    const STATE: u64 = 0x1000;
    const INTERPRETER: u64 = 0x3000;
    const THREAD: u64 = 0x4000;

    fn memory(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }

    /// The memory of Python 3.14 with these numbers at these addresses, behind those that are always there.
    fn made(numbers: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 0x5000];
        let mut put = |at: u64, number: u64| {
            let at = usize::try_from(at).expect("small");
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        };
        put(STATE, u64::from_le_bytes(*COOKIE));
        put(STATE + 8, 0x030e_0af0);
        // The offsets of the first interpreter, and of its threads.
        put(STATE + 40, 0x800);
        put(STATE + 72, 0x20);
        put(STATE + 80, 0x28);
        for (nth, offset) in [0x18, 0x100, 0x40, 4, 8, 512].into_iter().enumerate() {
            put(STATE + 712 + 8 * nth as u64, offset);
        }
        put(STATE + 0x800, INTERPRETER);
        put(INTERPRETER + 0x28, THREAD);
        put(INTERPRETER + 0x40, 1);
        numbers.iter().for_each(|(at, number)| put(*at, *number));
        bytes
    }

    fn found(numbers: &[(u64, u64)]) -> Result<Requests, Without> {
        requests(&memory(&made(numbers)), [0..0x800, 0x800..0x5000], u64::MAX)
    }

    #[test]
    fn the_main_thread_s_fields_are_found() {
        let expected = Requests {
            path: THREAD + 0x108,
            space: 512,
            pending: THREAD + 0x104,
            breaker: THREAD + 0x18,
        };
        assert_eq!(found(&[]), Ok(expected));
        // Embedded, it may have no main thread.
        assert_eq!(found(&[(INTERPRETER + 0x28, 0), (INTERPRETER + 0x20, THREAD)]), Ok(expected));
        assert_eq!(found(&[(INTERPRETER + 0x28, 0)]), Err(Without::Thread));
        assert_eq!(found(&[(STATE + 0x800, 0)]), Err(Without::Thread));
        assert_eq!(found(&[(INTERPRETER + 0x40, 0)]), Err(Without::Disabled));
        assert_eq!(found(&[(STATE + 8, 0x030d_00f0)]), Err(Without::Version(13)));
        assert_eq!(found(&[(STATE + 8, 0x0310_00f0)]), Err(Without::Version(16)));
        assert_eq!(found(&[(STATE + 8, 0x040e_0000)]), Err(Without::Cookie));
        assert_eq!(found(&[(STATE, 0)]), Err(Without::Cookie));
    }

    #[test]
    fn no_more_is_read_than_allowed() {
        let memory = memory(&made(&[]));
        assert_eq!(requests(&memory, std::iter::once(0..0x5000), STATE), Err(Without::Cookie));
        assert!(requests(&memory, std::iter::once(0..u64::MAX), 0x5000).is_ok());
    }

    proptest! {
        /// A process may have anything there.
        #[test]
        fn any_memory_is_read(
            numbers in prop::collection::vec(
                (prop_oneof![0x1008_u64..0x1400, 0x1000_u64..0x4ff8], any::<u64>()),
                0..20,
            ),
        ) {
            if let Ok(requests) = found(&numbers) {
                prop_assert!(requests.space <= LARGEST_STATE);
            }
        }
    }
}

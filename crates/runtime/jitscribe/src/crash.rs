//! For crash handlers and crash reporters: what is at an address, and all code shown or written before the process ends.
//!
//! All of this may be called in any signal handler at any instant. The project's `docs/crash.md` describes how.

#[cfg(feature = "gdb")]
use jitdump::extension::control;

use crate::Scribe;
use crate::fork_state::OWN;
#[cfg(target_os = "linux")]
use crate::fork_state::UNKNOWN;

/// A function at an address of announced code: see [`symbolize`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol<'b> {
    /// The function's name: that of the code, or of a function that was inlined into it.
    pub name: &'b [u8],
    /// The source file; empty if it is not known.
    pub file: &'b [u8],
    /// The line from 1; 0 if it is not known. In a function into which another one was inlined, that of the call.
    pub line: u32,
    /// The column from 1; 0 if it is not known.
    pub column: u32,
    /// The address of the code.
    pub address: u64,
    /// The size of the code in bytes.
    pub size: u64,
    /// The number of functions at the address: the code's own, and those that were inlined there.
    pub functions: u32,
    /// Whether the buffer was too small for the name and the file, so that they are cut.
    pub is_cut: bool,
}

/// Which function is at `pc`, by what was announced and is live: for crash reports and backtraces of the process itself.
///
/// It takes no lock, allocates nothing, waits for no thread, and does not change `errno`. It needs about 2 KiB of stack, and time in
/// proportion to the number of announced codes.
///
/// If functions were inlined at `pc`, there are several. `number` counts them from the innermost one, which is 0, outwards;
/// [`Symbol::functions`] is how many there are. The name and the file are written to `buffer`, each followed by a NUL, and are
/// cut if it is too small.
///
/// For a return address, pass the address before it: the call may be the last instruction of its code.
///
/// `None` if the log has no live code at `pc`, or if there are not more than `number` functions. In the child of a fork also if
/// another thread is copying the codes of the parent at that moment.
///
/// ```
/// # use jitscribe::{Code, Scribe, crash};
/// # let scribe = Scribe::builder().build();
/// let code = scribe.load(&Code::at(0x7000, 32).named("fib"));
/// let mut buffer = [0; 256];
/// let symbol = crash::symbolize(&scribe, 0x7004, 0, &mut buffer).expect("live code");
/// assert_eq!((symbol.name, symbol.address), (&b"fib"[..], 0x7000));
/// ```
#[must_use]
pub fn symbolize<'b>(
    scribe: &Scribe,
    pc: u64,
    number: u32,
    buffer: &'b mut [u8],
) -> Option<Symbol<'b>> {
    let log = scribe.0.host.log.as_ref()?;
    match scribe.0.fork_state.get() {
        OWN => log.symbolize(pc, number, buffer),
        #[cfg(target_os = "linux")]
        UNKNOWN => log.symbolize_as_of_fork(pc, number, buffer),
        _ => None,
    }
}

/// Writes the stream of a minidump that describes the live code on the stacks of this process, for a crash reporter in it: names,
/// lines, inlined calls, unwind info and machine code. A reporter in another process uses the crate `jitscribe-crash-stream`
/// instead.
///
/// The code is that to which a word in `stacks` or in `words` refers. `stacks` are ranges of addresses, from the stack pointers
/// on; what is not readable there is left out. `words` are the registers of the threads.
///
/// During the call it has `/proc/self/mem` open; where that is not possible, only `words` count, and machine code that is not in the
/// log is left out.
///
/// Returns the size of the stream at the beginning of `buffer`, the rest of which may have been written to as well. The stream says
/// how many codes did not fit. 64 KiB are enough for hundreds of codes. `None` if there is no log, or if the buffer has
/// less than 80 bytes.
#[cfg(target_os = "linux")]
#[must_use]
pub fn write_stream(
    scribe: &Scribe,
    stacks: impl IntoIterator<Item = std::ops::Range<u64>>,
    words: &[u64],
    buffer: &mut [u8],
) -> Option<usize> {
    let log = scribe.0.host.log.as_ref()?;
    match scribe.0.fork_state.get() {
        OWN => log.write_crash_stream(stacks, words, buffer),
        _ => None,
    }
}

/// Shows all live code to debuggers. For signal handlers that treat the signal as a crash, and start a debugger or write a core file
/// before they return. It may be called whichever locks the thread holds. It waits at most five seconds for the thread that
/// [`Builder::gdb_on_crash`](crate::Builder::gdb_on_crash) made.
///
/// Returns whether all code is shown. `false` without that setting, unless all announced code is shown anyway.
#[cfg(feature = "gdb")]
#[must_use]
pub fn show_to_debuggers(scribe: &Scribe) -> bool {
    let shown = control::GDB | control::LOG;
    scribe.0.control() & (shown | control::REQUEST) == shown
        || (scribe.0.host.settings.gdb_on_crash && guest::crash_signal::run_now())
}

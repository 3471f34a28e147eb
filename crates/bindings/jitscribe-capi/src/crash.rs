//! The stream of a minidump, for crash reporters in the process.
#![allow(unsafe_code)]

use std::ffi::c_void;

use jitscribe::crash;

use crate::guard::guard;
use crate::opaque::OpaqueScribe;
use crate::outcome::Outcome;
use crate::raw::{self, Out};

/// The stack of a thread, or a part of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// Its lowest address: the thread's stack pointer.
    pub address: u64,
    /// Its size in bytes. What is not readable is skipped, so it may be too large.
    pub size: u64,
}

/// Writes the stream of a minidump that describes the code on the stacks of this process: names, lines, inlined calls, unwind info
/// and machine code. It is for a crash reporter that writes streams of its own, such as Crashpad with user streams; the type of the
/// stream is JITSCRIBE_CRASH_STREAM_TYPE. docs/crash.md describes it.
///
/// Like jitscribe_symbolize, it may be called from any signal handler, at any instant. During the call it has /proc/self/mem open, by
/// which stacks and machine code are read. Where that is not possible, only `words` count.
///
/// @param stacks       the stacks of some threads. NULL if `stack_count` is 0.
/// @param stack_count  their number.
/// @param words        the registers of these threads, the program counter among them. NULL if `word_count` is 0.
/// @param word_count   their number.
/// @param buffer       for the stream. Space behind the stream is written to as well.
/// @param size         the size of the buffer in bytes. 64 KiB are enough for hundreds of codes, and the stream says how many
///                     did not fit.
/// @param length       out: the size of the stream; 0 if there is no log, in the child of a fork that has announced nothing, or if
///                     the buffer has less than 80 bytes.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_crash_stream(
    scribe: *const OpaqueScribe,
    stacks: *const Stack,
    stack_count: usize,
    words: *const u64,
    word_count: usize,
    buffer: *mut c_void,
    size: usize,
    length: *mut usize,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (out, scribe, stacks, words, buffer) = unsafe {
            (
                Out::new(length, 0)?,
                raw::shared(scribe)?.scribe,
                raw::slice(stacks, stack_count)?,
                raw::slice(words, word_count)?,
                raw::zeroed_buffer(buffer.cast::<u8>(), size)?,
            )
        };
        let stacks =
            stacks.iter().map(|stack| stack.address..stack.address.saturating_add(stack.size));
        out.set(crash::write_stream(&scribe, stacks, words, buffer).unwrap_or(0));
        Ok(())
    })
}

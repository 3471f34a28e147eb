//! For crash handlers: names for addresses, and code shown to debuggers.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::offset_of;

use jitscribe::crash;

use crate::guard::guard_value;
use crate::opaque::OpaqueScribe;
use crate::raw::{self, Versioned};

/// A function at an address: see jitscribe_symbolize. Set `struct_size` to `sizeof` the struct; the call writes the other fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    /// sizeof(jitscribe_symbol). Not written.
    pub struct_size: usize,
    /// The address of the code.
    pub address: u64,
    /// The size of the code.
    pub size: u64,
    /// The function's name, which ends with a NUL: that of the code, or of a function that was inlined into it. It is in the
    /// buffer; NULL if that has no byte.
    pub name: *const c_char,
    /// The size of the name, without the NUL.
    pub name_size: usize,
    /// The source file, which ends with a NUL. It is in the buffer, and empty if the file is not known. NULL if there is no space
    /// left for the NUL.
    pub file: *const c_char,
    /// The size of the file's name, without the NUL.
    pub file_size: usize,
    /// The line. In a function into which another one was inlined, that of the call.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// The number of functions at the address: the code's own, and those that were inlined there.
    pub function_count: u32,
    /// 1 if the buffer was too small, so that the name or the file is cut; else 0.
    pub is_cut: u32,
}

// SAFETY: integers and pointers, the first of which is a `usize`.
unsafe impl Versioned for Symbol {
    const LEAST: usize = offset_of!(Symbol, is_cut) + size_of::<u32>();
}

/// Finds the function at an address, by what was announced and is alive: for crash handlers, and for backtraces of the process
/// itself. Unlike other functions, it may be called from any signal handler, at any instant: also in one that interrupted
/// a call of this library, and in the child of a fork. It takes no lock, allocates nothing, waits for no thread, and leaves errno
/// as it is. The time is in proportion to the number of announced codes: see docs/crash.md.
///
/// For a return address, pass the address before it: the call may be the last instruction of its code.
///
/// @param pc      an address.
/// @param number  of the functions at the address, if some were inlined there: 0 is the innermost one, and jitscribe_symbol says
///                how many there are.
/// @param buffer  for the name and the file; both are cut if they do not fit. NULL if `size` is 0.
/// @param size    the size of the buffer in bytes. 256 are enough for most.
/// @param symbol  in: struct_size. Out: the function.
/// @return        whether there is one. If not, or if a pointer is not valid, `symbol` is not written.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_symbolize(
    scribe: *const OpaqueScribe,
    pc: u64,
    number: u32,
    buffer: *mut c_char,
    size: usize,
    symbol: *mut Symbol,
) -> bool {
    guard_value(false, || {
        // SAFETY: the contract of the header.
        let (scribe, buffer, out) = unsafe {
            let Ok(scribe) = raw::shared(scribe) else { return false };
            let Ok(buffer) = raw::zeroed_buffer(buffer.cast::<u8>(), size) else { return false };
            let Ok(out) = raw::OutVersioned::new(symbol) else { return false };
            (scribe.scribe, buffer, out)
        };
        let start = buffer.as_ptr().cast::<c_char>();
        let Some(found) = crash::symbolize(&scribe, pc, number, buffer) else { return false };
        let text_at = |at: usize| if at < size { start.wrapping_add(at) } else { std::ptr::null() };
        out.set(&Symbol {
            struct_size: 0,
            address: found.address,
            size: found.size,
            name: text_at(0),
            name_size: found.name.len(),
            // Behind the name's NUL.
            file: text_at(found.name.len().saturating_add(1)),
            file_size: found.file.len(),
            line: found.line,
            column: found.column,
            function_count: found.functions,
            is_cut: found.is_cut.into(),
        });
        true
    })
}

/// Shows all code that is alive to debuggers. It is for signal handlers that treat the signal as a crash, and that let a
/// debugger attach or write a core file before they return. It may be called in any handler, whatever locks are held, and
/// waits for at most five seconds. Other handlers need not call it: see JITSCRIBE_FLAG_GDB_ON_CRASH, without which this
/// does nothing.
///
/// @return whether all code is shown.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_show_to_debuggers(scribe: *const OpaqueScribe) -> bool {
    guard_value(false, || {
        // SAFETY: the contract of the header.
        let scribe = unsafe { raw::shared(scribe) };
        #[cfg(feature = "gdb")]
        let is_shown = scribe.is_ok_and(|it| crash::show_to_debuggers(&it.scribe));
        #[cfg(not(feature = "gdb"))]
        let is_shown = {
            let _ = scribe;
            false
        };
        is_shown
    })
}

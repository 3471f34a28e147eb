//! The functions that gdb calls.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::{Duration, Instant};

use crate::abi::{
    FAIL, FrameId, ReaderFuncs, Register, SUCCESS, Status, SymbolCallbacks, UnwindCallbacks,
    VERSION,
};
use crate::frames::{self, COUNT, Caller, Registers, X86_64};
use crate::logs::{Log, log_locator};
use crate::symbols::{self, SymtabRun};
use crate::target::Memory;

/// gdb only loads readers that define this. MIT is compatible with gdb's licence.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_is_GPL_compatible() -> c_int {
    0
}

/// gdb's first call. Returns the functions to be called later.
#[unsafe(no_mangle)]
extern "C" fn gdb_init_reader() -> *mut ReaderFuncs {
    let private = Box::into_raw(Box::<Reader>::default()).cast();
    Box::into_raw(Box::new(ReaderFuncs {
        version: VERSION,
        private,
        read,
        unwind,
        frame_id,
        destroy,
    }))
}

/// The state between two calls.
#[derive(Debug, Default)]
struct Reader {
    logs: Vec<Log>,
    /// Stack pointer of the previous frame. A frame whose stack pointer is not above it begins a new walk.
    last: u64,
    /// Whether a new walk has begun since the logs were read: the process may have run in between.
    is_stale: bool,
    /// When they were read, and how long that took.
    read: Option<(Instant, Duration)>,
}

/// Reading the logs again takes at most 1/SHARE of the time in which a process is stepped through.
const SHARE: u32 = 10;

impl Reader {
    /// Reads the log that a log locator refers to.
    fn take_note(&mut self, file: &[u8], memory: Memory) -> Option<&Log> {
        let place = log_locator(file)?;
        // The process runs on from here: the next frame belongs to another walk.
        self.last = u64::MAX;
        self.logs.retain(|log| log.place() != place);
        self.logs.push(Log::read(memory, place)?);
        self.logs.last()
    }

    /// Whether reading the logs again is worthwhile for an address. gdb asks for each frame of each step. Unknown code
    /// next to known code: always. Anything else, known or not: if reading takes little time.
    fn is_worth_reading(&self, address: u64) -> bool {
        let is_new = |log: &Log| log.is_near(address) && !log.has(address);
        self.logs.iter().any(is_new)
            || self.read.is_none_or(|(when, took)| when.elapsed() >= took.saturating_mul(SHARE))
    }

    fn read_again(&mut self, memory: Memory) {
        let began = Instant::now();
        // A log that no longer exists belonged to a process that no longer exists.
        let read = |log: &Log| Log::read(memory, log.place());
        self.logs = self.logs.iter().filter_map(read).collect();
        self.read = Some((Instant::now(), began.elapsed()));
        self.is_stale = false;
    }

    /// The caller of a frame, and the address of the code of that frame.
    fn caller(&mut self, registers: &Registers, memory: Memory) -> Option<(Caller, u64)> {
        let pc = frames::pc(registers)?;
        let stack = frames::stack_pointer(registers)?;
        self.is_stale |= stack <= self.last;
        self.last = stack;
        if self.is_stale && self.is_worth_reading(pc) {
            self.read_again(memory);
        }
        self.logs.iter().find_map(|log| {
            // After a call that does not return, `pc` may be the start of the next code.
            let unwound = |address: u64| {
                log.with_code(address, |code| {
                    let mut buffer = fallible::Vec::new();
                    let (tables, at) = log.tables(code, &mut buffer)?;
                    let word = |address| memory.word(address);
                    let caller = frames::unwind(tables, at, address, registers, word)?;
                    Some((caller, code.address))
                })
            };
            (log.machine() == X86_64)
                .then(|| unwound(pc).or_else(|| unwound(pc.wrapping_sub(1))))
                .flatten()
        })
    }
}

/// # Safety
/// `this` is what [`gdb_init_reader`] returned, and gdb is in no other call.
unsafe fn reader<'r>(this: *mut ReaderFuncs) -> &'r mut Reader {
    // SAFETY: its private word is the reader's box, which only `destroy` frees.
    unsafe { &mut *(*this).private.cast::<Reader>() }
}

/// Stops panics: nothing may unwind into gdb.
fn guarded<T>(otherwise: T, action: impl FnOnce() -> Option<T>) -> T {
    catch_unwind(AssertUnwindSafe(action)).ok().flatten().unwrap_or(otherwise)
}

unsafe extern "C" fn read(
    this: *mut ReaderFuncs,
    callbacks: *mut SymbolCallbacks,
    memory: *mut c_void,
    size: c_long,
) -> Status {
    guarded(FAIL, || {
        let size = usize::try_from(size).ok().filter(|_| !memory.is_null())?;
        // SAFETY: gdb passes a copy of the file, its own callbacks, and the reader that it got from us.
        let (file, memory, reader) = unsafe {
            let file = std::slice::from_raw_parts(memory.cast::<u8>(), size);
            (file, Memory::new((*callbacks).target_read), reader(this))
        };
        let log = reader.take_note(file, memory)?;
        let mut runs = Vec::new();
        log.each(|code| symbols::add(&mut runs, code));
        // SAFETY: as above.
        unsafe { report_symbols(callbacks, &runs) };
        Some(SUCCESS)
    })
}

/// Passes all codes to gdb.
///
/// # Safety
/// The callbacks are those of gdb's current call.
unsafe fn report_symbols(callbacks: *mut SymbolCallbacks, runs: &[SymtabRun]) {
    // SAFETY: the calls are in the order that `jit-reader.h` requires. gdb copies texts and lines.
    unsafe {
        let object = ((*callbacks).object_open)(callbacks);
        for run in runs {
            let symtab = ((*callbacks).symtab_open)(callbacks, object, run.file.as_ptr());
            for block in &run.blocks {
                let name = block.name.as_ptr();
                ((*callbacks).block_open)(
                    callbacks,
                    symtab,
                    ptr::null_mut(),
                    block.start,
                    block.end,
                    name,
                );
            }
            if let Ok(count @ 1..) = c_int::try_from(run.lines.len()) {
                ((*callbacks).line_mapping_add)(callbacks, symtab, count, run.lines.as_ptr());
            }
            ((*callbacks).symtab_close)(callbacks, symtab);
        }
        ((*callbacks).object_close)(callbacks, object);
    }
}

unsafe extern "C" fn unwind(this: *mut ReaderFuncs, callbacks: *mut UnwindCallbacks) -> Status {
    guarded(FAIL, || {
        // SAFETY: gdb passes its own callbacks and the reader that it got from us.
        let (caller, _) = unsafe { caller(this, callbacks) }?;
        for (number, value) in (0..).zip(caller.registers) {
            let register = Register {
                size: 8,
                defined: value.is_some().into(),
                free: Some(free),
                value: value.unwrap_or(0).to_ne_bytes(),
            };
            // SAFETY: as above; gdb frees the register with `free`.
            unsafe { ((*callbacks).set)(callbacks, number, Box::into_raw(Box::new(register))) };
        }
        Some(SUCCESS)
    })
}

unsafe extern "C" fn frame_id(this: *mut ReaderFuncs, callbacks: *mut UnwindCallbacks) -> FrameId {
    guarded(FrameId::default(), || {
        // SAFETY: as in `unwind`.
        let (caller, start) = unsafe { caller(this, callbacks) }?;
        Some(FrameId { code_address: start, stack_address: caller.cfa })
    })
}

/// The caller of the frame that gdb is unwinding.
///
/// # Safety
/// As for [`reader`]; the callbacks are those of gdb's current call.
unsafe fn caller(this: *mut ReaderFuncs, callbacks: *mut UnwindCallbacks) -> Option<(Caller, u64)> {
    // SAFETY: guaranteed by the caller.
    let (reader, memory) = unsafe { (reader(this), Memory::new((*callbacks).target_read)) };
    if reader.logs.is_empty() {
        return None;
    }
    let mut registers: Registers = [None; COUNT];
    for (number, place) in (0..).zip(&mut registers) {
        // SAFETY: gdb's own callback. We own the register that it returns until we call the register's `free`.
        unsafe {
            let register = ((*callbacks).get)(callbacks, number);
            if let Some(value) = register.as_ref() {
                if value.defined != 0 && value.size == 8 {
                    *place = Some(u64::from_ne_bytes(value.value));
                }
                if let Some(free) = value.free {
                    free(register);
                }
            }
        }
    }
    reader.caller(&registers, memory)
}

/// Frees a register that was passed to gdb.
unsafe extern "C" fn free(register: *mut Register) {
    // SAFETY: `unwind` made it as a box; gdb calls this once.
    drop(unsafe { Box::from_raw(register) });
}

unsafe extern "C" fn destroy(this: *mut ReaderFuncs) {
    // SAFETY: both were boxes, and this is gdb's last call.
    unsafe {
        let this = Box::from_raw(this);
        drop(Box::from_raw(this.private.cast::<Reader>()));
    }
}

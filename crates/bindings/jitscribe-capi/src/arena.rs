//! Memory for code that is a growing object file.
#![allow(unsafe_code)]

use std::ffi::{OsStr, c_void};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::time::Duration;

use jitscribe::arena::{self, CodeArena, Draft, Executable, Options};

use crate::guard::guard;
use crate::opaque::OpaqueScribe;
use crate::outcome::{Failure, Outcome};
use crate::raw::{self, Out, Versioned};
use crate::text::Str;

/// Memory for code that is a growing object file. It lives as long as the process, is never freed, and may be used from any
/// thread.
#[derive(Debug)]
pub struct OpaqueArena {
    arena: CodeArena,
    next: AtomicPtr<OpaqueArena>,
}

/// All arenas that were opened. They are never freed; this list keeps leak checkers from reporting them.
static OPENED: AtomicPtr<OpaqueArena> = AtomicPtr::new(ptr::null_mut());

impl OpaqueArena {
    /// NULL if the allocation fails.
    fn new(arena: CodeArena) -> *const Self {
        let Ok(new) = fallible::boxed(Self { arena, next: AtomicPtr::default() }) else {
            return ptr::null();
        };
        let new = Box::into_raw(new);
        let before = OPENED.swap(new, Relaxed);
        // SAFETY: from the box above, which is never freed.
        unsafe { (*new).next.store(before, Relaxed) };
        new
    }
}

/// Space for code, from jitscribe_arena_allocate to jitscribe_allocation_free. Only one thread at a time may use it.
#[derive(Debug)]
pub struct OpaqueAllocation(AllocationState);

#[derive(Debug)]
enum AllocationState {
    Draft(Draft),
    Executable(Executable),
    /// While one state is replaced by the other.
    Nothing,
}

/// What an arena does. The library ignores bits that it does not know.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaFlag {
    /// Every fork of this process is followed by an exec. Code that was made before the fork may still be changed and freed
    /// after it. Without this flag, such code belongs to both processes for ever.
    ForksOnlyToExec = 1,
    /// Code is written where it runs: for compilers that compute addresses from where they write, or that change code in place
    /// while it runs. The memory is writable and executable at once, which some systems forbid: then there is no arena. As
    /// JITSCRIBE_ARENA_FLAG_FORKS_ONLY_TO_EXEC: the child of a fork shares the memory, and must not write there.
    InPlace = 2,
}

/// Settings of an arena. Set struct_size, set everything else to zero, and then set what you need.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArenaSettings {
    /// sizeof(jitscribe_arena_settings)
    pub struct_size: usize,
    /// Bits of jitscribe_arena_flag.
    pub flags: u32,
    /// Remove files in the directory that arenas of dead processes left, and that have not been written to for this many
    /// hours. 0: remove none, because readers of a recording or a core file of such a process need them for symbol names.
    pub sweep_hours: u32,
    /// Bytes of code in one file, and so next to each other in memory: from 64 KiB to 256 MiB. 0: 16 MiB.
    pub segment: u64,
    /// Bytes of code in all files together. 0: 1 GiB.
    pub limit: u64,
    /// Directory of the files: only this user can write to it, and its file system allows files to be executed. Empty:
    /// JITSCRIBE_DIR if the scribe uses the environment, else the directory `jitscribe` in XDG_RUNTIME_DIR, or in ~/.cache.
    pub dir: Str,
}

// SAFETY: only integers, and the pointer and size of a string.
unsafe impl Versioned for ArenaSettings {
    const LEAST: usize = offset_of!(ArenaSettings, segment);
}

/// Creates an arena. perf, debuggers that attach later, dladdr and the unwinders in the process read the code that is
/// announced with jitscribe_load from the arena's files, without any further step. The files remain when the process ends. The
/// arena functions do not exist on Windows.
///
/// @param scribe    from jitscribe_open or jitscribe_global: its notice callback reports why there is no arena.
/// @param settings  NULL: the defaults.
/// @param arena     out: the arena; NULL if it could not be created. Then use memory of your own.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_arena_open(
    scribe: *const OpaqueScribe,
    settings: *const ArenaSettings,
    arena: *mut *const OpaqueArena,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(arena, ptr::null()) }?;
        // SAFETY: the contract of the header.
        let scribe = unsafe { raw::shared(scribe) }?.scribe;
        // SAFETY: the contract of the header.
        let choose = unsafe { arena_options(settings) }?;
        let made = arena::open_with(&scribe, choose);
        out.set(made.map_or(ptr::null(), OpaqueArena::new));
        Ok(())
    })
}

/// Applies the settings.
///
/// # Safety
/// The contract of the header.
unsafe fn arena_options(
    settings: *const ArenaSettings,
) -> Result<impl FnOnce(Options) -> Options, Failure> {
    let (mut flags, mut sweep, mut segment, mut limit, mut dir) = (0, 0, 0, 0, None);
    if !settings.is_null() {
        // SAFETY: guaranteed by the caller.
        let settings = unsafe { raw::versioned(settings) }?;
        // SAFETY: guaranteed by the caller.
        let bytes = unsafe { settings.dir.bytes() }?;
        dir = (!bytes.is_empty()).then(|| Path::new(OsStr::from_bytes(bytes)));
        (flags, sweep) = (settings.flags, settings.sweep_hours);
        (segment, limit) = (settings.segment, settings.limit);
    }
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(move |mut options: Options| {
        if let Some(dir) = dir {
            options = options.directory(dir);
        }
        if segment != 0 {
            options = options.segment(size(segment));
        }
        if limit != 0 {
            options = options.limit(size(limit));
        }
        if sweep != 0 {
            options = options.sweep(Duration::from_secs(u64::from(sweep) * 3600));
        }
        if flags & ArenaFlag::ForksOnlyToExec as u32 != 0 {
            options = options.forks_only_to_exec();
        }
        if flags & ArenaFlag::InPlace as u32 != 0 {
            options = options.in_place();
        }
        options
    })
}

/// Allocates space for code. Write the code at `bytes`; it will run at `address`. The two are different, unless the arena has
/// JITSCRIBE_ARENA_FLAG_IN_PLACE. Call jitscribe_allocation_finish before the code runs.
///
/// @param size        in bytes.
/// @param align       a power of two, at most a page. Code is aligned to 32 bytes in any case.
/// @param allocation  out: the allocation; NULL if there is no space on the disk or within the limit.
/// @param bytes       out: where to write the code until it is finished.
/// @param address     out: where the code will run.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_arena_allocate(
    arena: *const OpaqueArena,
    size: usize,
    align: usize,
    allocation: *mut *mut OpaqueAllocation,
    bytes: *mut *mut c_void,
    address: *mut u64,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (allocation, bytes, address) = unsafe {
            (
                Out::new(allocation, ptr::null_mut())?,
                Out::new(bytes, ptr::null_mut())?,
                Out::new(address, 0)?,
            )
        };
        // SAFETY: the contract of the header.
        let arena = unsafe { raw::shared(arena) }?;
        let place = fallible::Place::new().ok();
        if let Some((place, mut draft)) =
            place.and_then(|place| Some((place, arena.arena.allocate(size, align)?)))
        {
            bytes.set(draft.bytes_mut().as_mut_ptr().cast());
            address.set(draft.address());
            let draft = OpaqueAllocation(AllocationState::Draft(draft));
            allocation.set(Box::into_raw(place.fill(draft)));
        }
        Ok(())
    })
}

/// Marks the code as complete, so that it may run. Do not write to `bytes` any more. Does nothing if it was finished before.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_allocation_finish(allocation: *mut OpaqueAllocation) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let allocation = unsafe { raw::in_out(allocation) }?;
        allocation.0 = match std::mem::replace(&mut allocation.0, AllocationState::Nothing) {
            AllocationState::Draft(draft) => AllocationState::Executable(draft.finish()),
            other => other,
        };
        Ok(())
    })
}

/// Makes finished code writable again, at the same address. It must not run until it is finished again.
///
/// @param bytes  out: where to write the code; NULL if it may not be changed because another process shares it since a fork.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_allocation_edit(
    allocation: *mut OpaqueAllocation,
    bytes: *mut *mut c_void,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(bytes, ptr::null_mut()) }?;
        // SAFETY: the contract of the header.
        let allocation = unsafe { raw::in_out(allocation) }?;
        allocation.0 = match std::mem::replace(&mut allocation.0, AllocationState::Nothing) {
            AllocationState::Executable(code) => match code.edit() {
                Ok(draft) => AllocationState::Draft(draft),
                Err(code) => AllocationState::Executable(code),
            },
            other => other,
        };
        out.set(match &mut allocation.0 {
            AllocationState::Draft(draft) => draft.bytes_mut().as_mut_ptr().cast(),
            _ => ptr::null_mut(),
        });
        Ok(())
    })
}

/// Frees code, finished or not. It must not run any more, nor be on any stack. Call jitscribe_unload before.
///
/// @param allocation  NULL does nothing. The allocation is invalid afterwards.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_allocation_free(allocation: *mut OpaqueAllocation) -> Outcome {
    guard(|| {
        if !allocation.is_null() {
            // SAFETY: not NULL, and mapped by the contract of the header. This checks what can be checked.
            unsafe { raw::in_out(allocation) }?;
            // SAFETY: from a box of jitscribe_arena_allocate, which is not used any more, by the contract of the header.
            drop(unsafe { Box::from_raw(allocation) });
        }
        Ok(())
    })
}

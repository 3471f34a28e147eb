//! Memory for code that is an object file.
#![allow(unsafe_code)]

use std::ffi::{OsStr, c_void};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::time::Duration;

use jitscribe::{ArenaOptions, CodeArena, Draft, Executable};

use crate::guard::guard;
use crate::opaque::OpaqueScribe;
use crate::outcome::{Failure, Outcome};
use crate::raw::{self, Out, Versioned};
use crate::text::Str;

/// Memory for code that is a growing object file. It lives as long as the process, and is never freed; use it from any
/// thread.
#[derive(Debug)]
pub struct OpaqueArena {
    arena: CodeArena,
    next: AtomicPtr<OpaqueArena>,
}

/// All that were opened, so that checkers for leaks find them though they are never freed.
static OPENED: AtomicPtr<OpaqueArena> = AtomicPtr::new(ptr::null_mut());

impl OpaqueArena {
    fn new(arena: CodeArena) -> *const Self {
        let new = Box::into_raw(Box::new(Self { arena, next: AtomicPtr::default() }));
        let before = OPENED.swap(new, Relaxed);
        // SAFETY: from the box above, which is never freed.
        unsafe { (*new).next.store(before, Relaxed) };
        new
    }
}

/// Room for code, from jitscribe_arena_allocate to jitscribe_room_free. One thread at a time may use it.
#[derive(Debug)]
pub struct OpaqueRoom(Held);

#[derive(Debug)]
enum Held {
    Draft(Draft),
    Executable(Executable),
    /// Between the two.
    Nothing,
}

/// What an arena does. Bits that a library does not know are ignored.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArenaFlag {
    /// Every fork of this process ends in an exec: code that was made before it may still be changed and freed after it.
    /// Without this, such code is both processes' for ever.
    ForksOnlyToExec = 1,
}

/// Settings of an arena. Set all to zero but struct_size, and then what you want.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ArenaSettings {
    /// sizeof(jitscribe_arena_settings)
    pub struct_size: usize,
    /// Bits of jitscribe_arena_flag.
    pub flags: u32,
    /// Files in the directory that arenas of processes that are gone left, and that were not written to for so many hours, are
    /// removed. 0: none is, since whoever reads a recording or a core file of such a process looks for names there.
    pub sweep_hours: u32,
    /// Bytes of code that lie in one file, and so side by side: from 64 KiB to 256 MiB. 0: 16 MiB.
    pub segment: u64,
    /// Bytes of code in all files. 0: 1 GiB.
    pub limit: u64,
    /// Where the files go: a directory to which only this user can write, on a file system whose files may be executed.
    /// Empty: JITSCRIBE_DIR if the environment is asked, else a folder `jitscribe` in XDG_RUNTIME_DIR, or in the home's
    /// .cache.
    pub dir: Str,
}

// SAFETY: integers and a string's pointer and size alone.
unsafe impl Versioned for ArenaSettings {
    const LEAST: usize = offset_of!(ArenaSettings, segment);
}

/// Makes an arena. perf, debuggers that attach later, dladdr and unwinders in the process read from its files, with
/// no further step, what is announced by jitscribe_load of code that lies there. The files stay when the process
/// ends. On Windows none of the functions of arenas is there.
///
/// @param scribe    from jitscribe_open or jitscribe_open_from_env: its notice callback hears why there is no arena.
/// @param settings  NULL: the usual ones.
/// @param arena     out: the arena; NULL if none can be had. Then go on with memory of your own.
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
        let (scribe, out) = unsafe { (raw::shared(scribe)?.scribe, Out::new(arena)?) };
        // SAFETY: the contract of the header.
        let choose = unsafe { chosen(settings) }?;
        let made = scribe.code_arena(choose);
        out.set(made.map_or(ptr::null(), OpaqueArena::new));
        Ok(())
    })
}

/// What the settings say.
///
/// # Safety
/// The contract of the header.
unsafe fn chosen(
    settings: *const ArenaSettings,
) -> Result<impl FnOnce(ArenaOptions) -> ArenaOptions, Failure> {
    let (mut flags, mut sweep, mut segment, mut limit, mut dir) = (0, 0, 0, 0, None);
    if !settings.is_null() {
        // SAFETY: the caller's promise.
        let settings = unsafe { raw::versioned(settings) }?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { settings.dir.bytes() }?;
        dir = (!bytes.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(bytes)));
        (flags, sweep) = (settings.flags, settings.sweep_hours);
        (segment, limit) = (settings.segment, settings.limit);
    }
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(move |mut options: ArenaOptions| {
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
        options
    })
}

/// Room for code, to be written at `bytes`, which will run at `address`: the two are different, and the code is never
/// written where it runs. Call jitscribe_room_finish before it does.
///
/// @param size     in bytes.
/// @param align    a power of two, of a page at most; code lies at multiples of 32 in any case.
/// @param room     out: the room; NULL if there is none, on the disk or within the limit.
/// @param bytes    out: where to write it, as long as it is not finished.
/// @param address  out: where it will run.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_arena_allocate(
    arena: *const OpaqueArena,
    size: usize,
    align: usize,
    room: *mut *mut OpaqueRoom,
    bytes: *mut *mut c_void,
    address: *mut u64,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (arena, room, bytes, address) =
            unsafe { (raw::shared(arena)?, Out::new(room)?, Out::new(bytes)?, Out::new(address)?) };
        match arena.arena.allocate(size, align) {
            Some(mut draft) => {
                bytes.set(draft.bytes_mut().as_mut_ptr().cast());
                address.set(draft.address());
                room.set(Box::into_raw(Box::new(OpaqueRoom(Held::Draft(draft)))));
            }
            None => {
                bytes.set(ptr::null_mut());
                address.set(0);
                room.set(ptr::null_mut());
            }
        }
        Ok(())
    })
}

/// The code is complete, and may run; `bytes` must not be written to any more. Nothing happens if it was finished before.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_room_finish(room: *mut OpaqueRoom) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let room = unsafe { raw::in_out(room) }?;
        room.0 = match std::mem::replace(&mut room.0, Held::Nothing) {
            Held::Draft(draft) => Held::Executable(draft.finish()),
            other => other,
        };
        Ok(())
    })
}

/// To change code that is finished, where it stands; it must not run meanwhile.
///
/// @param bytes  out: where to write it; NULL if it may not be changed, as another process has it since a fork.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_room_edit(
    room: *mut OpaqueRoom,
    bytes: *mut *mut c_void,
) -> Outcome {
    guard(|| {
        // SAFETY: the contract of the header.
        let (room, out) = unsafe { (raw::in_out(room)?, Out::new(bytes)?) };
        room.0 = match std::mem::replace(&mut room.0, Held::Nothing) {
            Held::Executable(code) => match code.edit() {
                Ok(draft) => Held::Draft(draft),
                Err(code) => Held::Executable(code),
            },
            other => other,
        };
        out.set(match &mut room.0 {
            Held::Draft(draft) => draft.bytes_mut().as_mut_ptr().cast(),
            _ => ptr::null_mut(),
        });
        Ok(())
    })
}

/// Frees code, finished or not: it must not run any more, nor be on any stack. Call jitscribe_unload before.
///
/// @param room  NULL does nothing. It means nothing afterwards.
///
/// # Safety
/// The contract of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jitscribe_room_free(room: *mut OpaqueRoom) -> Outcome {
    guard(|| {
        if !room.is_null() {
            // SAFETY: not NULL and mapped by the contract of the header; checked for what can be checked.
            unsafe { raw::in_out(room) }?;
            // SAFETY: from a box of jitscribe_arena_allocate, which nobody uses any more, by the contract of the header.
            drop(unsafe { Box::from_raw(room) });
        }
        Ok(())
    })
}

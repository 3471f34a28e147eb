//! An object file without content, which the process's loader knows, and whose program headers are changed.
//!
//! The loader passes the program headers as they are in memory, in the file's own first pages, to those who ask for the object
//! files of the process (`dl_iterate_phdr`). The file has no code, and these pages are writable. It is linked at such an address
//! that the difference to where it is loaded is small, because LLVM's libunwind leaves out object files whose difference is
//! larger than the address that it looks for.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Release};

use fallible::Vec;

/// Number of program headers for ranges of code. A walk reads them one by one.
pub(super) const SLOTS: usize = 252;
/// Those before them: the file itself, `.dynamic`, the stack, `.eh_frame_hdr`.
const OWN: usize = 4;
const FRAMES: usize = 3;
const HEADERS: usize = OWN + SLOTS;

/// The places in the file: the ELF header, the program headers, and what a loader needs of `.dynamic`.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const HASH: usize = HEADER + HEADERS * PROGRAM_HEADER;
const SYMBOLS: usize = HASH + 24;
const NAMES: usize = SYMBOLS + 24;
const DYNAMIC: usize = NAMES + 8;
const SIZE: usize = DYNAMIC + 6 * 16;

const LOAD: u64 = 1;
const READ: u64 = 4;
const WRITE: u64 = 2;
const EXECUTE: u64 = 1;
const GNU_FRAMES: u64 = 0x6474_e550;

/// How far below the place where the loader probably puts it the file is linked: first little, for code at low addresses.
const DISTANCES: [u64; 3] = [1 << 24, 1 << 28, 1 << 32];
/// The file's descriptor remains open for debuggers, which read object files under the name that the loader knows. Its number is
/// at least this, where possible: programs expect new descriptors to have small numbers.
const DESCRIPTOR: c_int = 512;

/// Objects that were given back.
static IDLE: Mutex<Vec<Object>> = Mutex::new(Vec::new());

/// The loaded object.
#[derive(Debug)]
pub(crate) struct Object {
    /// `dlpi_addr`.
    base: u64,
    headers: NonNull<[AtomicU64; PROGRAM_HEADER / 8]>,
}

// SAFETY: the program headers are only accessed with atomic loads and stores.
unsafe impl Send for Object {}

/// The program headers, while no walk reads them.
#[derive(Debug)]
pub(super) struct Headers<'a>(&'a Object);

impl Object {
    /// `None` if the loader does not accept it, or does not behave as expected.
    ///
    /// Call it without holding a lock: the loader may be waiting for one of ours.
    pub(crate) fn load() -> Option<Self> {
        // Other loaders let walks read program headers at any time.
        if !cfg!(all(target_env = "gnu", target_pointer_width = "64", target_endian = "little")) {
            return None;
        }
        if let Ok(mut idle) = IDLE.try_lock()
            && let Some(object) = idle.pop()
        {
            return Some(object);
        }
        // The loader will probably choose the same place.
        let place = crate::memory::map(SIZE)?;
        let place_address = place.as_ptr().expose_provenance() as u64;
        // SAFETY: the mapping from above.
        unsafe { libc::munmap(place.as_ptr().cast(), SIZE) };
        DISTANCES.iter().find_map(|distance| {
            // On whole pages of every size.
            let linked = place_address.checked_sub(*distance)? & !0xffff;
            Self::load_at(linked, *distance)
        })
    }

    fn load_at(linked: u64, distance: u64) -> Option<Self> {
        let file = File::new(&fallible::attempt(|| content(linked)).ok()?)?;
        // SAFETY: the file has nothing that a loader would run or bind.
        let handle =
            unsafe { libc::dlopen(file.name().as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let Some(handle) = NonNull::new(handle) else {
            // Clear the error message: otherwise the host would attribute it to its own calls.
            // SAFETY: it may be called at any time.
            unsafe { libc::dlerror() };
            return None;
        };
        let found = base_of(handle).and_then(|base| {
            let headers = headers_of(base)?;
            let address = headers.as_ptr().expose_provenance() as u64;
            // In the file's own pages, and near its linked address.
            let is_within = address == base.wrapping_add(linked).wrapping_add(HEADER as u64);
            (is_within && base < 2 * distance).then_some(Self { base, headers })
        });
        match found {
            Some(object) => {
                file.keep();
                Some(object)
            }
            None => {
                // SAFETY: opened above.
                unsafe { libc::dlclose(handle.as_ptr()) };
                None
            }
        }
    }

    /// The lowest address that it can be at.
    pub(super) fn lowest(&self) -> u64 {
        self.base
    }

    /// Lets `.eh_frame_hdr` be somewhere else.
    pub(super) fn set_frames(&self, (address, size): (u64, u64)) {
        self.change(|headers| headers.write(FRAMES, GNU_FRAMES | READ << 32, address, size));
    }

    /// Changes program headers, while glibc's loader holds the lock under which walks read them.
    pub(super) fn change(&self, work: impl FnOnce(&mut Headers<'_>)) {
        struct Work<'a, W>(Option<W>, &'a Object);
        extern "C" fn run<W: FnOnce(&mut Headers<'_>)>(
            _: *mut libc::dl_phdr_info,
            _: libc::size_t,
            work: *mut c_void,
        ) -> c_int {
            // SAFETY: the value from below, which outlives the call.
            let work = unsafe { &mut *work.cast::<Work<'_, W>>() };
            if let Some(run) = work.0.take() {
                run(&mut Headers(work.1));
            }
            1
        }
        fn function<W: FnOnce(&mut Headers<'_>)>(
            _: &Work<'_, W>,
        ) -> extern "C" fn(*mut libc::dl_phdr_info, libc::size_t, *mut c_void) -> c_int {
            run::<W>
        }
        let mut work = Work(Some(work), self);
        let function = function(&work);
        // SAFETY: the function takes this value, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(function), (&raw mut work).cast()) };
    }

    /// Makes it an object without content again, for others to use.
    pub(super) fn give_back(self) {
        self.change(|headers| {
            (0..SLOTS).for_each(|slot| headers.clear(slot));
            headers.write(FRAMES, 0, 0, 0);
        });
        if let Ok(mut idle) = IDLE.try_lock() {
            // One that cannot be stored stays loaded without use.
            let _ = idle.try_push(self);
        }
    }
}

impl Headers<'_> {
    /// Says that the object has code there.
    pub(super) fn set(&mut self, slot: usize, start: u64, end: u64) {
        let size = end.saturating_sub(start);
        self.write(OWN.saturating_add(slot), LOAD | (READ | EXECUTE) << 32, start, size);
    }

    pub(super) fn clear(&mut self, slot: usize) {
        self.write(OWN.saturating_add(slot), 0, 0, 0);
    }

    fn write(&mut self, header: usize, kind: u64, address: u64, size: u64) {
        // SAFETY: a program header of the loaded file, which stays loaded.
        let words = unsafe { self.0.headers.add(header.min(HEADERS - 1)).as_ref() };
        let [kind_and_flags, _, place, _, _, length, _] = words;
        // Without content while it changes.
        length.store(0, Release);
        place.store(address.wrapping_sub(self.0.base), Release);
        length.store(size, Release);
        kind_and_flags.store(kind, Release);
    }
}

/// `dlpi_addr` of a loaded file.
#[cfg(target_env = "gnu")]
fn base_of(handle: NonNull<c_void>) -> Option<u64> {
    let mut map: *const u64 = ptr::null();
    // SAFETY: this request stores a pointer to the handle's link map, whose first word it is.
    unsafe {
        let failed =
            libc::dlinfo(handle.as_ptr(), libc::RTLD_DI_LINKMAP, (&raw mut map).cast::<c_void>());
        map.as_ref().copied().filter(|_| failed == 0)
    }
}

/// Never called: see [`Object::load`]. The crate `libc` has no `dlinfo` of musl.
#[cfg(not(target_env = "gnu"))]
fn base_of(_: NonNull<c_void>) -> Option<u64> {
    None
}

/// The program headers of the object with this `dlpi_addr` that has exactly as many as ours.
fn headers_of(base: u64) -> Option<NonNull<[AtomicU64; PROGRAM_HEADER / 8]>> {
    struct Search {
        base: u64,
        found: *const c_void,
    }
    extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of an object, and the value from below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_addr == search.base && usize::from(info.dlpi_phnum) == HEADERS {
            search.found = info.dlpi_phdr.cast();
        }
        0
    }
    let mut search = Search { base, found: ptr::null() };
    // SAFETY: the function takes this value, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    NonNull::new(search.found.cast_mut().cast())
}

/// A file in memory with a name. It is not one that readers of code logs look for.
struct File {
    descriptor: c_int,
    name: Vec<u8>,
}

impl File {
    fn new(content: &[u8]) -> Option<Self> {
        // SAFETY: a name that ends with a NUL.
        let low = unsafe {
            libc::syscall(libc::SYS_memfd_create, c"publish-unwind".as_ptr(), libc::MFD_CLOEXEC)
        };
        let low = c_int::try_from(low).ok().filter(|low| *low >= 0)?;
        // SAFETY: the descriptor from above, which is ours.
        let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, DESCRIPTOR) };
        let mut file = Self { descriptor: low, name: Vec::new() };
        if high >= 0 {
            // Dropping it closes the other one.
            file = Self { descriptor: high, name: Vec::new() };
            // SAFETY: as above.
            unsafe { libc::close(low) };
        }
        // SAFETY: the bytes outlive the call.
        let written =
            unsafe { libc::write(file.descriptor, content.as_ptr().cast(), content.len()) };
        let pid = std::process::id();
        let descriptor = file.descriptor;
        file.name = fallible::attempt(|| {
            Vec::from(fallible::text!("/proc/{pid}/fd/{descriptor}\0").as_bytes())
        })
        .ok()?;
        (usize::try_from(written) == Ok(content.len())).then_some(file)
    }

    fn name(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.name).unwrap_or_default()
    }

    /// Leaves the descriptor open.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: it is ours.
        unsafe { libc::close(self.descriptor) };
    }
}

/// The file, linked at this address.
fn content(linked: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(SIZE);
    let mut word = |word: u64| out.extend_from_slice(&word.to_ne_bytes());
    let shared_object = 3;
    word(u64::from_ne_bytes(*b"\x7fELF\x02\x01\x01\0"));
    word(0);
    word(shared_object | u64::from(jit_code::elf_machine::NATIVE) << 16 | 1 << 32);
    word(0); // no entry
    word(HEADER as u64);
    word(0); // no sections
    word((HEADER as u64) << 32 | (PROGRAM_HEADER as u64) << 48);
    word(HEADERS as u64 | 64 << 16); // the size of the sections' headers
    let (dynamic, stack) = (2, 0x6474_e551);
    for (kind, at, size, align) in [
        (LOAD, 0, SIZE, 0x1_0000),
        (dynamic, DYNAMIC, 6 * 16, 8),
        // Without it, all stacks of the process would become executable.
        (stack, 0, 0, 16),
    ] {
        let address = if kind == stack { 0 } else { linked.wrapping_add(at as u64) };
        word(kind | (READ | WRITE) << 32);
        [at as u64, address, address, size as u64, size as u64, align]
            .into_iter()
            .for_each(&mut word);
    }
    for _ in FRAMES..HEADERS {
        [0; PROGRAM_HEADER / 8].into_iter().for_each(&mut word);
    }
    // One empty bucket, and one symbol; the null symbol; the empty name.
    [1 | 1 << 32, 0, 0].into_iter().for_each(&mut word);
    [0; 3].into_iter().for_each(&mut word);
    word(0);
    for (tag, value) in [(4, HASH), (6, SYMBOLS), (5, NAMES)] {
        [tag, linked.wrapping_add(value as u64)].into_iter().for_each(&mut word);
    }
    // Sizes of a symbol and of all names, and the end.
    [11, 24, 10, 1, 0, 0].into_iter().for_each(&mut word);
    out
}

#[cfg(test)]
mod tests {
    use super::{SIZE, content};

    #[test]
    fn the_file_is_as_large_as_it_says() {
        assert_eq!(content(1 << 40).len(), SIZE);
    }
}

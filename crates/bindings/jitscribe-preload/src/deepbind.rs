//! Objects that look up symbols in their own libraries before the program's (`RTLD_DEEPBIND`). PHP loads its extensions in this
//! way, one of which contains its JIT. The dynamic linker binds such an object to the real functions instead of the preloaded
//! ones. Afterwards, this module changes the object's slots for functions that are interposed here.
//!
//! It reads the object's relocations just as the dynamic linker did (System V ABI, "Dynamic Section", "Relocation").

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use fallible::{Refused, Vec};
use libc::{Elf64_Addr, Elf64_Phdr, Elf64_Sym, Elf64_Xword, dl_phdr_info};

use crate::real;

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: Elf64_Xword,
}

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: Elf64_Addr,
    info: Elf64_Xword,
    addend: i64,
}

/// The first members of `struct link_map`.
#[repr(C)]
struct LinkMap {
    base: usize,
}

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const PT_DYNAMIC: u32 = 2;
const PT_GNU_RELRO: u32 = 0x6474_e552;
/// `R_*_JUMP_SLOT` and `R_*_GLOB_DAT`.
#[cfg(target_arch = "x86_64")]
const SLOTS: [u32; 2] = [7, 6];
#[cfg(target_arch = "aarch64")]
const SLOTS: [u32; 2] = [1026, 1025];

/// The state of the search, while the dynamic linker lists its objects.
struct Search {
    /// The object that was loaded. The objects that it brought along follow it.
    base: usize,
    is_behind: bool,
    replacements: &'static [Replacement],
}

/// One of our functions, and its address.
type Replacement = (&'static CStr, usize);

/// Makes an object, and those that were loaded with it, call the functions here.
///
/// # Safety
/// `handle` was returned by `dlopen`, and is not closed during the call.
pub(crate) unsafe fn patch_got(handle: *mut c_void) {
    let mut map = std::ptr::null::<LinkMap>();
    // SAFETY: a handle, and space for the pointer that is written.
    let found = unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) };
    if found != 0 || map.is_null() {
        return;
    }
    // Before the objects are listed: the dynamic linker's lock is held during that.
    let replacements = replacements();
    // SAFETY: the object stays.
    let mut search = Search { base: unsafe { (*map).base }, is_behind: false, replacements };
    // SAFETY: the function takes a search, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(patch_loaded), (&raw mut search).cast()) };
}

/// Our functions by name, sorted; empty if memory is exhausted. They are looked up once, because the libraries before ours do not
/// change after startup: looking them up for each of 30 extensions would take 250,000 instructions.
fn replacements() -> &'static [Replacement] {
    /// No lock: the child of a fork could inherit it locked for ever. A thread that comes second drops what it made.
    static TABLE: AtomicPtr<Vec<Replacement>> = AtomicPtr::new(std::ptr::null_mut());
    let mut table = TABLE.load(Acquire);
    if table.is_null() {
        let made = fallible::attempt(|| {
            let names = real::names().filter_map(|name| Some((name, exported(name)?)));
            let mut replacements: Vec<_> = names.collect();
            replacements.sort_unstable();
            fallible::boxed(replacements)
        });
        let replacements = match made.flatten() {
            Ok(replacements) => Box::into_raw(replacements),
            Err(Refused) => return &[],
        };
        match TABLE.compare_exchange(std::ptr::null_mut(), replacements, AcqRel, Acquire) {
            Ok(_) => table = replacements,
            Err(first) => {
                // SAFETY: it was made above, and no other thread has it.
                drop(unsafe { Box::from_raw(replacements) });
                table = first;
            }
        }
    }
    // SAFETY: what is stored is complete, never changes, and is never freed.
    unsafe { &*table }
}

/// The address of a function that is exported here; `None` if another library comes before this one.
fn exported(name: &CStr) -> Option<usize> {
    // SAFETY: a lookup by a name that ends with a NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let object = |address: *const c_void| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: it looks the address up, and writes to memory with enough space.
        let done = unsafe { libc::dladdr(address, info.as_mut_ptr()) };
        // SAFETY: all zeros are a valid value, too.
        (done != 0).then(|| unsafe { info.assume_init() }.dli_fbase)
    };
    let is_ours = !found.is_null() && object(found) == object((exported as fn(_) -> _) as *const _);
    is_ours.then(|| found.addr())
}

unsafe extern "C" fn patch_loaded(info: *mut dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the search of `patch_got`, and the info of the dynamic linker.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    let base = info.dlpi_addr as usize;
    search.is_behind |= base == search.base;
    if search.is_behind {
        // SAFETY: the object is loaded, and stays during this call.
        unsafe { patch_object(base, info, search.replacements) };
    }
    0
}

/// # Safety
/// The object is loaded at `base`, and relocated.
unsafe fn patch_object(base: usize, info: &dl_phdr_info, replacements: &[Replacement]) {
    // SAFETY: its program headers.
    let headers: &[Elf64_Phdr] =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let at = |header: &Elf64_Phdr| base.wrapping_add(header.p_vaddr as usize);
    let Some(dynamic) = headers.iter().find(|header| header.p_type == PT_DYNAMIC) else { return };
    let relro = headers.iter().find(|header| header.p_type == PT_GNU_RELRO);
    let relro =
        relro.map_or(0..0, |header| at(header)..at(header).wrapping_add(header.p_memsz as usize));

    let value = |tag| {
        let mut entry = std::ptr::with_exposed_provenance::<Dynamic>(at(dynamic));
        loop {
            // SAFETY: the section ends with an entry whose tag is 0.
            match unsafe { &*entry } {
                Dynamic { tag: 0, .. } => return None,
                found if found.tag == tag => return Some(found.value as usize),
                // SAFETY: there is another one.
                _ => entry = unsafe { entry.add(1) },
            }
        }
    };
    // The addresses: glibc has relocated them, except for objects whose dynamic section is read-only.
    let address =
        |tag| value(tag).map(|value| if value < base { base.wrapping_add(value) } else { value });
    let (Some(symbols), Some(strings)) = (address(DT_SYMTAB), address(DT_STRTAB)) else { return };
    for (table, size) in [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)] {
        let (Some(table), Some(size)) = (address(table), value(size)) else { continue };
        let count = size / size_of::<Relocation>();
        // SAFETY: the object's relocations.
        let relocations = unsafe {
            std::slice::from_raw_parts(
                std::ptr::with_exposed_provenance::<Relocation>(table),
                count,
            )
        };
        for relocation in relocations.iter().filter(|one| SLOTS.contains(&(one.info as u32))) {
            let number = (relocation.info >> 32) as usize;
            // SAFETY: a symbol of the object, whose name is one of its strings.
            let name = unsafe {
                let symbol = std::ptr::with_exposed_provenance::<Elf64_Sym>(symbols).add(number);
                let string = strings.wrapping_add((*symbol).st_name as usize);
                CStr::from_ptr(std::ptr::with_exposed_provenance::<c_char>(string))
            };
            if let Ok(found) = replacements.binary_search_by_key(&name, |(name, _)| name)
                && let Some(&(_, function)) = replacements.get(found)
            {
                let slot = base.wrapping_add(relocation.offset as usize);
                // SAFETY: a word that holds the function's address.
                unsafe { store(slot, function, relro.contains(&slot)) };
            }
        }
    }
}

/// # Safety
/// The address of a slot of an object, through which calls may go at any time.
unsafe fn store(slot: usize, function: usize, is_read_only: bool) {
    let word = std::ptr::with_exposed_provenance_mut::<AtomicUsize>(slot);
    // SAFETY: it takes nothing and cannot fail.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(slot & !(page.wrapping_sub(1)));
    // SAFETY: the page of the slot, which does not cross a page boundary.
    let protect = |access| unsafe { libc::mprotect(start, page, access) == 0 };
    if is_read_only && !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return;
    }
    // SAFETY: guaranteed by the caller; it can be written to.
    unsafe { (*word).store(function, Relaxed) };
    if is_read_only {
        protect(libc::PROT_READ);
    }
}

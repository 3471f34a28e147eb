//! HotSpot's description of its own structures.
#![allow(unsafe_code, reason = "tables in another library, found by name")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

/// The JVM's library.
pub(crate) struct Library(NonNull<c_void>);

/// The location of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Offset in its structure; for a static field, its address.
    pub(crate) at: usize,
    /// Size in bytes: 1, 2, 4 or 8.
    pub(crate) size: usize,
}

impl Library {
    /// The library that contains an address. It is never closed: the JVM lives as long as the process.
    pub(crate) fn around(address: *const c_void) -> Option<Self> {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: any address is allowed; the result has its place, and is plain data that may be all zero.
        let path = unsafe {
            let found = libc::dladdr(address, info.as_mut_ptr());
            (found != 0).then(|| info.assume_init().dli_fname)?
        };
        // SAFETY: the loader's own NUL-terminated name of a library that is loaded. Nothing new is loaded.
        let library = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        NonNull::new(library).map(Self)
    }

    /// The value of the variable of this name, of eight bytes.
    fn word(&self, name: &CStr) -> Option<u64> {
        // SAFETY: the library is open.
        let place = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        // SAFETY: all variables that are read here have eight bytes (vmStructs.cpp), and never change.
        (!place.is_null()).then(|| unsafe { place.cast::<u64>().read_unaligned() })
    }

    /// Calls `see` with each field's structure, name and type.
    pub(crate) fn fields(&self, mut see: impl FnMut(&[u8], &[u8], Field)) -> Option<()> {
        let word = |name| self.word(name);
        let mut entry = word(c"gHotSpotVMStructs")?;
        let stride = word(c"gHotSpotVMStructEntryArrayStride")?;
        let structure = word(c"gHotSpotVMStructEntryTypeNameOffset")?;
        let name = word(c"gHotSpotVMStructEntryFieldNameOffset")?;
        let kind = word(c"gHotSpotVMStructEntryTypeStringOffset")?;
        let is_static = word(c"gHotSpotVMStructEntryIsStaticOffset")?;
        let offset = word(c"gHotSpotVMStructEntryOffsetOffset")?;
        let address = word(c"gHotSpotVMStructEntryAddressOffset")?;
        loop {
            // SAFETY: entries follow one another at `stride`, up to one whose structure name is null. The fields are
            // where the offsets say, the names are NUL-terminated, and nothing of it ever changes (vmStructs.hpp).
            unsafe {
                let Some(structure) = string(entry + structure) else { return Some(()) };
                let (name, kind) = (string(entry + name), string(entry + kind));
                let at = match read::<u32>(entry + is_static) {
                    0 => read::<u64>(entry + offset),
                    _ => read::<u64>(entry + address),
                };
                let size = kind.and_then(size);
                if let (Some(name), Some(size), Ok(at)) = (name, size, usize::try_from(at)) {
                    see(structure, name, Field { at, size });
                }
            }
            entry += stride;
        }
    }

    /// The size of a structure.
    pub(crate) fn size_of(&self, structure: &[u8]) -> Option<usize> {
        let word = |name| self.word(name);
        let mut entry = word(c"gHotSpotVMTypes")?;
        let stride = word(c"gHotSpotVMTypeEntryArrayStride")?;
        let name = word(c"gHotSpotVMTypeEntryTypeNameOffset")?;
        let size = word(c"gHotSpotVMTypeEntrySizeOffset")?;
        loop {
            // SAFETY: as in `fields`.
            unsafe {
                if string(entry + name)? == structure {
                    return usize::try_from(read::<u64>(entry + size)).ok();
                }
            }
            entry += stride;
        }
    }
}

/// The size of a type, by its name.
fn size(kind: &[u8]) -> Option<usize> {
    Some(match kind {
        b"bool" | b"CompLevel" | b"int8_t" | b"u1" => 1,
        b"int16_t" | b"u2" | b"uint16_t" => 2,
        b"int" | b"jint" | b"uint32_t" | b"uint" | b"u4" => 4,
        // Four bytes up to 24, then two. Those of class files are in the first two.
        b"AccessFlags" => 2,
        b"address" | b"size_t" => 8,
        _ if kind.ends_with(b"*") => 8,
        // An embedded structure, which has a place but no value.
        b"VirtualSpace" | b"HeapBlock::Header" => 0,
        _ => return None,
    })
}

/// # Safety
/// A value of this type is at `address`.
unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: as required above.
    unsafe { ptr::with_exposed_provenance::<T>(address as usize).read_unaligned() }
}

/// # Safety
/// A pointer is at `address`. It is null, or points to a NUL-terminated string that stays.
unsafe fn string(address: u64) -> Option<&'static [u8]> {
    // SAFETY: as required above.
    let text = unsafe { read::<*const c_char>(address) };
    // SAFETY: as required above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The value of a field of the structure at `base`, or of the static field if `base` is 0.
///
/// # Safety
/// A structure with this field, as in the description, is there.
pub(crate) unsafe fn value(base: usize, field: Field) -> u64 {
    let address = (base + field.at) as u64;
    // SAFETY: as required above. The structure belongs to HotSpot, whose threads may write to other fields of it.
    unsafe {
        match field.size {
            1 => u64::from(read::<u8>(address)),
            2 => u64::from(read::<u16>(address)),
            4 => u64::from(read::<u32>(address)),
            _ => read::<u64>(address),
        }
    }
}

/// `count` bytes at `address`.
///
/// # Safety
/// They are readable, and do not change.
pub(crate) unsafe fn bytes(address: usize, count: usize) -> &'static [u8] {
    // SAFETY: as required above.
    unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(address), count) }
}

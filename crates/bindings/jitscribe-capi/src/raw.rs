//! Dereferences pointers that come from C. All reads and writes through such pointers are in this module.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use guest::sanitizers::written;

use crate::outcome::Failure;

/// A struct that may be read from any bytes, whose first field is its size, and to which later versions add
/// fields.
///
/// # Safety
/// All bit patterns are values of the type, it is `repr(C)`, and begins with a `usize`.
pub(crate) unsafe trait Versioned: Copy {
    /// Size of the part that every version has: the first version up to its last required field.
    const LEAST: usize;
}

/// What a pointer to a [`Versioned`] struct refers to: the struct itself, or a copy with zeros for the fields that
/// the caller's version does not have.
pub(crate) enum VersionedRef<'a, T> {
    Whole(&'a T),
    Older(T),
}

impl<T> std::ops::Deref for VersionedRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Whole(whole) => whole,
            Self::Older(copy) => copy,
        }
    }
}

/// Reads a struct that contains its own size: of this version, a later one, or an earlier one.
///
/// # Safety
/// `from` is NULL, or points to a `usize`. If that is at least [`Versioned::LEAST`], then as many bytes are
/// readable there, and are not written to during `'a`.
#[inline]
pub(crate) unsafe fn versioned<'a, T: Versioned>(
    from: *const T,
) -> Result<VersionedRef<'a, T>, Failure> {
    if from.is_null() {
        return Err(Failure::Null);
    }
    if !from.is_aligned() {
        return Err(Failure::Argument);
    }
    // SAFETY: not NULL and aligned for `T`, hence for its first field, which is a `usize`. The caller guarantees
    // that it is readable.
    let size = unsafe { from.cast::<usize>().read() };
    if size >= size_of::<T>() {
        // SAFETY: aligned, readable for `size` bytes, which is enough for `T`, and not written to during `'a`. Any
        // bytes are a valid `T`, as `Versioned` guarantees.
        return Ok(VersionedRef::Whole(unsafe { &*from }));
    }
    // VersionedRef end between fields. Fields that belong together are ordered so that a version that ends between
    // them is harmless: a pointer without its count has the count 0.
    if size < T::LEAST || !size.is_multiple_of(align_of::<T>()) {
        return Err(Failure::StructSize);
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller guarantees that `size` bytes are readable at `from`. `copy` is a local, so it cannot
    // overlap with them, and it has space for more than `size` bytes. All bytes are initialised, by zeros or by
    // the copy, and any bytes are a valid `T`.
    let copy = unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), size);
        copy.assume_init()
    };
    Ok(VersionedRef::Older(copy))
}

/// The `count` values at `from`. NULL is valid only if `count` is 0.
///
/// # Safety
/// If `from` is not NULL, it points to `count` values of a type for which any bytes are valid. They are readable,
/// and are not written to during `'a`.
#[inline]
pub(crate) unsafe fn slice<'a, T: Copy>(from: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(Failure::Null);
    }
    let is_too_large =
        count.checked_mul(size_of::<T>()).is_none_or(|size| size > isize::MAX as usize);
    if is_too_large || !from.is_aligned() {
        return Err(Failure::Argument);
    }
    // SAFETY: not NULL, aligned, and not larger than a slice may be. The caller guarantees that the memory is
    // readable and not written to.
    Ok(unsafe { std::slice::from_raw_parts(from, count) })
}

/// The bytes of a string: `size` of them, or those before the first NUL if `size` is [`NUL_TERMINATED`]. NULL with
/// size 0 or [`NUL_TERMINATED`] is the empty string.
///
/// # Safety
/// If `from` is not NULL, then `size` bytes, or those up to and including the first NUL, are readable there, and
/// are not written to during `'a`.
#[inline]
pub(crate) unsafe fn text<'a>(
    from: *const std::ffi::c_char,
    size: usize,
) -> Result<&'a [u8], Failure> {
    if size != NUL_TERMINATED {
        // SAFETY: guaranteed by the caller; any bytes are valid `u8`s.
        return unsafe { slice(from.cast(), size) };
    }
    if from.is_null() {
        return Ok(&[]);
    }
    // SAFETY: not NULL, and the caller guarantees a string that ends with a NUL.
    Ok(unsafe { std::ffi::CStr::from_ptr(from) }.to_bytes())
}

/// The size that stands for a string that ends with a NUL.
pub(crate) const NUL_TERMINATED: usize = usize::MAX;

/// An out-parameter, checked before the work whose result it receives. A call that fails leaves "nothing" in it: a host that
/// ignores the result must not go on with what was there before.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A required out-parameter, whose value is `nothing` until it is set. Callers make it before anything that may fail.
    ///
    /// # Safety
    /// `to` is NULL, or may be written to as long as this `Out` exists.
    #[inline]
    pub(crate) unsafe fn new(to: *mut T, nothing: T) -> Result<Self, Failure> {
        match to {
            to if to.is_null() => Err(Failure::Null),
            to if !to.is_aligned() => Err(Failure::Argument),
            to => {
                // SAFETY: not NULL and aligned, and the caller guarantees that it is writable. The previous content may be
                // uninitialised, and is not dropped.
                unsafe { to.write(nothing) };
                written(to.cast(), size_of::<T>());
                Ok(Self(to))
            }
        }
    }

    #[inline]
    pub(crate) fn set(self, value: T) {
        // SAFETY: `new` checked that it is not NULL and is aligned; the caller of `new` guarantees that it is
        // writable. The previous content may be uninitialised, and is not dropped.
        unsafe { self.0.write(value) }
    }
}

/// A struct that is written, and whose first field is its size in the caller's version: only as much of it is written. The size
/// itself is not.
pub(crate) struct OutVersioned<T>(*mut T);

impl<T: Versioned> OutVersioned<T> {
    /// # Safety
    /// `to` is NULL, or points to a `usize` with the number of bytes that may be read and written there as long as this exists.
    pub(crate) unsafe fn new(to: *mut T) -> Result<Self, Failure> {
        // SAFETY: guaranteed by the caller.
        unsafe { versioned::<T>(to) }.map(|_| Self(to))
    }

    pub(crate) fn set(self, value: &T) {
        let first = size_of::<usize>();
        // SAFETY: `new` checked that it is not NULL, is aligned, and begins with a size of at least `LEAST`, which is more than
        // the size itself. The caller of `new` guarantees that as many bytes are writable. `value` is another object.
        unsafe {
            let size = self.0.cast::<usize>().read().min(size_of::<T>());
            let from = std::ptr::from_ref(value).cast::<u8>().add(first);
            std::ptr::copy_nonoverlapping(from, self.0.cast::<u8>().add(first), size - first);
            written(self.0.cast(), size);
        }
    }
}

/// A value that this call reads and writes.
///
/// # Safety
/// `at` is NULL, or points to a value of `T` that nothing else accesses during `'a`.
#[inline]
pub(crate) unsafe fn in_out<'a, T>(at: *mut T) -> Result<&'a mut T, Failure> {
    match at {
        at if at.is_null() => Err(Failure::Null),
        at if !at.is_aligned() => Err(Failure::Argument),
        // SAFETY: not NULL and aligned; the caller guarantees a value of `T` that only we access.
        at => Ok(unsafe { &mut *at }),
    }
}

/// A buffer of `size` bytes, which may be uninitialised. NULL is valid only if `size` is 0.
///
/// # Safety
/// If `at` is not NULL, it points to `size` writable bytes that nothing else accesses during `'a`.
#[inline]
pub(crate) unsafe fn buffer<'a>(
    at: *mut u8,
    size: usize,
) -> Result<&'a mut [MaybeUninit<u8>], Failure> {
    if size == 0 {
        return Ok(&mut []);
    }
    if at.is_null() {
        return Err(Failure::Null);
    }
    if size > isize::MAX as usize {
        return Err(Failure::Argument);
    }
    // SAFETY: not NULL, and not larger than a slice may be. The caller guarantees that only we access it. Bytes of
    // any content, even uninitialised ones, are valid `MaybeUninit`.
    let buffer = unsafe { std::slice::from_raw_parts_mut(at.cast(), size) };
    written(at, size);
    Ok(buffer)
}

/// Copies bytes into a [`buffer`], as far as it reaches.
pub(crate) fn copy(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        to.write(*from);
    }
}

/// [`buffer`], filled with zeros.
///
/// # Safety
/// As for [`buffer`].
pub(crate) unsafe fn zeroed_buffer<'a>(at: *mut u8, size: usize) -> Result<&'a mut [u8], Failure> {
    // SAFETY: guaranteed by the caller.
    let buffer = unsafe { buffer(at, size) }?;
    buffer.fill(MaybeUninit::new(0));
    // SAFETY: from a unique reference to as many bytes, all of which were written just now.
    Ok(unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [u8]) })
}

/// A shared value.
///
/// # Safety
/// `at` is NULL, or was made from a `&'static T`.
#[inline]
pub(crate) unsafe fn shared<T: Sync>(at: *const T) -> Result<&'static T, Failure> {
    // SAFETY: the caller guarantees that it is NULL or a reference.
    unsafe { at.as_ref() }.ok_or(Failure::Null)
}

#[cfg(test)]
mod tests {
    use super::{
        NUL_TERMINATED, Out, OutVersioned, Versioned, VersionedRef, in_out, slice, text, versioned,
    };
    use crate::outcome::Failure;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Three {
        struct_size: usize,
        one: u64,
        two: u64,
    }
    // SAFETY: only integers, the first of which is a `usize`.
    unsafe impl Versioned for Three {
        const LEAST: usize = 16;
    }

    fn read(words: &[usize]) -> Result<(bool, Three), Failure> {
        // SAFETY: each test passes as many words as the first one says.
        unsafe { versioned(words.as_ptr().cast::<Three>()) }.map(|read| match read {
            VersionedRef::Whole(whole) => (true, *whole),
            VersionedRef::Older(copy) => (false, copy),
        })
    }

    #[test]
    fn structs_of_all_versions_are_read() {
        assert_eq!(read(&[24, 1, 2]), Ok((true, Three { struct_size: 24, one: 1, two: 2 })));
        assert_eq!(read(&[32, 1, 2, 3]), Ok((true, Three { struct_size: 32, one: 1, two: 2 })));
        // Exactly as large as its size says: Miri detects a read of one byte too many.
        let older = vec![16_usize, 1].into_boxed_slice();
        assert_eq!(read(&older), Ok((false, Three { struct_size: 16, one: 1, two: 0 })));
        for wrong in [0, 8, 17, 23] {
            assert_eq!(read(&[wrong, 1, 2]), Err(Failure::StructSize), "{wrong}");
        }
    }

    #[test]
    fn invalid_structs_are_refused() {
        let words = [24_usize, 1, 2, 3];
        // SAFETY: NULL; and a pointer that is not dereferenced, because it is misaligned.
        unsafe {
            assert_eq!(versioned::<Three>(std::ptr::null()).err(), Some(Failure::Null));
            let odd = words.as_ptr().byte_add(1).cast::<Three>();
            assert_eq!(versioned(odd).err(), Some(Failure::Argument));
        }
    }

    #[test]
    fn slices_are_checked() {
        let words = [1_u32, 2, 3];
        let from = words.as_ptr();
        // SAFETY: at most three words are read where there are three; the other calls are refused.
        unsafe {
            assert_eq!(slice(from, 3), Ok(&words[..]));
            assert_eq!(slice::<u32>(std::ptr::null(), 0), Ok(&[][..]));
            assert_eq!(slice::<u32>(std::ptr::null(), 1), Err(Failure::Null));
            assert_eq!(slice(from, usize::MAX), Err(Failure::Argument));
            assert_eq!(slice(from, isize::MAX as usize / 2), Err(Failure::Argument));
            assert_eq!(slice(from.byte_add(2), 1), Err(Failure::Argument));
            // A dangling pointer with a count of 0, as an empty C++ vector may have, is no error.
            assert_eq!(slice(std::ptr::dangling::<u32>(), 0), Ok(&[][..]));
        }
    }

    #[test]
    fn strings_have_a_size_or_a_nul() {
        let name = c"name";
        // SAFETY: within the string, which ends with a NUL.
        unsafe {
            assert_eq!(text(name.as_ptr(), 2), Ok(&b"na"[..]));
            assert_eq!(text(name.as_ptr(), NUL_TERMINATED), Ok(&b"name"[..]));
            assert_eq!(text(std::ptr::null(), NUL_TERMINATED), Ok(&b""[..]));
            assert_eq!(text(std::ptr::null(), 0), Ok(&b""[..]));
            assert_eq!(text(std::ptr::null(), 1), Err(Failure::Null));
            assert_eq!(text(name.as_ptr(), usize::MAX - 1), Err(Failure::Argument));
        }
    }

    #[test]
    fn structs_of_all_versions_are_written_as_far_as_they_go() {
        for size in [16_usize, 24, 32] {
            let mut words = [size, 1, 2, 3];
            // SAFETY: a local with as many bytes as its first word says, or less.
            let out = unsafe { OutVersioned::new(words.as_mut_ptr().cast::<Three>()) };
            out.unwrap().set(&Three { struct_size: 99, one: 8, two: 9 });
            assert_eq!(words, [size, 8, if size > 16 { 9 } else { 2 }, 3]);
        }
        let mut words = [8_usize, 1, 2, 3];
        // SAFETY: as above.
        let refused = unsafe { OutVersioned::new(words.as_mut_ptr().cast::<Three>()) };
        assert_eq!(refused.err(), Some(Failure::StructSize));
    }

    #[test]
    fn out_parameters_must_not_be_null() {
        let mut place = [7_u64, 7];
        let to = place.as_mut_ptr();
        // SAFETY: NULL, a pointer that is refused, and a local.
        unsafe {
            assert_eq!(Out::<u64>::new(std::ptr::null_mut(), 0).err(), Some(Failure::Null));
            assert_eq!(Out::new(to.byte_add(4), 0).err(), Some(Failure::Argument));
            assert_eq!(place, [7, 7]);
            let to = place.as_mut_ptr();
            let out = Out::new(to, 0).unwrap();
            assert_eq!(to.read(), 0);
            out.set(9);
        }
        assert_eq!(place, [9, 7]);
        // SAFETY: as above.
        unsafe {
            assert_eq!(in_out::<u64>(std::ptr::null_mut()).err(), Some(Failure::Null));
            in_out(place.as_mut_ptr()).map(|value| *value += 1).unwrap();
        }
        assert_eq!(place, [10, 7]);
    }
}

//! What a function of the C API returns.

/// What became of a call. Whatever it is, the program can go on: nothing was announced that is
/// wrong, and no out-parameter was written unless it is JITSCRIBE_RESULT_OK.
///
/// That a log is off, full or could not be had is no error: the call succeeds, and the notice callback
/// hears of it once.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, or left out since the log is off or full.
    Ok = 0,
    /// A pointer that must point to something is NULL.
    ErrorNull = 1,
    /// `struct_size` is not the size of any version of the struct. Set it to `sizeof` the struct.
    ErrorStructSize = 2,
    /// A number makes no sense: a count larger than memory, the index of a file, a pointer that is
    /// not aligned for its type.
    ErrorArgument = 3,
    /// A fault of the library was caught. Please report it.
    ErrorInternal = 4,
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Null,
    StructSize,
    Argument,
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Null => Self::ErrorNull,
            Failure::StructSize => Self::ErrorStructSize,
            Failure::Argument => Self::ErrorArgument,
        }
    }
}

/// The name of a result, as it is spelt in C.
pub(crate) const fn name(number: i32) -> &'static core::ffi::CStr {
    match number {
        0 => c"JITSCRIBE_RESULT_OK",
        1 => c"JITSCRIBE_RESULT_ERROR_NULL",
        2 => c"JITSCRIBE_RESULT_ERROR_STRUCT_SIZE",
        3 => c"JITSCRIBE_RESULT_ERROR_ARGUMENT",
        4 => c"JITSCRIBE_RESULT_ERROR_INTERNAL",
        _ => c"unknown result",
    }
}

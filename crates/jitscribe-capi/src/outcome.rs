//! What a function of the C API returns.

#[cfg(unix)]
use jitscribe::ObjectError;

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
    /// The handle is of no code that is alive: it was used after jitscribe_unload, or it is the number that it was before
    /// jitscribe_moved. Nothing was done. In a fork's child it is also that of a code for which its log had no room.
    ErrorHandle = 5,
    /// Of jitscribe_write_object: no code is alive, or the log is off. No file was made.
    ErrorNoCode = 6,
    /// Of jitscribe_write_object: the file is there already, or cannot be written. None was left that was not there.
    ErrorFile = 7,
    /// Of jitscribe_write_object: the code does not fit into the format, as codes lie 2 GiB apart or more, or the format
    /// has no number for the machine. No file was left.
    ErrorFormat = 8,
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "objects are not written there"))]
pub(crate) enum Failure {
    Null,
    StructSize,
    Argument,
    Handle,
    NoCode,
    File,
    Format,
}

#[cfg(unix)]
impl From<ObjectError> for Failure {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Nothing => Self::NoCode,
            ObjectError::File(_) => Self::File,
            _ => Self::Format,
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Null => Self::ErrorNull,
            Failure::StructSize => Self::ErrorStructSize,
            Failure::Argument => Self::ErrorArgument,
            Failure::Handle => Self::ErrorHandle,
            Failure::NoCode => Self::ErrorNoCode,
            Failure::File => Self::ErrorFile,
            Failure::Format => Self::ErrorFormat,
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
        5 => c"JITSCRIBE_RESULT_ERROR_HANDLE",
        6 => c"JITSCRIBE_RESULT_ERROR_NO_CODE",
        7 => c"JITSCRIBE_RESULT_ERROR_FILE",
        8 => c"JITSCRIBE_RESULT_ERROR_FORMAT",
        _ => c"unknown result",
    }
}

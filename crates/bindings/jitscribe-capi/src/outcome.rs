//! What a function of the C API returns.

#[cfg(all(unix, feature = "objects"))]
use jitscribe::objects::ObjectError;

/// The result of a call. Whatever the result is, the program can go on: nothing wrong was announced, and out-parameters have
/// the value that stands for nothing unless the result is JITSCRIBE_RESULT_OK.
///
/// A log that is off, full or could not be created is not an error: the call succeeds, and the notice callback reports it
/// once.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success. Also returned if the announcement was left out because the log is off or full.
    Ok = 0,
    /// A required pointer is NULL.
    ErrorNull = 1,
    /// `struct_size` is not the size of any version of the struct. Set it to `sizeof` the struct.
    ErrorStructSize = 2,
    /// An argument is invalid: a count larger than memory, a file index out of range, or a pointer that is not aligned
    /// for its type.
    ErrorArgument = 3,
    /// A bug in the library was caught. Please report it.
    ErrorInternal = 4,
    /// The handle refers to no live code: it was used after jitscribe_unload, or it is the old number from before
    /// jitscribe_moved. Nothing was done. In the child of a fork, also the handle of a code for which the child's log had
    /// no space.
    ErrorHandle = 5,
    /// jitscribe_write_object only: no code is alive, or the log is off. No file was created.
    ErrorNoCode = 6,
    /// jitscribe_write_object only: the file already exists, or cannot be written. No new file was left behind.
    ErrorFile = 7,
    /// jitscribe_write_object only: the code does not fit into the format, because codes are 2 GiB or more apart, or the
    /// format has no number for the machine. No file was left behind.
    ErrorFormat = 8,
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(unix, feature = "objects")),
    expect(dead_code, reason = "objects are not written")
)]
pub(crate) enum Failure {
    Null,
    StructSize,
    Argument,
    Handle,
    NoCode,
    File,
    Format,
    Memory,
}

#[cfg(all(unix, feature = "objects"))]
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
            // Treated like a full log: an announcement that is left out is not an error.
            Failure::Memory => Self::Ok,
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

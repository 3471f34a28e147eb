//! The interface between gdb and a reader: `jit-reader.h`, version 1, as in gdb 7.2 and later.

use std::ffi::{c_char, c_int, c_long, c_void};

/// `GDB_READER_INTERFACE_VERSION`.
pub(crate) const VERSION: c_int = 1;

/// `enum gdb_status`.
pub(crate) type Status = c_int;
pub(crate) const FAIL: Status = 0;
pub(crate) const SUCCESS: Status = 1;

/// `struct gdb_object`, `gdb_symtab`, `gdb_block`: opaque types of gdb.
pub(crate) type Object = c_void;
pub(crate) type Symtab = c_void;
pub(crate) type Block = c_void;

/// `gdb_target_read`: reads `size` bytes of the process's memory.
pub(crate) type TargetRead =
    unsafe extern "C" fn(address: u64, buffer: *mut c_void, size: c_int) -> Status;

/// `struct gdb_line_mapping`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineMapping {
    pub(crate) line: c_int,
    pub(crate) pc: u64,
}

/// `struct gdb_symbol_callbacks`.
#[repr(C)]
pub(crate) struct SymbolCallbacks {
    pub(crate) object_open: unsafe extern "C" fn(*mut Self) -> *mut Object,
    pub(crate) symtab_open:
        unsafe extern "C" fn(*mut Self, *mut Object, file: *const c_char) -> *mut Symtab,
    pub(crate) block_open: unsafe extern "C" fn(
        *mut Self,
        *mut Symtab,
        parent: *mut Block,
        begin: u64,
        end: u64,
        name: *const c_char,
    ) -> *mut Block,
    pub(crate) symtab_close: unsafe extern "C" fn(*mut Self, *mut Symtab),
    pub(crate) object_close: unsafe extern "C" fn(*mut Self, *mut Object),
    pub(crate) line_mapping_add:
        unsafe extern "C" fn(*mut Self, *mut Symtab, count: c_int, *const LineMapping),
    pub(crate) target_read: TargetRead,
    private: *mut c_void,
}

/// `struct gdb_reg_value`, with space for a register of 64 bits.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Register {
    pub(crate) size: c_int,
    pub(crate) defined: c_int,
    pub(crate) free: Option<unsafe extern "C" fn(*mut Register)>,
    pub(crate) value: [u8; 8],
}

/// `struct gdb_frame_id`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FrameId {
    pub(crate) code_address: u64,
    pub(crate) stack_address: u64,
}

/// `struct gdb_unwind_callbacks`. Registers have their DWARF numbers.
#[repr(C)]
pub(crate) struct UnwindCallbacks {
    pub(crate) get: unsafe extern "C" fn(*mut Self, c_int) -> *mut Register,
    pub(crate) set: unsafe extern "C" fn(*mut Self, c_int, *mut Register),
    pub(crate) target_read: TargetRead,
    private: *mut c_void,
}

/// `struct gdb_reader_funcs`.
#[repr(C)]
pub(crate) struct ReaderFuncs {
    pub(crate) version: c_int,
    pub(crate) private: *mut c_void,
    pub(crate) read: unsafe extern "C" fn(
        *mut Self,
        *mut SymbolCallbacks,
        memory: *mut c_void,
        size: c_long,
    ) -> Status,
    pub(crate) unwind: unsafe extern "C" fn(*mut Self, *mut UnwindCallbacks) -> Status,
    pub(crate) frame_id: unsafe extern "C" fn(*mut Self, *mut UnwindCallbacks) -> FrameId,
    pub(crate) destroy: unsafe extern "C" fn(*mut Self),
}

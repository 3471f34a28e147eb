//! The system's functions, and the structures that they take (evntprov.h).
//!
//! They can be replaced, for tests.
#![allow(unsafe_code)]

use std::ffi::c_void;

/// `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in Windows' headers")]
pub struct Guid {
    pub data1: u32,
    pub data2: u16,
    pub data3: u16,
    pub data4: [u8; 8],
}

/// `EVENT_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in Windows' headers")]
pub struct EventDescriptor {
    pub id: u16,
    pub version: u8,
    pub channel: u8,
    pub level: u8,
    pub opcode: u8,
    pub task: u16,
    pub keyword: u64,
}

/// `EVENT_DATA_DESCRIPTOR`: where a part of an event is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DataDescriptor {
    /// The address.
    pub address: u64,
    /// The size in bytes.
    pub size: u32,
    /// One of the constants below.
    pub kind: u32,
}

/// `EVENT_DATA_DESCRIPTOR_TYPE_NONE`: the value of a field.
pub const DATA: u32 = 0;
/// `EVENT_DATA_DESCRIPTOR_TYPE_EVENT_METADATA`: name and fields of the event.
pub const EVENT_METADATA: u32 = 1;
/// `EVENT_DATA_DESCRIPTOR_TYPE_PROVIDER_METADATA`: the provider's name.
pub const PROVIDER_METADATA: u32 = 2;

/// `EventProviderSetTraits`, for [`Functions::set_information`].
pub const SET_TRAITS: i32 = 2;

/// `EVENT_CONTROL_CODE_DISABLE_PROVIDER`, for [`Callback`].
pub const DISABLE: u32 = 0;
/// `EVENT_CONTROL_CODE_ENABLE_PROVIDER`: a recording begins, or another one does, or its settings change.
pub const ENABLE: u32 = 1;
/// `EVENT_CONTROL_CODE_CAPTURE_STATE`: a recording asks for what is alive.
pub const CAPTURE_STATE: u32 = 2;

/// `PENABLECALLBACK`: source, control code, level, the keywords of which an event must have any, those of which it must have all, filter, context.
pub type Callback =
    unsafe extern "system" fn(*const Guid, u32, u8, u64, u64, *const c_void, *mut c_void);

/// The functions. All return an error of Windows, 0 on success.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// `EventRegister`.
    pub register: unsafe extern "system" fn(*const Guid, Callback, *const c_void, *mut i64) -> u32,
    /// `EventSetInformation`.
    pub set_information: unsafe extern "system" fn(i64, i32, *const c_void, u32) -> u32,
    /// `EventWriteTransfer`, without ids of activities.
    pub write:
        unsafe extern "system" fn(i64, *const EventDescriptor, u32, *const DataDescriptor) -> u32,
    /// `EventUnregister`. No callback runs when it returns.
    pub unregister: unsafe extern "system" fn(i64) -> u32,
}

impl Functions {
    /// Those of this system; `None` if it has none.
    #[must_use]
    pub fn of_system() -> Option<Self> {
        #[cfg(windows)]
        return Some(system::FUNCTIONS);
        #[cfg(not(windows))]
        None
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::c_void;
    use std::mem::offset_of;
    use std::ptr;

    use windows_sys::Win32::System::Diagnostics::Etw::{
        EVENT_DATA_DESCRIPTOR, EVENT_DESCRIPTOR, EventRegister, EventSetInformation,
        EventUnregister, EventWriteTransfer, PENABLECALLBACK,
    };
    use windows_sys::core::GUID;

    use super::{Callback, DataDescriptor, EventDescriptor, Functions, Guid};

    pub(super) const FUNCTIONS: Functions =
        Functions { register, set_information, write, unregister };

    // Their layout is the same.
    const _: () = {
        assert!(size_of::<Guid>() == size_of::<GUID>());
        assert!(size_of::<EventDescriptor>() == size_of::<EVENT_DESCRIPTOR>());
        assert!(offset_of!(EventDescriptor, keyword) == offset_of!(EVENT_DESCRIPTOR, Keyword));
        assert!(offset_of!(EventDescriptor, opcode) == offset_of!(EVENT_DESCRIPTOR, Opcode));
        assert!(size_of::<DataDescriptor>() == size_of::<EVENT_DATA_DESCRIPTOR>());
        assert!(offset_of!(DataDescriptor, size) == offset_of!(EVENT_DATA_DESCRIPTOR, Size));
    };

    unsafe extern "system" fn register(
        provider: *const Guid,
        callback: Callback,
        context: *const c_void,
        handle: *mut i64,
    ) -> u32 {
        // SAFETY: the types have the same layout, and a callback's control code is an unsigned number of 32 bits.
        unsafe {
            let callback = std::mem::transmute::<Callback, PENABLECALLBACK>(callback);
            EventRegister(provider.cast(), callback, context, handle.cast())
        }
    }

    unsafe extern "system" fn set_information(
        handle: i64,
        class: i32,
        information: *const c_void,
        size: u32,
    ) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe { EventSetInformation(handle as _, class, information, size) }
    }

    unsafe extern "system" fn write(
        handle: i64,
        descriptor: *const EventDescriptor,
        count: u32,
        data: *const DataDescriptor,
    ) -> u32 {
        // SAFETY: guaranteed by the caller; the types have the same layout.
        unsafe {
            EventWriteTransfer(
                handle as _,
                descriptor.cast(),
                ptr::null(),
                ptr::null(),
                count,
                data.cast(),
            )
        }
    }

    unsafe extern "system" fn unregister(handle: i64) -> u32 {
        // SAFETY: guaranteed by the caller.
        unsafe { EventUnregister(handle as _) }
    }
}

//! The source positions of a compiled method's instructions, as HotSpot passes them.
//!
//! HotSpot describes single addresses: those behind calls, and those behind other instructions where it recorded them
//! (`DebugNonSafepoints`, which it turns on for an agent that is loaded at startup). A description applies to the instructions
//! that end there, back to the previous described address. HotSpot itself looks up addresses in this way
//! (`CompiledMethod::pc_desc_near`), and so return addresses belong to their calls. perf's own agent assumes that a description
//! applies to what follows the address.
#![allow(unsafe_code, reason = "HotSpot passes a list of records by their addresses")]

use std::ffi::{c_int, c_void};

use crate::env::slice;
use crate::jvmti::{
    AddressLocation, INLINE_INFO, InlineRecord, MethodId, PcStackInfo, RecordHeader,
};

/// The data that comes with a compiled method.
#[derive(Clone, Copy)]
pub(crate) struct CompileInfo<'a> {
    places: &'a [PcStackInfo],
    map: &'a [AddressLocation],
}

impl<'a> CompileInfo<'a> {
    /// # Safety
    /// As the JVM passes them to `CompiledMethodLoad`, and used only during that call.
    pub(crate) unsafe fn new(
        info: *const c_void,
        map: *const AddressLocation,
        map_length: c_int,
    ) -> Self {
        let mut record = info.cast::<RecordHeader>();
        let mut places: &[PcStackInfo] = &[];
        // SAFETY: HotSpot's list ends with null; a record of this kind and version has this structure.
        while let Some(header) = unsafe { record.as_ref() } {
            if header.kind == INLINE_INFO && header.major == 1 {
                // SAFETY: as above; `count` is the number of places.
                places = unsafe {
                    let inline = &*record.cast::<InlineRecord>();
                    slice(inline.places, inline.count)
                };
            }
            record = header.next;
        }
        // SAFETY: as required above.
        Self { places, map: unsafe { slice(map, map_length) } }
    }

    /// Calls `see` with the address and the frames of each place.
    pub(crate) fn each_place(self, method: MethodId, mut see: impl FnMut(u64, Frames<'_>)) {
        for place in self.places {
            // SAFETY: by `new`, a place has this many methods and bytecodes.
            let (methods, bcis) =
                unsafe { (slice(place.methods, place.count), slice(place.bcis, place.count)) };
            see(address(place.pc), Frames { methods, bcis });
        }
        if self.places.is_empty() {
            // Without inline records, the map has at least the compiled method's own bytecodes.
            for entry in self.map {
                let bci = c_int::try_from(entry.location).unwrap_or(-1);
                see(address(entry.address), Frames { methods: &[method], bcis: &[bci] });
            }
        }
    }
}

/// The frames of a place: its methods and bytecodes, innermost first. The last one is the compiled method itself.
#[derive(Clone, Copy)]
pub(crate) struct Frames<'a> {
    pub(crate) methods: &'a [MethodId],
    /// The same number as `methods`.
    pub(crate) bcis: &'a [c_int],
}

fn address(pointer: *const c_void) -> u64 {
    pointer.addr() as u64
}

//! Where the instructions of a compiled method come from, as HotSpot has it.
//!
//! HotSpot describes single places: the addresses behind calls, and behind other instructions where it recorded them
//! (`DebugNonSafepoints`, which it turns on for an agent that is there from the start). A description is good for the
//! instructions that end there, back to the place before: so does HotSpot itself look addresses up
//! (`CompiledMethod::pc_desc_near`), and so return addresses belong to their calls. perf's own agent takes them to begin there.
#![allow(unsafe_code, reason = "HotSpot passes a list of records by their addresses")]

use std::ffi::{c_int, c_void};

use crate::env::slice;
use crate::jvmti::{
    AddressLocation, INLINE_INFO, InlineRecord, MethodId, PcStackInfo, RecordHeader,
};

/// What came with a compiled method.
#[derive(Clone, Copy)]
pub(crate) struct CompileInfo<'a> {
    places: &'a [PcStackInfo],
    map: &'a [AddressLocation],
}

impl<'a> CompileInfo<'a> {
    /// # Safety
    /// As the JVM passes them to `CompiledMethodLoad`, and used only while that lasts.
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
                // SAFETY: as above; the places are as many as it says.
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

    /// The places, each with its address and the methods and bytecodes there, the compiled method first and then
    /// what was inlined into one another.
    pub(crate) fn places(self, method: MethodId) -> impl Iterator<Item = (u64, Frames<'a>)> {
        let inlined = self.places.iter().map(|place| (address(place.pc), Frames::Chain(place)));
        // Without the first kind, the second has at least the compiled method's own bytecodes.
        let map = if self.places.is_empty() { self.map } else { &[] };
        let alone = map
            .iter()
            .map(move |entry| (address(entry.address), Frames::One(method, entry.location)));
        inlined.chain(alone)
    }
}

/// The frames of a place.
#[derive(Clone, Copy)]
pub(crate) enum Frames<'a> {
    Chain(&'a PcStackInfo),
    One(MethodId, i64),
}

impl<'a> Frames<'a> {
    /// Methods and bytecodes, outermost first.
    pub(crate) fn outermost_first(self) -> impl Iterator<Item = (MethodId, i64)> + 'a {
        let (place, one) = match self {
            Self::Chain(place) => (Some(place), None),
            Self::One(method, bci) => (None, Some((method, bci))),
        };
        let (methods, bcis): (&[MethodId], &[c_int]) = match place {
            // SAFETY: a place has so many methods and bytecodes, by `CompileInfo::new`.
            Some(place) => unsafe {
                (slice(place.methods, place.count), slice(place.bcis, place.count))
            },
            None => (&[], &[]),
        };
        let inlined = methods.iter().zip(bcis).rev();
        one.into_iter().chain(inlined.map(|(method, bci)| (*method, i64::from(*bci))))
    }
}

fn address(pointer: *const c_void) -> u64 {
    pointer.addr() as u64
}

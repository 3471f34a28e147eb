//! Finds HotSpot's data structures for the code at an address.
#![allow(unsafe_code, reason = "reads HotSpot's structures where it says that they are")]

use super::method::MethodFields;
use super::structs::{Field, Library, value};

/// The properties of a compiled method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nmethod {
    /// 0: wrapper of a native method; 1 to 3: C1; 4: C2, or its replacement.
    pub(crate) level: u8,
    /// Whether it was compiled to be entered in the middle of a loop.
    pub(crate) is_osr: bool,
    /// Size of the frame in bytes, including the return address.
    pub(crate) frame_size: u32,
    /// Offset in the code at which the frame is complete.
    pub(crate) frame_complete: Option<u32>,
}

/// The code heaps of HotSpot.
#[derive(Debug)]
pub(crate) struct CodeHeaps {
    fields: Fields,
    header_size: usize,
    methods: Option<MethodFields>,
}

/// The fields that are read.
#[derive(Debug)]
struct Fields {
    heaps: Field,
    array_length: Field,
    array_data: Field,
    memory: Field,
    segments: Field,
    segment_shift: Field,
    low: Field,
    high: Field,
    is_used: Field,
    code: Code,
    frame_size: Field,
    frame_complete: Field,
    level: Field,
    entry_bci: Field,
}

/// How a blob stores the start of its code: up to 22 as an address, then as an offset.
#[derive(Clone, Copy, Debug)]
enum Code {
    Begin(Field),
    Offset(Field),
}

/// The value in the segment map for free memory.
const FREE: u64 = 0xff;

impl Nmethod {
    /// Name of the compiler and of its task.
    pub(crate) fn tier(&self) -> &'static str {
        match (self.level, self.is_osr) {
            (1, false) => "C1",
            (1, true) => "C1, OSR",
            (2, false) => "C1 counting",
            (2, true) => "C1 counting, OSR",
            (3, false) => "C1 profiling",
            (3, true) => "C1 profiling, OSR",
            (4, false) => "C2",
            (4, true) => "C2, OSR",
            _ => "",
        }
    }
}

impl CodeHeaps {
    /// `None` if it is not HotSpot, or if its structures are different.
    pub(crate) fn of(library: &Library, field: impl Fn(&str) -> Option<Field>) -> Option<Self> {
        let array_length = field("GrowableArrayBase::_len");
        let code = field("CodeBlob::_code_begin").map(Code::Begin);
        let level = field("nmethod::_comp_level").filter(|field| [1, 4].contains(&field.size));
        let fields = Fields {
            heaps: field("CodeCache::_heaps")?,
            array_length: array_length.or_else(|| field("GenericGrowableArray::_len"))?,
            array_data: field("GrowableArray<int>::_data")?,
            memory: field("CodeHeap::_memory")?,
            segments: field("CodeHeap::_segmap")?,
            segment_shift: field("CodeHeap::_log2_segment_size")?,
            low: field("VirtualSpace::_low")?,
            high: field("VirtualSpace::_high")?,
            is_used: field("HeapBlock::Header::_used")?,
            code: code.or_else(|| field("CodeBlob::_code_offset").map(Code::Offset))?,
            frame_size: field("CodeBlob::_frame_size")?,
            frame_complete: field("CodeBlob::_frame_complete_offset")?,
            level: level?,
            entry_bci: field("nmethod::_entry_bci")?,
        };
        let methods = MethodFields::of(library, &field);
        Some(Self { fields, header_size: library.size_of(b"HeapBlock")?, methods })
    }

    /// Name and descriptor of the method whose code begins at `code`. The method must never be unloaded, as is true for those
    /// of the JVM's first class loader, and its code must be alive, as for [`nmethod`](Self::nmethod).
    pub(crate) fn permanent_method(&self, code: usize) -> Option<(&'static [u8], &'static [u8])> {
        let methods = self.methods.as_ref()?;
        // SAFETY: the blob is that of a live `nmethod`, whose method is never unloaded.
        unsafe { methods.name(self.blob(code)?) }
    }

    /// The compiled method whose code begins at `code`. It must be alive, as it is while the JVM reports its compilation.
    pub(crate) fn nmethod(&self, code: usize) -> Option<Nmethod> {
        let Fields { frame_size, frame_complete, level, entry_bci, .. } = self.fields;
        let blob = self.blob(code)?;
        // SAFETY: `blob` is that of `code`, which belongs to a live `nmethod`; `CodeBlob` is its base and has the last two
        // fields.
        let [level, bci, frame, complete] = unsafe {
            [level, entry_bci, frame_size, frame_complete].map(|field| value(blob, field))
        };
        Some(Nmethod {
            level: level as u8,
            is_osr: bci as u32 != u32::MAX,
            // In words.
            frame_size: u32::try_from(frame).ok()?.checked_mul(8)?,
            // -1, in two bytes or four, if it is never complete.
            frame_complete: match frame_complete.size {
                2 => u32::try_from(complete as i16).ok(),
                _ => u32::try_from(complete as i32).ok(),
            },
        })
    }

    /// The blob whose code begins at `code`.
    fn blob(&self, code: usize) -> Option<usize> {
        let fields = &self.fields;
        // SAFETY: the heaps are created before anything is compiled, and stay. The description says where the list is and
        // what it contains. Of a heap's memory, only the bounds are read: it only grows.
        let (heap, low) = unsafe {
            let list = value(0, fields.heaps) as usize;
            if list == 0 {
                return None;
            }
            let count = value(list, fields.array_length) as usize;
            let data = value(list, fields.array_data) as usize;
            let pointer = Field { at: 0, size: 8 };
            let mut heaps = (0..count).map(|index| value(data + index * 8, pointer) as usize);
            heaps.find_map(|heap| {
                let memory = heap + fields.memory.at;
                let (low, high) = (value(memory, fields.low), value(memory, fields.high));
                (low..high).contains(&(code as u64)).then_some((heap, low as usize))
            })?
        };
        // SAFETY: `heap` is a heap. Its map has a byte for each segment of its memory: how far back to go to the beginning of
        // the block, in one step or several. The bytes of a block that is in use do not change.
        let block = unsafe {
            let map = value(heap + fields.segments.at, fields.low) as usize;
            let shift = value(heap, fields.segment_shift) as u32;
            let step = Field { at: 0, size: 1 };
            let mut segment = code.wrapping_sub(low).checked_shr(shift)?;
            loop {
                match value(map + segment, step) {
                    0 => break low + (segment << shift),
                    FREE => return None,
                    back => segment = segment.checked_sub(back as usize)?,
                }
            }
        };
        let blob = block + self.header_size;
        // SAFETY: a block with a header is there; if it is in use, a blob follows the header.
        let begins = unsafe {
            if value(block, fields.is_used) == 0 {
                return None;
            }
            match fields.code {
                Code::Begin(field) => value(blob, field) as usize,
                Code::Offset(field) => blob + value(blob, field) as usize,
            }
        };
        (begins == code).then_some(blob)
    }
}

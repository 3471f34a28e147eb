//! Properties of compiled code that HotSpot has but JVMTI does not report: the compiler's tier, the size of the frame, and which
//! intrinsic it is.
//!
//! HotSpot's library exports a description of its own structures for debuggers (`vmStructs.hpp`, used by the serviceability agent
//! and `jhsdb`). With this description, the code's `nmethod` is found in the code heap, as HotSpot itself does it
//! (`CodeHeap::find_start`), and read. If a version has other fields, nothing is known, and the code is announced without these
//! properties.
//!
//! The methods of all classes ([`Classes`]) are found in the same way, as JVMTI would have to make an id for each of them, and
//! does not report where their bytecode is.

mod classes;
mod code_heap;
mod line_numbers;
mod memory;
mod method;
mod structs;

use std::collections::HashMap;
use std::ffi::c_void;

use structs::{Field, Library};

pub(crate) use classes::{ClassMethod, Classes, Seen};
pub(crate) use code_heap::{CodeHeaps, Nmethod};
pub(crate) use line_numbers::ascending;

/// What is known about HotSpot's structures.
#[derive(Debug, Default)]
pub(crate) struct HotSpot {
    /// `None` if this JVM is not a known HotSpot.
    pub(crate) code_heaps: Option<CodeHeaps>,
    /// `None` also where the frames of interpreted methods are not known.
    pub(crate) classes: Option<Classes>,
}

impl HotSpot {
    /// The JVM whose library contains `inside`.
    pub(crate) fn of(inside: *const c_void) -> Self {
        Self::read(inside).unwrap_or_default()
    }

    fn read(inside: *const c_void) -> Option<Self> {
        let library = Library::around(inside)?;
        let mut all: HashMap<String, Field> = HashMap::new();
        library.fields(|structure, name, field| {
            let name = [structure, b"::", name].concat();
            all.insert(String::from_utf8_lossy(&name).into_owned(), field);
        })?;
        let field = |name: &str| all.get(name).copied();
        // Version 8 has another layout of interpreted frames, and another list of class loaders.
        let has_mirror = cfg!(target_arch = "x86_64") && field("Klass::_next_link").is_some();
        Some(Self {
            code_heaps: CodeHeaps::of(&library, field),
            classes: has_mirror.then(|| Classes::of(&library, field)).flatten(),
        })
    }
}

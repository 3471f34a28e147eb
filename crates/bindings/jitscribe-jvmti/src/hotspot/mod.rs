//! Properties of compiled code that HotSpot has but JVMTI does not report: the compiler's tier, the size of the frame, and which
//! intrinsic it is.
//!
//! HotSpot's library exports a description of its own structures for debuggers (`vmStructs.hpp`, used by the serviceability agent
//! and `jhsdb`). With this description, the code's `nmethod` is found in the code heap, as HotSpot itself does it
//! (`CodeHeap::find_start`), and read. If a version has other fields, nothing is known, and the code is announced without these
//! properties.

mod code_heap;
mod method;
mod structs;

pub(crate) use code_heap::{CodeHeaps, Nmethod};

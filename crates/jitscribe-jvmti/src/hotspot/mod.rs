//! What HotSpot says of compiled code, but not through JVMTI: the compiler's tier, the size of the frame, and which intrinsic it is.
//!
//! HotSpot's library exports a description of its own structures for debuggers (`vmStructs.hpp`; the serviceability agent and
//! `jhsdb` live on it). By it the code's `nmethod` is found in the code heap, as HotSpot itself does it
//! (`CodeHeap::find_start`), and read. Where a version has other fields, nothing is known, and the code is announced without.

mod code_heap;
mod method;
mod structs;

pub(crate) use code_heap::{CodeHeaps, Nmethod};

//! What a library does in somebody else's process so that it is not noticed: threads to which none of the process's signals go,
//! and descriptors that are out of its way.

#![warn(missing_docs)]
#![deny(unsafe_code)]

mod descriptor;
mod status;
mod thread;

pub use descriptor::high_descriptor;
pub use status::own_status;
pub use thread::spawn;

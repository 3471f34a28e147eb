//! The object file around the code: headers, symbols, build-id, layout.

mod headers;
mod image;
mod object;
mod part;
mod sparse;
mod symbols;

pub use image::{Finished, ImageWriter, Mapping};
pub use part::Part;

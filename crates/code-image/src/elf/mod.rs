//! The object file around the code: headers, symbols, build-id, layout.

mod headers;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "image")]
mod object;
#[cfg(feature = "image")]
mod part;
#[cfg(feature = "image")]
mod placed;
mod signpost;
#[cfg(feature = "image")]
mod sparse;
#[cfg(feature = "image")]
mod symbols;
mod symfile;

#[cfg(feature = "image")]
pub use image::{Finished, ImageWriter, Mapping};
#[cfg(feature = "image")]
pub use part::Part;
#[cfg(feature = "image")]
pub use placed::PlacedImage;
pub use signpost::{SIGNPOST_SECTION, signpost};
pub use symfile::{Symfile, SymfileCode, TAG, TAG_AT};

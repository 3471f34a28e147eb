//! The object file around the code: headers, symbols, build-id, layout.

pub(crate) mod headers;
#[cfg(feature = "image")]
mod image;
#[cfg(feature = "image")]
pub(crate) mod object;
#[cfg(feature = "image")]
mod placed;
mod signpost;
#[cfg(feature = "image")]
pub(crate) mod symbols;
mod symfile;

#[cfg(feature = "image")]
pub use image::{Finished, ImageWriter, Mapping};
#[cfg(feature = "image")]
pub use placed::PlacedImage;
pub use signpost::{SIGNPOST_SECTION, signpost};
pub use symfile::{Symfile, SymfileCode, TAG, TAG_AT};

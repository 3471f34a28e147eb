//! The object file around the code: headers, symbols, build-id, layout.

pub(crate) mod headers;
#[cfg(feature = "image")]
mod image;
mod log_locator;
#[cfg(feature = "image")]
pub(crate) mod object;
#[cfg(feature = "image")]
mod placed;
#[cfg(feature = "image")]
pub(crate) mod symbols;
mod symfile;
#[cfg(feature = "image")]
mod written;

#[cfg(feature = "image")]
pub use image::{Finished, ImageWriter, Mapping};
pub use log_locator::{LOG_LOCATOR_SECTION, log_locator};
#[cfg(feature = "image")]
pub use placed::PlacedImage;
pub use symfile::{LARGEST_GAP, Symfile, SymfileCode, TAG, TAG_AT};
#[cfg(feature = "image")]
pub use written::{IMAGE_HEAD, build_id_of_image};

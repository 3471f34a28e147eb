//! Writing: the images of a plan, and the copy of the recording in which they are mapped.
//!
//! In come a [`Plan`](crate::Plan), the code table, and the samples of each code. [`images`] writes all images, each by
//! [`image`], and makes the mapping events. [`rewrite`] copies the recording with these events, in the third reading.
//! [`code_list`] writes the list of codes beside the images, and [`scripts`] the sources of sampled scripts.
//!
//! Out go files, which [`output`] makes appear complete or not at all, and the names and sizes of the images. While images are
//! written, what was read of sampled codes is passed on to the [summary](crate::summary::top), so that no code is read twice.

pub mod branches;
pub mod code_list;
pub mod destination;
pub mod image;
pub mod images;
pub mod listed_codes;
pub mod output;
pub mod remains;
pub mod rewrite;
pub mod scripts;
pub mod spelling;

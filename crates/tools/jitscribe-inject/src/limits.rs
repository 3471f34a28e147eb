//! Limits on the work for one recording, and the reasons for them.
//!
//! Everything else takes n·log n time in the size of the recording, its dumps and its maps. These limits apply where
//! the requested work could be quadratic; reaching one causes a warning. Recordings of benign programs stay below them:
//! each comment says by how much.

pub use code_timeline::GENERATIONS;

/// Number of pieces of code that forked children get copies of, in total. Each child with code of its own has images of
/// everything that it inherited. Children beyond the limit share what they inherited with the process that they were
/// forked from, and its images show that code for them.
///
/// 64 workers of a server with 8,000 functions are below the limit. A child takes 24 bytes in a recording, so without a
/// limit 1 MB could request 40,000 copies of 20,000 functions.
pub const COPIED: usize = 1 << 19;

/// Number of codes that all images for single epochs show together, or 32 for each code if that is more. Beyond the
/// limit, an arena has one image for all time, as an arena with more than 256 epochs has.
///
/// A million codes make an image of some 200 MB, so the limit is 800 MB, written in two to three seconds.
pub const IN_EPOCHS: usize = 1 << 22;

/// Number of mappings that are inserted for code that a file's mapping hides, and of extents that are checked for this;
/// plus 16 for each mapping of the recording. V8 and the JVM map their own files over code two or three times.
pub const RESTORED: usize = 1 << 20;

/// Number of extents that are cut out of mappings of anonymous memory; plus 16 for each mapping. Each rest between them
/// becomes an event of about 100 bytes.
///
/// V8 changes the protection of a few pages at a time, which overlap a few extents.
pub const PARTS: usize = 1 << 18;

/// Bytes of a script, a source map or a Python file that are read. The largest maps of real bundles have 50 MB.
pub const LARGEST_SOURCE: u64 = 1 << 26;

/// Bytes of all of these together. A program of 10,000 scripts has a tenth of it.
pub const SOURCES: u64 = 1 << 30;

/// Bytes of the texts of sources that source maps have, for all maps together. They are in memory until the images are written. Bundles of
/// 50 MB are below the limit.
pub const CONTENTS: usize = 1 << 28;

/// Bytes of all perf maps together, which are kept in memory. A machine with a hundred runtimes of 100,000 functions
/// each is below the limit.
pub const LARGEST_MAPS: u64 = 1 << 32;

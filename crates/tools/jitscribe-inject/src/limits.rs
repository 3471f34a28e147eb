//! How much is done for what a recording claims, and why no more.
//!
//! Everything else grows with the recording, its dumps and its maps as n·log n does. Where what is asked
//! for would be the square of that, these limits hold; whoever meets one is told. Recordings of
//! programs that mean no harm stay below: the figures say by how much.

pub use code_timeline::GENERATIONS;

/// Pieces of code that forked children get copies of, all together: each child that makes code of its
/// own has images of all that it inherited. Further children share what they inherited with whom they
/// were forked from, and are shown it by the images of that process.
///
/// 64 workers of a server with 8,000 functions are below. 24 bytes of a recording make a child, so
/// that without a limit 1 MB could ask for 40,000 copies of 20,000 functions.
pub const COPIED: usize = 1 << 19;

/// Codes shown by all images together that are for one epoch each, or 32 for each code if that is more.
/// Beyond, an arena has one image
/// for all time, as one of more than 256 epochs.
///
/// A million codes make an image of some 200 MB: this is 800 MB, in two to three seconds.
pub const IN_EPOCHS: usize = 1 << 22;

/// Mappings that are put in for code that a file's mapping hides, and extents that are looked at for
/// it, and 16 more for each mapping of the recording. V8 and the JVM map their own files over code twice or three times.
pub const RESTORED: usize = 1 << 20;

/// Extents that are cut out of mappings of anonymous memory, and 16 more for each mapping: what is left
/// between them becomes an event of about 100 bytes each.
///
/// V8 changes the protection of some pages at a time, where a few extents lie.
pub const PARTS: usize = 1 << 18;

/// Bytes of all perf maps together, which are held from beginning to end. A machine with a hundred
/// runtimes of 100,000 functions each is below.
pub const LARGEST_MAPS: u64 = 1 << 32;

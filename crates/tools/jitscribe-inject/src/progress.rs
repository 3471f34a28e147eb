//! How far the work is.

/// How far the work is. A callback is told of each stage that begins, and every few thousand events of the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A stage begins.
    Begins(Stage),
    /// So many bytes of the recording were passed in this stage.
    At(u64),
}

/// A part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The recording is read for processes and mappings.
    Reading,
    /// The recording is read for the code of each sample.
    Attributing,
    /// The images are written. There are no positions.
    WritingImages,
    /// The recording is copied.
    WritingRecording,
}

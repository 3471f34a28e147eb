//! The progress of the work.

/// The progress of the work. A callback is called when a stage begins, and every few thousand events with the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A stage begins.
    Begins(Stage),
    /// This many bytes of the recording were processed in this stage.
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

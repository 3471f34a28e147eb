//! What all phases of an injection share.

use std::path::{Path, PathBuf};

use code_image::jitdump::LineTable;

use crate::codes::locate::SearchPaths;
use crate::codes::source_lines::SourceOptions;
use crate::codes::sources::Sources;
use crate::files::{PlainFiles, RecordedFiles, SourceFiles};
use crate::progress::Progress;
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;

/// The settings of an [`Injector`](crate::Injector): its methods say what each means.
pub struct Settings<'a> {
    pub paths: SearchPaths,
    pub files: &'a dyn SourceFiles,
    pub image_folder: Option<PathBuf>,
    pub replace: bool,
    pub infer: bool,
    pub lines: LineTable,
    pub sources: SourceOptions,
    pub progress: &'a dyn Fn(Progress),
}

impl Settings<'_> {
    /// The defaults.
    pub fn new(paths: SearchPaths) -> Self {
        Self {
            paths,
            files: &PlainFiles,
            image_folder: None,
            replace: false,
            infer: true,
            lines: LineTable::Source,
            sources: SourceOptions::default(),
            progress: &|_| {},
        }
    }
}

/// The settings, the recording without its open input, and the files that were found for it. Nothing in it changes while the
/// phases run.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    pub settings: &'r Settings<'r>,
    /// The path of the recording, for messages.
    pub path: &'r Path,
    pub index: &'r RecordingIndex,
    pub spaces: &'r AddressSpaces,
    /// The files that are mapped in the recording.
    pub files: &'r RecordedFiles<'r>,
    /// The jitdumps and perf maps.
    pub found: &'r Sources,
    /// Whether the recording was made on this machine.
    pub is_here: bool,
}

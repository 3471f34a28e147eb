//! All steps of an injection, in phases.
//!
//! Each phase takes what the one before it returned, and returns a struct that says until when each part is needed. What is
//! not needed any more is not passed on, and so it is freed.
//!
//! | Phase | Result | Reading of the recording |
//! |---|---|---|
//! | find the files, read their code | [`Sources`], [`Codes`] | the first, by [`Recording::open`] |
//! | attribute the samples, infer names | [`Attributed`] | the second |
//! | plan the images | [`Planned`] | |
//! | write the images | [`Imaged`] | |
//! | write the new recording, report | [`Written`], [`Report`] | the third |

mod attributed;
mod imaged;
mod planned;
mod settings;
mod written;

use std::fmt;
use std::path::PathBuf;

use code_image::jitdump::LineTable;

use crate::Result;
use crate::codes::locate::SearchPaths;
use crate::codes::source_lines::SourceOptions;
use crate::codes::sources::{Codes, Sources};
use crate::files::{RecordedFiles, SourceFiles};
use crate::progress::Progress;
use crate::recording::Recording;
use crate::summary::report::Report;
use crate::summary::unnamed;
use crate::warning::Warning;
use crate::write::destination::Destination;
use attributed::Attributed;
use imaged::Imaged;
use planned::Planned;
use settings::{Run, Settings};
use written::Written;

/// Writes a copy of a recording that includes the code that jitdumps and perf maps describe.
pub struct Injector<'a> {
    settings: Settings<'a>,
}

impl fmt::Debug for Injector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("paths", &self.settings.paths).finish_non_exhaustive()
    }
}

impl<'a> Injector<'a> {
    /// Searches `paths` for jitdumps and perf maps, and opens them as [`PlainFiles`](crate::files::PlainFiles) does.
    #[must_use]
    pub fn new(paths: SearchPaths) -> Self {
        Self { settings: Settings::new(paths) }
    }

    /// Sets how to open jitdumps and perf maps.
    #[must_use]
    pub fn files(mut self, files: &'a dyn SourceFiles) -> Self {
        self.settings.files = files;
        self
    }

    /// Sets the folder of the images, in which perf looks for them when it reads the new recording. The default is the
    /// path of the new recording with `.jit` appended.
    #[must_use]
    pub fn image_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.settings.image_folder = folder;
        self
    }

    /// Replaces existing images.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.settings.replace = replace;
        self
    }

    /// Whether to infer names for samples in code that nothing announces. The default is to do so.
    #[must_use]
    pub fn infer_names(mut self, infer: bool) -> Self {
        self.settings.infer = infer;
        self
    }

    /// Sets the line table to use if a jitdump has several.
    #[must_use]
    pub fn lines(mut self, lines: LineTable) -> Self {
        self.settings.lines = lines;
        self
    }

    /// Sets where to look for the sources of generated code.
    #[must_use]
    pub fn sources(mut self, sources: SourceOptions) -> Self {
        self.settings.sources = sources;
        self
    }

    /// Sets a callback for the progress.
    #[must_use]
    pub fn progress(mut self, progress: &'a dyn Fn(Progress)) -> Self {
        self.settings.progress = progress;
        self
    }

    /// Copies `recording` to `destination` with all code mapped where it ran, and writes the images.
    ///
    /// # Errors
    /// If the recording, an image, or a jitdump that was valid before cannot be read or written;
    /// [`Error::NoImageFolder`](crate::Error::NoImageFolder). All other problems are warnings in the report.
    pub fn inject(
        &self,
        recording: &mut Recording,
        destination: Destination<'_>,
    ) -> Result<Report> {
        let settings = &self.settings;
        let mut warnings: Vec<Warning> = recording.warning().into_iter().collect();
        if recording.index.is_after_perf_inject() {
            warnings.push(Warning::AfterPerfInject { path: recording.path.clone() });
        }
        let is_here = recording.is_of_this_machine();
        let found = Sources::find(recording, &settings.paths, settings.files, &mut warnings);
        let Recording { path, input, index, spaces, replaced } = recording;
        let (path, index, spaces) = (&*path, &*index, &*spaces);
        let files = RecordedFiles::new(input, &index.names, replaced, settings.files);
        let run = Run { settings, path, index, spaces, files: &files, found: &found, is_here };

        let codes = Codes::read(&found, index, spaces, &files, &mut warnings);
        let attributed = Attributed::read(run, input, codes, &mut warnings)?;
        // Afterwards, they have inferred names.
        let unnamed = {
            let Attributed { attribution, codes, .. } = &attributed;
            unnamed::processes(&attribution.unnamed, index, spaces, &codes.unusable)
        };
        let attributed = attributed.infer(run, input, &mut warnings)?;
        let planned = Planned::plan(run, attributed, &mut warnings);
        let imaged = Imaged::write(run, input, planned, &destination, &mut warnings)?;
        let report = Written::write(run, input, imaged, destination)?.report(run, warnings);
        Ok(Report { unnamed, ..report })
    }
}

//! All steps of an injection.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use code_image::jitdump::LineTable;
use perf_data::{BuildId, Writer};
use printable::Hexadecimal;

use crate::attribution::activity::RuntimeFiles;
use crate::attribution::captured::CapturedMemory;
use crate::attribution::copied_stacks::{CopiedStacks, Unwound};
use crate::attribution::counts::Counts;
use crate::attribution::hits::Hits;
use crate::attribution::interpreted::InterpretedFrames;
use crate::attribution::mapped_files::Guesses;
use crate::attribution::samples::SampleEvent;
use crate::attribution::{SampleAttribution, inferred, interpreted};
use crate::codes::locate::SearchPaths;
use crate::codes::php;
use crate::codes::source_lines::{SourceOptions, SourceResolver};
use crate::codes::sources::{Codes, Sources};
use crate::files::{PlainFiles, RecordedFiles, SourceFiles};
use crate::parallel::join;
use crate::plan::{CodeLayout, Plan};
use crate::progress::{Progress, Stage};
use crate::recording::Recording;
use crate::recording::recording_index::RecordingIndex;
use crate::summary::report::{ImageReport, Report};
use crate::summary::stack_counts::StackCounts;
use crate::summary::stacks::StackCounter;
use crate::summary::top::Top;
use crate::warning::{NothingApplied, Warning};
use crate::write::code_list;
use crate::write::image::ImageOptions;
use crate::write::images::{Images, MappedFile};
use crate::write::listed_codes::ListedCodes;
use crate::write::output::{Folder, Output};
use crate::write::{rewrite, scripts};
use crate::{Error, Result};

/// The name of the folder, in that of the images, with the sources of scripts that V8's code log has.
pub const SOURCES: &str = "sources";

/// Writes a copy of a recording that includes the code that jitdumps and perf maps describe.
pub struct Injector<'a> {
    paths: SearchPaths,
    files: &'a dyn SourceFiles,
    image_folder: Option<PathBuf>,
    replace: bool,
    infer: bool,
    lines: LineTable,
    sources: SourceOptions,
    count_stacks: bool,
    progress: &'a dyn Fn(Progress),
}

/// Where the new recording is written.
pub enum Destination<'w> {
    /// A file, which appears complete or not at all.
    File(Output),
    /// To a stream, in the format of `perf record -o -`.
    Stream(Box<dyn Write + 'w>),
}

impl fmt::Debug for Injector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl fmt::Debug for Destination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(output) => f.debug_tuple("File").field(output).finish(),
            Self::Stream(_) => f.debug_tuple("Stream").finish_non_exhaustive(),
        }
    }
}

impl<'a> Injector<'a> {
    /// Searches `paths` for jitdumps and perf maps, and opens them as [`PlainFiles`] does.
    #[must_use]
    pub fn new(paths: SearchPaths) -> Self {
        Self {
            paths,
            files: &PlainFiles,
            image_folder: None,
            replace: false,
            infer: true,
            lines: LineTable::Source,
            sources: SourceOptions::default(),
            count_stacks: false,
            progress: &|_| {},
        }
    }

    /// Sets how to open jitdumps and perf maps.
    #[must_use]
    pub fn files(mut self, files: &'a dyn SourceFiles) -> Self {
        self.files = files;
        self
    }

    /// Sets the folder of the images, in which perf looks for them when it reads the new recording. The default is the
    /// path of the new recording with `.jit` appended.
    #[must_use]
    pub fn image_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.image_folder = folder;
        self
    }

    /// Replaces existing images.
    #[must_use]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Whether to infer names for samples in code that nothing announces. The default is to do so.
    #[must_use]
    pub fn infer_names(mut self, infer: bool) -> Self {
        self.infer = infer;
        self
    }

    /// Sets the line table to use if a jitdump has several.
    #[must_use]
    pub fn lines(mut self, lines: LineTable) -> Self {
        self.lines = lines;
        self
    }

    /// Sets where to look for the sources of generated code.
    #[must_use]
    pub fn sources(mut self, sources: SourceOptions) -> Self {
        self.sources = sources;
        self
    }

    /// Whether to read the new recording and count its call stacks: [`Report::stacks`]. Stacks that were copied are unwound, and their callers count for
    /// [`Report::activities`] and [`TopFunction::inclusive`](crate::TopFunction::inclusive). The default is not to do so. A stream is never read again.
    #[must_use]
    pub fn count_stacks(mut self, count: bool) -> Self {
        self.count_stacks = count;
        self
    }

    /// Sets a callback for the progress.
    #[must_use]
    pub fn progress(mut self, progress: &'a dyn Fn(Progress)) -> Self {
        self.progress = progress;
        self
    }

    /// Copies `recording` to `destination` with all code mapped where it ran, and writes the images.
    ///
    /// # Errors
    /// If the recording, an image, or a jitdump that was valid before cannot be read or written;
    /// [`Error::NoImageFolder`]. All other problems are warnings in the report.
    pub fn inject(
        &self,
        recording: &mut Recording,
        destination: Destination<'_>,
    ) -> Result<Report> {
        let progress = self.progress;
        let at = |at| progress(Progress::At(at));
        let mut warnings: Vec<Warning> = recording.warning().into_iter().collect();
        let is_here = recording.is_of_this_machine();
        let found = Sources::find(recording, &self.paths, self.files, &mut warnings);
        let Recording { path: ref input_path, ref mut input, ref index, ref spaces } = *recording;
        let recorded = RecordedFiles::new(input, &index.names, self.files);
        let mut codes = Codes::read(&found, index, spaces, &recorded, &mut warnings);

        progress(Progress::Begins(Stage::Attributing));
        input.restart();
        let timelines = &codes.table.history;
        let has_code = |space| timelines.timeline(space).is_some();
        let runtimes = RuntimeFiles::open(index, &recorded, has_code);
        let (layout, attribution) = join(
            || CodeLayout::compute(index, spaces, &codes.table),
            || SampleAttribution::read_from(input, index, spaces, &codes, &runtimes, at),
        );
        let mut attribution = attribution.map_err(Error::reading(input_path))?;
        let mut layout = layout;
        if codes.is_empty() {
            warnings.push(Warning::NothingApplied(nothing_applied(&found)));
        }

        let needed = inferred::needed_pages(&codes.table, &attribution);
        let memory = self.paths.memory.iter().map(PathBuf::as_path);
        let captured = CapturedMemory::read(memory, self.files, index, &needed, &mut warnings);
        let machine_of = |space| codes.targets.target(space, input.features()).machine;
        let inferred = match self.infer {
            true => inferred::add_codes(
                &mut codes.table,
                index,
                spaces,
                &attribution,
                &captured,
                machine_of,
            )?,
            false => 0,
        };
        if inferred > 0 {
            attribution.add_inferred(&codes.table);
            layout = CodeLayout::compute(index, spaces, &codes.table);
        }
        inferred::add_bytes(&mut codes.table, &attribution, &captured);

        progress(Progress::Begins(Stage::WritingImages));
        let table = &codes.table;
        let ((mut hits, list), plan) = join(
            || {
                let hits = Hits::count(&attribution, table.history.len());
                let list = ListedCodes::of(table, &hits);
                (hits, list)
            },
            || Plan::with_layout(index, spaces, table, &attribution, layout),
        );
        let counts_stacks = self.count_stacks && matches!(destination, Destination::File(_));
        let unwinds = counts_stacks && index.stack_copies;
        if !unwinds && !interpreted::are_in(&codes.table) {
            // Free memory for the images' tables.
            codes.table.history.forget_timelines();
        }
        warnings.extend(plan.warnings());
        let folder = self.folder(&destination)?;
        let folder = match plan.arenas.is_empty() {
            true => None,
            // perf opens the images by this path, in any working directory.
            false => Some(Arc::new(Folder::create(&folder)?.canonical()?)),
        };
        let script_text = |url: &[u8]| codes.table.script_text(url);
        let sources = SourceResolver::new(&self.sources, self.files).script_texts(&script_text);
        let mut images = Images::write(
            &plan,
            index,
            spaces,
            &codes.table,
            input.attrs(),
            &|space| codes.targets.target(space, input.features()),
            ImageOptions {
                folder: folder.as_ref(),
                replace: self.replace,
                lines: self.lines,
                sources: &sources,
                hits: &hits,
                list: &list,
                stack_copies: index.stack_copies,
                interpreters: &php::frames(index, &recorded),
                interpreter: None,
            },
            &recorded,
        )?;

        warnings.extend(sources.into_warnings());
        if let Some(folder) = folder.as_ref().filter(|_| codes.table.logged() > 0) {
            let sampled = codes.table.in_v8_logs(hits.codes());
            let written = folder
                .below([SOURCES.as_ref()])
                .and_then(|scripts| scripts::write_sampled(&scripts, sampled));
            // The recording has all else, and cannot be made again.
            if let Err(error) = written {
                let folder = folder.path().join(SOURCES);
                warnings.push(Warning::SourcesNotKept { folder, cause: error.to_string() });
            }
        }

        progress(Progress::Begins(Stage::WritingRecording));
        input.restart();
        let (mut file, stream) = match destination {
            Destination::File(file) => (Some(file), None),
            Destination::Stream(stream) => (None, Some(stream)),
        };
        let output = file.as_ref().map(|file| file.path().to_owned());
        let output_path = output.as_deref().unwrap_or(Path::new("-"));
        let writing = || Error::writing(input_path, output_path);
        let mut writer = match (&mut file, stream) {
            (Some(file), _) => Writer::file(file.file(), input).map_err(writing())?,
            (None, stream) => {
                Writer::pipe(stream.unwrap_or_else(|| Box::new(std::io::sink())), input)
            }
        };
        add_build_ids(&mut writer, &images, index, input.endian()).map_err(writing())?;
        let frames = InterpretedFrames::new(index, spaces, &codes.table);
        let replace = self.replace;
        // The callers on copied stacks are known later, and with them the functions with the most samples.
        let user_of = |pid| found.user_of(pid, index, self.files).filter(|_| is_here);
        let top = (!unwinds).then(|| std::mem::take(&mut images.top));
        if top.is_some() {
            hits.add_stacks(attribution.stacks());
        }
        let names = std::mem::take(&mut images.names);
        let (listed, (rewritten, functions)) = join(
            || {
                code_list::write(
                    &list,
                    names,
                    (folder.as_ref(), replace),
                    (&plan, &images),
                    (index, &user_of),
                    &codes.table,
                    &hits,
                )
            },
            || {
                let events = &images.events;
                let rewritten =
                    rewrite::rewrite(input, &mut writer, index, &plan, events, frames, at);
                let finish = |top: Top| top.finish(&hits, attribution.stacks(), &codes.table);
                (rewritten, top.map(finish).transpose())
            },
        );
        listed?;
        rewritten.map_err(writing())?;
        writer.finish().map_err(writing())?;
        if let Some(file) = file {
            file.finish()?;
        }

        let copied = unwinds.then(|| CopiedStacks::new(index, spaces, &codes.table, &runtimes));
        let (stacks, copied) = match &output {
            Some(output) if counts_stacks => self.read_stacks(output, copied)?,
            _ => (None, None),
        };
        let spaces = plan.arenas.iter().flat_map(|arena| arena.images.iter().map(|_| arena.space));
        let pids = spaces.map(|space| index.processes.pid(space));
        let reports = images.written.iter().zip(pids).map(|(image, pid)| ImageReport {
            path: image.path.clone(),
            pid,
            size: image.finished.file_size,
            build_id: Hexadecimal(&image.finished.build_id).to_string(),
        });
        let reports = reports.collect();
        let functions = match functions? {
            Some(functions) => functions,
            None => {
                let stacks =
                    copied.as_ref().map_or(attribution.stacks(), |unwound| &unwound.stacks);
                hits.add_stacks(stacks);
                images.top.finish(&hits, stacks, &codes.table)?
            }
        };
        let activities =
            copied.as_ref().map_or(attribution.activities(), |unwound| unwound.activities);
        let samples = Counts { with_lines: functions.with_lines, ..attribution.counts };
        Ok(Report {
            input: input_path.clone(),
            output,
            events: index.events,
            samples,
            activities: activities.with_interpreted(functions.interpreted),
            has_stack_copies: index.stack_copies,
            has_trace: index.has_trace,
            stacks,
            top: functions.top,
            sources: codes.reports,
            images: reports,
            warnings,
        })
    }

    /// Reads the new recording: how many of its stacks are whole, and what those show that were copied.
    fn read_stacks(
        &self,
        output: &Path,
        copied: Option<CopiedStacks<'_>>,
    ) -> Result<(Option<StackCounts>, Option<Unwound>)> {
        (self.progress)(Progress::Begins(Stage::CountingStacks));
        let mut recording = Recording::open(output, &|_| {})?;
        let Some(mut copied) = copied else {
            return Ok((StackCounts::of(&mut recording, self.files)?, None));
        };
        let mut counter = StackCounter::new(&recording);
        let tick = |at| (self.progress)(Progress::At(at));
        recording.read_samples(
            self.files,
            Guesses::Both,
            &tick,
            &mut |memory, event| match event {
                SampleEvent::Sample(sample) => {
                    counter.add(memory, &sample);
                    copied.add(&sample);
                }
                SampleEvent::Comm(comm) => copied.name_thread(&comm),
                SampleEvent::Fork(_) => {}
            },
        )?;
        Ok((counter.finish(), Some(copied.finish())))
    }

    /// The folder of the images.
    fn folder(&self, destination: &Destination<'_>) -> Result<PathBuf> {
        match (&self.image_folder, destination) {
            (Some(folder), _) => Ok(folder.clone()),
            (None, Destination::Stream(_)) => Err(Error::NoImageFolder),
            (None, Destination::File(output)) => {
                let mut name = OsString::from(output.path());
                name.push(".jit");
                Ok(name.into())
            }
        }
    }
}

/// Why there is no code to apply.
fn nothing_applied(found: &Sources) -> NothingApplied {
    if !found.list().is_empty() {
        NothingApplied::NoCode
    } else if found.markers() > 0 {
        NothingApplied::DumpsMissing
    } else {
        NothingApplied::NoFiles
    }
}

/// Adds the images' build-ids, for perf archive and debuginfod, and those of files under other spellings of their paths.
fn add_build_ids(
    writer: &mut Writer<'_>,
    images: &Images,
    index: &RecordingIndex,
    endian: perf_data::Endian,
) -> Result<(), perf_data::Error> {
    let recorded = writer.features_mut()?.build_ids(endian);
    let recorded: HashMap<&[u8], &BuildId> =
        recorded.iter().map(|file| (file.filename.as_slice(), file)).collect();
    let id = |(path, file): (&Vec<u8>, &MappedFile)| match *file {
        MappedFile::Image(number) => {
            let image = images.written.get(number)?;
            Some(BuildId::of_user_file(path, &image.finished.build_id))
        }
        MappedFile::Recorded(_, name) => {
            let file = *recorded.get(index.names.get(name))?;
            (file.filename != *path).then(|| BuildId { filename: path.clone(), ..file.clone() })
        }
    };
    let ids: Vec<BuildId> = images.paths.iter().filter_map(id).collect();
    if !ids.is_empty() {
        writer.features_mut()?.append_build_ids(ids.iter(), endian);
    }
    Ok(())
}

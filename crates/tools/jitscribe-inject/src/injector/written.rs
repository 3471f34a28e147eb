//! From the images to the new recording.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use perf_data::{BuildId, Input, Writer};
use printable::Hexadecimal;

use super::imaged::Imaged;
use super::planned::Planned;
use super::settings::Run;
use crate::attribution::SampleAttribution;
use crate::attribution::interpreted::InterpretedFrames;
use crate::codes::sources::Codes;
use crate::parallel::join;
use crate::plan::Plan;
use crate::progress::{Progress, Stage};
use crate::recording::recording_index::RecordingIndex;
use crate::summary::report::{ImageReport, Report};
use crate::warning::Warning;
use crate::write::destination::Destination;
use crate::write::images::{Image, Images, MappedFile};
use crate::write::{code_list, rewrite};
use crate::{Error, Result};

/// The new recording, which is complete, with what the report is made of.
pub struct Written<'s> {
    /// Its path; `None` for a stream.
    output: Option<PathBuf>,
    /// The images in the order of the plan.
    images: Vec<Image>,
    codes: Codes<'s>,
    attribution: SampleAttribution,
    /// It names the images' processes.
    plan: Plan,
}

impl<'s> Written<'s> {
    /// Copies the recording with the images mapped: its third reading. At the same time, another thread writes the list of codes.
    pub fn write(
        run: Run<'_>,
        input: &mut Input,
        imaged: Imaged<'s>,
        destination: Destination<'_>,
    ) -> Result<Self> {
        let Imaged { planned, folder, mut images } = imaged;
        let Planned { codes, attribution, hits, list, plan } = planned;
        let Run { settings, index, spaces, found, is_here, .. } = run;
        (settings.progress)(Progress::Begins(Stage::WritingRecording));
        input.restart();
        let (mut file, stream) = match destination {
            Destination::File(file) => (Some(file), None),
            Destination::Stream(stream) => (None, Some(stream)),
        };
        let output = file.as_ref().map(|file| file.path().to_owned());
        let output_path = output.as_deref().unwrap_or(Path::new("-"));
        let writing = || Error::writing(run.path, output_path);
        let mut writer = match (&mut file, stream) {
            (Some(file), _) => Writer::file(file.file(), input).map_err(writing())?,
            (None, stream) => {
                Writer::pipe(stream.unwrap_or_else(|| Box::new(std::io::sink())), input)
            }
        };
        add_build_ids(&mut writer, &images, index, input.endian()).map_err(writing())?;
        let frames = InterpretedFrames::new(index, spaces, &codes.table);
        let (files, replace) = (settings.files, settings.replace);
        let user_of = |pid| found.user_of(pid, index, files).filter(|_| is_here);
        let names = std::mem::take(&mut images.names);
        let (listed, rewritten) = join(
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
                let at = |at| (settings.progress)(Progress::At(at));
                rewrite::rewrite(input, &mut writer, index, &plan, events, frames, at)
            },
        );
        listed?;
        rewritten.map_err(writing())?;
        writer.finish().map_err(writing())?;
        if let Some(file) = file {
            file.finish()?;
        }
        Ok(Self { output, images: images.written, codes, attribution, plan })
    }

    /// The report of the injection.
    pub fn report(self, run: Run<'_>, warnings: Vec<Warning>) -> Report {
        let Self { output, images, codes, attribution, plan } = self;
        let Run { path, index, .. } = run;
        let spaces = plan.arenas.iter().flat_map(|arena| arena.images.iter().map(|_| arena.space));
        let pids = spaces.map(|space| index.processes.pid(space));
        let images = images.into_iter().zip(pids).map(|(image, pid)| ImageReport {
            path: image.path,
            pid,
            size: image.finished.file_size,
            build_id: Hexadecimal(&image.finished.build_id).to_string(),
        });
        Report {
            input: path.to_owned(),
            output,
            events: index.events,
            samples: attribution.counts,
            has_stack_copies: index.stack_copies,
            has_trace: index.has_trace,
            sources: codes.reports,
            images: images.collect(),
            kept: Vec::new(),
            unnamed: Vec::new(),
            warnings,
        }
    }
}

/// Adds the build-ids of images and of files that are kept elsewhere, for perf archive and debuginfod, and those of files under other spellings of their paths.
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
    let kept = index.kept_build_ids().map(|(path, id)| BuildId::of_user_file(path, id));
    let ids: Vec<BuildId> = images.paths.iter().filter_map(id).chain(kept).collect();
    if !ids.is_empty() {
        writer.features_mut()?.append_build_ids(ids.iter(), endian);
    }
    Ok(())
}

//! From the plan to the images.

use std::collections::BTreeSet;
use std::sync::Arc;

use perf_data::Input;

use super::planned::Planned;
use super::settings::Run;
use crate::Result;
use crate::codes::runtime_frames;
use crate::codes::source_lines::SourceResolver;
use crate::warning::Warning;
use crate::write::destination::Destination;
use crate::write::image::ImageOptions;
use crate::write::images::Images;
use crate::write::output::Folder;
use crate::write::scripts::{self, SOURCES};

/// The images that were written.
pub struct Imaged<'s> {
    /// Writing the images changes nothing of it.
    pub planned: Planned<'s>,
    /// The folder of the images; `None` if there are none. Needed until the list of codes is written.
    pub folder: Option<Arc<Folder>>,
    /// The images. Their mapping events, and the names of listed codes, are needed until the new recording is written.
    pub images: Images,
}

impl<'s> Imaged<'s> {
    /// Writes the images, and the sources of sampled scripts that V8's code log and source maps have.
    pub fn write(
        run: Run<'_>,
        input: &Input,
        planned: Planned<'s>,
        destination: &Destination<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let Run { settings, index, spaces, files, found, is_here, .. } = run;
        let Planned { codes, hits, list, plan, .. } = &planned;
        let folder = match &settings.image_folder {
            Some(folder) => folder.clone(),
            None => destination.image_folder()?,
        };
        let folder = match plan.arenas.is_empty() {
            true => None,
            // perf opens the images by this path, in any working directory.
            false => Some(Arc::new(Folder::create(&folder)?.canonical()?)),
        };
        let script_text = |url: &[u8]| codes.table.script_text(url);
        let pids: BTreeSet<u32> =
            plan.arenas.iter().map(|arena| index.processes.pid(arena.space)).collect();
        let user_of = |pid| found.user_of(pid, index, settings.files).filter(|_| is_here);
        let sources = SourceResolver::new(&settings.sources, settings.files)
            .script_texts(&script_text)
            .users(pids.into_iter().map(user_of));
        let mut images = Images::write(
            plan,
            index,
            spaces,
            &codes.table,
            input.attrs(),
            &|space| codes.targets.target(space, input.features()),
            ImageOptions {
                folder: folder.as_ref(),
                replace: settings.replace,
                lines: settings.lines,
                sources: &sources,
                hits,
                list,
                stack_copies: index.stack_copies,
                frames: &runtime_frames::frames(index, files),
                frame: None,
            },
            files,
        )?;
        images.originals = sources.take_originals();
        let sampled = || sources.sampled_sources();
        let originals: BTreeSet<&[u8]> = sampled().map(|(path, _)| path).collect();
        let has_texts = codes.table.logged() > 0 || sampled().any(|(_, text)| text.is_some());
        if let Some(folder) = folder.as_ref().filter(|_| has_texts) {
            let texts = sampled().filter_map(|(path, text)| Some((path, text?)));
            let codes = codes.table.in_v8_logs(hits.codes());
            let written = folder.below([SOURCES.as_ref()]).and_then(|folder| {
                scripts::write_originals(&folder, texts)?;
                scripts::write_sampled(&folder, codes, &originals)
            });
            // The recording has all else, and cannot be made again.
            if let Err(error) = written {
                let folder = folder.path().join(SOURCES);
                warnings.push(Warning::SourcesNotKept { folder, cause: error.to_string() });
            }
        }
        drop(originals);
        warnings.extend(sources.into_warnings());
        Ok(Self { planned, folder, images })
    }
}

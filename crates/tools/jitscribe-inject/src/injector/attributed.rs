//! From the codes to the samples in them.

use std::path::PathBuf;

use perf_data::Input;

use super::settings::Run;
use crate::attribution::captured::CapturedMemory;
use crate::attribution::{SampleAttribution, inferred};
use crate::codes::sources::{Codes, Sources};
use crate::parallel::join;
use crate::plan::CodeLayout;
use crate::progress::{Progress, Stage};
use crate::warning::{NothingApplied, Warning};
use crate::{Error, Result};

/// The samples by code, after the second reading of the recording.
pub struct Attributed<'s> {
    /// All code. Inferred codes, and bytes that were read from memory, are added by [`Self::infer`], and nothing afterwards.
    pub codes: Codes<'s>,
    /// The layout of this code. It is needed until the plan is made, which consumes it.
    pub layout: CodeLayout,
    /// The samples of each code. They are needed until the report is made.
    pub attribution: SampleAttribution,
}

impl<'s> Attributed<'s> {
    /// Reads the recording again, and finds the code of each sample. At the same time, another thread computes the
    /// layout of the code.
    pub fn read(
        run: Run<'_>,
        input: &mut Input,
        codes: Codes<'s>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self> {
        let Run { index, spaces, .. } = run;
        let progress = run.settings.progress;
        progress(Progress::Begins(Stage::Attributing));
        input.restart();
        let at = |at| progress(Progress::At(at));
        let (layout, attribution) = join(
            || CodeLayout::compute(index, spaces, &codes.table),
            || SampleAttribution::read_from(input, index, spaces, &codes, at),
        );
        let attribution = attribution.map_err(Error::reading(run.path))?;
        let why = nothing_applied(run.found);
        // A program without a JIT compiler has no files, and needs none.
        let lacks_files = !matches!(why, NothingApplied::NoFiles | NothingApplied::Unusable)
            || attribution.counts.unnamed > 0;
        // Of code that is left to files, and of files of perf's, a warning of their own tells.
        let is_reported = codes.left_to_files > 0 || index.is_after_perf_inject();
        if codes.is_empty() && lacks_files && !is_reported {
            warnings.push(Warning::NothingApplied(why));
        }
        Ok(Self { codes, layout, attribution })
    }

    /// Names memory with samples that no source describes, and adds the bytes that were read from the processes.
    pub fn infer(self, run: Run<'_>, input: &Input, warnings: &mut Vec<Warning>) -> Result<Self> {
        let Self { mut codes, mut layout, mut attribution } = self;
        let Run { settings, index, spaces, .. } = run;
        let needed = inferred::needed_pages(&codes.table, &attribution);
        let memory = settings.paths.memory.iter().map(PathBuf::as_path);
        let captured = CapturedMemory::read(memory, settings.files, index, &needed, warnings);
        let machine_of = |space| codes.targets.target(space, input.features()).machine;
        let added = match settings.infer {
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
        if added > 0 {
            attribution.add_inferred(&codes.table);
            layout = CodeLayout::compute(index, spaces, &codes.table);
        }
        inferred::add_bytes(&mut codes.table, &attribution, &captured);
        Ok(Self { codes, layout, attribution })
    }
}

/// Why there is no code to apply.
fn nothing_applied(found: &Sources) -> NothingApplied {
    if !found.list().is_empty() {
        NothingApplied::NoCode
    } else if found.markers() > 0 {
        NothingApplied::DumpsMissing
    } else if !found.unusable().is_empty() {
        NothingApplied::Unusable
    } else {
        NothingApplied::NoFiles
    }
}

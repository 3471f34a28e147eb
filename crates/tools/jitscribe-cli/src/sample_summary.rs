//! What is said of a recording's samples: by `record`, `inject --json` and `demo`.

use std::cmp::Reverse;
use std::path::Path;

use jitscribe_inject::StackCounts;
use profile::activity::is_interpreter;
use profile::{
    Activities, CodeId, CodeSource, Count, FunctionId, FunctionKind, Profile, SampleRow, StringId,
    Tiers, Totals,
};
use profile_recording::RecordedProfile;
use profile_text::TierSamples;
use serde::Serialize;

use crate::Result;
use crate::{heap_image, recorded};

/// Number of functions in a summary.
const TOP: usize = 10;

/// Where the samples of a recording are: the same numbers as in its report, of which this is the beginning.
#[derive(Debug)]
pub struct SampleSummary {
    /// Number of samples.
    pub samples: u64,
    /// Those whose innermost frame is in jitted code and has a source line.
    pub with_lines: u64,
    /// What was done.
    pub activities: Activities,
    /// How many call stacks are whole; `None` if there are none.
    pub stacks: Option<StackCounts>,
    /// The jitted functions with the most samples.
    pub top: Vec<TopFunction>,
    /// What is said of code without a name in heap images.
    pub in_heap_images: Vec<String>,
}

/// A jitted function with samples.
#[derive(Debug, Serialize)]
pub struct TopFunction {
    /// Its name, without the marks of tiers and without its place.
    pub name: String,
    /// Its file; empty if it is not known.
    pub file: String,
    /// The line where it begins; 0 if it is not known.
    pub line: u32,
    /// The column where it begins; 0 if it is not known.
    pub column: u32,
    /// Whether other functions have its name, file and line, so that the column is printed, too.
    #[serde(skip)]
    pub shares_line: bool,
    /// The name of its code with the most samples in the image's symbols, which perf shows.
    #[serde(skip)]
    pub symbol: Vec<u8>,
    /// The same as text.
    #[serde(rename = "symbol")]
    pub symbol_text: String,
    /// Number of samples in it.
    pub samples: u64,
    /// Number of samples in it or in what it called; a recursive function counts once a sample. `None` if the recording has no call chains.
    pub inclusive: Option<u64>,
    /// The samples by tier, if the runtime tells tiers.
    pub tiers: Vec<TierSamples>,
    /// Whether the machine code of `symbol` is known, so that assembly can be shown. Perf maps have no code.
    pub has_code: bool,
    /// Whether any of its frames has a source line.
    pub has_lines: bool,
    /// Whether it is a runtime's interpreter.
    pub interprets: bool,
}

impl SampleSummary {
    /// Reads a recording with images.
    pub fn read(recording: &Path) -> Result<Self> {
        let files = recorded::believed(recording);
        Ok(Self::of(&mut recorded::read_with_stacks(recording, &files)?))
    }

    /// Of a recording that was read.
    pub fn of(recorded: &mut RecordedProfile<'_>) -> Self {
        let in_heap_images = heap_image::lines(recorded);
        let RecordedProfile { profile, code, stacks, .. } = recorded;
        let totals = Totals::all(profile);
        let is_jitted = |id: FunctionId| is_jitted(profile, id);
        let top = totals.first_functions(profile, TOP, is_jitted).into_iter();
        let has_stacks = has_callers(profile);
        let tiers = Tiers::of(profile, &totals);
        let top = top.map(|(id, count)| {
            let tiers = tiers.of_function(id);
            TopFunction::of(profile, code, &totals, id, (count, has_stacks), tiers)
        });
        Self {
            samples: totals.samples(),
            top: top.collect(),
            with_lines: with_lines(profile),
            activities: Activities::of(profile, profile.samples().iter()),
            stacks: stacks.clone(),
            in_heap_images,
        }
    }
}

fn is_jitted(profile: &Profile, id: FunctionId) -> bool {
    matches!(profile.function(id).kind, FunctionKind::Jitted | FunctionKind::Interpreted)
}

/// Whether callers are known of any sample: calls that were inlined are none.
fn has_callers(profile: &Profile) -> bool {
    let has_caller =
        |stack: &profile::Stack| stack.parent.is_some() && profile.frame(stack.frame).depth == 0;
    profile.stacks().iter().any(has_caller)
}

/// Number of samples in jitted code with a line.
fn with_lines(profile: &Profile) -> u64 {
    let has_line = |sample: &SampleRow| {
        let frame = profile.frames_of(sample.stack).next();
        frame.is_some_and(|frame| frame.line > 0 && is_jitted(profile, frame.function))
    };
    profile.samples().iter().filter(has_line).count() as u64
}

impl TopFunction {
    fn of(
        profile: &Profile,
        code: &mut dyn CodeSource,
        totals: &Totals,
        id: FunctionId,
        (count, has_stacks): (Count, bool),
        tiers: &[(StringId, u64)],
    ) -> Self {
        let mut codes: Vec<CodeId> = profile.codes_of(id).map(|(code, _)| code).collect();
        codes.sort_by_key(|&code| (Reverse(totals.of_code(code).own), code));
        // The code to look at: with bytes rather than without, and then with the most samples.
        let with_bytes = codes.iter().copied().find(|&id| code.listing(id).is_some());
        let shown = with_bytes.or_else(|| codes.first().copied()).map(|code| profile.code(code));
        let text = |id| String::from_utf8_lossy(profile.text(id)).into_owned();
        let function = profile.function(id);
        let interprets = |&code: &CodeId| {
            let code = profile.code(code);
            code.tier.is_empty() && is_interpreter(profile.text(code.symbol), b"")
        };
        let mut frames = profile.frames().iter().filter(|frame| frame.function == id);
        Self {
            name: text(function.name),
            file: text(function.file),
            line: function.line,
            column: function.column,
            shares_line: profile.shares_line(id),
            symbol: shown.map(|code| profile.text(code.symbol).to_vec()).unwrap_or_default(),
            symbol_text: shown.map(|code| text(code.symbol)).unwrap_or_default(),
            samples: count.own,
            inclusive: has_stacks.then_some(count.total),
            tiers: tiers
                .iter()
                .map(|&(tier, samples)| TierSamples { tier: text(tier), samples })
                .collect(),
            has_code: with_bytes.is_some(),
            has_lines: frames.any(|frame| frame.line > 0),
            interprets: codes.iter().any(interprets),
        }
    }
}

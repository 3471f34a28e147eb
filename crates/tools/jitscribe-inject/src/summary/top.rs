//! The functions with the most samples.

use code_timeline::CodeId;
use jitdump::CodeLoad;
use profile::{
    Builder, Code, Count, Frame, FrameId, Function, FunctionId, FunctionKind, Profile,
    SampledStack, StringId, Totals,
};

use super::jitted_function::{JittedFunctions, JittedName};
use super::report::{TierSamples, TopFunction};
use crate::Result;
use crate::attribution::activity::is_interpreter;
use crate::attribution::hits::Hits;
use crate::attribution::inclusive::StackSets;
use crate::codes::code_numbers::CodeNumbers;
use crate::codes::code_table::CodeTable;
use crate::codes::function_name::FunctionName;

/// Number of functions in a report.
const TOP: usize = 10;

/// What a report says of a code.
#[derive(Debug, Default)]
pub struct CodeDescription {
    name: Vec<u8>,
    tier: Option<Vec<u8>>,
    has_bytes: bool,
    has_lines: bool,
}

impl CodeDescription {
    /// Of a code in a dump.
    pub fn of_load(load: &CodeLoad<'_>) -> Self {
        Self {
            name: load.name.to_vec(),
            tier: load.tier().map(<[u8]>::to_vec),
            has_bytes: !load.is_without_bytes(),
            has_lines: load.lines().next().is_some(),
        }
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The tier, if the dump tells.
    pub fn tier(&self) -> Option<&[u8]> {
        self.tier.as_deref()
    }

    /// Of a code without a record in a dump. Its bytes may have been read from the process.
    pub fn of_name(name: &[u8], has_bytes: bool) -> Self {
        Self { name: name.to_vec(), has_bytes, ..Self::default() }
    }
}

/// Collects the codes that were seen, as a profile: some while images are written, the others afterwards. Its stacks have no
/// order, and no inlined calls.
#[derive(Debug, Default)]
pub struct Top {
    /// By code of the profile.
    codes: Vec<SeenCode>,
    builder: Builder,
    /// The number in the profile, by code.
    by_code: Option<CodeNumbers>,
    with_lines: u64,
    interpreted: u64,
}

/// A code that was seen.
#[derive(Clone, Copy, Debug)]
struct SeenCode {
    /// Its name in images.
    symbol: StringId,
    tier: StringId,
    /// Number of samples in it.
    samples: u64,
    has_bytes: bool,
    has_lines: bool,
    interprets: bool,
}

/// All that is known of the functions.
#[derive(Debug, Default)]
pub struct Functions {
    /// The first functions.
    pub top: Vec<TopFunction>,
    /// Number of samples in code that has lines.
    pub with_lines: u64,
    /// Number of samples in interpreters among the codes.
    pub interpreted: u64,
}

impl Top {
    /// Records a code. A second call for the same code has no effect.
    pub fn add(&mut self, code: CodeId, description: CodeDescription, hits: &Hits) {
        if self.has(code) {
            return;
        }
        let CodeDescription { name, tier, has_bytes, has_lines } = description;
        let samples = hits.in_code(code);
        let tier = tier.as_deref().or(FunctionName::of(&name).tier);
        let interprets = is_interpreter(&name, tier);
        self.with_lines += if has_lines { samples } else { 0 };
        self.interpreted += if interprets { samples } else { 0 };
        let number = self.codes.len();
        self.by_code.get_or_insert_with(|| CodeNumbers::new(hits.len())).set(code, number);
        self.codes.push(SeenCode {
            symbol: self.builder.string(&code_image::symbol_name(&name)),
            tier: self.builder.string(tier.unwrap_or_default()),
            samples,
            has_bytes,
            has_lines,
            interprets: interprets && tier.is_none(),
        });
    }

    fn has(&self, code: CodeId) -> bool {
        self.by_code.as_ref().is_some_and(|numbers| numbers.get(code).is_some())
    }

    /// The first functions, after all codes in images were recorded.
    pub fn finish(
        mut self,
        hits: &Hits,
        stacks: &StackSets,
        table: &CodeTable<'_>,
    ) -> Result<Functions> {
        let mut reader = table.reader();
        for id in hits.seen() {
            if self.has(id) {
                continue;
            }
            let description = match table.name_without_dump(id) {
                Some(name) => {
                    CodeDescription::of_name(name, table.captured_bytes.contains_key(&id))
                }
                None => {
                    let loaded = reader.load(table.history.code(id))?;
                    loaded.as_ref().map(CodeDescription::of_load).unwrap_or_default()
                }
            };
            self.add(id, description, hits);
        }
        let frames = self.add_frames();
        let stacks_of_codes = self.add_stacks(stacks, &frames);
        let Self { codes, builder, with_lines, interpreted, .. } = self;
        let profile = builder.finish();
        let totals = Totals::of_stacks(&profile, stacks_of_codes.into_iter());
        let is_jitted = |id: FunctionId| profile.function(id).kind != FunctionKind::Unknown;
        let reported = |(id, count): (FunctionId, Count)| {
            let total = stacks.has_stacks().then_some(count.total);
            TopFunction::of(&profile, &totals, &codes, id, (count.own, total))
        };
        let first = totals.first_functions(&profile, TOP, is_jitted).into_iter();
        Ok(Functions { top: first.map(reported).collect(), with_lines, interpreted })
    }

    /// Adds the codes to the profile, with their functions. Returns a frame of each.
    fn add_frames(&mut self) -> Vec<FrameId> {
        let Self { codes, builder, .. } = self;
        let mut functions = JittedFunctions::default();
        if codes.iter().any(|code| JittedFunctions::is_ambiguous(builder.text(code.symbol))) {
            codes.iter().for_each(|code| functions.add(builder.text(code.symbol)));
        }
        let mut symbol = Vec::new();
        let frames = codes.iter().map(|seen| {
            symbol.clear();
            symbol.extend_from_slice(builder.text(seen.symbol));
            let function = functions.of_code(builder, &JittedName::of(&symbol), None);
            let mut code = Code::new(function, 0);
            (code.symbol, code.tier) = (seen.symbol, seen.tier);
            let mut frame = Frame::new(function);
            frame.code = Some(builder.code(code));
            builder.frame(frame)
        });
        frames.collect()
    }

    /// Adds the stacks to the profile. Where the innermost frame is no jitted code, it is a function without a name.
    fn add_stacks(&mut self, stacks: &StackSets, frames: &[FrameId]) -> Vec<SampledStack> {
        let Self { builder, by_code, .. } = self;
        let outside = builder.function(Function::new(StringId::EMPTY, FunctionKind::Unknown));
        let outside = builder.frame(Frame::new(outside));
        let frame_of = |code: CodeId| {
            let number = by_code.as_ref().and_then(|numbers| numbers.get(code))?;
            frames.get(number).copied()
        };
        let mut all = Vec::new();
        for (codes, own, samples) in stacks.sets() {
            let callers = codes.filter(|code| Some(*code) != own).filter_map(frame_of);
            let mut stack = None;
            for frame in callers {
                stack = Some(builder.stack(stack, frame));
            }
            let stack = builder.stack(stack, own.and_then(frame_of).unwrap_or(outside));
            all.push(SampledStack { stack, samples, weight: samples });
        }
        all
    }
}

impl TopFunction {
    fn of(
        profile: &Profile,
        totals: &Totals,
        seen: &[SeenCode],
        id: FunctionId,
        (samples, inclusive): (u64, Option<u64>),
    ) -> Self {
        let codes = profile.codes_of(id).map(|(code, _)| code);
        let codes: Vec<(profile::CodeId, &SeenCode)> =
            codes.filter_map(|code| Some((code, seen.get(code.0 as usize)?))).collect();
        // The code to look at: with bytes rather than without, and then the first of those with the most samples.
        let shown = codes.iter().rev().map(|(_, seen)| *seen);
        let shown = shown.max_by_key(|seen| (seen.has_bytes, seen.samples));
        let text = |id| String::from_utf8_lossy(profile.text(id)).into_owned();
        let tiers = totals.tiers(profile, codes.iter().map(|(code, _)| *code)).into_iter();
        let function = profile.function(id);
        Self {
            name: text(function.name),
            file: text(function.file),
            line: function.line,
            column: function.column,
            symbol_text: shown.map(|seen| text(seen.symbol)).unwrap_or_default(),
            symbol: shown.map(|seen| profile.text(seen.symbol).to_vec()).unwrap_or_default(),
            samples,
            inclusive,
            tiers: tiers.map(|(tier, samples)| TierSamples { tier: text(tier), samples }).collect(),
            has_code: shown.is_some_and(|seen| seen.has_bytes),
            has_lines: codes.iter().any(|(_, seen)| seen.has_lines),
            interprets: codes.iter().any(|(_, seen)| seen.interprets),
        }
    }
}

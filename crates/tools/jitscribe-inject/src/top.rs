//! The functions with the most samples.

use std::collections::{BTreeMap, HashMap, HashSet};

use code_timeline::CodeId;
use jitdump::CodeLoad;
use rustc_hash::FxBuildHasher;

use super::activity::is_interpreter;
use super::attribution::SampleAttribution;
use super::code_numbers::CodeNumbers;
use super::code_table::CodeTable;
use super::function_name::{FunctionName, osr_alternative};
use super::inclusive::StackSets;
use super::report::{TierSamples, TopFunction};
use crate::Result;

/// Number of functions in a report.
const TOP: usize = 10;

/// Number of samples in each code, and which codes were on a stack.
#[derive(Debug)]
pub struct Hits {
    in_code: Vec<u64>,
    on_stack: Vec<bool>,
}

impl Hits {
    /// Counts the samples by code, for `codes` codes.
    pub fn count(attribution: &SampleAttribution, codes: usize) -> Self {
        let mut all = Self { in_code: vec![0; codes], on_stack: vec![false; codes] };
        for (code, hits) in attribution.hits() {
            all.in_code[code.index()] += hits;
        }
        for code in attribution.stacks().sets().flat_map(|(codes, _)| codes) {
            all.on_stack[code.index()] = true;
        }
        all
    }

    /// Adds the codes on stacks that were unwound later.
    pub fn add_stacks(&mut self, stacks: &StackSets) {
        for code in stacks.sets().flat_map(|(codes, _)| codes) {
            if let Some(on_stack) = self.on_stack.get_mut(code.index()) {
                *on_stack = true;
            }
        }
    }

    /// The number of samples in a code.
    pub fn in_code(&self, code: CodeId) -> u64 {
        self.in_code.get(code.index()).copied().unwrap_or(0)
    }

    /// Whether a code was sampled, or is on the stack of a sample.
    pub fn is_seen(&self, code: CodeId) -> bool {
        self.in_code(code) > 0 || self.on_stack.get(code.index()).copied().unwrap_or(false)
    }

    /// Number of codes; all code numbers are below it.
    fn len(&self) -> usize {
        self.in_code.len()
    }

    /// The codes with samples.
    pub fn codes(&self) -> impl Iterator<Item = CodeId> {
        self.seen().filter(|&code| self.in_code(code) > 0)
    }

    /// The codes that were sampled, or are on the stacks of samples.
    pub fn seen(&self) -> impl Iterator<Item = CodeId> {
        let codes = (0..self.len()).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        codes.map(CodeId).filter(|&code| self.is_seen(code))
    }
}

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

/// Collects the functions of the codes that were seen: some while images are written, the others afterwards.
#[derive(Debug, Default)]
pub struct Top {
    functions: Vec<Function>,
    by_name: HashMap<Vec<u8>, usize, FxBuildHasher>,
    /// The place of the function, by code.
    by_code: Option<CodeNumbers>,
    with_lines: u64,
    interpreted: u64,
}

/// All codes of one function.
#[derive(Debug, Default)]
struct Function {
    /// Number of samples in them.
    samples: u64,
    /// Number of samples with one of them on the stack.
    inclusive: u64,
    tiers: BTreeMap<Vec<u8>, u64>,
    /// The code to look at: with bytes rather than without, and then the one with the most samples.
    shown: Option<(bool, u64, Vec<u8>)>,
    has_lines: bool,
    interprets: bool,
}

/// The samples of a function, in it and through it; its name; and its place.
type Ranked = ((u64, u64), Vec<u8>, usize);

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
        if self.place(code).is_some() {
            return;
        }
        let CodeDescription { name, tier, has_bytes, has_lines } = description;
        let samples = hits.in_code(code);
        let marked = FunctionName::of(&name);
        let tier = tier.as_deref().or(marked.tier);
        let place = match self.by_name.get(&*marked.function) {
            Some(&place) => place,
            None => {
                self.functions.push(Function::default());
                self.by_name.insert(marked.function.to_vec(), self.functions.len() - 1);
                self.functions.len() - 1
            }
        };
        self.by_code.get_or_insert_with(|| CodeNumbers::new(hits.len())).set(code, place);
        let interprets = is_interpreter(&name, tier);
        self.with_lines += if has_lines { samples } else { 0 };
        self.interpreted += if interprets { samples } else { 0 };
        let Some(function) = self.functions.get_mut(place) else { return };
        function.samples += samples;
        function.has_lines |= has_lines;
        function.interprets |= interprets && tier.is_none();
        if let Some(tier) = tier.filter(|_| samples > 0) {
            *function.tiers.entry(tier.to_vec()).or_default() += samples;
        }
        let shown = (has_bytes, samples);
        if function.shown.as_ref().is_none_or(|(bytes, most, _)| shown > (*bytes, *most)) {
            function.shown = Some((has_bytes, samples, name));
        }
    }

    /// The place of a code's function.
    fn place(&self, code: CodeId) -> Option<usize> {
        self.by_code.as_ref()?.get(code)
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
            if self.place(id).is_some() {
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
        let same = self.merge_marked();
        let mut by_code = self.by_code.take().unwrap_or_default();
        if !same.is_empty() {
            by_code.replace(|place| same.get(&place).copied());
        }
        // The last set that each function is in: a function counts once a set.
        let mut last_set = vec![None; self.functions.len()];
        for (set, (codes, count)) in stacks.sets().enumerate() {
            for place in codes.filter_map(|code| by_code.get(code)) {
                let Some(last) = last_set.get_mut(place) else { continue };
                if last.replace(set) != Some(set)
                    && let Some(function) = self.functions.get_mut(place)
                {
                    function.inclusive += count;
                }
            }
        }
        let functions = &self.functions;
        let rank = |place: usize| {
            functions.get(place).map_or((0, 0), |function| (function.samples, function.inclusive))
        };
        let ranked = self.by_name.into_iter().map(|(name, place)| (rank(place), name, place));
        let mut sorted: Vec<_> = ranked.filter(|&(rank, ..)| rank != (0, 0)).collect();
        let order =
            |(more, a, _): &Ranked, (less, b, _): &Ranked| less.cmp(more).then_with(|| a.cmp(b));
        // Nearly all of them may be in one sample only, which makes sorting by name slow.
        if sorted.len() > TOP {
            sorted.select_nth_unstable_by(TOP, order);
            sorted.truncate(TOP);
        }
        sorted.sort_unstable_by(order);
        let has_stacks = stacks.has_stacks();
        let mut top = Vec::new();
        for (_, name, place) in sorted {
            let function = self.functions.get_mut(place).map(std::mem::take);
            top.extend(function.map(|function| function.reported(&name, has_stacks)));
        }
        let (with_lines, interpreted) = (self.with_lines, self.interpreted);
        Ok(Functions { top, with_lines, interpreted })
    }

    /// Merges functions whose names differ by a mark that may be part of the name. Returns the place of the other function for the place of
    /// each that was merged into it.
    fn merge_marked(&mut self) -> HashMap<usize, usize> {
        let mut merged = HashMap::new();
        for (name, &place) in &self.by_name {
            let other = osr_alternative(name).and_then(|other| self.by_name.get(&*other));
            if let Some(&other) = other {
                merged.insert(place, other);
            }
        }
        // `oof` would be merged into `of`, which is merged into `f`.
        let chained: HashSet<usize> = merged.keys().copied().collect();
        merged.retain(|_, other| !chained.contains(other));
        for (&place, &other) in &merged {
            let Some(function) = self.functions.get_mut(place).map(std::mem::take) else {
                continue;
            };
            let Some(kept) = self.functions.get_mut(other) else { continue };
            kept.samples += function.samples;
            kept.has_lines |= function.has_lines;
            for (tier, samples) in function.tiers {
                *kept.tiers.entry(tier).or_default() += samples;
            }
            let rank = |shown: &Option<(bool, u64, Vec<u8>)>| {
                shown.as_ref().map(|(has_bytes, samples, _)| (*has_bytes, *samples))
            };
            if rank(&function.shown) > rank(&kept.shown) {
                kept.shown = function.shown;
            }
        }
        merged
    }
}

impl Function {
    fn reported(self, name: &[u8], has_stacks: bool) -> TopFunction {
        let (has_code, _, symbol) = self.shown.unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut tiers: Vec<TierSamples> = self
            .tiers
            .iter()
            .map(|(tier, &samples)| TierSamples { tier: text(tier), samples })
            .collect();
        tiers.sort_by_key(|tier| std::cmp::Reverse(tier.samples));
        let symbol = code_image::symbol_name(&symbol).to_vec();
        TopFunction {
            name: text(name),
            symbol_text: text(&symbol),
            symbol,
            samples: self.samples,
            inclusive: has_stacks.then_some(self.inclusive),
            tiers,
            has_code,
            has_lines: self.has_lines,
            interprets: self.interprets,
        }
    }
}

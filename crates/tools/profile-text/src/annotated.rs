//! A function with the samples of its lines and instructions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use disassembly::{Assembly, ReferenceKind, Syntax};
use printable::Hexadecimal;
use profile::{
    Code, CodeId, CodeSource, Count, FunctionId, Heat, Listing, Profile, Selection, Totals,
};
use serde::Serialize;

use crate::function_info::{FunctionInfo, lossy};
use crate::sources::{SourceLine, Sources};

/// A function with the samples of its lines and instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Annotated {
    /// The function.
    pub function: FunctionInfo,
    /// Number of samples in all functions.
    pub all_samples: u64,
    /// Samples in the function.
    pub samples: u64,
    /// Samples in the function or in what it called.
    pub inclusive: u64,
    /// Samples in its code, calls that were inlined into it included. Percentages are parts of these.
    pub samples_in_code: u64,
    /// Its compilations, or its code in files: those with the most samples first.
    pub codes: Vec<AnnotatedCode>,
    /// Compilations of other functions that it was inlined into, where it was sampled: only its part of them.
    pub inlined_into: Vec<AnnotatedCode>,
    /// The lines of its file from its first to its last. Empty if no line is known.
    pub lines: Vec<SourceLine>,
    /// Whether the file was changed after the recording.
    pub is_source_newer: bool,
}

/// A compilation of a function, or its code in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnnotatedCode {
    /// The function that it was made of.
    pub function: FunctionInfo,
    /// Which compilation it is in its process, from 1; 0 for code in a file.
    pub generation: u32,
    /// The tier of the compiler; empty if it is not known.
    pub tier: String,
    /// Its symbol.
    pub symbol: String,
    /// The process that compiled it; `None` for code in a file.
    pub pid: Option<u32>,
    /// The name of that process.
    pub process: Option<String>,
    /// The file that has its machine code.
    pub module: Option<String>,
    /// Its address in the process, or in the file.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was loaded, and when it was unloaded or replaced, in nanoseconds of the recording's clock.
    pub loaded: Option<u64>,
    /// See `loaded`.
    pub gone: Option<u64>,
    /// Samples in it.
    pub samples: u64,
    /// Whether its instructions were asked for.
    pub is_shown: bool,
    /// Why its instructions are not known.
    pub missing: Option<&'static str>,
    /// Whether instructions at the end are left out, as there are too many.
    pub is_cut: bool,
    /// Its instructions, if they were asked for.
    pub instructions: Vec<AnnotatedInstruction>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnnotatedInstruction {
    /// Its offset in the code.
    pub offset: u64,
    /// Its bytes in hexadecimal; empty for a run of zeros, of which the text says how many.
    pub bytes: String,
    /// The offset behind it.
    #[serde(skip)]
    pub end: u64,
    /// The number of its label, if an instruction jumps to it.
    pub label: Option<u32>,
    /// Its text.
    pub text: String,
    /// What it refers to.
    pub target: Option<AnnotatedTarget>,
    /// Samples at it.
    pub samples: u64,
    /// Samples at it or in what it called.
    pub inclusive: u64,
    /// The functions and lines that it belongs to, the innermost first.
    pub frames: Vec<Part>,
}

/// What an instruction refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnnotatedTarget {
    /// How: `jump`, `call`, `relative` or `constant`.
    pub kind: &'static str,
    /// The address.
    pub address: u64,
    /// The offset in the code, if it is in the code.
    pub offset: Option<u64>,
    /// The name of the function there; empty if it is not known.
    pub name: String,
    /// The offset of the address in the function of this name.
    pub name_offset: u64,
}

/// A function at an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its name.
    pub function: String,
    /// The file of its line; empty if it is not known.
    pub file: String,
    /// Its line: of the instruction or, in an outer function, of the inlined call. 0 if it is not known.
    pub line: u32,
    /// The column; 0 if it is not known.
    pub column: u32,
    /// The text of the line, if the file is there.
    #[serde(skip)]
    pub text: Option<String>,
}

/// Which compilations are shown with their instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generations {
    /// The one with the most samples.
    #[default]
    Hottest,
    /// Those with this number.
    Number(u32),
    /// All.
    All,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Which compilations.
    pub generations: Generations,
    /// Only those of this tier.
    pub tier: Option<String>,
    /// The syntax of instructions.
    pub syntax: Syntax,
}

const NO_BYTES: &str = "its machine code is not known";
const NO_DECODER: &str = "instructions of its machine cannot be decoded";

/// Most lines of a function that are listed, from its first line to its last.
const MOST_LINES: u32 = 20_000;
/// Lines from the definition on that are listed of a function without lines.
const DEFINITION: usize = 8;
/// Lines around those with samples.
const AROUND: u32 = 2;

impl Annotated {
    /// A function in the selected samples.
    #[must_use]
    pub fn of(
        profile: &Profile,
        selection: &Selection,
        function: FunctionId,
        source: &mut dyn CodeSource,
        wanted: &Wanted,
    ) -> Self {
        let heat = Heat::of(profile, selection.of(profile), function);
        let totals = Totals::of(profile, selection.of(profile));
        let count = totals.of_function(function);
        let mut own: Vec<CodeId> = profile.codes_of(function).map(|(id, _)| id).collect();
        let mut others: Vec<CodeId> = heat
            .codes
            .keys()
            .copied()
            .filter(|id| profile.code(*id).function != function)
            .collect();
        others.retain(|id| heat.own_in(*id) > 0);
        for ids in [&mut own, &mut others] {
            // Sums over all instructions: each once.
            ids.sort_by_cached_key(|id| {
                (Reverse(heat.own_in(*id)), Reverse(profile.code(*id).generation))
            });
        }
        let mut sources = Sources::default();
        let mut shown = 0_usize;
        let mut annotate = |ids: Vec<CodeId>, only: Option<FunctionId>| -> Vec<AnnotatedCode> {
            let annotated = ids.into_iter().map(|id| {
                let code = profile.code(id);
                let mut annotated = AnnotatedCode::of(profile, code, heat.own_in(id));
                let is_tier = wanted
                    .tier
                    .as_ref()
                    .is_none_or(|tier| annotated.tier.to_lowercase() == tier.to_lowercase());
                annotated.is_shown = is_tier
                    && match wanted.generations {
                        Generations::Hottest => shown == 0,
                        Generations::Number(number) => code.generation == number && only.is_none(),
                        Generations::All => true,
                    };
                if annotated.is_shown {
                    shown = shown.saturating_add(1);
                    let only = only.map(|function| profile.function_name(function));
                    annotated.disassemble(id, &heat, source, &mut sources, wanted.syntax, only);
                }
                annotated
            });
            annotated.collect()
        };
        let codes = annotate(own, None);
        let inlined_into = annotate(others, Some(function));
        let row = profile.function(function);
        let file = profile.text(profile.file_of(function));
        let lines = source_lines(&heat, row.line, file, source, &mut sources);
        let is_source_newer = sources.file(source, file).is_some_and(|file| file.is_newer);
        Self {
            function: FunctionInfo::of(profile, function),
            all_samples: totals.samples(),
            samples: count.own,
            inclusive: count.total,
            samples_in_code: heat.own(),
            codes,
            inlined_into,
            lines,
            is_source_newer,
        }
    }
}

/// The lines of a function: from its first to the last that has samples.
fn source_lines(
    heat: &Heat,
    first: u32,
    file: &[u8],
    source: &mut dyn CodeSource,
    sources: &mut Sources,
) -> Vec<SourceLine> {
    let known: Vec<u32> = heat.lines.keys().copied().filter(|line| *line > 0).collect();
    let row = |line: u32, text: Option<String>| {
        let count = heat.lines.get(&line).copied().unwrap_or_default();
        SourceLine { line, text, samples: count.own, inclusive: count.total }
    };
    let mut lines: Vec<SourceLine> =
        heat.lines.contains_key(&0).then(|| row(0, None)).into_iter().collect();
    let (Some(lowest), Some(highest)) = (known.first(), known.last()) else {
        // Of what is interpreted, only the definition is known.
        if let Some(file) = sources.file(source, file).filter(|file| first > 0 && file.has(first)) {
            let there = (first..).take(DEFINITION).take_while(|line| file.has(*line));
            lines.extend(there.map(|line| row(line, file.line(line))));
        }
        return lines;
    };
    // A function may begin in a macro or an included file, far from its lines.
    let is_near = first > 0 && first <= *lowest && lowest.saturating_sub(first) <= MOST_LINES;
    let begin = if is_near { first } else { lowest.saturating_sub(AROUND).max(1) };
    let end = highest.saturating_add(AROUND);
    let text = sources.file(source, file);
    let range: RangeInclusive<u32> = begin..=end;
    match text {
        Some(file) if end.saturating_sub(begin) <= MOST_LINES => {
            let there = range.take_while(|line| file.has(*line) || *line <= *highest);
            lines.extend(there.map(|line| row(line, file.line(line))));
        }
        Some(file) => {
            lines.extend(known.iter().map(|line| row(*line, file.line(*line))));
        }
        None => lines.extend(known.iter().map(|line| row(*line, None))),
    }
    lines
}

impl AnnotatedCode {
    fn of(profile: &Profile, code: &Code, samples: u64) -> Self {
        let process = code.process.map(|process| profile.process(process));
        Self {
            function: FunctionInfo::of(profile, code.function),
            generation: code.generation,
            tier: lossy(profile.text(code.tier)),
            symbol: lossy(profile.text(code.symbol)),
            pid: process.map(|process| process.pid),
            process: process.map(|process| lossy(profile.text(process.name))),
            module: code.module.map(|module| lossy(profile.text(profile.module(module).path))),
            address: if process.is_some() { code.address } else { code.module_address },
            size: code.size,
            loaded: code.loaded,
            gone: code.gone,
            samples,
            is_shown: false,
            missing: None,
            is_cut: false,
            instructions: Vec::new(),
        }
    }

    /// Adds the instructions; only those of the function `only`, if there is one.
    fn disassemble(
        &mut self,
        id: CodeId,
        heat: &Heat,
        source: &mut dyn CodeSource,
        sources: &mut Sources,
        syntax: Syntax,
        only: Option<&[u8]>,
    ) {
        let empty = BTreeMap::new();
        let counts = heat.codes.get(&id).unwrap_or(&empty);
        let Some(listing) = source.listing(id).filter(|listing| !listing.bytes.is_empty()) else {
            self.missing = Some(NO_BYTES);
            self.instructions = without_bytes(counts);
            return;
        };
        let Some(assembly) = Assembly::of(id, &listing, source, syntax) else {
            self.missing = Some(NO_DECODER);
            self.instructions = without_bytes(counts);
            return;
        };
        self.is_cut = assembly.is_cut;
        for line in &assembly.lines {
            let end = line.offset.saturating_add(line.length);
            let mut count = Count::default();
            // A caller's address is within the call.
            for (_, part) in counts.range(line.offset..end) {
                count.own = count.own.saturating_add(part.own);
                count.total = count.total.saturating_add(part.total);
            }
            let frames = listing.frames_at(line.offset);
            let is_of = |name: &[u8]| frames.iter().any(|frame| frame.function == name);
            // What the samples say is never left out.
            if only.is_some_and(|name| !is_of(name)) && count == Count::default() {
                continue;
            }
            let parts = frames.iter().map(|frame| Part {
                function: lossy(&frame.function),
                file: lossy(&frame.file),
                line: frame.line,
                column: frame.column,
                text: sources.line(source, &frame.file, frame.line),
            });
            self.instructions.push(AnnotatedInstruction {
                offset: line.offset,
                bytes: if line.is_zeros {
                    String::new()
                } else {
                    hexadecimal(&listing, line.offset, end)
                },
                end,
                label: line.label,
                text: line.text.clone(),
                target: line.target.as_ref().map(|target| AnnotatedTarget {
                    kind: match target.kind {
                        ReferenceKind::Jump => "jump",
                        ReferenceKind::Call => "call",
                        ReferenceKind::Relative => "relative",
                        ReferenceKind::Constant => "constant",
                    },
                    address: target.address,
                    offset: target.inside,
                    name: lossy(&target.name),
                    name_offset: target.name_offset,
                }),
                samples: count.own,
                inclusive: count.total,
                frames: parts.collect(),
            });
        }
    }
}

/// The addresses with samples, of code without bytes.
fn without_bytes(counts: &BTreeMap<u64, Count>) -> Vec<AnnotatedInstruction> {
    let rows = counts.iter().map(|(offset, count)| AnnotatedInstruction {
        offset: *offset,
        bytes: String::new(),
        end: *offset,
        label: None,
        text: String::new(),
        target: None,
        samples: count.own,
        inclusive: count.total,
        frames: Vec::new(),
    });
    rows.collect()
}

fn hexadecimal(listing: &Listing, from: u64, to: u64) -> String {
    let range =
        usize::try_from(from).unwrap_or(usize::MAX)..usize::try_from(to).unwrap_or(usize::MAX);
    let bytes = listing.bytes.get(range).unwrap_or_default();
    Hexadecimal(bytes).to_string()
}

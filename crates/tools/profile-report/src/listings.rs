//! The machine code that was sampled, as columns.

use std::cmp::Reverse;

use profile::{CodeId, CodeSource, FunctionId, Listing, Profile, Totals};
use rustc_hash::FxHashMap;

use crate::assembly::Disassembled;
use crate::columns::Columns;
use crate::options::Options;
use crate::places::Places;
use crate::summary::Summary;
use crate::text::{Texts, shown};

/// The most instructions of one code. A region of which only the whole is known must not take the place of all others.
const MOST_OF_CODE: usize = 100_000;

/// Rows of the tables `listing`, `instruction` and `byte`.
#[derive(Default)]
struct Rows {
    codes: Vec<u32>,
    counts: Vec<u32>,
    lengths: Vec<u32>,
    cut: Vec<u32>,
    instructions: Vec<Instruction>,
    bytes: Vec<u8>,
}

struct Instruction {
    length: u64,
    /// How many bytes it has in the table `byte`: none of a run of zeros.
    bytes: u32,
    text: u32,
    label: u32,
    /// One more than the offset.
    target: u64,
    /// One more than the function's number.
    function: u32,
    place: u32,
}

/// Adds the machine code of the codes that were sampled, those with the most samples first. Returns the files of functions whose file only the lines of their code
/// tell.
pub fn add(
    profile: &Profile,
    totals: &Totals,
    source: &mut dyn CodeSource,
    options: &Options,
    summary: &mut Summary,
    texts: &mut Texts,
    columns: &mut Columns,
) -> FxHashMap<FunctionId, Vec<u8>> {
    let mut files = FxHashMap::default();
    let mut sampled: Vec<CodeId> = profile.numbered_codes().map(|(id, _)| id).collect();
    sampled.retain(|&id| totals.of_code(id).total > 0);
    sampled.sort_by_key(|&id| Reverse((totals.of_code(id).own, totals.of_code(id).total)));
    let mut functions: FxHashMap<&[u8], u32> = FxHashMap::default();
    for (number, function) in (1..).zip(profile.functions()) {
        functions.entry(profile.text(function.name)).or_insert(number);
    }
    let mut places = Places::default();
    let mut rows = Rows::default();
    for id in sampled {
        if rows.instructions.len() >= options.most_instructions {
            summary.listings_left_out = summary.listings_left_out.saturating_add(1);
            continue;
        }
        let disassembled = source.listing(id).and_then(|listing| {
            let lines = Disassembled::of(id, &listing, source)?;
            Some((listing, lines))
        });
        let Some((listing, disassembled)) = disassembled else {
            summary.listings_unknown = summary.listings_unknown.saturating_add(1);
            continue;
        };
        add_files(profile, id, &listing, &functions, &mut files);
        let left = options.most_instructions.saturating_sub(rows.instructions.len());
        let left = left.min(MOST_OF_CODE);
        let is_cut = disassembled.is_cut || disassembled.lines.len() > left;
        let before = (rows.instructions.len(), rows.bytes.len());
        for line in disassembled.lines.iter().take(left) {
            let function = functions.get(line.name.as_slice()).copied();
            let start = usize::try_from(line.offset).unwrap_or(usize::MAX);
            let length = usize::try_from(line.length).unwrap_or(usize::MAX);
            let range = start..start.saturating_add(length);
            let bytes = listing.bytes.get(range).filter(|_| !line.is_zeros).unwrap_or_default();
            rows.bytes.extend(bytes);
            rows.instructions.push(Instruction {
                length: line.length,
                bytes: u32::try_from(bytes.len()).unwrap_or_default(),
                text: texts.number(&shown(line.text.as_bytes())),
                label: line.label,
                target: line.target.map(|at| at.saturating_add(1)).unwrap_or_default(),
                function: function.unwrap_or_default(),
                place: places.number(listing.frames_at(line.offset), texts),
            });
        }
        let added = |now: usize, before| u32::try_from(now.saturating_sub(before)).unwrap_or(0);
        rows.codes.push(id.0);
        rows.counts.push(added(rows.instructions.len(), before.0));
        rows.lengths.push(added(rows.bytes.len(), before.1));
        rows.cut.push(u32::from(is_cut));
    }
    summary.listings = rows.codes.len();
    columns.u32("listing.code", rows.codes.iter().copied());
    columns.u32("listing.instructions", rows.counts.iter().copied());
    columns.u32("listing.bytes", rows.lengths.iter().copied());
    columns.u32("listing.cut", rows.cut.iter().copied());
    let all = &rows.instructions;
    columns.u64("instruction.length", all.iter().map(|row| row.length));
    columns.u32("instruction.bytes", all.iter().map(|row| row.bytes));
    columns.u32("instruction.text", all.iter().map(|row| row.text));
    columns.u32("instruction.label", all.iter().map(|row| row.label));
    columns.u64("instruction.target?", all.iter().map(|row| row.target));
    columns.u32("instruction.function?", all.iter().map(|row| row.function));
    columns.u32("instruction.place?", all.iter().map(|row| row.place));
    columns.bytes("byte.value", &rows.bytes);
    places.columns(columns);
    files
}

/// The files of functions whose file the profile does not have, by the lines of a code.
fn add_files(
    profile: &Profile,
    code: CodeId,
    listing: &Listing,
    functions: &FxHashMap<&[u8], u32>,
    files: &mut FxHashMap<FunctionId, Vec<u8>>,
) {
    for frames in listing.lines.iter().map(|line| &line.frames) {
        for (depth, frame) in frames.iter().rev().enumerate() {
            let named = || functions.get(frame.function.as_slice())?.checked_sub(1).map(FunctionId);
            let id = if depth == 0 { Some(profile.code(code).function) } else { named() };
            if let Some(id) = id.filter(|&id| profile.file_of(id).is_empty())
                && !frame.file.is_empty()
            {
                files.entry(id).or_insert_with(|| frame.file.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use profile::{Builder, Code, Frame, Function, FunctionKind, SampleRow, Source};

    use super::*;

    /// A region with this code, and a small function with fewer samples.
    struct Region(Vec<u8>);

    impl CodeSource for Region {
        fn listing(&mut self, code: CodeId) -> Option<Listing> {
            let bytes = if code.0 == 0 { self.0.clone() } else { vec![0xc3] };
            Some(Listing { address: 0x1000, machine: 62, bytes, lines: Vec::new() })
        }

        fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
            None
        }

        fn source(&mut self, _: &[u8]) -> Option<Source> {
            None
        }
    }

    fn profile() -> Profile {
        let mut builder = Builder::new();
        let process = builder.process(7, b"app");
        let thread = builder.thread(process, 7, b"app");
        let event = builder.event(b"cpu-clock");
        for (name, samples) in [(&b"[anonymous]"[..], 9), (b"f", 1)] {
            let name = builder.string(name);
            let function = builder.function(Function::new(name, FunctionKind::Jitted));
            let code = builder.code(Code::new(function, 1 << 30));
            let mut frame = Frame::new(function);
            frame.code = Some(code);
            let frame = builder.frame(frame);
            let stack = builder.stack(None, frame);
            for time in 0..samples {
                builder.sample(SampleRow { time, thread, event, weight: 1, stack });
            }
        }
        builder.finish()
    }

    fn summary(region: Vec<u8>, most_instructions: usize) -> (usize, usize, usize) {
        let profile = profile();
        let totals = Totals::all(&profile);
        let options = Options { most_instructions, ..Options::default() };
        let (mut texts, mut columns) = (Texts::default(), Columns::default());
        let mut summary = Summary::default();
        let source = &mut Region(region);
        add(&profile, &totals, source, &options, &mut summary, &mut texts, &mut columns);
        let bytes = columns.finish(serde_json::Map::new()).len();
        (summary.listings, summary.listings_left_out, bytes)
    }

    #[test]
    fn a_region_leaves_room_for_other_code() {
        // More instructions than one code may have, and than there may be together.
        let (listed, left_out, _) = summary(vec![0x90; 3 * MOST_OF_CODE], MOST_OF_CODE + 1);
        assert_eq!((listed, left_out), (2, 0));
        let (listed, left_out, _) = summary(vec![0x90; 3 * MOST_OF_CODE], MOST_OF_CODE);
        assert_eq!((listed, left_out), (1, 1));
    }

    /// Instructions that are not shown are not counted, and their bytes are not written.
    #[test]
    fn zeros_count_as_one_instruction() {
        let region = [&vec![0; 8 << 20][..], &[0xc3]].concat();
        let (listed, left_out, bytes) = summary(region, 3);
        assert_eq!((listed, left_out), (2, 0));
        assert!(bytes < 4096, "{bytes}");
    }
}

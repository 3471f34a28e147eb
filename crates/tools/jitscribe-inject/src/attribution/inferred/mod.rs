//! Names for sampled memory that no source describes, concluded from what is near it or in it.
//!
//! | Name | Meaning |
//! |---|---|
//! | `→ fib` | a stub that only jumps to `fib`: an entry of a jump table, for example |
//! | `[jit code after fib]` | behind `fib`, with nothing announced in between |
//! | `[jit code before fib]` | likewise |
//! | `[anonymous executable memory]` | far from all announced code |
//!
//! Such a name never takes the place of another: it applies to addresses at which no source has code at any time (for stubs: at
//! that time), and where no file is mapped.

mod stubs;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use code_timeline::{AddressSpaceId, CodeId, ranges};
use jit_code::elf_machine;

use crate::Result;
use crate::attribution::captured::{CapturedMemory, NeededPages, PAGE};
use crate::attribution::{SampleAttribution, UnnamedSample};
use crate::codes::code_table::{CodeTable, InferredCode, Origin};
use crate::codes::inferred_name::{AFTER, BEFORE, MEMORY, MEMORY_OF, STUB};
use crate::recording::address_space::AddressSpaces;
use crate::recording::recording_index::RecordingIndex;
use stubs::{LONGEST, Memory, Stub, Target};

/// Code this far from announced code is named by it. Runtimes put code that belongs together into one chunk.
const NEAR: u64 = 1 << 16;
/// Unnamed code is not larger than this.
const LARGEST: u64 = 16 << 20;

/// Number of addresses in one process that are examined for stubs.
const EXAMINED: usize = 1 << 16;

/// A stub's jump may lead to another stub, such as a far jump table's.
const HOPS: usize = 3;

/// The pages whose content is needed: those of unnamed samples, and those of sampled code without bytes.
pub fn needed_pages(table: &CodeTable<'_>, attribution: &SampleAttribution) -> NeededPages {
    let mut needed = NeededPages::default();
    for sample in &attribution.unnamed {
        // The page may begin or end within a stub, or within a table of addresses.
        let page = sample.address / PAGE * PAGE;
        needed.add(sample.space, &(page.saturating_sub(PAGE)..page.saturating_add(2 * PAGE)));
    }
    for (space, code, _) in attribution.sampled_codes() {
        let is_inferred = matches!(table.history.code(code).origin, Origin::Inferred(_));
        if !is_inferred && !table.has_bytes(code) {
            needed.add(space, &table.history.code(code).range());
        }
    }
    needed
}

/// Adds the bytes of sampled code that has none, as far as they were read from the process.
pub fn add_bytes(
    table: &mut CodeTable<'_>,
    attribution: &SampleAttribution,
    captured: &CapturedMemory,
) {
    for (space, id, usage) in attribution.sampled_codes() {
        let code = table.history.code(id);
        if !table.has_bytes(id)
            && let Some(bytes) = captured.bytes(space, &code.range(), usage.first)
        {
            table.captured_bytes.insert(id, bytes);
        }
    }
}

/// Adds codes with inferred names to the table, for as many unnamed samples as possible. Returns their number.
pub fn add_codes(
    table: &mut CodeTable<'_>,
    index: &RecordingIndex,
    spaces: &AddressSpaces,
    attribution: &SampleAttribution,
    captured: &CapturedMemory,
    machine_of: impl Fn(AddressSpaceId) -> u16,
) -> Result<usize> {
    let mut samples: BTreeMap<AddressSpaceId, BTreeMap<u64, u64>> = BTreeMap::new();
    for &UnnamedSample { space, address, time } in &attribution.unnamed {
        let first = samples.entry(space).or_default().entry(address).or_insert(time);
        *first = time.min(*first);
    }
    let mut count = 0;
    for (space, addresses) in samples {
        if table.history.timeline(space).is_none() && !captured.has(space) {
            continue;
        }
        let mut inference = Inference { table, index, spaces, captured, space, found: Vec::new() };
        let addresses = match machine_of(space) {
            elf_machine::X86_64 => inference.stubs(addresses)?,
            _ => addresses,
        };
        inference.neighbours(&addresses)?;
        let found = inference.found;
        count += table.add_inferred(space, found);
    }
    Ok(count)
}

/// The codes that a stub jumped to, each with the time from which on it did.
type Targets = Vec<(u64, CodeId)>;

/// The inference for one address space.
struct Inference<'i, 't> {
    table: &'i CodeTable<'t>,
    index: &'i RecordingIndex,
    spaces: &'i AddressSpaces,
    captured: &'i CapturedMemory,
    space: AddressSpaceId,
    found: Vec<InferredCode>,
}

/// A run of code without gaps.
struct Run {
    range: Range<u64>,
    first: CodeId,
    last: CodeId,
}

/// Unnamed code in a gap between runs.
struct Cluster {
    /// The index of the run behind the gap.
    behind: usize,
    /// The gap, without files.
    gap: Range<u64>,
    /// The memory around it, which is mapped without a gap. What lies beyond is other memory, in which another compiler may have its code.
    memory: Range<u64>,
    /// The pages of the samples, within the gap.
    range: Range<u64>,
    /// The time of the first sample.
    since: u64,
    /// The address of a sample.
    address: u64,
}

impl Inference<'_, '_> {
    /// Finds stubs that jump to known code. Returns the addresses that are in no stub, with the time of their first sample.
    fn stubs(&mut self, addresses: BTreeMap<u64, u64>) -> Result<BTreeMap<u64, u64>> {
        let mut rest = BTreeMap::new();
        let mut stubs: BTreeMap<u64, (u64, u64, Targets)> = BTreeMap::new();
        let mut ambiguous = BTreeSet::new();
        let mut examined = 0;
        for (address, first) in addresses {
            examined += 1;
            let stub = if examined <= EXAMINED { self.stub(address) } else { None };
            let Some((range, targets)) = stub else {
                rest.insert(address, first);
                continue;
            };
            let same = stubs.entry(range.start).or_insert((range.end, first, targets.clone()));
            if same.0 != range.end || same.2 != targets {
                ambiguous.insert(range.start);
            }
            same.1 = same.1.min(first);
        }
        stubs.retain(|start, _| !ambiguous.contains(start));
        for (start, (end, first, targets)) in stubs {
            // A table's entry is changed when its target is compiled again; the first entry was there before it was read.
            let begins: Vec<u64> = targets.iter().map(|&(since, _)| since).collect();
            for (place, (_, target)) in targets.into_iter().enumerate() {
                let since = match place {
                    0 => first,
                    _ => begins.get(place).map_or(first, |&since| since.max(first)),
                };
                let until = begins.get(place + 1).map_or(u64::MAX, |&until| until.max(first));
                let mut name = STUB.as_bytes().to_vec();
                name.extend(self.table.name(target)?);
                self.found.push(InferredCode { range: start..end, times: since..until, name });
            }
        }
        Ok(rest)
    }

    /// The stub at `address`, and the codes that it jumped to, each with the time from which on it did: that at which the code
    /// was loaded.
    fn stub(&self, address: u64) -> Option<(Range<u64>, Targets)> {
        let window = address.saturating_sub(2 * LONGEST)..address.saturating_add(LONGEST);
        let page = address / PAGE * PAGE;
        // Its neighbours may not have been read.
        let parts = [window.clone(), window.start.max(page)..window.end.min(page + PAGE)];
        let (start, contents) = parts
            .into_iter()
            .map(|part| (part.start, self.captured.contents(self.space, &part)))
            .find(|(_, contents)| !contents.is_empty())?;
        let mut found: Option<(Range<u64>, Targets)> = None;
        for content in contents {
            let memory = Memory { address: start, bytes: &content.bytes };
            let Some(stub) = stubs::stub_at(memory, address) else { continue };
            // Before its target is compiled, it leads to the compiler.
            let Some((since, target)) = self.target(&stub, content.until) else { continue };
            match &mut found {
                None => found = Some((stub.range, vec![(since, target)])),
                Some((range, _)) if *range != stub.range => return None,
                Some((_, targets)) => match targets.last() {
                    Some(&(_, last)) if last == target => {}
                    // An older code again: when that was is not known.
                    Some(&(last, _)) if last >= since => return None,
                    _ => targets.push((since, target)),
                },
            }
        }
        found
    }

    /// The code that a stub leads to, which begins there, and the time at which it was loaded.
    fn target(&self, stub: &Stub, time: u64) -> Option<(u64, CodeId)> {
        let timeline = self.table.history.timeline(self.space)?;
        let mut stub = stub.clone();
        for _ in 0..HOPS {
            let target = match stub.target {
                Target::Address(target) => target,
                Target::InMemory(slot) => {
                    let slot = slot..slot.checked_add(8)?;
                    let contents = self.captured.contents(self.space, &slot);
                    let at_time = contents.iter().rev().find(|content| content.from <= time)?;
                    u64::from_le_bytes(*at_time.bytes.first_chunk()?)
                }
            };
            let piece = timeline.at(target, time).or_else(|| timeline.next(target, time, u64::MAX));
            if let Some(piece) = piece {
                let begins = self.table.history.code(piece.code).address == target;
                return begins.then_some((piece.since, piece.code));
            }
            let window = target..target.checked_add(LONGEST)?;
            let contents = self.captured.contents(self.space, &window);
            let at_time = contents.iter().rev().find(|content| content.from <= time)?;
            let memory = Memory { address: target, bytes: &at_time.bytes };
            stub = stubs::stub_at(memory, target).filter(|stub| stub.range.start == target)?;
        }
        None
    }

    /// Names what is left by the code or the memory around it.
    fn neighbours(&mut self, addresses: &BTreeMap<u64, u64>) -> Result<()> {
        let runs = self.runs();
        let mut stubs: Vec<Range<u64>> =
            self.found.iter().map(|found| found.range.clone()).collect();
        stubs.sort_by_key(|range| range.start);
        stubs.dedup();
        let files = self.spaces.files_with_inherited(self.space);
        let mapped = self.spaces.mapped_with_inherited(self.space);
        let mut clusters: Vec<Cluster> = Vec::new();
        for (&address, &first) in addresses {
            let behind = runs.partition_point(|run| run.range.end <= address);
            let next = runs.get(behind);
            let is_taken = next.is_some_and(|run| run.range.start <= address)
                || !ranges::overlapping(&files, &(address..address.saturating_add(1))).is_empty();
            if is_taken {
                continue;
            }
            let previous = behind.checked_sub(1).and_then(|before| runs.get(before));
            let mut gap = previous.map_or(0, |run| run.range.end)
                ..next.map_or(u64::MAX, |run| run.range.start);
            for files in [&files, &stubs] {
                let place = files.partition_point(|file| file.end <= address);
                let before = place.checked_sub(1).and_then(|before| files.get(before));
                gap.start = gap.start.max(before.map_or(0, |file| file.end));
                gap.end = gap.end.min(files.get(place).map_or(u64::MAX, |file| file.start));
            }
            let around = mapped.get(mapped.partition_point(|memory| memory.end <= address));
            let memory = around.filter(|memory| memory.contains(&address)).cloned();
            let memory = memory.unwrap_or(0..u64::MAX);
            gap = gap.start.max(memory.start)..gap.end.min(memory.end);
            let page = address / PAGE * PAGE;
            let range = page.max(gap.start)..page.saturating_add(PAGE).min(gap.end);
            match clusters.last_mut() {
                Some(last)
                    if last.gap == gap
                        && range.start <= last.range.end.saturating_add(NEAR)
                        && range.end - last.range.start <= LARGEST =>
                {
                    last.range.end = range.end;
                    last.since = last.since.min(first);
                }
                _ => clusters.push(Cluster { behind, gap, memory, range, since: first, address }),
            }
        }
        for Cluster { behind, gap, memory, mut range, since, address } in clusters {
            let previous = behind.checked_sub(1).and_then(|before| runs.get(before));
            let previous = previous.filter(|run| run.range.end > memory.start);
            let previous =
                previous.filter(|run| self.is_one_memory(run.range.end - 1, address, since));
            let next = runs.get(behind).filter(|run| run.range.start < memory.end);
            let next = next.filter(|run| self.is_one_memory(run.range.start, address, since));
            let is_near = |a: u64, b: u64| b - a <= NEAR;
            let name = match (previous, next) {
                (Some(previous), _) if is_near(previous.range.end, range.start) => {
                    range.start = gap.start.max(previous.range.end);
                    named(AFTER, &self.table.name(previous.last)?)
                }
                (_, Some(next)) if is_near(range.end, next.range.start) => {
                    range.end = gap.end.min(next.range.start);
                    named(BEFORE, &self.table.name(next.first)?)
                }
                _ => match self.spaces.mapping(self.index, self.space, address, since) {
                    Some(map) => match self.index.maps.get(map).map(|map| self.index.name(map)) {
                        Some(name) if !name.is_empty() && name != b"//anon" => {
                            named(MEMORY_OF, name)
                        }
                        _ => MEMORY.as_bytes().to_vec(),
                    },
                    // An address that was jumped to by mistake.
                    None => continue,
                },
            };
            self.found.push(InferredCode { range, times: since..u64::MAX, name });
        }
        Ok(())
    }

    /// Whether two addresses are in memory of one name, as far as it is known: what is beside a memfd, or another one, is other memory.
    fn is_one_memory(&self, one: u64, other: u64, time: u64) -> bool {
        let name = |address| {
            let map = self.spaces.mapping(self.index, self.space, address, time)?;
            Some(self.index.name(self.index.maps.get(map)?))
        };
        match (name(one), name(other)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    /// Where any code ever was, by address.
    fn runs(&self) -> Vec<Run> {
        let timeline = self.table.history.timeline(self.space);
        let mut runs: Vec<Run> = Vec::new();
        for piece in timeline.map_or(&[][..], |timeline| timeline.pieces()) {
            match runs.last_mut() {
                Some(last) if piece.range.start <= last.range.end => {
                    if piece.range.end >= last.range.end {
                        last.last = piece.code;
                        last.range.end = piece.range.end;
                    }
                }
                _ => {
                    let (range, code) = (piece.range.clone(), piece.code);
                    runs.push(Run { range, first: code, last: code });
                }
            }
        }
        runs
    }
}

/// A name in brackets.
fn named(what: &str, name: &[u8]) -> Vec<u8> {
    [what.as_bytes(), name, b"]"].concat()
}

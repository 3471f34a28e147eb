//! The codes that a perf map or a jitdump describes.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use code_timeline::moved_code;
use jitdump::{CodeLoad, CodeMove, ExtendedCode, Header, Inlined, Writer, WriterConfig};

use crate::body::Body;
use crate::images::CodeImage;

/// A code of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileCode {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// When it was loaded; 0 in a map.
    pub(crate) loaded: u64,
    /// When it was unloaded or moved away; 0 if that is not known.
    pub(crate) unloaded: u64,
    /// The address for which its lines are.
    described_at: u64,
    /// The number by which a dump refers to it.
    index: u64,
    generation: u32,
    /// Its name in a map; its records without the bytes of its code in a dump.
    text: Box<[u8]>,
}

/// What a code takes beside its text, with what an allocation takes.
const COST: u64 = (size_of::<FileCode>() + 16) as u64;
/// What a name that is counted takes.
const COST_OF_NAME: u64 = 24;
/// How many codes a move may be compared with in one reading, for all moves together.
const WORK_OF_MOVES: u64 = 20_000_000;

/// How much may be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// In bytes.
    pub(crate) bytes: u64,
    /// Codes.
    pub(crate) codes: u64,
    /// The most bytes of one code's description: of a longer one, only the name is kept.
    pub(crate) text: usize,
}

/// The codes, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct FileCodes {
    /// Of a dump: what its descriptions are read with.
    header: Option<Header>,
    codes: Vec<FileCode>,
    texts: u64,
    /// How many codes of each name there were.
    names: HashMap<u64, u32>,
    /// Codes for which there was no space.
    pub(crate) left_out: u64,
    /// How many codes were left when covered ones were last removed.
    kept: usize,
    /// The space that did not suffice, although covered codes were removed.
    full: Option<u64>,
    work_of_moves: u64,
}

/// A code that may be the answer: the last one that was loaded by a time, and the first one after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nearest<'c> {
    last: Option<&'c FileCode>,
    next: Option<&'c FileCode>,
}

impl<'c> Nearest<'c> {
    fn consider(&mut self, code: &'c FileCode, time: u64) {
        if code.loaded <= time {
            if self.last.is_none_or(|last| last.loaded <= code.loaded) {
                self.last = Some(code);
            }
        } else if self.next.is_none_or(|next| code.loaded < next.loaded) {
            self.next = Some(code);
        }
    }

    pub(crate) fn code(self) -> Option<&'c FileCode> {
        self.last.or(self.next)
    }
}

impl FileCodes {
    /// The codes of a dump with this header.
    pub(crate) fn of_dump(header: Header) -> Self {
        Self { header: Some(header), work_of_moves: WORK_OF_MOVES, ..Self::default() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.codes.len() as u64
    }

    /// How many bytes they take.
    pub(crate) fn cost(&self) -> u64 {
        let names = COST_OF_NAME.saturating_mul(self.names.len() as u64);
        COST.saturating_mul(self.len()).saturating_add(self.texts).saturating_add(names)
    }

    /// Begins to take what was read.
    pub(crate) fn begin(&mut self, space: Space) {
        self.work_of_moves = WORK_OF_MOVES;
        // There is notably more space than when it did not suffice.
        if self.full.is_some_and(|full| space.bytes > full.saturating_add(full / 8)) {
            self.full = None;
        }
    }

    /// Takes a line of a map.
    pub(crate) fn line(&mut self, entry: &perf_map::Entry<'_>, space: Space) {
        // It covers no address.
        if entry.size == 0 {
            return;
        }
        let generation = self.generation(entry.name, space);
        self.push(
            FileCode {
                address: entry.address,
                size: entry.size,
                loaded: 0,
                unloaded: 0,
                described_at: entry.address,
                index: 0,
                generation,
                text: entry.name.into(),
            },
            space,
        );
    }

    /// Takes a code of a dump.
    pub(crate) fn load(&mut self, load: &CodeLoad<'_>, space: Space) {
        if load.size == 0 {
            return;
        }
        let generation = self.generation(load.name, space);
        let text = self.describe(load, true).filter(|text| text.len() <= space.text);
        let Some(text) = text.or_else(|| self.describe(load, false)) else {
            self.left_out = self.left_out.saturating_add(1);
            return;
        };
        self.push(
            FileCode {
                address: load.address,
                size: load.size,
                loaded: load.timestamp,
                unloaded: load.died().unwrap_or(0),
                described_at: load.address,
                index: load.index,
                generation,
                text: text.into(),
            },
            space,
        );
    }

    /// Takes a code that was moved: it is at another address from then on.
    pub(crate) fn moved(&mut self, moved: &CodeMove, space: Space) {
        let Some(code) = self.moved_code(moved).and_then(|place| self.codes.get_mut(place)) else {
            return;
        };
        let new = FileCode {
            address: moved.new_address,
            loaded: moved.timestamp,
            unloaded: 0,
            ..code.clone()
        };
        code.unloaded = moved.timestamp;
        self.push(new, space);
    }

    /// Where the code that a move refers to is in the list. A code that was moved before is there again, at its new address.
    fn moved_code(&mut self, moved: &CodeMove) -> Option<usize> {
        let (mut named, mut put_there) = (None, None);
        for (place, code) in self.codes.iter().enumerate().rev() {
            self.work_of_moves = self.work_of_moves.checked_sub(1)?;
            if code.index == moved.index {
                named = named.or(Some(place));
            }
            if code.address == moved.old_address {
                put_there = put_there.or(Some(place));
            }
            if named.is_some() && put_there.is_some() {
                break;
            }
        }
        let address = |place: usize| {
            let code = self.codes.get(place)?;
            let is_there = code.unloaded == 0 || code.unloaded > moved.timestamp;
            is_there.then_some(code.address)
        };
        moved_code(moved.old_address, named, put_there, address)
    }

    fn push(&mut self, code: FileCode, space: Space) {
        let cost = COST.saturating_add(code.text.len() as u64);
        let is_too_much = |this: &Self| {
            this.len() >= space.codes || this.cost().saturating_add(cost) > space.bytes
        };
        if is_too_much(self) && self.full.is_none() {
            let before = self.codes.len();
            self.remove_covered();
            // If this yields little, it is not tried for each code.
            if is_too_much(self) || before - self.codes.len() < before / 8 {
                self.full = Some(space.bytes);
            }
        }
        if is_too_much(self) {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.texts = self.texts.saturating_add(code.text.len() as u64);
        self.codes.push(code);
        // In a map, what is covered by later lines is no answer to anything.
        let is_map = self.header.is_none();
        if is_map && self.codes.len() > self.kept.saturating_mul(2).saturating_add(1024) {
            self.remove_covered();
        }
    }

    /// Removes the codes of which later ones cover every byte.
    fn remove_covered(&mut self) {
        // Disjoint, and not adjacent: the ends by the starts.
        let mut covered: BTreeMap<u64, u64> = BTreeMap::new();
        let mut is_kept = vec![false; self.codes.len()];
        for (code, is_kept) in self.codes.iter().zip(&mut is_kept).rev() {
            let (mut start, mut end) = (code.address, code.address.saturating_add(code.size));
            let before = covered.range(..=start).next_back().map(|(start, end)| (*start, *end));
            if before.is_some_and(|(_, before)| before >= end) {
                continue;
            }
            *is_kept = true;
            if let Some((before, before_end)) = before.filter(|(_, it)| *it >= start) {
                (start, end) = (before, end.max(before_end));
            }
            while let Some((&next, &next_end)) = covered.range(start..=end).next() {
                end = end.max(next_end);
                covered.remove(&next);
            }
            covered.insert(start, end);
        }
        let mut is_kept = is_kept.into_iter();
        self.codes.retain(|_| is_kept.next().unwrap_or(false));
        self.texts = self.codes.iter().map(|code| code.text.len() as u64).sum();
        self.kept = self.codes.len();
    }

    /// Counts a code of this name. Of more names than codes may be kept, none is counted any more.
    fn generation(&mut self, name: &[u8], space: Space) -> u32 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let hash = hasher.finish();
        if self.names.len() as u64 >= space.codes && !self.names.contains_key(&hash) {
            return 1;
        }
        let count = self.names.entry(hash).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    /// The records of a code without its bytes, and without its lines if only its name is wanted.
    fn describe(&self, load: &CodeLoad<'_>, is_whole: bool) -> Option<Vec<u8>> {
        let header = self.header.as_ref()?;
        let mut lines = Vec::new();
        let mut inlined = Vec::new();
        if is_whole {
            lines.extend(load.lines());
            inlined.extend(load.inlined().map(Inlined::from));
        }
        let mut writer = Writer::append(Vec::new(), header.endian);
        let written = writer.extended(&ExtendedCode {
            timestamp: load.timestamp,
            pid: load.pid,
            tid: load.tid,
            address: load.address,
            size: load.size,
            index: load.index,
            name: load.name,
            bytes: None,
            died: None,
            seen: load.seen(),
            kind: load.kind(),
            tier: load.tier(),
            lines: &lines,
            ir_lines: &[],
            inlined: &inlined,
            eh_frame: &[],
            eh_frame_hdr: &[],
            mapped_size: 0,
            frame_pointer: None,
        });
        written.ok().map(|()| writer.into_sink())
    }

    /// Finds the codes at addresses, which are sorted, each with a time. `work` is how many pairs of a code and an address may still
    /// be considered. Returns whether that was enough.
    pub(crate) fn find<'c>(
        &'c self,
        addresses: &[(u64, u64)],
        found: &mut [Nearest<'c>],
        work: &mut u64,
    ) -> bool {
        for code in &self.codes {
            let end = code.address.saturating_add(code.size);
            let first = addresses.partition_point(|(address, _)| *address < code.address);
            let rest = addresses.get(first..).unwrap_or_default();
            let found = found.get_mut(first..).unwrap_or_default();
            for ((address, time), found) in rest.iter().zip(found) {
                if *address >= end {
                    break;
                }
                let Some(left) = work.checked_sub(1) else { return false };
                *work = left;
                found.consider(code, *time);
            }
        }
        true
    }

    /// The description of a code.
    pub(crate) fn body(&self, code: &FileCode) -> Option<Body> {
        let generation = code.generation.into();
        let Some(header) = &self.header else {
            return Some(Body::named(&code.text, code.address, code.size, generation));
        };
        let writer = Writer::new(Vec::new(), &WriterConfig::from(header)).ok()?;
        let mut dump = writer.into_sink();
        dump.extend_from_slice(&code.text);
        // The bytes of the code are not kept, so that there is no image.
        Body::read(&dump, generation, CodeImage::None)
    }
}

impl FileCode {
    /// Where the description has what is at this address.
    pub(crate) fn described(&self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.described_at)
    }
}

//! The symbol files that a debugger has, and how they change when the live code changes.
//!
//! New code goes into new files, and small files are merged into larger ones, so that a debugger never has many. A file whose
//! code died is written again without it. Each file has its own name, because a debugger may keep what it has read of one.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use code_image::Symfile;
use code_timeline::ranges::{merge, overlapping};
use rustc_hash::FxHashSet;

use crate::{Error, Result};

/// The most codes of a file. This bounds the work after the death of one code.
const LARGEST: usize = 1 << 14;

/// A live code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveCode {
    /// Identifies the code: equal as long as nothing about it changes.
    pub key: u64,
    /// Its first address.
    pub start: u64,
}

/// The addresses that hold code, whether it is shown or not.
#[derive(Debug, Default)]
pub struct Occupied {
    ranges: Vec<Range<u64>>,
    /// Where codes begin that are not shown.
    others: Vec<u64>,
}

impl Occupied {
    /// The addresses of all live codes, and of codes that the debugger knows from elsewhere.
    pub fn new(live: impl Iterator<Item = Range<u64>>, others: &[Range<u64>]) -> Self {
        let mut ranges: Vec<Range<u64>> = live.chain(others.iter().cloned()).collect();
        if !ranges.is_sorted_by_key(|range| range.start) {
            ranges.sort_unstable_by_key(|range| range.start);
        }
        let others = others.iter().map(|range| range.start).collect();
        Self { ranges: merge(ranges, |_| false), others }
    }

    fn is_free(&self, range: &Range<u64>) -> bool {
        overlapping(&self.ranges, range).is_empty()
    }
}

/// The files that a debugger has.
#[derive(Debug)]
pub struct Shown {
    folder: PathBuf,
    /// The number of the next file.
    next: u64,
    files: Vec<File>,
    /// The keys of all codes in the files.
    keys: FxHashSet<u64>,
    /// Files that the debugger forgets before the next change.
    forgotten: Vec<PathBuf>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    symfile: Symfile,
}

/// What a debugger must do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Files to forget.
    pub remove: Vec<PathBuf>,
    /// Files to read.
    pub add: Vec<PathBuf>,
}

impl Shown {
    /// Files go into this folder, which belongs to this value alone.
    pub fn new(folder: PathBuf) -> Self {
        let (files, keys, forgotten) = (Vec::new(), FxHashSet::default(), Vec::new());
        Self { folder, next: 0, files, keys, forgotten }
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The number of codes in them.
    pub fn codes(&self) -> usize {
        self.keys.len()
    }

    /// Shows exactly the codes in `live`, where `occupied` has code. `encode` makes the file of one code, by its position in `live`; codes for which it
    /// returns `None` are not shown.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn update(
        &mut self,
        live: &[LiveCode],
        occupied: &Occupied,
        mut encode: impl FnMut(usize) -> Option<Symfile>,
    ) -> Result<Change> {
        for path in self.forgotten.drain(..) {
            // The folder is deleted at the end in any case.
            let _ = fs::remove_file(path);
        }
        let mut pending = self.without_dead(live);
        pending.extend(self.take_covering(live, occupied));
        let mut change = Change::default();
        change.remove.extend(pending.iter().map(|file| file.path.clone()));
        let mut parts: Vec<Symfile> = pending.drain(..).map(|file| file.symfile).collect();

        let mut new = Vec::new();
        for (at, code) in live.iter().enumerate() {
            if self.keys.contains(&code.key) {
                continue;
            }
            let Some(symfile) = encode(at) else { continue };
            self.keys.insert(code.key);
            new.push(symfile);
            if new.len() == LARGEST {
                parts.push(join(&std::mem::take(&mut new), occupied)?);
            }
        }
        if !new.is_empty() {
            parts.push(join(&new, occupied)?);
        }
        parts.retain(|part| part.live() > 0);
        if !parts.is_empty() {
            self.take_small(&mut parts, &mut change);
        }
        for part in pack(parts, occupied)? {
            let path = self.folder.join(format!("code-{}.elf", self.next));
            self.next += 1;
            fs::write(&path, part.bytes()).map_err(Error::file(&path))?;
            change.add.push(path.clone());
            self.files.push(File { path, symfile: part });
        }
        self.forgotten.clone_from(&change.remove);
        Ok(change)
    }

    /// Takes dead codes out of the files. Returns the files that had any.
    fn without_dead(&mut self, live: &[LiveCode]) -> Vec<File> {
        let alive: FxHashSet<u64> = live.iter().map(|code| code.key).collect();
        if self.keys.is_subset(&alive) {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for mut file in std::mem::take(&mut self.files) {
            let codes = file.symfile.codes();
            let dead = codes.filter(|code| code.is_shown && !alive.contains(&code.key));
            let dead: Vec<_> = dead.collect();
            for code in &dead {
                file.symfile.take_out(code.start, code.key);
                self.keys.remove(&code.key);
            }
            if dead.is_empty() { self.files.push(file) } else { changed.push(file) }
        }
        changed
    }

    /// Takes the files of which a section covers space that was free when they were written, and is not any more.
    fn take_covering(&mut self, live: &[LiveCode], occupied: &Occupied) -> Vec<File> {
        let new = live.iter().filter(|code| !self.keys.contains(&code.key));
        let new: Vec<u64> = new.map(|code| code.start).chain(occupied.others.clone()).collect();
        let covers = |file: &File| new.iter().any(|start| file.symfile.covers(*start));
        let (covering, others) = std::mem::take(&mut self.files).into_iter().partition(covers);
        self.files = others;
        covering
    }

    /// Moves files that are not larger than what is to be written anyway into `parts`. Each code is then written again only
    /// when the file that it is in doubles, and the number of files stays logarithmic, except for full ones.
    fn take_small(&mut self, parts: &mut Vec<Symfile>, change: &mut Change) {
        let mut sum: usize = parts.iter().map(Symfile::live).sum();
        self.files.sort_by_key(|file| std::cmp::Reverse(file.symfile.live()));
        while let Some(file) = self.files.pop_if(|file| {
            let size = file.symfile.live();
            size <= sum && size <= LARGEST / 2
        }) {
            sum += file.symfile.live();
            change.remove.push(file.path);
            parts.push(file.symfile);
        }
    }
}

/// Joins parts to files of at most [`LARGEST`] codes, unless a part alone has more.
fn pack(mut parts: Vec<Symfile>, occupied: &Occupied) -> Result<Vec<Symfile>> {
    parts.sort_by_key(Symfile::live);
    let (mut files, mut together, mut count) = (Vec::new(), Vec::new(), 0);
    for part in parts {
        if count + part.live() > LARGEST && !together.is_empty() {
            files.push(join(&std::mem::take(&mut together), occupied)?);
            count = 0;
        }
        count += part.live();
        together.push(part);
    }
    if !together.is_empty() {
        files.push(join(&together, occupied)?);
    }
    Ok(files)
}

fn join(parts: &[Symfile], occupied: &Occupied) -> Result<Symfile> {
    let refused = |cause: String| Error::Refused(format!("cannot write symbols: {cause}"));
    let parts: Vec<&Symfile> = parts.iter().collect();
    let joined = Symfile::joined(&parts, &|gap| occupied.is_free(&gap))
        .map_err(|error| refused(error.to_string()))?;
    joined.ok_or_else(|| refused("no code".into()))
}

/// The folder of a debugger's files, which only this user can access.
pub fn folder_in(parent: &Path, number: usize) -> Result<PathBuf> {
    let folder = parent.join(number.to_string());
    fs::create_dir(&folder).map_err(Error::file(&folder))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use code_image::{Endian, Target, VisibleCode};
    use jit_code::Code;
    use object::{Object, ObjectSection, ObjectSymbol};

    use super::*;

    fn symfile(code: LiveCode) -> Option<Symfile> {
        let name = format!("f{:x}", code.key);
        let code_of = Code::at(code.start, 16).named(&name);
        let target = Target::new(62, Endian::Little);
        Symfile::new(target, [0; 7], code.key, &VisibleCode::whole(code_of)).ok()
    }

    fn occupied(live: &[LiveCode]) -> Occupied {
        Occupied::new(live.iter().map(|code| code.start..code.start + 16), &[])
    }

    fn update(shown: &mut Shown, live: &[LiveCode]) -> Change {
        shown.update(live, &occupied(live), |at| symfile(live[at])).unwrap()
    }

    /// The names in all files.
    fn names(shown: &Shown) -> Vec<String> {
        let mut all = Vec::new();
        for file in &shown.files {
            let bytes = fs::read(&file.path).unwrap();
            let object = object::File::parse(&*bytes).unwrap();
            all.extend(object.symbols().filter_map(|it| Some(it.name().ok()?.to_owned())));
        }
        all.sort();
        all
    }

    #[test]
    fn files_have_exactly_the_live_codes() {
        let folder = tempfile::tempdir().unwrap();
        let mut shown = Shown::new(folder.path().to_owned());
        let mut live: Vec<LiveCode> = Vec::new();
        let (mut state, mut written, mut most) = (7_u64, 0, 0);
        for round in 0..400 {
            for _ in 0..20 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let key = state >> 33;
                if state >> 20 & 7 == 0 && !live.is_empty() {
                    let at = key as usize % live.len();
                    live.swap_remove(at);
                } else if live.iter().all(|code| code.key != key) {
                    live.push(LiveCode { key, start: 0x1000 + key * 16 });
                }
            }
            written += update(&mut shown, &live).add.len();
            most = most.max(shown.files());
            if round % 40 == 0 {
                let expected: BTreeSet<String> =
                    live.iter().map(|code| format!("f{:x}", code.key)).collect();
                assert_eq!(names(&shown), expected.into_iter().collect::<Vec<_>>());
            }
        }
        assert_eq!(shown.codes(), live.len());
        assert!(most <= 20, "{most} files at a time");
        assert!(written >= 400, "each round adds some");
        update(&mut shown, &[]);
        update(&mut shown, &[]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!((shown.files(), shown.codes(), names(&shown)), (0, 0, vec![]));
    }

    #[test]
    fn nothing_is_written_if_nothing_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut shown = Shown::new(folder.path().to_owned());
        let live: Vec<LiveCode> =
            (1..100).map(|key| LiveCode { key, start: 0x1000 * key }).collect();
        assert_eq!(update(&mut shown, &live).add.len(), 1);
        assert_eq!(update(&mut shown, &live), Change::default());
    }

    /// The sections with code of all files.
    fn sections(shown: &Shown) -> Vec<Range<u64>> {
        let mut all = Vec::new();
        for file in &shown.files {
            let bytes = fs::read(&file.path).unwrap();
            let object = object::File::parse(&*bytes).unwrap();
            let text = object.sections().filter(|it| it.name().unwrap().starts_with(".text"));
            all.extend(text.map(|it| it.address()..it.address() + it.size()));
        }
        all.sort_by_key(|range| range.start);
        all
    }

    #[test]
    fn a_section_covers_no_code_of_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut shown = Shown::new(folder.path().to_owned());
        let code = |key| LiveCode { key, start: 0x1000 + 16 * key };
        let even: Vec<LiveCode> = (0..50).map(|half| code(2 * half)).collect();
        update(&mut shown, &even);
        assert_eq!(sections(&shown), vec![0x1000..0x1000 + 16 * 99]);

        let one_more: Vec<LiveCode> = even.iter().copied().chain([code(21)]).collect();
        update(&mut shown, &one_more);
        let covering = sections(&shown).into_iter().filter(|range| range.contains(&code(21).start));
        assert_eq!(covering.count(), 1);

        let live = even.iter().map(|code| code.start..code.start + 16);
        let registered = code(21).start..code(22).start;
        let occupied = Occupied::new(live, std::slice::from_ref(&registered));
        shown.update(&even, &occupied, |at| symfile(even[at])).unwrap();
        assert!(sections(&shown).iter().all(|range| !range.contains(&registered.start)));
    }

    #[test]
    fn codes_are_written_a_logarithmic_number_of_times() {
        let folder = tempfile::tempdir().unwrap();
        let mut shown = Shown::new(folder.path().to_owned());
        let mut live = Vec::new();
        let mut encoded = 0;
        for key in 1..2000 {
            live.push(LiveCode { key, start: 0x1000 * key });
            let before = shown.next;
            shown
                .update(&live, &occupied(&live), |at| {
                    encoded += 1;
                    symfile(live[at])
                })
                .unwrap();
            assert_eq!(shown.next, before + 1);
        }
        assert_eq!(encoded, 1999, "each code is encoded once");
        assert!(shown.files() <= 12, "{}", shown.files());
    }
}

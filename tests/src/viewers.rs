//! What other readers make of a recording: hotspot's (perfparser, in its package), and samply.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use object::{Object, ObjectSymbol};
use serde_json::Value;

use crate::sample::{Sample, escaped};
use crate::tool::{installed, run, tool};

/// How often a reader has the same leaf as perf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Samples whose leaf perf has in jitted code, by name.
    pub jitted: usize,
    /// Those of them in code that replaced other sampled code at its address.
    pub replaced: usize,
    /// Those of them for which the reader has the same name.
    pub jitted_agreed: usize,
    /// Those of them for which the reader has no name at all.
    pub jitted_unnamed: usize,
    /// Samples whose leaf perf has in a program or library.
    pub native: usize,
    /// Those for which the reader has the same: the name for hotspot, the file for samply.
    pub native_agreed: usize,
}

impl Agreement {
    /// Whether it agrees for 99.5 % of the samples in jitted code, or for all but one. hotspot knows no two functions that began at one address, unless
    /// they have lines (perfunwind.cpp, `resolveLocation`): if `but_replaced`, code that replaced other code does not count.
    pub fn is_enough(&self, but_replaced: bool) -> bool {
        let others = self.jitted - self.jitted_agreed;
        let replaced = if but_replaced { self.replaced } else { 0 };
        others.saturating_sub(replaced) <= 1.max(self.jitted / 200)
    }
}

/// The names of each sample's leaf in hotspot, by thread and time: that of the code at the address, and of calls that were inlined there.
fn hotspot_leaves(data: &Path) -> HashMap<(u32, u64), Vec<String>> {
    let out = data.with_extension("perfparser");
    let parser = installed("hotspot/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser");
    run(tool(parser).arg("--input").arg(data).arg("--output").arg(&out));
    let stream = fs::read(out).expect("its output");
    // A magic string and a version; then messages with their size, in the format of perfparser's README.
    let mut rest = &stream[16..];
    let number =
        |bytes: &[u8], at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("4"));
    let long =
        |bytes: &[u8], at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("8"));
    let (mut strings, mut parents, mut symbols) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut samples = Vec::new();
    while rest.len() >= 4 {
        let (size, behind) = rest.split_at(4);
        let size = u32::from_le_bytes(size.try_into().expect("4")) as usize;
        let (message, behind) = behind.split_at(size);
        rest = behind;
        let body = &message[1..];
        match message[0] {
            3 => _ = parents.insert(number(body, 0), number(body, 28)),
            4 => _ = symbols.insert(number(body, 0), number(body, 4)),
            5 => {
                _ = strings
                    .insert(number(body, 0), String::from_utf8_lossy(&body[8..]).into_owned())
            }
            13 => {
                let (tid, time) = (number(body, 4).cast_unsigned(), long(body, 8));
                let leaf = (number(body, 20) > 0).then(|| number(body, 24));
                samples.push(((tid, time), leaf));
            }
            _ => {}
        }
    }
    let names = |leaf: Option<i32>| {
        let frames = std::iter::successors(leaf, |location| parents.get(location).copied());
        let names = frames.take(64).filter_map(|location| strings.get(symbols.get(&location)?));
        names.cloned().collect()
    };
    samples.into_iter().map(|(sample, leaf)| (sample, names(leaf))).collect()
}

/// The part of a name before its parameters: perf and hotspot print them differently.
fn without_parameters(name: &str) -> &str {
    let end = name.find("(anonymous").map_or(0, |at| at + 1);
    name[end..].find('(').map_or(name, |at| &name[..end + at])
}

/// Whether an image of replaced code has it: `jit-PID-ARENA-LAYER.elf`.
fn is_of_replaced(sample: &Sample) -> bool {
    sample.dso_name().matches('-').count() > 2
}

impl Agreement {
    /// Counts samples. `agrees` says whether the reader has the same for a sample, in jitted code or not.
    fn count<'s>(
        samples: impl Iterator<Item = &'s Sample>,
        folder: &Path,
        mut agrees: impl FnMut(&Sample, bool) -> bool,
    ) -> Self {
        let mut agreement = Self::default();
        for sample in samples {
            if sample.dso_in(folder) {
                agreement.jitted += 1;
                agreement.replaced += usize::from(is_of_replaced(sample));
                agreement.jitted_agreed += usize::from(agrees(sample, true));
            } else if sample.dso.starts_with('/') && !sample.in_anonymous_memory() {
                agreement.native += 1;
                agreement.native_agreed += usize::from(agrees(sample, false));
            }
        }
        agreement
    }
}

/// Compares hotspot with what perf has, sample by sample. Images are in `folder`.
pub fn hotspot(data: &Path, perf: &[Sample], folder: &Path) -> Agreement {
    let leaves = hotspot_leaves(data);
    let named = perf.iter().filter(|sample| sample.symbol.is_some());
    let mut unnamed = 0;
    let agreement = Agreement::count(named, folder, |sample, is_jitted| {
        let name = sample.name().unwrap_or_default();
        let names = leaves.get(&(sample.tid, sample.time)).map(Vec::as_slice).unwrap_or_default();
        unnamed += usize::from(is_jitted && names.is_empty());
        names.iter().any(|other| {
            if is_jitted {
                // The debug information of images has names in ASCII.
                other == name || *other == escaped(name, |c| !c.is_ascii())
            } else {
                without_parameters(other) == without_parameters(name)
            }
        })
    });
    Agreement { jitted_unnamed: unnamed, ..agreement }
}

/// How often each leaf is in samply's profile: by the name of the file, and the address in it.
fn samply_leaves(data: &Path) -> BTreeMap<(String, u64), usize> {
    let out = data.with_extension("json");
    let mut samply = tool(installed("samply/bin/samply"));
    run(samply.args(["import", "--save-only", "-o"]).arg(&out).arg(data));
    let profile: Value = serde_json::from_slice(&fs::read(out).expect("its output")).expect("JSON");
    let mut leaves = BTreeMap::new();
    for thread in profile["threads"].as_array().expect("threads") {
        let index = |table: &str, column: &str, at: &Value| {
            thread[table][column].get(usize::try_from(at.as_u64()?).ok()?).cloned()
        };
        for stack in thread["samples"]["stack"].as_array().expect("stacks") {
            let Some(frame) = index("stackTable", "frame", stack) else { continue };
            let library = || {
                let resource =
                    index("funcTable", "resource", &index("frameTable", "func", &frame)?)?;
                let library = index("resourceTable", "lib", &resource)?.as_u64()?;
                Some(profile["libs"][usize::try_from(library).ok()?]["path"].as_str()?.to_owned())
            };
            let address = index("frameTable", "address", &frame).and_then(|at| at.as_u64());
            *leaves.entry((library().unwrap_or_default(), address.unwrap_or(0))).or_default() += 1;
        }
    }
    leaves
}

/// Compares samply with what perf has: how often each function of the images in `folder` and each file is the leaf.
pub fn samply(data: &Path, perf: &[Sample], folder: &Path) -> Agreement {
    let mut images: HashMap<String, BTreeMap<u64, (u64, String)>> = HashMap::new();
    // How often each is the leaf in samply.
    let mut left: HashMap<String, usize> = HashMap::new();
    for ((path, address), count) in samply_leaves(data) {
        let key = if Path::new(&path).starts_with(folder) {
            let symbols = images.entry(path.clone()).or_insert_with(|| symbols(Path::new(&path)));
            let symbol = symbols.range(..=address).next_back();
            let symbol = symbol.filter(|(_, (end, _))| address < *end);
            format!("jitted {}", symbol.map_or("", |(_, (_, name))| name))
        } else {
            path.rsplit('/').next().unwrap_or_default().to_owned()
        };
        *left.entry(key).or_default() += count;
    }
    let of_interest = perf.iter().filter(|it| it.symbol.is_some() || !it.dso_in(folder));
    Agreement::count(of_interest, folder, |sample, is_jitted| {
        let key = match sample.name() {
            Some(name) if is_jitted => format!("jitted {name}"),
            _ => sample.dso_name().to_owned(),
        };
        let count = left.get_mut(&key).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    })
}

/// The functions of an image: start, end and name.
fn symbols(image: &Path) -> BTreeMap<u64, (u64, String)> {
    let bytes = fs::read(image).expect("an image");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let symbols = file.symbols().filter(|symbol| symbol.size() > 0).map(|symbol| {
        let name = String::from_utf8_lossy(symbol.name_bytes().expect("a name")).into_owned();
        (symbol.address(), (symbol.address() + symbol.size(), name))
    });
    symbols.collect()
}

//! Lines of a large Java program, javac at work, compared with the class files of the JDK as `javap` reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use end_to_end::chains::{Chain, Frame};
use end_to_end::class_files::ClassFiles;
use end_to_end::java::Jdk;
use end_to_end::record::{Record, Recorded};
use end_to_end::tool::{run, tool};
use jitscribe_inject::files::PlainFiles;
use jitscribe_inject::{CallStack, Guess};
use serde_json::Value;

/// How call chains are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chains {
    FramePointers,
    Copied,
}

/// A function as addr2line prints it, and its source.
#[derive(Debug)]
struct Place {
    function: String,
    /// File and line, if there are any.
    line: Option<(String, u32)>,
}

impl Place {
    /// The class and the method. Stubs have none.
    fn method(&self) -> Option<(&str, &str)> {
        let name = self.function.split('(').next()?.rsplit(' ').next()?;
        name.rsplit_once('.')
    }
}

/// An address in an image.
type At = (String, u64);

/// A recording of javac.
struct Recording {
    recorded: Recorded,
    how: Chains,
    chains: Vec<Chain>,
    /// The stacks by thread and time, as we unwind the copies.
    unwound: BTreeMap<(u32, u64), Vec<u64>>,
    /// The functions of each sampled address, innermost first: all but the last were inlined.
    places: BTreeMap<At, Vec<Place>>,
}

fn is_in_image(frame: &Frame) -> bool {
    frame.dso.contains("/it.data.jit/")
}

fn is_in_kernel(frame: &Frame) -> bool {
    frame.address >= 1 << 63 || frame.dso.starts_with("[kernel")
}

/// A source with much to attribute and to generate.
fn source() -> String {
    let methods = (0..1500).map(|n| {
        let half = n / 2;
        format!("int f{n}(int a) {{ return a > {n} ? f{half}(a - 1) : a * {n}; }}\n")
    });
    let others = (0..100).map(|n| {
        format!(
            "enum E{n} {{ A, B, C }}
            <T extends Comparable<T>> String g{n}(java.util.List<T> all, E{n} e) {{
                StringBuilder out = new StringBuilder(\"{n}\");
                for (T one : all) if (one.compareTo(all.get(0)) > 0) out.append(one).append(e);
                all.stream().filter(x -> x != null).map(Object::toString).forEach(out::append);
                switch (e) {{ case A -> out.append(f{n}(1)); default -> out.append(e + \"?\"); }}
                return out.toString();
            }}\n"
        )
    });
    format!("class Big {{\n{}{}}}\n", methods.collect::<String>(), others.collect::<String>())
}

impl Recording {
    fn of_javac(jdk: &Jdk, how: Chains) -> Self {
        let options: &[&str] = match how {
            Chains::FramePointers => &["-F", "999", "--call-graph", "fp"],
            Chains::Copied => &["-F", "499", "--call-graph", "dwarf,16384"],
        };
        let record = Record::new(options).env("PATH", jdk.path());
        fs::write(record.folder().join("Big.java"), source()).expect("a file");
        let recorded = record.program(&["javac", "-d", ".", "Big.java"]);
        let (data, chains) = (recorded.data(), recorded.chains());
        let mut unwound = BTreeMap::new();
        if how == Chains::Copied {
            let mut injected = jitscribe_inject::Recording::open(&data, &|_| {}).expect("a file");
            let take = &mut |stack: CallStack<'_>| {
                unwound.insert((stack.tid, stack.time), stack.frames.to_vec());
            };
            injected.each_stack(&PlainFiles, Guess::AsPerf, take).expect("all of it");
        }
        let mut recording = Self { recorded, how, chains, unwound, places: BTreeMap::new() };
        recording.resolve();
        recording
    }

    fn resolve(&mut self) {
        let mut sampled: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        let frames = self.chains.iter().flat_map(|chain| chain.frames.iter().enumerate());
        for (depth, frame) in frames.filter(|(_, frame)| is_in_image(frame)) {
            sampled.entry(&frame.dso).or_default().insert(self.address(depth, frame));
        }
        let resolved: Vec<_> = sampled
            .iter()
            .flat_map(|(image, addresses)| {
                let image = (*image).to_owned();
                let places = places(&image, addresses).into_iter();
                places.map(move |(address, places)| ((image.clone(), address), places))
            })
            .collect();
        self.places.extend(resolved);
    }

    /// The address within the call: perf prints addresses of returns, unless it has unwound the stack.
    fn address(&self, depth: usize, frame: &Frame) -> u64 {
        let is_return = self.how == Chains::FramePointers && depth > 0;
        frame.address - u64::from(is_return)
    }

    /// Whether perf shows the right callers. It unwinds some stacks by the tables of code that was replaced (docs/viewers.md).
    fn is_trusted(&self, chain: &Chain) -> bool {
        let Some(ours) = self.unwound.get(&(chain.tid, chain.time)) else { return true };
        // perf prints addresses in files, which lie in memory at whole pages.
        let perfs = chain.frames.iter().filter(|frame| !is_in_kernel(frame));
        perfs.map(|frame| frame.address & 0xfff).eq(ours.iter().map(|address| address & 0xfff))
    }

    fn places(&self, depth: usize, frame: &Frame) -> &[Place] {
        &self.places[&(frame.dso.clone(), self.address(depth, frame))]
    }

    /// The codes of each image that C1 and C2 have compiled.
    fn compiled(&self) -> Compiled {
        let lists = self
            .recorded
            .images()
            .read_dir()
            .expect("images")
            .map(|file| file.expect("a file").path());
        let lists = lists.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        let mut compiled = Compiled::default();
        for list in lists {
            for line in fs::read_to_string(list).expect("a list").lines().skip(1) {
                let code: Value = serde_json::from_str(line).expect("JSON");
                let tier = code["tier"].as_str().expect("a tier");
                if !tier.starts_with("C1") && !tier.starts_with("C2") {
                    continue;
                }
                let size = code["size"].as_u64().expect("a size");
                for image in code["images"].as_array().expect("images") {
                    let name = image[0].as_str().expect("a name").to_owned();
                    let address = image[1].as_u64().expect("an address");
                    compiled.0.entry(name).or_default().insert(address, size);
                }
            }
        }
        compiled
    }
}

/// Sizes of codes by the names of images, and by address.
#[derive(Debug, Default)]
struct Compiled(BTreeMap<String, BTreeMap<u64, u64>>);

impl Compiled {
    fn has(&self, image: &str, address: u64) -> bool {
        let name = image.rsplit('/').next().unwrap_or(image);
        let codes = self.0.get(name);
        let code = codes.and_then(|codes| codes.range(..=address).next_back());
        code.is_some_and(|(start, size)| address - start < *size)
    }
}

/// The functions at each address of an image.
fn places(image: &str, addresses: &BTreeSet<u64>) -> BTreeMap<u64, Vec<Place>> {
    let mut addr2line = tool("addr2line");
    addr2line.args(["-a", "-f", "-i", "-e", image]);
    let printed = run(addr2line.args(addresses.iter().map(|address| format!("{address:x}"))));
    let mut places: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
    let mut lines = printed.stdout.lines();
    let mut current = 0;
    while let Some(line) = lines.next() {
        let address = line.strip_prefix("0x").filter(|hex| hex.len() == 16);
        if let Some(address) = address.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            current = address;
            continue;
        }
        let place = lines.next().expect("a place");
        let line_of = || {
            let (file, number) = place.rsplit_once(':')?;
            let number = number.split(' ').next()?.parse().ok().filter(|number| *number > 0)?;
            Some((file.rsplit('/').next()?.to_owned(), number))
        };
        let place = Place { function: line.to_owned(), line: line_of() };
        places.entry(current).or_default().push(place);
    }
    assert_eq!(places.len(), addresses.len(), "{image}");
    places
}

/// Classes that the JVM or `jlink` generates, which `javap` does not find.
fn is_generated(class: &str) -> bool {
    const PARTS: [&str; 7] = [
        "$$Lambda",
        "LambdaForm$",
        "$Species_",
        "GeneratedMethodAccessor",
        "GeneratedConstructor",
        "jdk.internal.module.SystemModules$",
        "java.lang.invoke.Invokers$Holder",
    ];
    PARTS.iter().any(|part| class.contains(part))
}

/// What was found.
#[derive(Debug, Default)]
struct Counts {
    /// Samples in code of C1 or C2: with the line of each function on them that has lines in a class file, and without one.
    right: u64,
    without: u64,
    /// Those in functions without lines: native methods, and classes that the JVM has generated.
    no_table: u64,
    /// Addresses of bytecode with a line.
    interpreted: u64,
    /// Functions that others were inlined into, in these samples and their callers.
    inlined: u64,
    /// Callers on stacks, by whether their line has the call.
    callers: u64,
    others: u64,
    /// The same for interpreted callers whose line has not: some classes that the JVM generates have usual names.
    interpreted_others: u64,
    /// Stacks whose callers are not looked at, because perf has others than we.
    not_trusted: usize,
}

/// Compares a recording with the class files.
fn compare(recording: &Recording, files: &ClassFiles) -> Counts {
    let mut counts = Counts::default();
    let compiled = recording.compiled();
    for ((image, at), places) in &recording.places {
        for (depth, place) in places.iter().enumerate() {
            let Some((class, method)) = place.method() else { continue };
            let Some(file) = files.class(class) else {
                assert!(is_generated(class), "javap has no {class}");
                continue;
            };
            assert!(file.has_method(method), "{class} has no {method}");
            let Some((source, line)) = &place.line else { continue };
            let lines = file.lines(method);
            assert_eq!(*source, file.source, "{place:?}");
            assert!(lines.contains(line), "{place:?} is not one of {lines:?}");
            counts.interpreted += u64::from(!compiled.has(image, *at));
            let inner = depth.checked_sub(1).and_then(|inner| places[inner].method());
            if let Some((_, callee)) = inner {
                assert!(file.calls(method, *line, callee), "{place:?} does not call {callee}");
                counts.inlined += 1;
            }
        }
    }
    for chain in &recording.chains {
        let Some(leaf) = chain.frames.first().filter(|frame| is_in_image(frame)) else { continue };
        if !compiled.has(&leaf.dso, leaf.address) {
            continue;
        }
        let places = recording.places(0, leaf);
        let lines_of = |place: &Place| {
            let (class, method) = place.method()?;
            Some(files.class(class)?.lines(method)).filter(|lines| !lines.is_empty())
        };
        let is_expected = |place: &&Place| lines_of(place).is_some();
        let counter = match places.first() {
            Some(innermost) if lines_of(innermost).is_none() => &mut counts.no_table,
            _ if places.iter().filter(is_expected).all(|place| place.line.is_some()) => {
                &mut counts.right
            }
            _ => &mut counts.without,
        };
        *counter += 1;
    }
    for chain in &recording.chains {
        if !recording.is_trusted(chain) {
            counts.not_trusted += 1;
            continue;
        }
        // A function that has not set up its frame hides its caller from the kernel.
        let is_hidden = usize::from(recording.how == Chains::FramePointers);
        let first = chain.frames.iter().take_while(|frame| is_in_kernel(frame)).count();
        for depth in first + 1 + is_hidden..chain.frames.len() {
            let (frame, called) = (&chain.frames[depth], &chain.frames[depth - 1]);
            if !is_in_image(frame) || !is_in_image(called) {
                continue;
            }
            let place = &recording.places(depth, frame)[0];
            let callee = recording.places(depth - 1, called).last().and_then(Place::method);
            let (Some((class, method)), Some((callee_class, callee))) = (place.method(), callee)
            else {
                continue;
            };
            let (Some(file), Some((_, line))) = (files.class(class), &place.line) else { continue };
            if file.calls(method, *line, callee) {
                counts.callers += 1;
            } else if !is_generated(callee_class) {
                let is_compiled = compiled.has(&frame.dso, recording.address(depth, frame));
                *(if is_compiled { &mut counts.others } else { &mut counts.interpreted_others }) +=
                    1;
            }
        }
    }
    counts
}

/// At least 95 of 100 samples in compiled methods have their line, none has a wrong one, and what is called from a line is called there. The others are behind the last instruction that
/// HotSpot describes: the return of a short method, barriers of the garbage collector, handlers of exceptions.
#[test]
fn lines_of_javac_are_those_of_its_class_files() {
    expect_lines(&Jdk::of_debian_12(), &[Chains::FramePointers, Chains::Copied]);
}

/// Since version 20, line tables of interpreted methods are compressed in another way.
#[test]
fn lines_of_javac_21_are_those_of_its_class_files() {
    expect_lines(&Jdk::of_debian_13(), &[Chains::Copied]);
}

#[expect(clippy::print_stdout, reason = "the numbers of docs/runtimes/java.md")]
fn expect_lines(jdk: &Jdk, all: &[Chains]) {
    let recordings: Vec<Recording> = all.iter().map(|how| Recording::of_javac(jdk, *how)).collect();
    let places = recordings.iter().flat_map(|recording| recording.places.values().flatten());
    let classes: BTreeSet<&str> =
        places.filter_map(Place::method).map(|(class, _)| class).collect();
    let files = ClassFiles::read(jdk, classes);
    for recording in &recordings {
        let counts = compare(recording, &files);
        println!("{:?}: {counts:?}", recording.how);
        assert!(counts.right > 50, "{counts:?}");
        assert!(counts.without * 19 <= counts.right, "{counts:?}");
        // Nearly all time is spent in what is in class files.
        assert!(counts.no_table * 4 <= counts.right, "{counts:?}");
        assert!(counts.inlined > 20, "{counts:?}");
        // By frame pointers, they have no names.
        assert_eq!(counts.interpreted > 50, recording.how == Chains::Copied, "{counts:?}");
        let chains = recording.chains.len();
        assert!(counts.not_trusted <= chains / 20, "{chains} chains: {counts:?}");
        assert!(counts.callers > 200, "{counts:?}");
        // Of copied stacks, it is not quite known when images are planned which code is on them.
        let most = if recording.how == Chains::Copied { counts.callers / 500 } else { 0 };
        assert!(counts.others <= most, "{counts:?}");
        assert!(counts.interpreted_others * 100 <= counts.callers, "{counts:?}");
    }
}

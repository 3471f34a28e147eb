//! What profiles give to views of machine code: bytes, lines, names of branch targets, sources. Against the demo's own dump and record, objdump, and the
//! files themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use end_to_end::jitscribe::inject;
use end_to_end::live::{Recorder, workload};
use end_to_end::profiles::read;
use end_to_end::recordings::DEMO;
use end_to_end::tool::{run, tool};
use end_to_end::truth::Truth;
use jitdump::{CodeEvent, Dump};
use profile::{CodeId, CodeSource, FunctionKind, Profile};
use profile_recording::RecordedCode;

/// The machine code in the demo's dump, by address and time.
type Codes = BTreeMap<(u64, u64), (Vec<u8>, Vec<u8>)>;

/// Each compilation and each place that it was moved to: name and bytes.
fn dumped(dump: &Path) -> Codes {
    let bytes = fs::read(dump).expect("the dump");
    let dump = Dump::parse(&bytes).expect("a dump");
    let (mut codes, mut last) = (Codes::new(), BTreeMap::new());
    for event in dump.codes() {
        match event.expect("an event") {
            CodeEvent::Load(load) => {
                let code = (load.name.to_vec(), load.bytes.to_vec());
                last.insert(load.address, code.clone());
                codes.insert((load.address, load.timestamp), code);
            }
            CodeEvent::Move(moved) => {
                let code = last.get(&moved.old_address).expect("the code that is moved").clone();
                last.insert(moved.new_address, code.clone());
                codes.insert((moved.new_address, moved.timestamp), code);
            }
            CodeEvent::Close { .. } => {}
        }
    }
    codes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The listings of the demo's codes have the bytes of the dump, and the lines and inlined calls of the demo's own record. Returns how many there are.
fn expect_listings(
    profile: &Profile,
    code: &mut RecordedCode<'_>,
    dumped: &Codes,
    truth: &Truth,
) -> usize {
    let mut listed = 0;
    let mut inlined = 0;
    for (id, row) in profile.numbered_codes().filter(|(_, row)| row.process.is_some()) {
        let symbol = profile.text(row.symbol);
        let loaded = row.loaded.expect("a time");
        // The demo's own record and the dump differ by what an announcement takes.
        let within = u64::midpoint(loaded, row.gone.unwrap_or(loaded + 2_000_000));
        let (_, (name, bytes)) = dumped
            .range((row.address, 0)..=(row.address, loaded))
            .next_back()
            .unwrap_or_else(|| panic!("not in the dump: {row:?}"));
        assert_eq!(text(name), text(symbol));
        // Code that was never sampled may be hidden by other code.
        let Some(listing) = code.listing(id) else { continue };
        assert_eq!(listing.bytes, *bytes, "{}", text(symbol));
        assert_eq!((listing.bytes.len() as u64, listing.machine), (row.size, 62));
        for offset in 0..row.size {
            let frames = listing.frames_at(offset).iter();
            let found: Vec<(String, u64)> =
                frames.map(|frame| (text(&frame.function), u64::from(frame.line))).collect();
            let expected = truth.inline_chain(row.address + offset, within).unwrap_or_default();
            assert_eq!(found, expected, "{} +{offset:#x}", text(symbol));
            inlined += usize::from(found.len() > 1);
        }
        listed += 1;
    }
    assert!(inlined > 10, "{inlined} addresses in inlined calls");
    listed
}

/// What objdump prints of a branch: its target's address, and the name and offset behind it.
fn branches(file: &Path) -> BTreeMap<u64, (String, u64)> {
    let mut objdump = tool("objdump");
    let printed = run(objdump.args(["-d", "-w", "--no-show-raw-insn"]).arg(file)).stdout;
    let branch = |line: &str| {
        let (_, instruction) = line.split_once(":\t")?;
        let mut words = instruction.split_whitespace();
        let mnemonic = words.next()?;
        if mnemonic != "call" && !mnemonic.starts_with('j') {
            return None;
        }
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let name = instruction.split_once('<')?.1.strip_suffix('>')?;
        let (name, offset) = match name.rsplit_once("+0x") {
            Some((name, offset)) => (name, u64::from_str_radix(offset, 16).ok()?),
            None => (name, 0),
        };
        Some((address, (name.to_owned(), offset)))
    };
    printed.lines().filter_map(branch).collect()
}

/// The names of branch targets are objdump's. Returns how many were compared.
fn expect_names(code: &mut RecordedCode<'_>, id: CodeId, file: &Path) -> usize {
    let branches = branches(file);
    for (&address, (name, offset)) in &branches {
        // Stubs in `.plt.got` have no names (TODO.md).
        if name == "__cxa_finalize@plt" {
            continue;
        }
        let found = code.name_at(id, address).map(|(name, offset)| (text(&name), offset));
        // objdump takes the nearest symbol before, however small its function is. We leave these addresses without a name.
        if *offset == 0 || found.is_some() {
            assert_eq!(found, Some((name.clone(), *offset)), "{address:#x} in {}", file.display());
        }
    }
    branches.len()
}

#[test]
fn listings_of_the_demo_are_its_dump_and_its_own_record() {
    let (recording, truth) = DEMO.with_truth();
    let data = recording.ours().data;
    let mut recorded = read(&data);
    let profile = &recorded.profile;
    let dump = recording.dir().join(format!("jit-{}.dump", recording.pid()));
    let listed = expect_listings(profile, &mut recorded.code, &dumped(&dump), &truth);
    assert!(listed > 5, "{listed} codes");
    // Targets of branches, in each image.
    let mut images: BTreeMap<String, CodeId> = BTreeMap::new();
    for (id, row) in profile.numbered_codes() {
        if let (Some(_), Some(module)) = (row.process, row.module) {
            images.insert(text(profile.text(profile.module(module).path)), id);
        }
    }
    let compared: usize = images
        .iter()
        .map(|(image, id)| expect_names(&mut recorded.code, *id, Path::new(image)))
        .sum();
    assert!(compared > 10, "{compared} branches");
    // The source.
    let path = recording.dir().join("demo.scribe");
    let files: BTreeSet<String> = profile
        .numbered_codes()
        .filter_map(|(id, row)| {
            row.process?;
            let listing = recorded.code.listing(id)?;
            listing.lines.iter().flat_map(|line| &line.frames).map(|it| text(&it.file)).next()
        })
        .collect();
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [path.to_str().expect("a UTF-8 path")]);
    let source = recorded.code.source(path.as_os_str().as_encoded_bytes()).expect("the source");
    assert_eq!(source.text, fs::read(&path).expect("the source"));
    assert!(!source.is_newer);
    assert!(recorded.code.source(b"/no/such/file").is_none());
}

#[test]
fn listings_of_a_program_are_the_file() {
    let recorder = Recorder::new();
    let dir = recorder.dir().to_owned();
    let source = dir.join("spin.c");
    fs::copy(workload("spin.c"), &source).expect("a source");
    let program = dir.join("spin");
    run(tool("cc").args(["-O2", "-g", "-o"]).args([&program, &source]));
    let recording = recorder.record(&[program.to_str().expect("a UTF-8 path"), "400000"]);
    let mut recorded = read(&recording.data());
    let profile = &recorded.profile;
    let (id, row) = profile
        .numbered_codes()
        .find(|(_, row)| profile.text(row.symbol) == b"spin")
        .expect("a sampled function");
    assert_eq!(profile.function(row.function).kind, FunctionKind::Native);
    let listing = recorded.code.listing(id).expect("its code");
    let file = fs::read(&program).expect("the program");
    // objdump's dump of the function has an address and its bytes in each line.
    let mut objdump = tool("objdump");
    objdump.args(["-d", "-w", "--insn-width=16", "--disassemble=spin"]).arg(&program);
    let printed = run(&mut objdump).stdout;
    let mut bytes = Vec::new();
    let mut first = None;
    for (address, rest) in printed.lines().filter_map(|line| line.split_once(":\t")) {
        first = first.or(u64::from_str_radix(address.trim(), 16).ok());
        let code = rest.split('\t').next().expect("bytes");
        bytes.extend(code.split_whitespace().map(|b| u8::from_str_radix(b, 16).expect("a byte")));
    }
    assert_eq!((Some(listing.address), &listing.bytes), (first, &bytes));
    assert!(bytes.len() > 10 && file.windows(bytes.len()).any(|part| part == bytes));
    // Lines are those of addr2line, with inlined calls.
    let path = text(source.as_os_str().as_encoded_bytes());
    let mut inlined = 0;
    for offset in 0..listing.bytes.len() as u64 {
        let mut addr2line = tool("addr2line");
        let address = format!("{:#x}", listing.address + offset);
        let printed = run(addr2line.args(["-f", "-i", "-e"]).arg(&program).arg(&address)).stdout;
        let lines: Vec<&str> = printed.lines().collect();
        let expected: Vec<(String, String)> = lines
            .chunks(2)
            .map(|pair| {
                let place = pair[1].split(" (").next().expect("a place");
                (pair[0].to_owned(), place.replace(":?", ":0"))
            })
            .collect();
        let frames = listing.frames_at(offset).iter();
        let found: Vec<(String, String)> = frames
            .map(|it| (text(&it.function), format!("{}:{}", text(&it.file), it.line)))
            .collect();
        assert_eq!(found, expected, "{address}");
        inlined += usize::from(found.len() == 2);
    }
    assert!(inlined > 3, "{inlined} bytes in inlined calls");
    assert!(expect_names(&mut recorded.code, id, &program) > 3);
    // The source, and that it was changed after the recording.
    let found = recorded.code.source(path.as_bytes()).expect("the source");
    let written = fs::read(&source).expect("the source");
    assert_eq!((found.text, found.is_newer), (written, false));
    fs::write(&source, "changed").expect("a source");
    let found = recorded.code.source(path.as_bytes()).expect("the source");
    assert_eq!((text(&found.text).as_str(), found.is_newer), ("changed", true));
}

/// Without the list of codes, or with a damaged one, a profile is the same but for the times of compilations, and one warning says so.
#[test]
fn lists_of_codes_may_be_gone_or_damaged() {
    let recording = DEMO.get();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("ours.data");
    inject::<_, &str>(&recording.data(), &data, []);
    let list = folder.path().join(format!("ours.data.jit/jit-{}.codes.jsonl", recording.pid()));
    let whole = fs::read_to_string(&list).expect("a list");
    let own = |profile: &Profile| {
        let samples = profile.samples().iter();
        let names = samples.map(|sample| {
            let frames = profile.frames_of(sample.stack);
            frames.map(|frame| text(profile.function_name(frame.function))).collect::<Vec<_>>()
        });
        names.collect::<Vec<_>>()
    };
    let times =
        |profile: &Profile| profile.codes().iter().filter(|code| code.loaded.is_some()).count();
    let complete = read(&data);
    assert!(complete.warnings.is_empty(), "{:?}", complete.warnings);
    let all = times(&complete.profile);
    assert!(all > 5, "{all} codes with times");
    let lines = whole.lines().count();
    let header = whole.lines().next().expect("a header").len();
    for (damage, expected, cause) in [
        (None, 0..=0, "cannot be read"),
        (Some(String::new()), 0..=0, "not a list of codes"),
        (Some(whole.replace("jitscribe codes", "other")), 0..=0, "not a list of codes"),
        (Some(format!("{}\nnonsense\n", &whole[..header])), 0..=0, "1 of 1 lines"),
        // Within the last line, which may be of a code that is not in the profile.
        (
            Some(whole[..whole.len() - 20].to_owned()),
            all - 1..=all,
            &format!("1 of {} lines", lines - 1),
        ),
    ] {
        match &damage {
            None => fs::remove_file(&list).expect("the list"),
            Some(text) => fs::write(&list, text).expect("the list"),
        }
        let damaged = read(&data);
        assert_eq!(own(&damaged.profile), own(&complete.profile), "{damage:?}");
        let times = times(&damaged.profile);
        assert!(expected.contains(&times), "{times} codes with times: {damage:?}");
        let [warning] = &*damaged.warnings else { panic!("{:?}", damaged.warnings) };
        let warning = warning.to_string();
        assert!(warning.contains(cause) && warning.contains(".codes.jsonl"), "{warning}");
    }
}

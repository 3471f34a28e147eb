//! Nothing that was sampled stays unnamed: inferred names, and the bytes of code that has none in its perf map.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

use end_to_end::corpus::Corpus;
use end_to_end::jitscribe::jitscribe;
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::record::Record;
use end_to_end::running::Running;
use end_to_end::sample::Sample;
use end_to_end::tool::{run, tool};
use jitdump::{Body, Dump};
use tempfile::TempDir;

fn inferred(samples: &[Sample]) -> Vec<&Sample> {
    let is_inferred =
        |sample: &&Sample| sample.symbol.as_ref().is_some_and(|symbol| symbol.is_inferred());
    samples.iter().filter(is_inferred).collect()
}

/// The lines of a perf map: where each code begins and ends, and its name.
fn lines(map: &Path) -> Vec<(u64, u64, String)> {
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("hex");
    let text = fs::read_to_string(map).expect("a perf map");
    let line = |line: &str| {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let &[start, size, name] = words.as_slice() else { panic!("{line}") };
        (hex(start), hex(start) + hex(size), name.to_owned())
    };
    text.lines().map(line).collect()
}

/// The map of Java was written at the end, when much code was gone.
#[test]
fn code_that_no_line_of_a_map_covers_is_named_by_its_neighbour() {
    let corpus = Corpus::unpack("java17-perfmap");
    let samples = corpus.samples("g");
    let lines = lines(&corpus.file("perf-32039.map"));
    let inferred = inferred(&samples);
    assert_eq!(inferred.len(), 167);
    for sample in inferred {
        let before = lines.iter().filter(|(_, end, _)| *end <= sample.ip).max_by_key(|line| line.1);
        let behind =
            lines.iter().filter(|(start, ..)| *start > sample.ip).min_by_key(|line| line.0);
        let name = sample.name().expect("a name");
        let (_, end, before) = before.expect("a neighbour");
        let after = format!("[jit code after {before}]");
        if name == after {
            let offset = sample.symbol.as_ref().and_then(|symbol| symbol.offset);
            assert_eq!(offset, Some(sample.ip - end), "{sample}");
        } else {
            // Far from it; other unnamed samples in between may connect the two.
            let (_, _, behind) = behind.expect("a neighbour");
            let is_before = name == format!("[jit code before {behind}]");
            assert!(sample.ip - end >= 0x1_0000, "{sample}, not {after}");
            assert!(is_before || name == "[anonymous executable memory]", "{sample}");
        }
    }
    assert!(!samples.iter().any(Sample::in_anonymous_memory), "nothing is left");
}

/// PCRE has a JIT compiler of its own, which announces nothing.
#[test]
fn code_far_from_all_other_is_named_by_its_memory() {
    let corpus = Corpus::unpack("php82-jitdebug32");
    let samples = corpus.samples("g");
    let inferred = inferred(&samples);
    assert_eq!(inferred.len(), 4);
    assert!(inferred.iter().all(|sample| sample.name() == Some("[anonymous executable memory]")));
}

/// What a process has at these addresses, as far as it can be read.
fn read(pid: u32, address: u64, size: usize) -> Option<Vec<u8>> {
    let memory = File::open(format!("/proc/{pid}/mem")).expect("our own child's memory");
    let mut bytes = vec![0; size];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

/// The child of `pid` with this name, at any depth.
fn descendant(pid: u32, name: &str) -> Option<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    listed.split_whitespace().filter_map(|child| child.parse().ok()).find_map(|child: u32| {
        let comm = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        if comm.trim() == name { Some(child) } else { descendant(child, name) }
    })
}

/// Calls within a module go through V8's jump table, which no record covers. Where an entry leads is read from the process by this
/// test, and what is there from V8's dump.
#[test]
fn jumps_of_v8_s_jump_table_have_the_names_of_their_targets() {
    // Whether a timer's interrupt ever finds the processor at the table's jumps depends on where V8 put the table.
    let has_jumps = (0..8).any(|_| jumps_are_named());
    assert!(has_jumps, "no recording has a sample in the jump table");
}

/// Whether a recording has samples in the jump table; those must be right.
fn jumps_are_named() -> bool {
    let dir = TempDir::with_prefix("jitscribe-wasm-").expect("a folder");
    let stop = dir.path().join("stop");
    let mut record = jitscribe();
    record.args(["record", "-F", "1999", "--keep-raw", "--json", "-o", "out.data", "--"]);
    record.args(["node", "--perf-prof"]).arg(workload("wasm.js")).arg(&stop);
    // The report goes where node's output does; perf's own goes to standard error.
    let mut running = Running::start(record.current_dir(dir.path()).stdout(Stdio::piped()));
    running.wait_for_line("warm");
    let pid = descendant(running.pid(), "node").expect("node");
    let mut memory = BTreeMap::new();
    for line in fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hex = |word: &str| u64::from_str_radix(word, 16).expect("hex");
        let (start, end) = words[0].split_once('-').expect("a range");
        if words[1].contains('x') && words.len() == 5 {
            let size = usize::try_from(hex(end) - hex(start)).expect("a size");
            memory.extend(read(pid, hex(start), size).map(|bytes| (hex(start), bytes)));
        }
    }
    fs::write(&stop, "").expect("written");
    running.finish();

    let samples = Perf::installed().samples(&dir.path().join("out.data"));
    let inferred = inferred(&samples);
    let anonymous = samples.iter().filter(|sample| sample.in_anonymous_memory()).count();
    assert_eq!(anonymous, 0, "samples without a name");
    if inferred.is_empty() {
        return false;
    }
    let dumps: Vec<_> = [dir.path().to_owned(), dir.path().join("out.data.raw")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.file_name().is_some_and(|name| name == &*format!("jit-{pid}.dump")))
        .collect();
    let dump = fs::read(dumps.first().expect("V8's dump")).expect("read");
    let loads: BTreeMap<u64, String> = Dump::parse(&dump)
        .expect("a dump")
        .records()
        .filter_map(|record| match record.expect("a record").body {
            Body::Load(load) => {
                Some((load.code_addr, String::from_utf8_lossy(load.name).into_owned()))
            }
            _ => None,
        })
        .collect();
    let mut jumps = 0;
    for sample in &inferred {
        let name = sample.name().expect("a name");
        let Some(target) = name.strip_prefix("→ ") else { continue };
        let (start, bytes) = memory.range(..=sample.ip).next_back().expect("memory");
        let at = usize::try_from(sample.ip - start).expect("an offset");
        let jump: [u8; 5] = bytes[at..at + 5].try_into().expect("five bytes");
        let [0xe9, offset @ ..] = jump else { panic!("no jump: {sample}") };
        let leads_to = (sample.ip + 5).wrapping_add_signed(i32::from_le_bytes(offset).into());
        let code = &loads[&leads_to];
        // An earlier entry led to what the first compiler had made of the function.
        let function = |name: &str| name.trim_end_matches(|c: char| c != '-').to_owned();
        assert_eq!(function(target), function(code), "{sample}");
        jumps += usize::from(target == code);
    }
    assert!(jumps * 2 > inferred.len(), "{jumps} of {} are jumps", inferred.len());
    true
}

/// A perf map has no bytes; they come from the process, whose memory this test reads as well.
#[test]
fn code_of_a_perf_map_has_the_assembly_that_is_in_the_process() {
    let mut rakudo = tool("rakudo");
    rakudo.arg(workload("endless.raku")).env("MVM_JIT_PERF_MAP", "1");
    let mut rakudo = Running::start(rakudo.stdout(Stdio::piped()));
    rakudo.wait_for_line("warm");
    let pid = rakudo.pid();
    let map = format!("/tmp/perf-{pid}.map");
    let pid_word = pid.to_string();
    let options = ["-F", "999", "--duration", "1", "-p", &pid_word];
    let recorded = Record::new(&options).processes();
    let samples = recorded.samples();
    let mut hits: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.dso.contains(".jit/")) {
        *hits.entry(sample.name().expect("a name")).or_default() += 1;
    }
    let (&top, _) = hits.iter().max_by_key(|(_, hits)| **hits).expect("samples in jitted code");
    let advice = format!("perf annotate -i it.data '{top}'");
    assert!(recorded.said.contains(&advice), "{}", recorded.said);
    let lines = lines(map.as_ref());
    let (start, end, _) = lines.iter().rfind(|(.., name)| name == top).expect("a line");
    let code = read(pid, *start, usize::try_from(end - start).expect("a size")).expect("its code");
    drop(rakudo);
    _ = fs::remove_file(&map);
    let mut annotate = Perf::installed().command();
    annotate.args(["annotate", "--stdio", "--asm-raw", "-i", "it.data", "-s", top]);
    let shown = run(annotate.current_dir(recorded.folder())).stdout;
    // `PERCENT : ADDRESS: BYTES INSTRUCTION`; no instruction has a name like a byte.
    // objdump leaves out runs of zeros.
    let mut assembly: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let byte = |word: &str| if word.len() == 2 { u8::from_str_radix(word, 16).ok() } else { None };
    for line in shown.lines() {
        let columns: Vec<&str> = line.splitn(3, ':').collect();
        if let &[_, address, rest] = columns.as_slice()
            && let Ok(address) = u64::from_str_radix(address.trim(), 16)
        {
            assembly.insert(address, rest.split_whitespace().map_while(byte).collect());
        }
    }
    let (&first, _) = assembly.first_key_value().expect("instructions");
    let mut seen = vec![0; code.len()];
    for (address, bytes) in &assembly {
        let at = usize::try_from(address - first).expect("an offset");
        seen[at..at + bytes.len()].copy_from_slice(bytes);
    }
    assert!(assembly.len() > 64, "{shown}");
    assert!(seen == code, "{shown}");
}

//! Compares what is announced about a module with wasmtime, LLVM and the module itself.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{MODULE, codes, module_with_lines, run, snapshot};
use jitdump::extension::Kind;
use jitscribe::Scribe;
use jitscribe_wasmtime::{Options, announce};
use wasmtime::{Config, Engine, Module, OptLevel, ProfilingStrategy};

/// wasmtime's own perf map of the same process has the address, size and name of the same code.
#[test]
fn all_code_is_told_of_that_wasmtime_s_perf_map_has() {
    let scribe = Scribe::builder().build();
    let path = format!("/tmp/perf-{}.map", std::process::id());
    // Of an earlier process with this id.
    _ = std::fs::remove_file(&path);
    let engine = Engine::new(Config::new().profiler(ProfilingStrategy::PerfMap)).unwrap();
    let module = Module::new(&engine, MODULE).unwrap();
    let announced = announce(scribe, &module, &Options::new().tier("cranelift"));

    let map = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    let theirs: BTreeSet<(u64, u64, &str)> = map
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let address = number(words.next().unwrap().trim_start_matches("0x"));
            (address, number(words.next().unwrap()), words.next().unwrap())
        })
        .collect();

    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    assert_eq!(announced.count(), codes.len());
    let name = |name| std::str::from_utf8(name).unwrap();
    let ours: BTreeSet<_> =
        codes.iter().map(|code| (code.address, code.size, name(code.name))).collect();
    assert_eq!(ours, theirs);

    for code in &codes {
        let is_trampoline = name(code.name).contains("trampoline")
            || name(code.name).starts_with("wasmtime_builtin_");
        let kind = if is_trampoline { Kind::Trampoline } else { Kind::Function };
        assert_eq!(code.kind(), kind, "{}", name(code.name));
        assert_eq!(code.tier(), Some(&b"cranelift"[..]));
        assert!(code.frame_pointer().is_some());
        // Lines were not requested, so they cost nothing.
        assert_eq!((code.lines().count(), code.ir_lines().count()), (0, 0));
    }
    let named = |wanted: &str| codes.iter().filter(|code| code.name == wanted.as_bytes()).count();
    assert_eq!(named("fib"), 1);
    assert_eq!(named("größe <of> \"it\" all"), 1);
    assert_eq!(named("wasm[0]::function[3]::nameless") + named("wasm[0]::function[3]"), 1);
    assert!(codes.iter().any(|code| code.kind() == Kind::Trampoline));
}

/// Every function begins as its announced unwind info says.
#[test]
#[cfg(target_arch = "x86_64")]
fn all_code_sets_up_a_frame_pointer() {
    let scribe = Scribe::builder().bytes().build();
    let module = Module::new(&Engine::default(), MODULE).unwrap();
    let _announced = announce(scribe, &module, &Options::new());
    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    assert!(codes.len() > 5);
    for code in codes {
        // push rbp; mov rbp, rsp
        let name = String::from_utf8_lossy(code.name);
        assert!(code.bytes.starts_with(&[0x55, 0x48, 0x89, 0xe5]), "{name}: {:x?}", code.bytes);
    }
}

#[test]
fn dropping_it_says_that_the_code_is_gone() {
    let scribe = Scribe::builder().build();
    let engine = Engine::default();
    let count = |dead| {
        let snapshot = snapshot(scribe);
        codes(&snapshot.bytes).iter().filter(|code| code.died().is_some() == dead).count()
    };
    let module = Module::new(&engine, MODULE).unwrap();
    let announced = announce(scribe, &module, &Options::new());
    let all = announced.count();
    drop(module);
    assert_eq!((count(false), count(true)), (all, 0));
    drop(announced);
    assert_eq!((count(false), count(true)), (0, all));
    let module = Module::new(&engine, MODULE).unwrap();
    announce(scribe, &module, &Options::new()).leak();
    assert_eq!(count(false), all);
}

#[test]
fn nothing_is_announced_to_a_scribe_that_is_off() {
    let module = Module::new(&Engine::default(), MODULE).unwrap();
    for scribe in [Scribe::off(), Scribe::builder().off().build()] {
        assert_eq!(announce(scribe, &module, &Options::new()).count(), 0);
    }
}

#[test]
fn a_module_without_symbols_has_names_all_the_same() {
    let scribe = Scribe::builder().build();
    let engine = Engine::new(Config::new().debug_symbols(false)).unwrap();
    let module = Module::new(&engine, MODULE).unwrap();
    let _announced = announce(scribe, &module, &Options::new());
    let snapshot = snapshot(scribe);
    let codes = codes(&snapshot.bytes);
    let names: Vec<_> = codes.iter().map(|code| String::from_utf8_lossy(code.name)).collect();
    assert_eq!(names, ["fib", "größe <of> \"it\" all", "wasm[0]::function[3]"]);
}

/// For each WebAssembly instruction, `llvm-symbolizer` finds the same lines and inlined calls in the module itself.
#[test]
fn lines_and_inlined_calls_are_those_of_the_module_s_dwarf() {
    let folder = tempfile::tempdir().unwrap();
    let wasm = module_with_lines(folder.path());
    let scribe = Scribe::builder().build();
    // When Cranelift optimises, it keeps no locations for arithmetic.
    let engine = Engine::new(Config::new().cranelift_opt_level(OptLevel::None)).unwrap();
    let module = Module::new(&engine, &wasm).unwrap();
    let options = Options::new().wasm(&wasm).bytecode_offsets(true);
    let _announced = announce(scribe, &module, &options);

    let snapshot = snapshot(scribe);
    let mut checked = 0;
    let mut depths = BTreeSet::new();
    for code in codes(&snapshot.bytes) {
        let lines: Vec<_> = code.lines().collect();
        let calls: Vec<_> = code.inlined().collect();
        for place in code.ir_lines().filter(|place| place.line != 0) {
            let theirs = symbolize(&folder.path().join("lines.wasm"), &wasm, place.line);
            let Some(line) = lines.iter().rfind(|line| line.address <= place.address) else {
                assert!(theirs.is_empty(), "no line at {:#x}, but {theirs:?}", place.line);
                continue;
            };
            // Innermost first, as the symbolizer prints them.
            let mut at = (String::from_utf8_lossy(line.file).into_owned(), line.line, line.column);
            let mut ours = Vec::new();
            for call in calls.iter().rev() {
                if call.ranges.clone().any(|range| range.contains(&place.address)) {
                    let name = String::from_utf8_lossy(call.name).into_owned();
                    ours.push((name, at));
                    let file = String::from_utf8_lossy(call.file).into_owned();
                    at = (file, call.line, call.column);
                }
            }
            ours.push((String::from_utf8_lossy(code.name).into_owned(), at));
            if theirs.is_empty() {
                continue;
            }
            assert_eq!(ours, theirs, "at {:#x} of the module", place.line);
            checked += 1;
            depths.insert(ours.len());
        }
    }
    assert!(checked > 12, "{checked}");
    assert_eq!(depths.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

type Frame = (String, (String, u32, u32));

/// The frames at an offset of the binary; empty where there is no line.
fn symbolize(file: &std::path::Path, wasm: &[u8], offset: u32) -> Vec<Frame> {
    // Only the code section has this id, and it is short: its content, which begins with the number of functions,
    // follows a size of one or five bytes. DWARF addresses are relative to the content.
    let code = code_section(wasm);
    let printed = run(Command::new("llvm-symbolizer-14")
        .args(["--functions", "--inlines", "--no-demangle", "-e"])
        .arg(file)
        .arg(format!("{:#x}", offset - code)));
    let lines: Vec<&str> = printed.lines().filter(|line| !line.is_empty()).collect();
    let frames = lines.chunks_exact(2).map(|pair| {
        let mut words = pair[1].rsplitn(3, ':');
        let (column, line) = (words.next().unwrap(), words.next().unwrap());
        let at = (words.next().unwrap().to_owned(), line.parse().unwrap(), column.parse().unwrap());
        (pair[0].to_owned(), at)
    });
    frames.filter(|(name, _)| name != "??").collect()
}

/// The offset of the code section's content, as in `llvm-objdump -h`.
fn code_section(wasm: &[u8]) -> u32 {
    let mut at = 8;
    loop {
        let id = wasm[at];
        let (mut size, mut shift) = (0_usize, 0);
        loop {
            at += 1;
            size |= usize::from(wasm[at] & 0x7f) << shift;
            shift += 7;
            if wasm[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1;
        if id == 10 {
            return at as u32;
        }
        at += size;
    }
}

/// The given binary may be invalid, or the wrong one.
#[test]
fn damaged_debug_information_gives_no_lines_and_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let wasm = module_with_lines(folder.path());
    let module = Module::new(&Engine::default(), &wasm).unwrap();
    let scribe = Scribe::builder().build();
    let all = announce(scribe, &module, &Options::new()).count();
    assert_eq!(announce(scribe, &module, &Options::new().wasm(MODULE.as_bytes())).count(), all);
    for at in 0..wasm.len() {
        let mut damaged = wasm.clone();
        damaged[at] ^= 0xff;
        assert_eq!(announce(scribe, &module, &Options::new().wasm(&damaged)).count(), all);
        let cut = &wasm[..at];
        assert_eq!(announce(scribe, &module, &Options::new().wasm(cut)).count(), all);
    }
}

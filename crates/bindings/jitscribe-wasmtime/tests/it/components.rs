//! Compares what is announced about a component with wasmtime, and with its modules alone.

use std::collections::BTreeSet;

use crate::common::{codes, module_with_lines, snapshot};
use jitdump::CodeLoad;
use jitscribe::Scribe;
use jitscribe_wasmtime::{Options, announce, announce_component};
use wasmtime::component::Component;
use wasmtime::{Config, Engine, Module, OptLevel, ProfilingStrategy};

/// Two modules, one of which imports from the other, and a function that the host calls.
const COMPONENT: &str = r#"(component
  (core module $lower
    (func $double (export "double") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2))))
  (core module $upper
    (import "lower" "double" (func $double (param i32) (result i32)))
    (func $quadruple (export "quadruple") (param i32) (result i32)
      (call $double (call $double (local.get 0)))))
  (core instance $l (instantiate $lower))
  (core instance $u (instantiate $upper (with "lower" (instance $l))))
  (func (export "quadruple") (param "x" u32) (result u32) (canon lift (core func $u "quadruple"))))"#;

/// wasmtime's own perf map of the same process has the address, size and name of the same code.
#[test]
fn all_code_of_a_component_is_announced_that_wasmtime_s_perf_map_has() {
    let scribe = Scribe::builder().build();
    let path = format!("/tmp/perf-{}.map", std::process::id());
    // Of an earlier process with this id.
    _ = std::fs::remove_file(&path);
    let engine = Engine::new(Config::new().profiler(ProfilingStrategy::PerfMap)).unwrap();
    let component = Component::new(&engine, COMPONENT).unwrap();
    let announced = announce_component(scribe, &component, &Options::new());
    assert_eq!(announced.component().text(), component.text());

    let map = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    let theirs: BTreeSet<(u64, u64, String)> = map
        .lines()
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let address = number(words.next().unwrap().trim_start_matches("0x"));
            (address, number(words.next().unwrap()), words.next().unwrap().to_owned())
        })
        .collect();
    let content = snapshot(scribe);
    let codes = codes(&content.bytes);
    assert_eq!(announced.count(), codes.len());
    let ours: BTreeSet<_> = codes
        .iter()
        .map(|code| (code.address, code.size, String::from_utf8(code.name.to_vec()).unwrap()))
        .collect();
    // It has some functions twice, by different names.
    assert!(ours.is_subset(&theirs), "{ours:?}, and {theirs:?}");
    let ranges = |codes: &BTreeSet<(u64, u64, String)>| {
        codes.iter().map(|code| (code.0, code.1)).collect::<BTreeSet<_>>()
    };
    assert_eq!((ranges(&ours), ours.len()), (ranges(&theirs), ranges(&theirs).len()));
    for name in ["double", "quadruple"] {
        assert_eq!(codes.iter().filter(|code| code.name == name.as_bytes()).count(), 1, "{name}");
    }
    assert!(codes.iter().all(|code| code.frame_pointer().is_some()));

    drop(announced);
    let content = snapshot(scribe);
    assert!(crate::common::codes(&content.bytes).iter().all(|code| code.died().is_some()));
}

/// Offset, file, line and column.
type Line = (u64, String, u32, u32);

/// Name, size, lines, and inlined calls with the lines of their call sites.
type Described = (String, u64, Vec<Line>, Vec<(String, u32)>);

/// Each function with a name of the source.
fn described(codes: &[CodeLoad<'_>]) -> Vec<Described> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    codes
        .iter()
        .filter(|code| [&b"mix"[..], b"fib", b"run"].contains(&code.name))
        .map(|code| {
            let lines = code.lines();
            let lines = lines
                .map(|line| (line.address - code.address, text(line.file), line.line, line.column));
            let calls = code.inlined().map(|call| (text(call.name), call.line));
            (text(code.name), code.size, lines.collect(), calls.collect())
        })
        .collect()
}

/// A module that is twice in a component, once in a component within it, has the lines that it has alone.
#[test]
fn each_module_has_the_lines_of_its_own_dwarf() {
    let folder = tempfile::tempdir().unwrap();
    let module = module_with_lines(folder.path());
    let engine = Engine::new(Config::new().cranelift_opt_level(OptLevel::None)).unwrap();

    let scribe = Scribe::builder().build();
    let alone = Module::new(&engine, &module).unwrap();
    let _alone = announce(scribe, &alone, &Options::new().wasm(&module));
    let content = snapshot(scribe);
    let expected = described(&codes(&content.bytes));
    assert_eq!(expected.len(), 3);
    assert!(expected.iter().any(|code| code.2.len() > 6 && code.3.len() == 2), "{expected:?}");

    // A module, and an instance of it, without imports.
    let part = |content: &[u8]| {
        let mut part = b"\0asm\x0d\0\x01\0".to_vec();
        push_section(&mut part, 1, content);
        push_section(&mut part, 2, &[1, 0, 0, 0]);
        part
    };
    let inner = part(&module);
    let mut binary = part(&module);
    push_section(&mut binary, 4, &inner);
    // An instance of the inner component.
    push_section(&mut binary, 5, &[1, 0, 0, 0]);
    let component = Component::new(&engine, &binary).unwrap();
    let scribe = Scribe::builder().build();
    let options = Options::new().wasm(&binary).bytecode_offsets(true);
    let _announced = announce_component(scribe, &component, &options);
    let content = snapshot(scribe);
    let codes = codes(&content.bytes);
    let found = described(&codes);
    assert_eq!(found, [expected.clone(), expected].concat());

    // Offsets are those of the component's binary: each function's are in one of the modules.
    for code in codes.iter().filter(|code| code.name == b"fib") {
        for line in code.ir_lines().filter(|line| line.line != 0) {
            assert_eq!(line.file, b"component");
            assert!((line.line as usize) < binary.len());
        }
    }
    let starts: BTreeSet<_> = codes
        .iter()
        .filter(|code| code.name == b"fib")
        .filter_map(|code| code.ir_lines().map(|line| line.line).find(|line| *line != 0))
        .collect();
    assert_eq!(starts.len(), 2);
}

/// Damaged binaries give no lines, and no harm.
#[test]
fn damaged_components_give_no_lines_and_no_harm() {
    let engine = Engine::default();
    let component = Component::new(&engine, COMPONENT).unwrap();
    let scribe = Scribe::builder().build();
    let all = announce_component(scribe, &component, &Options::new()).count();
    assert!(all > 2);
    let mut binary = b"\0asm\x0d\0\x01\0".to_vec();
    push_section(&mut binary, 4, b"\0asm\x0d\0\x01\0\x01\x08\0asm\x01\0\0\0");
    for at in 0..binary.len() {
        let mut damaged = binary.clone();
        damaged[at] ^= 0xff;
        for wasm in [&damaged[..], &binary[..at]] {
            let options = Options::new().wasm(wasm);
            assert_eq!(announce_component(scribe, &component, &options).count(), all);
        }
    }
}

fn push_section(binary: &mut Vec<u8>, id: u8, content: &[u8]) {
    binary.push(id);
    let mut size = content.len();
    loop {
        let low = (size & 0x7f) as u8;
        size >>= 7;
        if size == 0 {
            binary.push(low);
            break;
        }
        binary.push(low | 0x80);
    }
    binary.extend_from_slice(content);
}

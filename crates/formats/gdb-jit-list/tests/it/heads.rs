//! Where files have the head of a list.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gdb_jit_list::Heads;

const PROGRAM: &str = "#include <stdint.h>
struct { uint32_t version, action; void *relevant, *first; } LINKAGE __jit_debug_descriptor = {1};
int near__jit_debug_descriptor_not;
LINKAGE void __jit_debug_register_code(void) {}
int main(void) { return __jit_debug_descriptor.action; }\n";

/// The path of a program, built with these options. Other crates' tests write to the same folder.
fn build(name: &str, options: &[&str]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("gdb-jit-list");
    fs::create_dir_all(&folder).expect("a folder");
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&source, PROGRAM).expect("a source");
    let mut cc = Command::new("cc");
    cc.args(options).arg(&source).arg("-o").arg(&program);
    assert!(cc.status().expect("cc").success());
    program
}

/// What nm says.
fn by_nm(options: &[&str], program: &PathBuf, symbol: &str) -> Vec<u64> {
    let output = Command::new("nm").args(options).arg(program).output().expect("nm");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| line.ends_with(&format!(" {symbol}")));
    lines.map(|line| u64::from_str_radix(&line[..16], 16).expect("an address")).collect()
}

#[test]
fn the_symbol_may_be_local_or_exported() {
    for (name, options, nm) in [
        ("local", &["-DLINKAGE=__attribute__((visibility(\"hidden\")))"][..], &[][..]),
        ("exported", &["-DLINKAGE=", "-rdynamic", "-Wl,-s"], &["-D"]),
        ("fixed", &["-DLINKAGE=", "-no-pie"], &[]),
    ] {
        let program = build(name, options);
        let file = fs::read(&program).expect("a program");
        let heads = Heads::find(file.as_slice()).expect(name);
        assert_eq!(heads.addresses, by_nm(nm, &program, "__jit_debug_descriptor"), "{name}");
        assert_eq!(heads.called, by_nm(nm, &program, "__jit_debug_register_code"), "{name}");
        assert_eq!(heads.segments.len(), 1);
        let code = heads.segments[0];
        // Two pages of the code are mapped, the first one by an offset before the segment.
        let offset = code.offset & !0xfff;
        let mapped = 0x5555_0000_0000..0x5555_0000_2000;
        let place = mapped.start + code.offset - offset - code.address;
        let found: Vec<u64> = heads.in_process(mapped.clone(), offset).collect();
        assert_eq!(found, [heads.addresses[0].wrapping_add(place)]);
        let found: Vec<u64> = heads.called_in_process(mapped, offset).collect();
        assert_eq!(found, [heads.called[0].wrapping_add(place)]);
        assert_eq!(heads.in_process(0x1000..0x2000, 1 << 40).count(), 0);
    }
}

#[test]
fn files_without_a_list() {
    let program = build("stripped", &["-DLINKAGE=", "-s"]);
    assert_eq!(Heads::find(fs::read(program).expect("a program").as_slice()), None);
    for other in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0; 4096]] {
        assert_eq!(Heads::find(other), None);
    }
}

#[test]
fn a_name_between_two_parts_is_found() {
    // The table of names is read in parts of 96 KiB.
    let program = build("exported_many", &["-DLINKAGE=", "-rdynamic"]);
    let mut file = fs::read(&program).expect("a program");
    let heads = Heads::find(file.as_slice()).expect("a list");
    // The table is moved to the end of the file, behind so many bytes that the name is across a boundary.
    let sections = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
    let count = usize::from(u16::from_le_bytes(file[60..62].try_into().unwrap()));
    let part = 24 << 12;
    for number in 0..count {
        let at = sections + number * 64;
        let field = |file: &[u8], at: usize| {
            u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
        };
        // SHT_STRTAB
        if file[at + 4] != 3 {
            continue;
        }
        let (offset, size) = (field(&file, at + 24), field(&file, at + 32));
        let table = file[offset..offset + size].to_vec();
        let Some(name) = table.windows(23).position(|it| it == b"__jit_debug_descriptor\0") else {
            continue;
        };
        // Offsets in the table stay: it is made to begin so that the name crosses the boundary.
        let mut moved = table.clone();
        moved.resize(2 * part, 0);
        let index = u32::try_from(part - 10).unwrap();
        moved[part - 10..part + 13].copy_from_slice(b"__jit_debug_descriptor\0");
        moved[name] = b'x';
        let place = file.len() as u64;
        file[at + 24..at + 32].copy_from_slice(&place.to_le_bytes());
        file[at + 32..at + 40].copy_from_slice(&(2 * part as u64).to_le_bytes());
        file.extend(moved);
        // The symbols of this table refer to the new place.
        for symbols in 0..count {
            let at = sections + symbols * 64;
            let link = u32::from_le_bytes(file[at + 40..at + 44].try_into().unwrap()) as usize;
            if ![2, 11].contains(&file[at + 4]) || link != number {
                continue;
            }
            let (offset, size) = (field(&file, at + 24), field(&file, at + 32));
            for symbol in (offset..offset + size).step_by(24) {
                if file[symbol..symbol + 4] == u32::try_from(name).unwrap().to_le_bytes() {
                    file[symbol..symbol + 4].copy_from_slice(&index.to_le_bytes());
                }
            }
        }
    }
    assert_eq!(Heads::find(file.as_slice()), Some(heads));
}

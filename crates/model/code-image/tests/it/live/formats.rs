//! How common tools read objects for Windows and macOS.

use crate::common::sample::sample_codes;
use crate::common::{
    EM_AARCH64, EM_S390, EM_X86_64, Loadable, assert_contains, gdb, run, run_any, write_object,
    x86_64,
};
use code_image::{Endian, Error, ObjectFormat, ObjectWriter, Target, VisibleCode};
use jit_code::Code;

const SPAN: std::ops::Range<u64> = 0x7f00_0000_0000..0x7f00_0000_3000;
const MACHINES: [u16; 2] = [EM_X86_64, EM_AARCH64];

fn sample(format: ObjectFormat, machine: u16) -> Loadable {
    write_object(format, Target::new(machine, Endian::Little), SPAN, &sample_codes())
}

/// Checks what tools say of the debug info; `base` is where the file's first byte would lie.
fn check_debug_info(object: &Loadable, base: u64) {
    let verify = run("llvm-dwarfdump", &["--verify"], &object.path());
    assert!(verify.ends_with("No errors.\n") && !verify.contains("warning"), "{verify}");
    let file = format!("--obj={}", object.path().display());
    let addresses =
        [0x1040, 0x1041, 0x1044, 0x1047, 0x2041].map(|at: u64| format!("{:#x}", base + at));
    let addresses = addresses.each_ref().map(String::as_str);
    // The tool takes the file as one more address.
    let found = run("llvm-symbolizer", &[&[file.as_str()], &addresses[..]].concat(), "0".as_ref());
    let expected = "compute\n??:0:0\n
compute\n/src/app/main.js:10:3\n
compute\n/src/app/main.js:12:7\n
compute\n/src/lib/util.js:300:1\n
stub\n??:0:0\n";
    assert!(found.starts_with(expected), "{found}");
}

/// LLVM shows everything without a complaint.
fn check_all(object: &Loadable, arguments: &[&str]) {
    let (_, all) = run_any("llvm-readobj", arguments, &object.path());
    assert!(!all.contains("warning") && !all.contains("error"), "{all}");
}

#[test]
fn a_library_for_windows() {
    for machine in MACHINES {
        let object = sample(ObjectFormat::Pe, machine);
        check_debug_info(&object, 0x1_8000_0000);
        let exports = run("llvm-readobj", &["--coff-exports"], &object.path());
        assert_contains(
            &exports,
            "Export {
             Ordinal: 1
             Name: compute
             RVA: 0x1040
             }
             Export {
             Ordinal: 2
             Name: stub
             RVA: 0x2040
             }",
        );
        check_all(&object, &["--all"]);
    }
    let object = sample(ObjectFormat::Pe, EM_X86_64);
    let headers = run("x86_64-w64-mingw32-objdump", &["-x"], &object.path());
    for part in [
        "Characteristics 0x2022\nexecutable\nlarge address aware\nDLL",
        "DllCharacteristics 00000160\nHIGH_ENTROPY_VA\nDYNAMIC_BASE\nNX_COMPAT",
        "0 .text 00003000 0000000180001000 0000000180001000 00001000 2**4
         CONTENTS, ALLOC, LOAD, READONLY, CODE",
    ] {
        assert_contains(&headers, part);
    }
    // The first half of it is shown as numbers.
    let signature: String =
        object.finished.id[8..16].iter().map(|it| format!("{it:02x}")).collect();
    assert!(headers.contains(&format!("{signature} age 1 pdb (none))")), "{headers}");
    assert_contains(
        &run("x86_64-w64-mingw32-objdump", &["-d", "-l"], &object.path()),
        "/src/app/main.js:12
         180001044: 31 c0 xor %eax,%eax",
    );
    assert_contains(
        &gdb(&["info line *0x180001047", "info symbol 0x180002041"], &object.path()),
        "Line 300 of \"/src/lib/util.js\" starts at address 0x180001046 <compute+6> and ends at 0x180001048 <compute+8>.
         stub + 1 in section .text",
    );
}

#[test]
fn a_library_for_mac_os() {
    for machine in MACHINES {
        let object = sample(ObjectFormat::MachO, machine);
        check_debug_info(&object, 0);
        assert_contains(
            &run("llvm-objdump", &["--macho", "--exports-trie"], &object.path()),
            "Exports trie:
             0x00001040 _compute
             0x00002040 _stub",
        );
        let headers = run("llvm-objdump", &["--macho", "--private-headers"], &object.path());
        assert!(!headers.contains("?(") && !headers.contains("past end of file"), "{headers}");
        let uuid = run("llvm-dwarfdump", &["--uuid"], &object.path()).replace('-', "");
        let id: String = object.finished.id[..6].iter().map(|it| format!("{it:02X}")).collect();
        assert!(uuid.contains(&format!("UUID: {id}8")), "{id} is not in {uuid}");
        let symbols = run("dsymutil", &["-s"], &object.path());
        assert!(symbols.contains("0000000000002040 '_stub'"), "{symbols}");
        check_all(&object, &["--all", "--macho-segment", "--macho-dysymtab"]);
    }
    let object = sample(ObjectFormat::MachO, EM_X86_64);
    assert_contains(
        &run("llvm-objdump", &["-d", "-l"], &object.path()),
        "; /src/app/main.js:12
         1044: 31 c0 xorl %eax, %eax",
    );
    assert_contains(
        &run("llvm-dwarfdump", &["--eh-frame"], &object.path()),
        "0x1040: CFA=RSP+8: RIP=[CFA-8]
         0x1041: CFA=RSP+16: RBP=[CFA-16], RIP=[CFA-8]",
    );
}

/// Names of which one is a prefix of another, with a common prefix, very different, and long.
#[test]
fn names_of_every_kind_are_found() {
    let names =
        ["a", "ab", "abc", "abd", "b", "größe", "f(int, char const*) [clone]", &"x".repeat(3000)];
    let bytes = [0xc3; 16];
    let codes: Vec<VisibleCode<'_>> = (0..)
        .zip(names)
        .map(|(number, name)| {
            let start = SPAN.start + 0x40 + number * 16;
            VisibleCode::whole(Code::new(&bytes).runs_at(start).named(name))
        })
        .collect();
    let macho = write_object(ObjectFormat::MachO, x86_64(), SPAN, &codes);
    let tree = run("llvm-objdump", &["--macho", "--exports-trie"], &macho.path());
    let pe = write_object(ObjectFormat::Pe, x86_64(), SPAN, &codes);
    let exports = run("llvm-readobj", &["--coff-exports"], &pe.path());
    let symbols = run("llvm-nm", &[], &pe.path());
    for (number, name) in (0..).zip(names) {
        let at = 0x1040 + number * 16;
        assert_contains(&tree, &format!("0x{at:08X} _{name}"));
        assert_contains(&exports, &format!("Name: {name}\nRVA: 0x{at:X}"));
        assert_contains(&symbols, &format!("{:x} T {name}", 0x1_8000_0000_u64 + at));
    }
}

#[test]
fn of_more_than_there_can_be_the_newest_are_exported() {
    let names: Vec<String> = (0..0x1_0010).map(|number| format!("f{number:x}")).collect();
    let code = |number: usize| {
        let start = SPAN.start + number as u64;
        VisibleCode::whole(Code::new(&[0xc3]).runs_at(start).named(&names[number]))
    };
    let codes: Vec<VisibleCode<'_>> = (0..names.len()).map(code).collect();
    let span = SPAN.start..SPAN.start + 0x1_0010;
    let object = write_object(ObjectFormat::Pe, x86_64(), span, &codes);
    assert_eq!((object.finished.symbols, object.finished.exported), (0x1_0010, 0xffff));
    let exports = run("llvm-readobj", &["--coff-exports"], &object.path());
    assert_eq!(exports.matches("Name: f").count(), 0xffff);
    assert!(exports.contains("Name: f11\n") && !exports.contains("Name: f10\n"));
}

#[test]
fn other_machines_are_refused() {
    for format in [ObjectFormat::Pe, ObjectFormat::MachO] {
        let target = Target::new(EM_S390, Endian::Big);
        let refused = ObjectWriter::new(std::io::Cursor::new(Vec::new()), target, format, SPAN);
        assert!(matches!(refused, Err(Error::Machine(EM_S390))));
    }
}

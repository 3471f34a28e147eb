//! How common tools read an ELF object for loaders.

use crate::common::sample::{ANY_MACHINE, START, sample_codes, with_codes_of_any_machine};
use crate::common::{
    Loadable, assert_contains, complaints, gdb, run, run_any, targets, write_object, x86_64,
};
use code_image::{ObjectFormat, VisibleCode};
use jit_code::Code;

const SPAN: std::ops::Range<u64> = 0x7f00_0000_0000..0x7f00_0000_3000;

fn sample() -> Loadable {
    write_object(ObjectFormat::Elf, x86_64(), SPAN, &sample_codes())
}

#[test]
fn nothing_is_an_object_too() {
    let object = write_object(ObjectFormat::Elf, x86_64(), 0x1000..0x2000, &[]);
    assert_eq!(object.finished.exported, 0);
    let readelf = run("readelf", &["-aW"], &object.path());
    assert!(!readelf.contains("arning"), "{readelf}");
}

#[test]
fn names_are_found_and_lines() {
    let object = sample();
    let path = object.path();
    assert_eq!(
        run("nm", &["-D", "-n", "-S"], &path),
        "0000000000001040 0000000000000008 T compute\n0000000000002040 0000000000000002 T stub\n"
    );
    assert_eq!(
        run("addr2line", &["-f", "0x1043", "0x2041", "-e"], &path),
        "compute\n/src/app/main.js:10\nstub\n??:?\n"
    );
    assert_contains(
        &run("objdump", &["-dl", "-j.text"], &path),
        "/src/app/main.js:12
         1044: 31 c0 xor %eax,%eax",
    );
    assert_contains(
        &gdb(&["info line *0x1047", "info symbol 0x2041"], &path),
        "Line 300 of \"/src/lib/util.js\" starts at address 0x1046 <compute+6> and ends at 0x1048.
         stub + 1 in section .text",
    );
}

#[test]
fn what_cannot_be_called_is_not_exported() {
    let bytes = [0xc3; 16];
    let code = |start: u64, name: &'static str| {
        VisibleCode::whole(Code::new(&bytes).runs_at(start).named(name))
    };
    let front_hidden = code(START, "front").visible(START + 4..START + 16);
    let back_hidden = code(START + 16, "back").visible(START + 16..START + 30);
    let mut cut = code(START + 32, "cut");
    cut.code.bytes = Some(&bytes[..15]);
    let unknown = VisibleCode::whole(Code::at(START + 48, 16).named("unknown"));
    let codes = [front_hidden, back_hidden, cut, unknown, code(START + 64, "größe(x)")];
    let object = write_object(ObjectFormat::Elf, x86_64(), SPAN, &codes);
    assert_eq!((object.finished.symbols, object.finished.exported), (5, 1));
    assert_eq!(run("nm", &["-D"], &object.path()), "0000000000001080 T größe(x)\n");
    assert_eq!(run("nm", &[], &object.path()).lines().count(), 5);
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn the_checkers_find_nothing() {
        assert_eq!(complaints(&sample().path()), "No errors\n");
        let (_, listed) = run_any("llvm-readelf", &["-aW"], &sample().path());
        assert!(!listed.contains("arning") && !listed.contains("rror"), "{listed}");
    }

    #[test]
    fn the_checkers_find_nothing_for_any_machine() {
        with_codes_of_any_machine(|codes| {
            for target in targets() {
                let object = write_object(ObjectFormat::Elf, target, ANY_MACHINE, codes);
                assert_eq!(complaints(&object.path()), "No errors\n", "{target:?}");
                // `a`, which is there twice, and `<unnamed>`.
                assert_eq!((object.finished.symbols, object.finished.exported), (3, 2));
            }
        });
    }

    #[test]
    fn readelf_shows_segments_and_dynamic_section() {
        let object = sample();
        assert_contains(
            &run("readelf", &["-lW"], &object.path()),
            "LOAD 0x000000 0x0000000000000000 0x0000000000000000 0x000224 0x000224 R 0x1000
             LOAD 0x001000 0x0000000000001000 0x0000000000001000 0x003000 0x003000 R E 0x1000
             LOAD 0x004000 0x0000000000004000 0x0000000000004000 0x0000cc 0x0000cc R 0x1000
             LOAD 0x005000 0x0000000000005000 0x0000000000005000 0x000060 0x000060 RW 0x1000
             DYNAMIC 0x005000 0x0000000000005000 0x0000000000005000 0x000060 0x000060 RW 0x8
             NOTE 0x000200 0x0000000000000200 0x0000000000000200 0x000024 0x000024 R 0x4
             GNU_EH_FRAME 0x004080 0x0000000000004080 0x0000000000004080 0x000014 0x000014 R 0x4
             GNU_STACK 0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW 0x10",
        );
        assert_contains(
            &run("readelf", &["-dW"], &object.path()),
            "0x000000006ffffef5 (GNU_HASH) 0x4000
             0x0000000000000006 (SYMTAB) 0x4028
             0x000000000000000b (SYMENT) 24 (bytes)
             0x0000000000000005 (STRTAB) 0x4070
             0x000000000000000a (STRSZ) 14 (bytes)
             0x0000000000000000 (NULL) 0x0",
        );
        let id: String = object.finished.id.iter().map(|byte| format!("{byte:02x}")).collect();
        let modules = run("eu-unstrip", &["-n", "-e"], &object.path());
        assert!(modules.contains(&format!("{id}@0x210")), "{modules}");
    }
}

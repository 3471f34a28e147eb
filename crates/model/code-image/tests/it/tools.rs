//! How common tools read an image.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use crate::common::sample::{
    ANY_MACHINE, COMPUTE, LINES, START, sample_codes, with_codes_of_any_machine,
};
use crate::common::{
    EM_386, EM_AARCH64, EM_ARM, EM_PPC64, EM_S390, EM_X86_64, OnDisk, assert_contains, complaints,
    gdb, run, targets, words, write, write_placed, x86_64,
};
use code_image::{Endian, ImageWriter, Target, VisibleCode};
use jit_code::Code;

/// Code with names only, as from a perf map.
const TEXT_WITHOUT_BYTES: &str = "\
section [ 2] '.text' has wrong type: expected PROGBITS, is NOBITS
section [ 2] '.text' has unexpected type 8 for an executable section
loadable segment [1] is executable but contains no executable sections
";

/// Two functions on x86-64, one with lines and unwind info, and its tables a megabyte above.
fn sample() -> OnDisk {
    let span = 0x7f00_0000_0000..0x7f00_0000_3000;
    write_placed(x86_64(), span, &sample_codes(), |_| Some(0x7f00_0010_0000))
}

#[test]
fn readelf_shows_segments_lines_and_frames() {
    let sample = sample();
    let shows = |arguments: &[&str], expected: &str| {
        assert_contains(&run("readelf", arguments, &sample.path()), expected);
    };
    shows(
        &["-lW"],
        "LOAD 0x000000 0x0000000000000000 0x0000000000000000 0x000224 0x000224 R 0x1000
         LOAD 0x101000 0x0000000000101000 0x0000000000101000 0x00004c 0x00004c R 0x1000
         LOAD 0x001000 0x0000000000001000 0x0000000000001000 0x003000 0x003000 R E 0x1000
         NOTE 0x000200 0x0000000000000200 0x0000000000000200 0x000024 0x000024 R 0x4
         GNU_EH_FRAME 0x101000 0x0000000000101000 0x0000000000101000 0x000014 0x000014 R 0x4
         GNU_STACK 0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW 0x10",
    );
    shows(
        &["--debug-dump=decodedline"],
        "main.js 10 0x1041 x
         main.js 12 0x1044 x
         /src/lib/util.js:
         util.js 300 0x1046 x
         util.js - 0x1048",
    );
    shows(
        &["--debug-dump=frames-interp"],
        "00000018 0000000000000014 0000001c FDE cie=00000000 pc=0000000000001040..0000000000001048
         LOC CFA rbp ra
         0000000000001040 rsp+8 u c-8
         0000000000001041 rsp+16 c-16 c-8
         00000030 ZERO terminator",
    );
    let id: String = sample.finished.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    shows(
        &["-nW"],
        &format!("GNU 0x00000014 NT_GNU_BUILD_ID (unique build ID bitstring) Build ID: {id}"),
    );
}

#[test]
fn objdump_shows_instructions_with_their_lines() {
    assert_contains(
        &run("objdump", &["-d", "-l"], &sample().path()),
        "0000000000001040 <compute>:
         compute():
         1040: 55 push %rbp
         /src/app/main.js:10
         1041: 48 89 e5 mov %rsp,%rbp
         /src/app/main.js:12
         1044: 31 c0 xor %eax,%eax
         /src/lib/util.js:300
         1046: 5d pop %rbp
         1047: c3 ret",
    );
}

const ADDRESSES: [&str; 6] = ["0x1040", "0x1041", "0x1043", "0x1044", "0x1047", "0x2041"];

#[test]
fn addr2line_finds_functions_and_lines() {
    let arguments = [&["-f"], &ADDRESSES[..], &["-e"]].concat();
    assert_eq!(
        run("addr2line", &arguments, &sample().path()),
        "compute\n??:?\ncompute\n/src/app/main.js:10\ncompute\n/src/app/main.js:10\n\
         compute\n/src/app/main.js:12\ncompute\n/src/lib/util.js:300\nstub\n??:?\n"
    );
}

#[test]
fn gdb_finds_functions_and_lines() {
    let commands = [
        "info line *0x1040",
        "info line *0x1043",
        "info line *0x1047",
        "info symbol 0x1045",
        "info symbol 0x2041",
    ];
    let text = gdb(&commands, &sample().path());
    assert_contains(
        &text,
        "No line number information available for address 0x1040 <compute>
         Line 10 of \"/src/app/main.js\" starts at address 0x1041 <compute+1> and ends at 0x1044 <compute+4>.
         Line 300 of \"/src/lib/util.js\" starts at address 0x1046 <compute+6> and ends at 0x1048.
         compute + 5 in section .text
         stub + 1 in section .text",
    );
}

#[test]
fn without_debug_info_there_are_only_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.so");
    let file = File::create_new(&path).unwrap();
    let mut image = ImageWriter::new(file, x86_64(), START..START + 8).unwrap().debug_info(false);
    let code = Code::new(&COMPUTE).runs_at(START).named("compute").lines(&LINES);
    image.add(&VisibleCode::whole(code)).unwrap();
    image.finish(|_| None).unwrap();
    assert!(!run("readelf", &["-SW"], &path).contains(".debug"));
    assert_eq!(run("addr2line", &["-f", "0x1044", "-e"], &path), "compute\n??:?\n");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn the_checkers_find_nothing() {
        assert_eq!(complaints(&sample().path()), "No errors\n");
    }

    #[test]
    fn the_checkers_find_nothing_for_any_machine() {
        with_codes_of_any_machine(|codes| {
            for target in targets() {
                let image = write(target, ANY_MACHINE, codes);
                assert_eq!(complaints(&image.path()), "No errors\n", "{target:?}");
            }
        });
    }

    #[test]
    fn the_checkers_find_nothing_in_images_of_nothing() {
        let nameless = VisibleCode::whole(Code::at(0x1000, 8));
        for codes in [&[][..], &[nameless]] {
            let image = write(x86_64(), 0x1000..0x9000_0000, codes);
            assert_eq!(complaints(&image.path()), TEXT_WITHOUT_BYTES);
            // The arena is a hole in the file.
            let size = image.finished.file_size;
            assert!(size > 0x9000_0000 - 0x1000, "{size:#x}");
            let on_disk = 512 * std::fs::metadata(image.path()).expect("the image").blocks();
            assert!(on_disk < 0x1_0000, "{on_disk:#x}");
        }
    }

    /// The tables are a megabyte above the text, where the process may have other files: for libdwfl, the image ends with the text.
    #[test]
    fn an_image_ends_with_its_text() {
        let sample = sample();
        let end = 0x1000 + sample.finished.text.len;
        let modules = run("eu-unstrip", &["-n", "-e"], &sample.path());
        assert!(modules.starts_with(&format!("0+{end:#x} ")), "{modules}");
    }

    #[test]
    fn elfutils_finds_functions_and_lines() {
        let arguments = [&["-f"], &ADDRESSES[..], &["-e"]].concat();
        assert_eq!(
            run("eu-addr2line", &arguments, &sample().path()),
            "compute\n??:0\ncompute\n/src/app/main.js:10:3\ncompute\n/src/app/main.js:10:3\n\
             compute\n/src/app/main.js:12:7\ncompute\n/src/lib/util.js:300:1\nstub\n??:0\n"
        );
    }

    /// The instruction that returns, on every machine.
    #[test]
    fn llvm_disassembles_every_machine() {
        for (machine, endian, thumb, bytes, expected) in [
            (EM_X86_64, Endian::Little, false, &[0xc3][..], "retq"),
            (EM_386, Endian::Little, false, &[0xc3], "retl"),
            (EM_AARCH64, Endian::Little, false, &[0xc0, 0x03, 0x5f, 0xd6], "ret"),
            (EM_ARM, Endian::Little, false, &[0x1e, 0xff, 0x2f, 0xe1], "bx lr"),
            (EM_ARM, Endian::Little, true, &[0x70, 0x47], "bx lr"),
            (EM_S390, Endian::Big, false, &[0x07, 0xfe], "br %r14"),
            (EM_PPC64, Endian::Big, false, &[0x4e, 0x80, 0x00, 0x20], "blr"),
        ] {
            let start = 0x10_0040;
            let size = bytes.len() as u64;
            let code = Code::new(bytes).runs_at(start).named("leaf");
            let code = VisibleCode::whole(code).thumb(thumb);
            let image = write(Target::new(machine, endian), start..start + size, &[code]);
            // the exact ARM variant is only in the build attributes of a linked program
            let triple = match (machine, thumb) {
                (EM_ARM, false) => "--triple=armv7",
                (EM_ARM, true) => "--triple=thumbv7",
                _ => "--triple=",
            };
            let arguments = ["-d", "--no-show-raw-insn", triple];
            let text = words(&run("llvm-objdump", &arguments, &image.path()));
            let instruction = format!("1040: {expected}");
            assert!(text.contains(&instruction), "{machine}: {instruction} is not in {text:#?}");
            let symbols = run("readelf", &["-sW"], &image.path());
            let value = if thumb { "1041" } else { "1040" };
            let row = symbols.lines().find(|line| line.ends_with("leaf")).unwrap();
            assert!(row.split_whitespace().nth(1).unwrap().ends_with(value), "{row}");
        }
    }
}

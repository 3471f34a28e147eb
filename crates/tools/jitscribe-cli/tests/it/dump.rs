//! `jitscribe dump`, word by word.

use std::io::Write;
use std::process::Stdio;

use crate::inject::scene::Jit;
use crate::made::{Folder, dump, ended};
use jitdump::extension::{FramePointer, Kind, LeftOut};
use jitdump::{Endian, ExtendedCode, Inlined, LineEntry, Writer};

#[test]
fn the_listing_has_one_line_a_code_in_the_order_of_the_file() {
    let folder = Folder::with("jit-7.dump", &dump());
    let (code, out, err) = folder.run("dump jit-7.dump");
    assert_eq!(
        out,
        r"# jitdump version 1, little-endian, ELF machine 62, pid 7, times in seconds
#               TIME          ADDRESS     SIZE      TID  LINES UNWIND NAME
         1.500000000     7f0000001000       20        8      2    yes fib
         1.600000000     7f0000001020       10        8      0     no sum
         2.000000000     7f0000001000       20        8      0     no fib [opt]
         1.700000000     7f0000001000       20        8      0     no gone
         3.000000000     7f0000002000       10        8      -      - sum (moved from 7f0000001020)
         4.000000001     7f0000001018       10        8      0     no a\x1b[31m\n
         5.000000000 (closed)
"
    );
    assert_eq!(err, "jit-7.dump: 5 loads (1 with lines, 1 with unwind tables), 1 moves\n");
    assert_eq!(code, 0);
}

#[test]
fn json_has_one_object_a_line() {
    let folder = Folder::with("jit-7.dump", &dump());
    let (code, out, err) = folder.run("dump --json jit-7.dump");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 9);
    assert_eq!(
        lines[0],
        r#"{"event":"header","version":1,"endian":"little","machine":62,"pid":7,"time":1000000000,"flags":0,"clock":"monotonic","debug_address_bias":0}"#
    );
    assert_eq!(
        lines[1],
        r#"{"event":"load","offset":214,"time":1500000000,"pid":7,"tid":8,"address":"0x7f0000001000","size":32,"index":0,"name":"fib","lines":[{"address":"0x7f0000001000","file":"/src/fib.js","line":10,"column":5},{"address":"0x7f0000001010","file":"/src/fib.js","line":11,"column":5}],"unwind":{"eh_frame_size":52,"eh_frame_hdr_size":4,"mapped_size":0}}"#
    );
    assert_eq!(
        lines[5],
        r#"{"event":"move","offset":573,"time":3000000000,"pid":7,"tid":8,"old_address":"0x7f0000001020","new_address":"0x7f0000002000","size":16,"index":1}"#
    );
    assert!(lines[6].contains(r#""name":"a\u001b[31m\n","lines":[],"unwind":null}"#));
    assert_eq!(lines[7], r#"{"event":"close","time":5000000000}"#);
    assert_eq!(lines[8], r#"{"event":"end","how":"complete","offset":733}"#);
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn of_code_at_one_address_the_last_by_time_comes_into_the_perf_map() {
    let folder = Folder::with("jit-7.dump", &dump());
    let map = |more: &str| {
        let (code, out, err) = folder.run(&format!("dump --perf-map jit-7.dump {more}"));
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    let end = "7f0000001000 18 fib [opt]\n7f0000001018 10 a?[31m?\n7f0000002000 10 sum\n";
    assert_eq!(map(""), end);
    assert_eq!(map("--at 4.000000001"), end);
    assert_eq!(map("--at 4"), "7f0000001000 20 fib [opt]\n7f0000002000 10 sum\n");
    assert_eq!(map("--at 2.5"), "7f0000001000 20 fib [opt]\n7f0000001020 10 sum\n");
    assert_eq!(map("--at 1.999999999"), "7f0000001000 20 gone\n7f0000001020 10 sum\n");
    assert_eq!(map("--at 1.5"), "7f0000001000 20 fib\n");
    assert_eq!(map("--at 1.4"), "");
}

#[test]
fn elf_images_hold_what_was_live() {
    let folder = Folder::with("jit-7.dump", &dump());
    let (code, out, err) = folder.run("dump --elf images --at 1.6 jit-7.dump");
    let image = "images/jit-7-7f0000001000.elf";
    let said = format!("jit-7.dump: 2 pieces of code in 1 files; next: objdump -d {image}\n");
    assert_eq!((code, out.as_str(), err), (0, "", said));
    // The byte at 0x1000 was at the address in the file's name.
    assert_eq!(
        folder.tool(&format!("nm -n -S --defined-only {image}")),
        "0000000000001000 0000000000000020 T fib\n0000000000001020 0000000000000010 T sum\n"
    );
    assert_eq!(
        folder.tool(&format!("addr2line -e {image} 0x1000 0x100f 0x1010 0x101f")),
        "/src/fib.js:10\n/src/fib.js:10\n/src/fib.js:11\n/src/fib.js:11\n"
    );
    let frames = folder.tool(&format!("readelf --debug-dump=frames {image}"));
    assert!(frames.contains("pc=0000000000001000..0000000000001020"), "{frames}");

    let again = folder.run("dump --elf images --at 1.6 jit-7.dump");
    let said = format!("jitscribe: error: {image}: already exists; use --force to replace it\n");
    assert_eq!(again, (1, String::new(), said));
    let (code, ..) = folder.run("dump --elf images --force jit-7.dump");
    assert_eq!(code, 0);
    assert_eq!(
        folder.tool(&format!("nm -n -S --defined-only {image}")),
        "0000000000001000 0000000000000018 T fib [opt]\n\
         0000000000001018 0000000000000010 T a\\x1b[31m\\x0a\n\
         0000000000002000 0000000000000010 T sum\n"
    );
}

#[test]
fn lines_move_with_their_code() {
    let jit = Jit::new(7, 1).lines(2, 0x10000, &[(0x10000, 3)]).load(2, 0x10000, 4, "moved");
    let jit = jit.moved(3, 0, 0x10000, 0x5000, 4);
    let folder = Folder::with("jit-7.dump", &jit.bytes());
    let (code, ..) = folder.run("dump --elf . jit-7.dump");
    assert_eq!(code, 0);
    assert_eq!(folder.tool("addr2line -f -e jit-7-5000.elf 0x1003"), "moved\n/src/app.js:3\n");
}

#[test]
fn a_cut_off_dump_shows_what_it_has() {
    let folder = Folder::with("jit-7.dump", &dump()[..310]);
    let (code, out, err) = folder.run("dump jit-7.dump");
    assert_eq!(out.lines().count(), 3, "{out}");
    assert_eq!(
        err,
        "jitscribe: warning: jit-7.dump: at offset 0x132: the file ends inside a record header: \
         the dump is truncated or still being written\n\
         jit-7.dump: 1 loads (1 with lines, 1 with unwind tables), 0 moves\n"
    );
    assert_eq!(code, 0);
}

#[test]
fn perf_maps_are_listed_resolved_and_told_to_programs() {
    let folder = Folder::with("perf-7.map", b"0x1000 40 old\nnonsense\n1010 10 n\xffw\x07");
    let (code, out, err) = folder.run("dump perf-7.map");
    assert_eq!(
        out,
        "# perf map\n\
         #        ADDRESS     SIZE NAME\n            \
         1000       40 old\n            \
         1010       10 n\\xffw\\x07\n"
    );
    let bad = "jitscribe: warning: perf-7.map: line 2 (offset 0xe): the line does not begin with a \
               hexadecimal address\n";
    assert_eq!(err, format!("{bad}perf-7.map: 2 entries, 1 unreadable lines\n"));
    assert_eq!(code, 0);

    let (code, out, err) = folder.run("dump --perf-map perf-7.map");
    assert_eq!(out, "1000 10 old\n1010 10 n\u{fffd}w?\n1020 20 old\n");
    assert_eq!((code, err.as_str()), (0, bad));

    let (code, out, err) = folder.run("dump --json perf-7.map");
    assert_eq!(
        out,
        r#"{"event":"entry","offset":0,"line":1,"address":"0x1000","size":64,"name":"old"}
{"event":"error","offset":14,"cause":"the line does not begin with a hexadecimal address"}
{"event":"entry","offset":23,"line":3,"address":"0x1010","size":16,"name":"n�w\u0007"}
{"event":"end","how":"cut-off","offset":35}
"#
    );
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn standard_input_serves_as_well() {
    let folder = Folder::with("none", b"");
    let mut child = folder
        .jitscribe("dump --perf-map -")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"1000\t10\tfib\r\n").unwrap();
    let (code, out, err) = ended(&child.wait_with_output().unwrap());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "1000 10 fib\n", ""));
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let folder = Folder::with("jit-7.dump", &dump())
        .and("perf-7.map", b"1000 10 fib\n")
        .and("notes", b"nothing of the kind\n")
        .and("broken.dump", b"nothing of the kind\n");
    let refused = |words: &str| {
        let (code, out, err) = folder.run(&format!("dump {words}"));
        assert_eq!(out, "");
        (code, err.strip_prefix("jitscribe: error: ").unwrap_or(&err).trim_end().to_owned())
    };
    for (words, cause) in [
        ("absent", "absent: No such file or directory (os error 2)"),
        (
            "notes",
            "notes: neither a jitdump (it begins with [6e, 6f, 74, 68], not with 4a 69 54 44 in \
             either byte order) nor a perf map (no line has the form ADDRESS SIZE NAME)",
        ),
        (
            "broken.dump",
            "broken.dump: at offset 0x0: not a jitdump: it begins with [6e, 6f, 74, 68]",
        ),
        (
            "--elf images perf-7.map",
            "perf-7.map: a perf map has names and addresses but no code bytes, so it cannot be \
             converted to object files or a jitdump",
        ),
        (
            "--perf-map --at 1 perf-7.map",
            "perf-7.map: a perf map has no timestamps; --at needs a jitdump",
        ),
        (
            "--at 1 jit-7.dump",
            "--at needs an output that shows live code: add --perf-map, or --elf, --pe or --macho with DIR",
        ),
    ] {
        assert_eq!(refused(words), (1, cause.to_owned()), "{words}");
    }
    assert!(!folder.path().join("images").exists());
    for words in ["--json --perf-map jit-7.dump", "--at noon jit-7.dump", ""] {
        assert_eq!(refused(words).0, 2, "{words}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let map: String = (1..100_000).map(|n| format!("{:x} 10 function_{n}\n", n * 16)).collect();
    let folder = Folder::with("perf-7.map", map.as_bytes());
    for how in ["dump perf-7.map", "dump --json perf-7.map"] {
        let mut child =
            folder.jitscribe(how).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let (code, _, err) = ended(&child.wait_with_output().unwrap());
        assert_eq!((code, err.as_str()), (0, ""), "{how}");
    }
}

/// A stub that lived from 1 s to 2 s, and one more code that there was no room for.
fn told_in_full() -> Vec<u8> {
    let line =
        |file: &'static [u8], line| LineEntry { address: crate::made::BASE, file, line, column: 3 };
    let mut writer = Writer::append(crate::made::header(), Endian::Little);
    writer
        .extended(&ExtendedCode {
            timestamp: 1_000_000_000,
            pid: 7,
            tid: 8,
            address: crate::made::BASE,
            size: 0x20,
            index: 5,
            name: b"add",
            died: Some(2_000_000_000),
            kind: Kind::Stub,
            tier: Some(b"baseline"),
            lines: &[line(b"/a.js", 1)],
            ir_lines: &[line(b"a.ir", 2)],
            inlined: &[Inlined {
                name: b"carry",
                file: b"/a.js",
                line: 9,
                ranges: std::iter::once(crate::made::BASE + 4..crate::made::BASE + 8).collect(),
                ..Inlined::default()
            }],
            frame_pointer: Some(FramePointer::Prologue),
            ..ExtendedCode::default()
        })
        .unwrap();
    let left_out = LeftOut { count: 1, first: 1_500_000_000, last: 1_500_000_000 };
    writer.left_out(1_500_000_000, &left_out).unwrap();
    writer.into_sink()
}

#[test]
fn what_tails_tell_is_shown() {
    let folder = Folder::with("jit-7.dump", &told_in_full());
    let (code, out, err) = folder.run("dump jit-7.dump");
    let name = "add [stub, baseline, 1 IR lines, 1 calls inlined, died at 2.000000000]";
    assert!(out.lines().any(|line| line.ends_with(name)), "{out}");
    assert!(err.contains("1 codes are missing because the log was full"), "{err}");
    assert!(
        err.ends_with("1 loads (1 with lines, 0 with unwind tables, 1 without bytes), 0 moves\n")
    );
    assert_eq!(code, 0);

    let (_, out, _) = folder.run("dump --json jit-7.dump");
    let lines: Vec<_> = out.lines().collect();
    assert!(
        lines[1].ends_with(
            r#""name":"add","lines":[{"address":"0x7f0000001000","file":"/a.js","line":1,"column":3}],"unwind":null,"kind":"stub","tier":"baseline","died":2000000000,"lean":true,"frame_pointer":"prologue","ir_lines":[{"address":"0x7f0000001000","file":"a.ir","line":2,"column":3}],"inlined":[{"parent":null,"name":"carry","file":"/a.js","line":9,"column":0,"ranges":[["0x7f0000001004","0x7f0000001008"]]}]}"#
        ),
        "{out}"
    );
    assert_eq!(lines[2], r#"{"event":"left-out","count":1,"first":1500000000,"last":1500000000}"#);
}

#[test]
fn dead_code_is_not_live() {
    let folder = Folder::with("jit-7.dump", &told_in_full());
    let map = |at: &str| folder.run(&format!("dump --perf-map --at {at} jit-7.dump")).1;
    assert_eq!(map("1.9"), "7f0000001000 20 add\n");
    assert_eq!(map("2"), "");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn objects_are_written_in_three_formats() {
        let folder = Folder::with("jit-7.dump", &dump());
        for (option, extension) in [("--elf", "elf"), ("--pe", "dll"), ("--macho", "dylib")] {
            let (code, _, err) = folder.run(&format!("dump {option} images --at 1.6 jit-7.dump"));
            let path = format!("images/jit-7-7f0000001000.{extension}");
            let next = if option == "--elf" { "objdump" } else { "llvm-objdump" };
            let said = format!("jit-7.dump: 2 pieces of code in 1 files; next: {next} -d {path}\n");
            assert_eq!((code, err), (0, said));
            let base = if option == "--pe" { "0x180001010" } else { "0x1010" };
            let symbol = folder.tool(&format!("llvm-symbolizer --obj={path} {base}"));
            assert_eq!(symbol, "fib\n/src/fib.js:11:5\n\n");
        }
        let found = folder.tool("nm -D images/jit-7-7f0000001000.elf");
        assert_eq!(found, "0000000000001000 T fib\n0000000000001020 T sum\n");
        let found = folder.tool("llvm-readobj --coff-exports images/jit-7-7f0000001000.dll");
        assert!(found.contains("Name: fib\n") && found.contains("RVA: 0x1020\n"), "{found}");
        let image = "images/jit-7-7f0000001000.dylib";
        let found = folder.tool(&format!("llvm-objdump --macho --exports-trie {image}"));
        assert!(found.ends_with("0x00001000  _fib\n0x00001020  _sum\n"), "{found}");
    }
}

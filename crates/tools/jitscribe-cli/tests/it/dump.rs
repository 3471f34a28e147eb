//! `jitscribe dump`, word by word.

use std::process::Stdio;

use crate::common::{Bench, ended};
use crate::inject::scene::Jit;
use crate::made::{BASE, dump, header};
use jitdump::extension::{FramePointer, Kind, LeftOut};
use jitdump::{Endian, ExtendedCode, Inlined, LineEntry, Writer};

/// A folder with a jitdump of process 7.
fn with_dump() -> Bench {
    Bench::with("jit-7.dump", dump())
}

#[test]
fn the_listing_has_one_line_a_code_in_the_order_of_the_file() {
    let done = with_dump().ask("dump jit-7.dump").ok();
    assert_eq!(
        done.stdout,
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
    let said = "jit-7.dump: 5 loads (1 with lines, 1 with unwind tables), 1 moves\n";
    assert_eq!(done.stderr, said);
}

#[test]
fn json_has_one_object_a_line() {
    let done = with_dump().ask("dump --json jit-7.dump").ok();
    let lines: Vec<_> = done.stdout.lines().collect();
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
    assert_eq!(done.stderr, "");
}

#[test]
fn of_code_at_one_address_the_last_by_time_comes_into_the_perf_map() {
    let bench = with_dump();
    let end = "7f0000001000 18 fib [opt]\n7f0000001018 10 a?[31m?\n7f0000002000 10 sum\n";
    for (at, map) in [
        ("", end),
        ("--at 4.000000001", end),
        ("--at 4", "7f0000001000 20 fib [opt]\n7f0000002000 10 sum\n"),
        ("--at 2.5", "7f0000001000 20 fib [opt]\n7f0000001020 10 sum\n"),
        ("--at 1.999999999", "7f0000001000 20 gone\n7f0000001020 10 sum\n"),
        ("--at 1.5", "7f0000001000 20 fib\n"),
        ("--at 1.4", ""),
    ] {
        let done = bench.ask(&format!("dump --perf-map jit-7.dump {at}")).ok();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), (map, ""), "{at}");
    }
}

#[test]
fn elf_images_hold_what_was_live() {
    let bench = with_dump();
    let image = "images/jit-7-7f0000001000.elf";
    let symbols = || bench.run(&format!("nm -n -S --defined-only {image}"));
    let done = bench.ask("dump --elf images --at 1.6 jit-7.dump").ok();
    let said = format!("jit-7.dump: 2 pieces of code in 1 files; next: objdump -d {image}\n");
    assert_eq!((done.stdout, done.stderr), (String::new(), said));
    // The byte at 0x1000 was at the address in the file's name.
    assert_eq!(
        symbols(),
        "0000000000001000 0000000000000020 T fib\n0000000000001020 0000000000000010 T sum\n"
    );
    assert_eq!(
        bench.run(&format!("addr2line -e {image} 0x1000 0x100f 0x1010 0x101f")),
        "/src/fib.js:10\n/src/fib.js:10\n/src/fib.js:11\n/src/fib.js:11\n"
    );
    let frames = bench.run(&format!("readelf --debug-dump=frames {image}"));
    assert!(frames.contains("pc=0000000000001000..0000000000001020"), "{frames}");

    let again = bench.ask("dump --elf images --at 1.6 jit-7.dump").ends(1);
    let said = format!("jitscribe: error: {image}: already exists; use --force to replace it\n");
    assert_eq!((again.stdout, again.stderr), (String::new(), said));
    bench.ask("dump --elf images --force jit-7.dump").ok();
    assert_eq!(
        symbols(),
        "0000000000001000 0000000000000018 T fib [opt]\n\
         0000000000001018 0000000000000010 T a\\x1b[31m\\x0a\n\
         0000000000002000 0000000000000010 T sum\n"
    );
}

#[test]
fn lines_move_with_their_code() {
    let jit = Jit::new(7, 1).lines(2, 0x10000, &[(0x10000, 3)]).load(2, 0x10000, 4, "moved");
    let bench = Bench::with("jit-7.dump", jit.moved(3, 0, 0x10000, 0x5000, 4).bytes());
    bench.ask("dump --elf . jit-7.dump").ok();
    let found = bench.run("addr2line -f -e jit-7-5000.elf 0x1003");
    assert_eq!(found, "moved\n/src/app.js:3\n");
}

#[test]
fn a_cut_off_dump_shows_what_it_has() {
    let done = Bench::with("jit-7.dump", &dump()[..310]).ask("dump jit-7.dump").ok();
    assert_eq!(done.stdout.lines().count(), 3, "{}", done.stdout);
    assert_eq!(
        done.stderr,
        "jitscribe: warning: jit-7.dump: at offset 0x132: the file ends inside a record header: \
         the dump is truncated or still being written\n\
         jit-7.dump: 1 loads (1 with lines, 1 with unwind tables), 0 moves\n"
    );
}

#[test]
fn perf_maps_are_listed_resolved_and_shown_to_programs() {
    let bench = Bench::with("perf-7.map", b"0x1000 40 old\nnonsense\n1010 10 n\xffw\x07");
    let listed = bench.ask("dump perf-7.map").ok();
    assert_eq!(
        listed.stdout,
        "# perf map\n\
         #        ADDRESS     SIZE NAME\n            \
         1000       40 old\n            \
         1010       10 n\\xffw\\x07\n"
    );
    let bad = "jitscribe: warning: perf-7.map: line 2 (offset 0xe): the line does not begin with a \
               hexadecimal address\n";
    assert_eq!(listed.stderr, format!("{bad}perf-7.map: 2 entries, 1 unreadable lines\n"));

    let resolved = bench.ask("dump --perf-map perf-7.map").ok();
    assert_eq!(resolved.stdout, "1000 10 old\n1010 10 n\u{fffd}w?\n1020 20 old\n");
    assert_eq!(resolved.stderr, bad);

    let json = bench.ask("dump --json perf-7.map").ok();
    assert_eq!(
        json.stdout,
        r#"{"event":"entry","offset":0,"line":1,"address":"0x1000","size":64,"name":"old"}
{"event":"error","offset":14,"cause":"the line does not begin with a hexadecimal address"}
{"event":"entry","offset":23,"line":3,"address":"0x1010","size":16,"name":"n�w\u0007"}
{"event":"end","how":"cut-off","offset":35}
"#
    );
    assert_eq!(json.stderr, "");
}

#[test]
fn standard_input_serves_as_well() {
    let done = Bench::new().shell("printf '1000\\t10\\tfib\\r\\n' | \"$0\" dump --perf-map -").ok();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("1000 10 fib\n", ""));
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let bench = with_dump()
        .and("perf-7.map", "1000 10 fib\n")
        .and("notes", "nothing of the kind\n")
        .and("broken.dump", "nothing of the kind\n");
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
        let done = bench.ask(&format!("dump {words}")).ends(1);
        assert_eq!(done.stdout, "", "{words}");
        assert_eq!(done.stderr, format!("jitscribe: error: {cause}\n"), "{words}");
    }
    assert!(!bench.path("images").exists());
    for words in ["--json --perf-map jit-7.dump", "--at noon jit-7.dump", ""] {
        assert_eq!(bench.ask(&format!("dump {words}")).ends(2).stdout, "", "{words}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let map: String = (1..100_000).map(|n| format!("{:x} 10 function_{n}\n", n * 16)).collect();
    let bench = Bench::with("perf-7.map", map);
    for how in ["dump perf-7.map", "dump --json perf-7.map"] {
        let mut dump = bench.jitscribe(how);
        let mut child = dump.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let done = ended(&dump, child.wait_with_output().unwrap()).ok();
        assert_eq!(done.stderr, "", "{how}");
    }
}

/// A stub that lived from 1 s to 2 s, and one more code that there was no room for.
fn told_in_full() -> Vec<u8> {
    let line = |file: &'static [u8], line| LineEntry { address: BASE, file, line, column: 3 };
    let mut writer = Writer::append(header(), Endian::Little);
    writer
        .extended(&ExtendedCode {
            timestamp: 1_000_000_000,
            pid: 7,
            tid: 8,
            address: BASE,
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
                ranges: std::iter::once(BASE + 4..BASE + 8).collect(),
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
    let bench = Bench::with("jit-7.dump", told_in_full());
    let listed = bench.ask("dump jit-7.dump").ok();
    let name = "add [stub, baseline, 1 IR lines, 1 calls inlined, died at 2.000000000]";
    assert!(listed.stdout.lines().any(|line| line.ends_with(name)), "{}", listed.stdout);
    listed.says("1 codes are missing because the log was full");
    let said = "1 loads (1 with lines, 0 with unwind tables, 1 without bytes), 0 moves\n";
    assert!(listed.stderr.ends_with(said), "{}", listed.stderr);

    let json = bench.ask("dump --json jit-7.dump").ok().stdout;
    let lines: Vec<_> = json.lines().collect();
    assert!(
        lines[1].ends_with(
            r#""name":"add","lines":[{"address":"0x7f0000001000","file":"/a.js","line":1,"column":3}],"unwind":null,"kind":"stub","tier":"baseline","died":2000000000,"lean":true,"frame_pointer":"prologue","ir_lines":[{"address":"0x7f0000001000","file":"a.ir","line":2,"column":3}],"inlined":[{"parent":null,"name":"carry","file":"/a.js","line":9,"column":0,"ranges":[["0x7f0000001004","0x7f0000001008"]]}]}"#
        ),
        "{json}"
    );
    assert_eq!(lines[2], r#"{"event":"left-out","count":1,"first":1500000000,"last":1500000000}"#);

    // Dead code is not live.
    for (at, map) in [("1.9", "7f0000001000 20 add\n"), ("2", "")] {
        let words = format!("dump --perf-map --at {at} jit-7.dump");
        assert_eq!(bench.ask(&words).stdout, map, "{at}");
    }
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn objects_are_written_in_three_formats() {
        let bench = with_dump();
        for (option, extension, next, address) in [
            ("--elf", "elf", "objdump", "0x1010"),
            ("--pe", "dll", "llvm-objdump", "0x180001010"),
            ("--macho", "dylib", "llvm-objdump", "0x1010"),
        ] {
            let done = bench.ask(&format!("dump {option} images --at 1.6 jit-7.dump")).ok();
            let path = format!("images/jit-7-7f0000001000.{extension}");
            let said = format!("jit-7.dump: 2 pieces of code in 1 files; next: {next} -d {path}\n");
            assert_eq!(done.stderr, said);
            let symbol = bench.run(&format!("llvm-symbolizer --obj={path} {address}"));
            assert_eq!(symbol, "fib\n/src/fib.js:11:5\n\n");
        }
        let found = bench.run("nm -D images/jit-7-7f0000001000.elf");
        assert_eq!(found, "0000000000001000 T fib\n0000000000001020 T sum\n");
        let found = bench.run("llvm-readobj --coff-exports images/jit-7-7f0000001000.dll");
        assert!(found.contains("Name: fib\n") && found.contains("RVA: 0x1020\n"), "{found}");
        let image = "images/jit-7-7f0000001000.dylib";
        let found = bench.run(&format!("llvm-objdump --macho --exports-trie {image}"));
        assert!(found.ends_with("0x00001000  _fib\n0x00001020  _sum\n"), "{found}");
    }
}

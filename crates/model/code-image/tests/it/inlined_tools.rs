//! What common tools report for inlined calls.
#![allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant

use std::ops::Range;
use std::path::Path;

use crate::common::{OnDisk, complaints, gdb, run, targets, write, x86_64};
use code_image::{Target, VisibleCode};
use jit_code::{Code, Inlined, Line};

const START: u64 = 0x7f00_0000_0040;

/// A code whose first instruction belongs to a call, and one with a call in a call, both in two parts; the last call
/// covers all of the one around it. A code without lines may follow, far from both.
fn sample(target: Target, start: u64, has_second_range: bool) -> OnDisk {
    let line =
        |offset, file: &'static str, line, column| Line::new(offset, file, line).column(column);
    let first_lines = [line(0, "/src/util.js", 5, 1), line(4, "/src/main.js", 3, 9)];
    let second_lines = [
        line(0, "/src/main.js", 10, 3),
        line(0x8, "/src/util.js", 20, 5),
        line(0xc, "/src/lib/deep.js", 7, 2),
        line(0x10, "/src/util.js", 21, 5),
        line(0x14, "/src/main.js", 12, 3),
        line(0x18, "/src/lib/deep.js", 8, 4),
        line(0x1c, "/src/main.js", 13, 3),
        line(0x20, "/src/lib/deep.js", 9, 6),
    ];
    let call = |name, ranges: &'static [Range<u32>], file: &'static str, line, column| {
        Inlined::new(name, ranges).called_from(file, line).column(column)
    };
    let in_first = [call("middle", &[0..4], "/src/main.js", 2, 11)];
    let in_second = [
        call("middle", &[0x18..0x1c, 0x08..0x14], "/src/main.js", 11, 13),
        call("größe", &[0x0c..0x10, 0x18..0x1c], "/src/util.js", 22, 17).within(0),
        call("last", &[0x20..0x28], "/src/main.js", 14, 19),
        call("größe", &[0x20..0x28], "/src/util.js", 33, 0).within(2),
    ];
    let code = |start: u64, size: u64, name: &'static str| {
        let mut code = Code::at(start, size).named(name);
        code.bytes = Some(&[0x90; 0x28]);
        code
    };
    let codes = [
        code(start, 8, "first").lines(&first_lines).inlined(&in_first),
        code(start + 0x10, 0x28, "second").lines(&second_lines).inlined(&in_second),
        code(start + 0x1000, 4, "plain"),
    ]
    .map(VisibleCode::whole);
    let codes = if has_second_range { &codes[..] } else { &codes[..2] };
    write(target, start..start + 0x2000, codes)
}

/// A function, and file, line and column of where it is.
type Frame = (&'static str, &'static str, u32, u32);
/// The frames at an address, from the innermost on.
type Stack = Vec<Frame>;

fn stacks() -> Vec<(u64, Stack)> {
    const MAIN: &str = "/src/main.js";
    const UTIL: &str = "/src/util.js";
    const DEEP: &str = "/src/lib/deep.js";
    const DEEPEST: &str = r"gr\u00f6\u00dfe";
    vec![
        (0x1040, vec![("middle", UTIL, 5, 1), ("first", MAIN, 2, 11)]),
        (0x1044, vec![("first", MAIN, 3, 9)]),
        (0x1050, vec![("second", MAIN, 10, 3)]),
        (0x1058, vec![("middle", UTIL, 20, 5), ("second", MAIN, 11, 13)]),
        (0x105f, vec![(DEEPEST, DEEP, 7, 2), ("middle", UTIL, 22, 17), ("second", MAIN, 11, 13)]),
        (0x1060, vec![("middle", UTIL, 21, 5), ("second", MAIN, 11, 13)]),
        (0x1064, vec![("second", MAIN, 12, 3)]),
        (0x1068, vec![(DEEPEST, DEEP, 8, 4), ("middle", UTIL, 22, 17), ("second", MAIN, 11, 13)]),
        (0x106c, vec![("second", MAIN, 13, 3)]),
        (0x1070, vec![(DEEPEST, DEEP, 9, 6), ("last", UTIL, 33, 0), ("second", MAIN, 14, 19)]),
    ]
}

/// [`sample`] for x86-64, as a unit with several ranges and as one with a single range, where range lists have
/// another base.
fn samples() -> [OnDisk; 2] {
    [true, false].map(|has_second_range| sample(x86_64(), START, has_second_range))
}

/// Runs a tool for all addresses, and compares what it says with `show` of the stacks.
fn compare(tool: &str, arguments: &[&str], last: &str, show: impl Fn(u64, &Stack) -> String) {
    let addresses: Vec<String> = stacks().iter().map(|(at, _)| format!("{at:#x}")).collect();
    let addresses = addresses.iter().map(String::as_str);
    let arguments: Vec<&str> = arguments.iter().copied().chain(addresses).chain([last]).collect();
    let expected: String = stacks().iter().map(|(at, stack)| show(*at, stack)).collect();
    for sample in samples() {
        assert_eq!(run(tool, &arguments, &sample.path()), expected);
    }
}

#[test]
fn addr2line_shows_inlined_calls() {
    compare("addr2line", &["-i", "-f", "-a"], "-e", |at, stack| {
        let frame = |&(name, file, line, _): &Frame| format!("{name}\n{file}:{line}\n");
        format!("{at:#018x}\n") + &stack.iter().map(frame).collect::<String>()
    });
}

#[test]
fn gdb_breaks_in_inlined_code() {
    let says = "Breakpoint 1 at 0x1040: middle. (2 locations)
Breakpoint 2 at 0x1070: file /src/lib/deep.js, line 9.
Num     Type           Disp Enb Address            What
1       breakpoint     keep y   <MULTIPLE>         
1.1                         y   0x0000000000001040 in middle at /src/util.js:5
1.2                         y   0x0000000000001058 in middle at /src/util.js:20
2       breakpoint     keep y   0x0000000000001070 in last at /src/lib/deep.js:9
";
    for sample in samples() {
        let commands = ["break middle", "break last", "info breakpoints"];
        assert_eq!(gdb(&commands, &sample.path()), says);
    }
}

fn check(path: &Path) {
    assert_eq!(complaints(path), "No errors\n");
    let readelf = run("readelf", &["-W", "--debug-dump=info,abbrev,Ranges,aranges"], path);
    assert!(!readelf.contains("arning"), "{readelf}");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn elfutils_shows_inlined_calls() {
        let place = |&(_, file, line, column): &Frame| match column {
            0 => format!("{file}:{line}"),
            _ => format!("{file}:{line}:{column}"),
        };
        compare("eu-addr2line", &["-i", "-f", "-a"], "-e", |at, stack| {
            let mut text = format!("{at:#018x}\n");
            for (number, frame) in stack.iter().enumerate() {
                let name = frame.0;
                let inlined = match (number, stack.get(1), stack.last()) {
                    (0, Some(call), Some((outermost, ..))) => {
                        format!(" inlined at {} in {outermost}", place(call))
                    }
                    _ => String::new(),
                };
                text += &format!("{name}{inlined}\n{}\n", place(frame));
            }
            text
        });
    }

    #[test]
    fn llvm_symbolizer_shows_inlined_calls() {
        // the tool would read addresses behind the file's name as well
        compare("llvm-symbolizer", &["--inlines"], "--obj", |_, stack| {
            let frame =
                |&(name, file, line, column): &Frame| format!("{name}\n{file}:{line}:{column}\n");
            stack.iter().map(frame).collect::<String>() + "\n"
        });
    }

    #[test]
    fn the_checkers_find_nothing() {
        for target in targets() {
            for has_second_range in [false, true] {
                let image = sample(target, 0x10_0040, has_second_range);
                check(&image.path());
            }
        }
    }

    #[test]
    fn a_call_of_which_only_the_name_is_known() {
        let inlined = [Inlined::new("", &[2..4])];
        let code = Code::new(&[0x90; 8]).runs_at(START).named("outer").inlined(&inlined);
        let image = write(x86_64(), START..START + 8, &[VisibleCode::whole(code)]);
        check(&image.path());
        let find = |tool, arguments: &[&str]| run(tool, arguments, &image.path());
        assert_eq!(
            find("addr2line", &["-i", "-f", "0x1042", "0x1044", "-e"]),
            "<unnamed>\n??:?\nouter\n??:?\nouter\n??:?\n"
        );
        assert_eq!(
            find("llvm-symbolizer", &["--inlines", "0x1042", "0x1044", "--obj"]),
            "<unnamed>\n??:0:0\nouter\n??:0:0\n\nouter\n??:0:0\n\n"
        );
    }
}

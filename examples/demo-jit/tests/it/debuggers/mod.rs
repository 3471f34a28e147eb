//! What gdb and lldb are shown of the demo's code, which spoils `rbp` in every function: compared with what they should
//! print, word by word but for addresses, and with the truth.

mod reader;
mod session;

use session::{Demo, Running, gdb, lldb};
use test_privilege::{Privilege, have};

/// Stacks, breakpoints by name that wait for their function, lines, assembly, steps.
#[test]
fn gdb_stops_in_code_and_knows_where_it_is() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let demo = Demo::new();
    let said = gdb(
        &demo.words(),
        &[
            "break baseline::roof",
            "run",
            "echo @stack\\n",
            "backtrace 4",
            "echo @symbol\\n",
            "info symbol $pc + 4",
            "echo @list\\n",
            "list 70,72",
            "echo @steps\\n",
            "next",
            "step",
            "echo @assembly\\n",
            "disassemble /s $pc,$pc+1",
            "echo @breakpoint\\n",
            "info breakpoints",
            "echo @whole\\n",
            "backtrace -frame-info location",
        ],
    );
    said.expect(
        "stack",
        "\
#0  baseline::roof () at DIR/demo.scribe:70
#1  0xA in baseline::tower () at DIR/demo.scribe:64
#2  0xA in demo_jit::native::apply ()
#3  0xA in baseline::tower () at DIR/demo.scribe:66",
    );
    said.expect("symbol", "baseline::roof + 4 in section .text of <in-memory@0xA>");
    said.expect(
        "list",
        "70\tfn roof(n) {\n71\t    let hash = mix(n);\n72\t    if hash & 15 == 0 {",
    );
    said.expect(
        "steps",
        "71\t    let hash = mix(n);\nbaseline::mix () at DIR/demo.scribe:52\n52\tfn mix(n) {",
    );
    said.expect(
        "assembly",
        "\
Dump of assembler code from 0xA to 0xA:
DIR/demo.scribe:
52\tfn mix(n) {
=> 0xA <baseline::mix+0>:\tpush   %rbp
End of assembler dump.",
    );
    assert!(said.part("breakpoint").contains("in baseline::roof at DIR/demo.scribe:70"));
    // Through twelve floors, each called by the host, down to where the process began.
    let stack = said.part("whole");
    assert_eq!(stack.matches(" in baseline::tower ()").count(), 13, "{stack}");
    assert!(stack.lines().last().unwrap_or_default().ends_with(" in _start ()"), "{stack}");
}

/// Calls that were inlined are frames of their own, and breakpoints in lines of theirs hit.
#[test]
fn gdb_shows_inlined_calls_as_frames() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let demo = Demo::new();
    let said = gdb(
        &demo.words(),
        &[
            "tbreak speed::collatz",
            "run",
            "tbreak demo.scribe:27",
            "continue",
            "echo @stack\\n",
            "backtrace 3",
            "echo @next\\n",
            "tbreak compact::collatz",
            "continue",
            "echo @compact\\n",
            "backtrace 1",
        ],
    );
    said.expect(
        "stack",
        "\
#0  next () at DIR/demo.scribe:27
#1  speed::collatz () at DIR/demo.scribe:17
#2  0xA in baseline::longest () at DIR/demo.scribe:42",
    );
    said.expect("compact", "#0  compact::collatz () at DIR/demo.scribe:14");
}

/// At the end of the run each address is that of the code that is there, and of none where it was freed.
#[test]
fn gdb_knows_who_is_at_an_address_after_re_jits_moves_and_frees() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    // Without randomised addresses, which gdb turns off, one run is like the other.
    let ask = |questions: &[String]| {
        let demo = Demo::new();
        let mut script = vec!["catch syscall exit_group", "run"];
        script.extend(questions.iter().map(String::as_str));
        let said = gdb(&demo.words(), &script);
        (said, demo.truth())
    };
    let (_, versions) = ask(&[]);
    assert!(versions.len() >= 13);
    let questions: Vec<String> = versions
        .iter()
        .enumerate()
        .flat_map(|(number, version)| {
            [format!("echo @v{number}\\n"), format!("info symbol {:#x}", version.address + 1)]
        })
        .collect();
    let (said, again) = ask(&questions);
    assert_eq!(again.len(), versions.len());
    for (number, version) in versions.iter().enumerate() {
        let address = version.address + 1;
        let owner = versions.iter().find(|other| {
            other.died.is_none() && (other.address..other.address + other.size).contains(&address)
        });
        let part = said.part(&format!("v{number}"));
        match owner {
            Some(owner) => {
                let place =
                    format!("{} + {} in section .text", owner.symbol, address - owner.address);
                assert!(part.starts_with(&place), "{}: {part}", version.symbol);
            }
            None => assert_eq!(part, "No symbol matches 0xA.", "{}", version.symbol),
        }
    }
    assert!(versions.iter().any(|version| version.died.is_some()));
}

/// A debugger that comes later finds all that is there, and so does one that looks at a core.
#[test]
fn gdb_comes_later_and_looks_at_a_core() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let running = Running::start("gdb");
    let core = running.demo.dir().join("core");
    let save = format!("generate-core-file {}", core.display());
    // Wherever it is now: up to fib in the first phase, which calls itself.
    let ask = [
        "tbreak baseline::fib",
        "continue",
        "echo @stack\\n",
        "backtrace 2",
        "echo @core\\n",
        &save,
    ];
    let said = session::gdb_with(&["-p".to_owned(), running.pid()], &ask);
    let stack = said.part("stack").to_owned();
    assert!(stack.starts_with("#0  baseline::fib () at "), "{stack}");
    assert!(stack.contains("/demo.scribe:4\n#1  0xA in "), "{stack}");
    let of_core = session::gdb_with(
        &[running.program.clone(), core.display().to_string()],
        &["echo @stack\\n", "backtrace 2"],
    );
    assert_eq!(of_core.part("stack"), stack);
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn lldb_stops_in_code_and_walks_its_stack() {
        let demo = Demo::new();
        let said = lldb(
            &demo.words(),
            &[
                "breakpoint set -f demo.scribe -l 71",
                "run",
                "thread backtrace -c 4",
                "image lookup -a $pc",
            ],
        );
        let frames: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("frame #"))
            .filter_map(|line| line.split_once('`'))
            .map(|(_, at)| at)
            .collect();
        // The first is shown when it stops, too.
        assert_eq!(frames.len(), 5, "{said}");
        assert_eq!(frames[1], "baseline::roof at demo.scribe:71:16");
        assert_eq!(frames[2], "baseline::tower at demo.scribe:64:16");
        assert!(frames[3].starts_with("demo_jit::native::apply"), "{said}");
        assert_eq!(frames[4], "baseline::tower at demo.scribe:66:17");
        assert!(said.contains("`baseline::roof + 38 at demo.scribe:71:16"), "{said}");
    }
}

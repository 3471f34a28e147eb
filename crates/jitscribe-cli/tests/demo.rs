//! `jitscribe demo` with the real perf.

mod common;

use common::Bench;

#[test]
fn the_demo_shows_names_lines_and_stacks() {
    let bench = Bench::new();
    let mut demo = bench.jitscribe("demo");
    demo.args(["-o", "demo", "--phase", "200"]);
    let done = common::finish(demo);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let (before, after) = done.stdout.split_once("── perf report, after ──").expect("two reports");
    for function in ["::collatz", "::fib", "::mix"] {
        assert!(!before.contains(function), "{function} before: {before}");
        assert!(after.contains(function), "{function}: {after}");
    }
    // perf annotate shows lines of the source between those of the code.
    assert!(after.contains("── perf annotate "), "{after}");
    assert!(after.contains("demo.scribe:"), "{after}");
    let (_, ir) = after.split_once("── the same with jitscribe inject --lines ir ──").expect("IR");
    let (ir, rest) = ir.split_once("\n\n").expect("more");
    // A line of the listing: where in the source, and an instruction.
    assert!(ir.contains(" @00"), "{ir}");
    let (_, inlined) = rest.split_once("── addr2line -i, ").expect("inlined calls");
    let (inlined, _) = inlined.split_once("\n\n").expect("more");
    assert!(inlined.contains(" (inlined by) "), "{inlined}");
    assert!(done.stderr.contains("now: perf report -i "), "{}", done.stderr);
    assert_eq!(bench.files(), ["demo"]);
    assert!(bench.path("demo/perf.data").exists());

    // A second one would overwrite the first.
    let mut again = bench.jitscribe("demo");
    again.args(["-o", "demo"]);
    let again = common::finish(again);
    assert_eq!(again.code, 1, "{}", again.stderr);
}

#[test]
fn stacks_reach_main_without_frame_pointers() {
    let bench = Bench::new();
    let mut demo = bench.jitscribe("demo");
    demo.args(["-o", "demo", "--dwarf", "--phase", "100"]);
    let done = common::finish(demo);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let stacks =
        bench.run(&["perf", "script", "--no-inline", "-i", "demo/perf.data", "-F", "ip,sym,dso"]);
    let through_both = stacks.split("\n\n").filter(|stack| {
        let jitted = stack.lines().any(|line| line.contains("perf.data.jit/"));
        jitted && stack.lines().any(|line| line.split_whitespace().nth(1) == Some("main"))
    });
    assert!(through_both.count() > 0, "no stack leads from jitted code to main");
}

//! `jitscribe check`, word by word.

use crate::common::Bench;
use crate::made::dump;

#[test]
fn a_map_without_fault_passes() {
    let bench = Bench::with("perf-7.map", "1000 10 fib\n1010 10 sum\n");
    let done = bench.ask("check perf-7.map").ok();
    assert_eq!(done.stdout, "perf-7.map: perf map, 2 codes: no problems found\n");
    assert_eq!(done.stderr, "");
}

#[test]
fn an_error_has_place_cost_and_fix_and_fails() {
    let bench = Bench::with("perf-7.map", "0x1000 0x10 fib\n0x1010 0 sum\n");
    let done = bench.ask("check perf-7.map").ends(1);
    assert_eq!(
        done.stdout,
        "perf-7.map: perf map, 2 codes: 1 error, 1 warning, 0 notes
  error: hex-prefix (2 times)
    line 1 (offset 0x0): address and size have a 0x prefix
    also line 2 (offset 0x10)
    cost: ddprof and magic-trace reject the line, so its frames are lost without a message; perf reads it
    fix: print the numbers without 0x: %lx, not %#lx nor %p
  warning: zero-size (once)
    line 2 (offset 0x10): \"sum\" at 0x1010 has size 0
    cost: the entry covers no address, so no sample ever gets this name
    fix: write the size of the code in bytes, or omit entries without code
"
    );
    assert_eq!(done.stderr, "");
}

#[test]
fn warnings_alone_pass() {
    let bench = Bench::with("perf-7.map", "1000 10 fib\n1008 10 sum\n");
    let checked = bench.ask("check perf-7.map").ok().stdout;
    assert!(checked.starts_with("perf-7.map: perf map, 2 codes: 0 errors, 1 warning, 0 notes\n"));
}

#[test]
fn json_has_one_object_a_file() {
    let bench = Bench::with("perf-7.map", "1000 10 fn\n");
    let done = bench.ask("check --json perf-7.map absent").ends(1);
    assert_eq!(
        done.stdout,
        r#"{"file":"perf-7.map","format":"perf map","codes":1,"errors":1,"warnings":0,"notes":0,"findings":[{"rule":"short-name","severity":"error","count":1,"places":[{"offset":0,"line":1}],"what":"the name \"fn\" has 2 bytes","cost":"perf drops names of one or two bytes: the code's frames are shown as addresses","mend":"make the name at least three bytes long, for instance with the module or the tier: `main::f`, `f [jit]`"}]}
{"file":"absent","unreadable":"absent: No such file or directory (os error 2)"}
"#
    );
    assert_eq!(done.stderr, "jitscribe: error: absent: No such file or directory (os error 2)\n");
}

/// The rules that a file breaks, as `severity: rule (count)`.
fn rules(name: &str, content: impl AsRef<[u8]>, code: i32) -> Vec<String> {
    let checked = Bench::with(name, content).ask(&format!("check {name}")).ends(code).stdout;
    let lines = checked.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| !line.starts_with(' ')).map(str::to_owned).collect()
}

#[test]
fn files_are_checked_by_content_and_name() {
    assert_eq!(rules("perf-7.map", "", 0), ["warning: no-entries (once)"]);
    assert_eq!(rules("jit-7.dump", "no dump\n", 1), ["error: not-a-jitdump (once)"]);
    // The name has another process's id.
    let file_name = "error: file-name (once)".to_owned();
    assert_eq!(rules("jit-8-7.dump", dump(), 1)[0], file_name);
    assert!(!rules("jit-7.dump", dump(), 0).contains(&file_name));
}

#[test]
fn one_bad_file_does_not_keep_it_from_the_others() {
    let bench = Bench::with("perf-7.map", "1000 10 fib\n").and("notes", "nothing of the kind\n");
    let done = bench.ask("check absent notes perf-7.map").ends(1);
    assert_eq!(done.stdout, "perf-7.map: perf map, 1 code: no problems found\n");
    assert_eq!(done.stderr.lines().count(), 2, "{}", done.stderr);
}

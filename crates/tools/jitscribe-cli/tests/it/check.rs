//! `jitscribe check`, word by word.

use crate::made::{Folder, dump};

#[test]
fn a_map_without_fault_passes() {
    let folder = Folder::with("perf-7.map", b"1000 10 fib\n1010 10 sum\n");
    assert_eq!(
        folder.run("check perf-7.map"),
        (0, "perf-7.map: perf map, 2 codes: no problems found\n".to_owned(), String::new())
    );
}

#[test]
fn an_error_is_told_with_place_cost_and_mend_and_fails() {
    let folder = Folder::with("perf-7.map", b"0x1000 0x10 fib\n0x1010 0 sum\n");
    let (code, out, err) = folder.run("check perf-7.map");
    assert_eq!(
        out,
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
    assert_eq!((code, err.as_str()), (1, ""));
}

#[test]
fn warnings_alone_pass() {
    let folder = Folder::with("perf-7.map", b"1000 10 fib\n1008 10 sum\n");
    let (code, out, _) = folder.run("check perf-7.map");
    assert!(
        out.starts_with("perf-7.map: perf map, 2 codes: 0 errors, 1 warning, 0 notes\n"),
        "{out}"
    );
    assert_eq!(code, 0);
}

#[test]
fn json_has_one_object_a_file() {
    let folder = Folder::with("perf-7.map", b"1000 10 fn\n");
    let (code, out, err) = folder.run("check --json perf-7.map absent");
    assert_eq!(
        out,
        r#"{"file":"perf-7.map","format":"perf map","codes":1,"errors":1,"warnings":0,"notes":0,"findings":[{"rule":"short-name","severity":"error","count":1,"places":[{"offset":0,"line":1}],"what":"the name \"fn\" has 2 bytes","cost":"perf drops names of one or two bytes: the code's frames are shown as addresses","mend":"make the name at least three bytes long, for instance with the module or the tier: `main::f`, `f [jit]`"}]}
{"file":"absent","unreadable":"absent: No such file or directory (os error 2)"}
"#
    );
    assert_eq!(err, "jitscribe: error: absent: No such file or directory (os error 2)\n");
    assert_eq!(code, 1);
}

/// Exit code, and the rules that a file breaks, as `severity: rule (count)`.
fn rules(name: &str, bytes: &[u8]) -> (i32, Vec<String>) {
    let (code, out, _) = Folder::with(name, bytes).run(&format!("check {name}"));
    let lines = out.lines().filter_map(|line| line.strip_prefix("  "));
    (code, lines.filter(|line| !line.starts_with(' ')).map(str::to_owned).collect())
}

#[test]
fn files_are_checked_by_content_and_name() {
    let rule = |rule: &str| vec![rule.to_owned()];
    assert_eq!(rules("perf-7.map", b""), (0, rule("warning: no-entries (once)")));
    let text = b"nothing of the kind\n";
    assert_eq!(rules("jit-7.dump", text), (1, rule("error: not-a-jitdump (once)")));
    // The name has another process's id.
    let file_name = "error: file-name (once)".to_owned();
    let (code, broken) = rules("jit-7.dump", &dump());
    assert!(code == 0 && !broken.contains(&file_name), "{broken:?}");
    let (code, broken) = rules("jit-8-7.dump", &dump());
    assert_eq!((code, &broken[0]), (1, &file_name));
}

#[test]
fn one_bad_file_does_not_keep_it_from_the_others() {
    let folder =
        Folder::with("perf-7.map", b"1000 10 fib\n").and("notes", b"nothing of the kind\n");
    let (code, out, err) = folder.run("check absent notes perf-7.map");
    assert_eq!(out, "perf-7.map: perf map, 1 code: no problems found\n");
    assert_eq!(err.lines().count(), 2, "{err}");
    assert_eq!(code, 1);
}

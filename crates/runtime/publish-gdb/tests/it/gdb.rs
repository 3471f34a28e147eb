//! Many functions with gdb attached: the work is linear, and gdb knows all of them.

use std::process::{Command, Stdio};

use test_privilege::{Privilege, have};

#[path = "../../examples/many.rs"]
mod many;

/// The program that gdb runs: the example, within this program.
#[test]
fn inferior() {
    if let Ok(words) = std::env::var("MANY") {
        many::run(words.split(' ').map(str::to_owned));
    }
}

fn gdb(words: &str, script: &[&str]) -> String {
    let mut command = Command::new("gdb");
    command.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    for line in ["catch syscall exit_group", "run"].iter().chain(script) {
        command.args(["-ex", line]);
    }
    command.arg("--args").arg(std::env::current_exe().expect("a path"));
    command.args(["--exact", "gdb::inferior", "--nocapture"]).env("MANY", words);
    let output = command.stdin(Stdio::null()).output();
    let output = output.expect("gdb is not installed: run scripts/setup.sh test");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

const COUNT_FILES_IN_MEMORY: &str = "python print('Files in memory:', sum('in-memory' in file.filename for file in gdb.objfiles()))";

/// With one symfile per function, gdb needs over 400 s.
#[test]
fn ten_thousand_functions_are_announced_one_at_a_time() {
    if !have(&[Privilege::Kernel, Privilege::Trace]) {
        return;
    }
    let said = gdb(
        "10000 linger",
        &[
            COUNT_FILES_IN_MEMORY,
            "info symbol f0",
            "info symbol f9999",
            "info line *((char*)f5000 + 8)",
            "info line *((char*)f9999 + 31)",
        ],
    );
    assert!(said.contains("f0 in section .text of"), "{said}");
    assert!(said.contains("f9999 in section .text of"), "{said}");
    assert!(said.contains("Line 25001 of \"/src/many.lang\" starts at address"), "{said}");
    assert!(said.contains("Line 49998 of \"/src/many.lang\" starts at address"), "{said}");
    // What gdb does for each new file grows with the number of files: they are joined.
    let files = said.split("Files in memory: ").nth(1).and_then(|rest| rest.lines().next());
    let files: u32 = files.and_then(|count| count.parse().ok()).expect("a number");
    assert!((10..300).contains(&files), "{files} files");
}

#[test]
fn unloaded_functions_leave_nothing_behind() {
    if !have(&[Privilege::Kernel, Privilege::Trace]) {
        return;
    }
    let said = gdb(
        "3000 churn",
        &[
            "info symbol f2950",
            "info line *((char*)f2950 + 8)",
            "info symbol f1",
            "info symbol f1500",
            "info symbol f2899",
        ],
    );
    assert!(said.contains("f2950 in section .text of"), "{said}");
    assert!(said.contains("Line 14751 of"), "{said}");
    for gone in ["f1", "f1500", "f2899"] {
        let unknown = format!("No symbol \"{gone}\" in current context.");
        assert!(said.contains(&unknown), "{gone}: {said}");
    }
}

#[test]
fn a_name_with_colons_is_a_function_and_no_place() {
    if !have(&[Privilege::Kernel, Privilege::Trace]) {
        return;
    }
    let said = gdb(
        "100 colon",
        &["set breakpoint pending off", "break many:f7:0", "break -function 'many:f7:0'"],
    );
    assert!(said.contains("No source file named many."), "{said}");
    let set = said.lines().filter(|line| line.starts_with("Breakpoint ")).count();
    assert_eq!(set, 1, "{said}");
}

//! The example `jit_module` in a process of its own, and what it announces.

use std::path::PathBuf;
use std::process::Command;

use jitdump::{CodeEvent, Dump};

/// The example, which cargo builds with the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    test.ancestors().nth(2).expect("the folder of the build").join("examples/jit_module")
}

#[test]
fn the_example_announces_its_function() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("jit_module");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut command = Command::new(example());
    command.env("JITSCRIBE", "jitdump").env("JITSCRIBE_DIR", &folder);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "double(21) = 42\n");

    let files: Vec<_> = std::fs::read_dir(&folder).expect("the folder").collect();
    let [Ok(file)] = &files[..] else { panic!("{files:?}") };
    let bytes = std::fs::read(file.path()).expect("a dump");
    let dump = Dump::parse(&bytes).expect("a valid dump");
    let mut names = Vec::new();
    for event in dump.codes() {
        let CodeEvent::Load(code) = event.expect("a valid record") else { continue };
        names.push(String::from_utf8_lossy(code.name).into_owned());
        assert!(!code.bytes.is_empty() && code.unwind().is_some(), "{code:?}");
        let mut lines: Vec<_> = code.lines().map(|line| (line.file, line.line)).collect();
        lines.dedup();
        assert_eq!(lines, [1, 2, 3].map(|line| (&b"double.lang"[..], line)));
    }
    assert_eq!(names, ["double"]);
}

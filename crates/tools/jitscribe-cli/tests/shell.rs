//! Completions and man pages know every verb.

use std::process::Command;

fn printed(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitscribe")).args(args).output().expect("starts");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn completions_and_man_pages_name_every_verb() {
    let (bash, man) = (printed(&["completions", "bash"]), printed(&["man"]));
    for verb in ["record", "inject", "dump", "check", "demo"] {
        assert!(bash.contains(verb), "{verb}");
        assert!(man.contains(&format!(".TH jitscribe-{verb} 1")), "{verb}");
    }
    assert!(man.contains("perf record \\-k mono"), "examples belong to the pages");
}

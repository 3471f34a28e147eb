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

#[test]
fn help_has_examples() {
    for verb in ["dump jit-4711.dump", "check"] {
        let name = verb.split(' ').next().expect("a verb");
        for help in ["-h", "--help"] {
            let page = printed(&[name, help]);
            assert!(page.contains(&format!("EXAMPLES:\n  jitscribe {verb}")), "{page}");
        }
    }
}

#[test]
fn each_verb_has_a_man_page_of_its_own() {
    let list = printed(&["man", "--list"]);
    let names: Vec<&str> = list.lines().collect();
    assert!(names.starts_with(&["jitscribe"]) && names.contains(&"jitscribe-inject"), "{list}");
    let mut pages = String::new();
    for name in &names {
        let page = printed(&["man", name.strip_prefix("jitscribe-").unwrap_or(name)]);
        assert_eq!(page.matches(".TH ").count(), 1, "{page}");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        pages += &page;
    }
    assert_eq!(pages, printed(&["man"]));

    let mut unknown = Command::new(env!("CARGO_BIN_EXE_jitscribe"));
    let refused = unknown.args(["man", "no-such-verb"]).output().expect("starts");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

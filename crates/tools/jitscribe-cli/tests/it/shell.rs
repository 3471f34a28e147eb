//! Completions and man pages know every verb.

use crate::common::Bench;

fn printed(words: &str) -> String {
    Bench::new().ask(words).ok().stdout
}

#[test]
fn help_has_examples() {
    for verb in ["dump jit-4711.dump", "check"] {
        let name = verb.split(' ').next().expect("a verb");
        for help in ["-h", "--help"] {
            let page = printed(&format!("{name} {help}"));
            assert!(page.contains(&format!("EXAMPLES:\n  jitscribe {verb}")), "{page}");
        }
    }
}

#[test]
fn each_verb_has_completions_and_a_man_page_of_its_own() {
    let (bash, man, list) = (printed("completions bash"), printed("man"), printed("man --list"));
    for verb in ["record", "inject", "dump", "check", "demo"] {
        assert!(bash.contains(verb), "{verb}");
        assert!(list.lines().any(|name| name == format!("jitscribe-{verb}")), "{list}");
    }
    assert!(man.contains("perf record \\-k mono"), "examples belong to the pages");
    assert!(list.starts_with("jitscribe\n"), "{list}");
    let mut pages = String::new();
    for name in list.lines() {
        let page = printed(&format!("man {}", name.strip_prefix("jitscribe-").unwrap_or(name)));
        assert_eq!(page.matches(".TH ").count(), 1, "{page}");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        pages += &page;
    }
    assert_eq!(pages, man);
    Bench::new().ask("man no-such-verb").ends(2);
}

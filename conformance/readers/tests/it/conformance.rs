//! Runs four readers on the conformance files, and compares the table in `docs/format.md` with what they make of them.
//!
//! `UPDATE_CONFORMANCE=1 cargo test -p conformance-readers --test it conformance::` writes the table.

use std::fs;

use conformance_readers::{BEGIN, END, table};
use jitdump_conformance::{Verdict, all, check_files, folder, run_all};

use crate::codelog::root;

#[test]
fn the_files_are_what_the_program_makes() {
    let wrong = check_files(&folder(), &all()).expect("the folder of the files");
    assert_eq!(wrong, [""; 0], "run `cargo run -p jitdump-conformance -- make`");
}

/// The maker must not contain a reader: then the expected readings cannot come from one.
#[test]
fn the_maker_contains_no_reader() {
    let text = fs::read_to_string(root().join("conformance/Cargo.toml")).expect("a manifest");
    let (_, dependencies) = text.split_once("[dependencies]").expect("dependencies");
    let lines: Vec<&str> = dependencies.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["serde_json.workspace = true"]);
}

#[test]
fn names_and_rules_differ() {
    let cases = all();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    for case in &cases {
        assert!(case.rule.ends_with('.') && !case.needs.is_empty(), "{}", case.name);
        assert!(!case.rule.contains('|'), "{}", case.name);
    }
}

/// Most of what `jitdump` and `code-log` do when they read is tested here.
#[test]
fn our_reader_finds_what_a_correct_reader_finds() {
    let cases = all();
    let command = [env!("CARGO_BIN_EXE_read-with-jitdump").to_owned()];
    let verdicts = run_all(&command, &cases, &folder());
    let wrong: Vec<_> = cases
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| *verdict != Verdict::Passes)
        .map(|(case, verdict)| (&case.name, verdict))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use end_to_end::tool::{run, tool};

    use super::*;
    use crate::codelog::{SOURCE, codelog, go};

    /// The tests of the package, its fuzz targets on their seeds among them.
    #[test]
    fn the_go_package_passes_its_tests() {
        let unformatted = run(tool("gofmt").args(["-l", "."]).current_dir(root().join(SOURCE)));
        assert_eq!(unformatted.stdout, "");
        run(&mut go(&["vet", "./..."]));
        run(&mut go(&["test", "./..."]));
    }

    #[test]
    fn the_table_in_the_docs_is_what_readers_find() {
        let cases = all();
        let dir = tempfile::tempdir().expect("a temporary folder");
        let codelog = codelog(dir.path()).to_string_lossy().into_owned();
        let readers: [(&str, Vec<String>); 4] = [
            ("jitdump, code-log", vec![env!("CARGO_BIN_EXE_read-with-jitdump").to_owned()]),
            ("Go", vec![codelog, "read".to_owned()]),
            (
                "linux-perf-data 0.13",
                vec![env!("CARGO_BIN_EXE_read-with-linux-perf-data").to_owned()],
            ),
            ("perf inject 6.1", vec![env!("CARGO_BIN_EXE_read-with-perf").to_owned()]),
        ];
        let verdicts: Vec<(&str, Vec<Verdict>)> = readers
            .iter()
            .map(|(name, command)| (*name, run_all(command, &cases, &folder())))
            .collect();
        let mut wrong = String::new();
        for (name, verdicts) in &verdicts {
            for (case, verdict) in cases.iter().zip(verdicts) {
                if let Verdict::Differs(how) = verdict {
                    let how: String = how.chars().take(300).collect();
                    let line = format!("{name}: {}: {how}\n", case.name);
                    // Where other readers differ is in the table.
                    if *name == "Go" || name.starts_with("jitdump") {
                        wrong.push_str(&line);
                    }
                    #[expect(clippy::print_stdout, reason = "for `--nocapture`")]
                    {
                        print!("{line}");
                    }
                }
            }
        }
        assert_eq!(wrong, "", "our own readers pass all");
        // Perhaps the runner accepts anything.
        let passed = |name: &str| {
            let (_, verdicts) =
                verdicts.iter().find(|(reader, _)| *reader == name).expect("a reader");
            verdicts.iter().filter(|verdict| **verdict == Verdict::Passes).count()
        };
        for name in ["linux-perf-data 0.13", "perf inject 6.1"] {
            assert!((20..cases.len() - 20).contains(&passed(name)), "{name}: {}", passed(name));
        }

        let path = root().join("docs/format.md");
        let docs = fs::read_to_string(&path).expect("docs/format.md");
        let made = table(&cases, &verdicts);
        let (before, rest) = docs.split_once(BEGIN).expect("the line before the table");
        let (found, after) = rest.split_once(END).expect("the line behind the table");
        if std::env::var_os("UPDATE_CONFORMANCE").is_some() {
            let beside = path.with_extension("md.new");
            fs::write(&beside, format!("{before}{BEGIN}\n\n{made}\n{END}{after}"))
                .expect("written");
            fs::rename(&beside, &path).expect("renamed");
            return;
        }
        assert!(
            found.trim() == made.trim(),
            "the table in docs/format.md differs. Run this test with UPDATE_CONFORMANCE=1. It would be:\n{made}"
        );
    }
}

//! Regular expressions that PCRE2 compiles, found in memory: PCRE2 itself says how large the code of each is.

use std::fs;
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::live::workload;
use end_to_end::record::{Record, Recorded};
use end_to_end::running::Running;
use end_to_end::runtimes::script;
use test_privilege::needs;

#[test]
fn dump_lists_expressions_as_pcre2_does() {
    needs!(Trace);
    let mut command = Command::new("python3");
    command.arg(workload("expressions.py")).stdout(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut said: Vec<(u64, String)> = Vec::new();
    for line in running.lines_until("ready") {
        if let Some((size, pattern)) = line.trim_end().split_once(' ') {
            said.push((size.parse().expect("a size"), format!("regex \"{pattern}\"")));
        }
    }
    let pid = running.pid().to_string();
    let mut listed: Vec<(u64, String)> =
        json_lines(jitscribe().args(["dump", "--json", "-p", &pid]))
            .iter()
            .filter(|event| event["event"] == "load")
            .map(|event| {
                let name = event["name"].as_str().expect("a name");
                (event["size"].as_u64().expect("a size"), name.to_owned())
            })
            .filter(|(_, name)| name.starts_with("regex "))
            .collect();
    said.sort();
    listed.sort();
    assert!(said.len() > 4, "{said:?}");
    assert_eq!(listed, said);
}

/// Nearly all samples in jitted code are in expressions with these names.
fn has_names(recorded: &Recorded, names: &[&str]) {
    let counts = &recorded.report["samples"];
    let count = |name: &str| counts[name].as_u64().unwrap_or_else(|| panic!("{name}: {counts}"));
    let jitted = count("named") + count("inferred") + count("unnamed");
    assert!(count("named") > 50 && count("named") * 100 >= jitted * 90, "{counts}");
    let top = recorded.report["top"].as_array().expect("functions");
    for name in names {
        let is_it = |function: &&serde_json::Value| function["name"] == **name;
        let function = top.iter().find(is_it);
        assert!(function.is_some(), "{name}: {top:?}");
    }
}

#[test]
fn record_names_expressions_of_php() {
    needs!(Perf);
    needs!(Trace);
    let program = ["php", &script("expressions.php"), "2"];
    let recorded = Record::new(&["-F", "999"]).program(&program);
    let names = [
        r#"regex "(?i)(\w+)-agent:\s+([a-z]+)\s+(\d{3,5})""#,
        r#"regex "(?m)^GET (?<path>\S+) HTTP/\d\.\d.*ok$""#,
    ];
    has_names(&recorded, &names);
}

#[test]
fn record_names_expressions_of_git_grep() {
    needs!(Perf);
    needs!(Trace);
    let record = Record::new(&["-F", "999"]);
    let line = format!("{}\n", "going on with reading ".repeat(12));
    fs::write(record.folder().join("text"), line.repeat(200_000)).expect("a file");
    let pattern = r"(\w+)\s.*\s(\w+)ing\b.*(?=\d)";
    // Nothing is found: git reports that.
    let command = format!("git grep --no-index -P -c '{pattern}' -- text || true");
    let recorded = record.program(&["sh", "-c", &command]);
    has_names(&recorded, &[&format!("regex \"(?m){pattern}\"")]);
}

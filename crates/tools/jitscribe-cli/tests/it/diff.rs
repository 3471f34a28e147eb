//! `jitscribe diff --html` on recordings of perf, and the page in Chromium.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Bench, Done};
use crate::inject::recording::Recording;
use test_browser::{Browser, Seen};

/// Two programs of one name, whose parts take different times.
const PROGRAM: &str = "
def hottest(n):
    return sum(i * i for i in range(n))
def sorting(n):
    return sorted(range(n, 0, -1), key=lambda i: -i)
for _ in range(30):
    hottest(FIRST)
    sorting(SECOND)
";

fn diff(bench: &Bench, words: &[&str]) -> Done {
    bench.ask(&[&["diff"], words].concat())
}

fn record(bench: &Bench, name: &str, first: u32, second: u32) {
    let program = PROGRAM.replace("FIRST", &first.to_string());
    bench.write("program.py", &program.replace("SECOND", &second.to_string()));
    bench.run(&["perf", "record", "-q", "-g", "-o", name, "--", "python3", "program.py"]);
}

#[test]
fn only_a_page_of_ours_is_replaced_without_force() {
    let bench = Bench::new();
    let recording = Recording::new().comm(1, 1, "app", 1).sample(1, 0x1000, 2).file();
    fs::write(bench.path("one.data"), recording).expect("a recording");
    let words = ["--html", "-q", "one.data", "one.data"];
    bench.write("diff.html", "<!DOCTYPE html>\nmine");
    let refused = diff(&bench, &words);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("diff.html") && refused.stderr.contains("--force"));
    assert_eq!(
        fs::read_to_string(bench.path("diff.html")).expect("a file"),
        "<!DOCTYPE html>\nmine"
    );
    let forced = diff(&bench, &["--html", "-q", "--force", "one.data", "one.data"]);
    assert_eq!((forced.code, forced.stderr.as_str()), (0, ""));
    assert_eq!(diff(&bench, &words).code, 0);
    let printed = diff(&bench, &["--html", "-q", "-o", "-", "one.data", "one.data"]);
    let written = fs::read_to_string(bench.path("diff.html")).expect("a page");
    assert_eq!((printed.code, printed.stdout == written), (0, true));
    // Options that say nothing to a page are refused.
    for words in [
        &["--html", "--json"][..],
        &["-o", "other.html"],
        &["--open"],
        &["--html", "--open", "-o", "-"],
    ] {
        let words = [words, &["one.data", "one.data"]].concat();
        assert_eq!(diff(&bench, &words).code, 2, "{words:?}");
    }
    assert!(!bench.path("other.html").exists());
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn two_recordings_become_one_page() {
        let bench = Bench::new();
        record(&bench, "before.data", 20_000, 40_000);
        record(&bench, "after.data", 60_000, 40_000);
        let done = diff(&bench, &["--html", "before.data", "after.data"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stdout.is_empty() && done.stderr.contains("written: diff.html"),
            "{}",
            done.stderr
        );
        let counts = ["before.data", "after.data"].map(|name| bench.samples(name));
        for (name, count) in ["before.data", "after.data"].into_iter().zip(counts) {
            let text = format!("{name} ({count} samples)");
            assert!(done.stderr.contains(&text), "{text}: {}", done.stderr);
        }

        // The page has the rows of the text.
        let mut browser = Browser::start();
        for (words, fragment) in
            [(&["--json"][..], ""), (&["--json", "--total"], "#compared=total")]
        {
            let printed = diff(&bench, &[words, &["before.data", "after.data"]].concat());
            let printed: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
            let mut expected: Vec<(String, u64, u64, String)> = Vec::new();
            for row in printed["functions"].as_array().expect("rows") {
                let text = |key: &str| row[key].as_str().expect("a text").to_owned();
                let count = |key: &str| row[key].as_u64().expect("a number");
                let verdict = match (text("verdict").as_str(), count("before"), count("after")) {
                    ("more", 0, _) => "new".to_owned(),
                    ("less", _, 0) => "gone".to_owned(),
                    (verdict, ..) => verdict.to_owned(),
                };
                expected.push((text("name"), count("before"), count("after"), verdict));
            }
            let mut page = browser.open(&bench.path("diff.html"), fragment, (1200, 900));
            let rows = page.eval("(() => { const {session: {comparison, state}} = jitscribe; const {before, after, byChance} = comparison[state.compared];
                return [...before.keys()].filter((id) => before[id] + after[id] > 0).map((id) =>
                  [comparison.name(id), before[id], after[id], comparison.verdict({before: before[id], after: after[id], byChance: byChance[id]})]); })()");
            let mut shown: Vec<(String, u64, u64, String)> =
                serde_json::from_value(rows).expect("rows");
            expected.sort();
            shown.sort();
            assert_eq!(shown, expected);
            assert!(shown.len() > 10, "{shown:?}");
            // The root has all samples, and each box those of the boxes below and its own.
            let tree = page.eval("(() => { const {node} = jitscribe.session.comparison;
                return [...node.parent.keys()].map((row) => [node.parent[row], node.own.before[row], node.own.after[row], node.total.before[row], node.total.after[row]]); })()");
            let tree: Vec<[i64; 5]> = serde_json::from_value(tree).expect("nodes");
            let mut sums: BTreeMap<i64, [i64; 2]> = BTreeMap::new();
            for row in tree.iter().rev() {
                let sum = sums.entry(row[0]).or_default();
                (sum[0], sum[1]) = (sum[0] + row[3], sum[1] + row[4]);
            }
            assert_eq!(sums[&-1].map(|sum| sum as usize), counts);
            for (place, row) in (0..).zip(&tree) {
                let below = sums.get(&place).copied().unwrap_or_default();
                assert_eq!([row[1] + below[0], row[2] + below[1]], [row[3], row[4]]);
            }
            assert_eq!(page.finish(), Seen::default());
        }
    }

    #[test]
    fn several_recordings_of_each_side() {
        let bench = Bench::new();
        let names = ["b1.data", "b2.data", "a1.data", "a2.data"];
        for (name, first) in names.into_iter().zip([20_000, 22_000, 90_000, 92_000]) {
            record(&bench, name, first, 40_000);
        }
        let counts = names.map(|name| bench.samples(name) as u64);
        let sides = ["--before", "b1.data", "b2.data", "--after", "a1.data", "a2.data"];
        for measure in ["share", "time"] {
            let printed = diff(&bench, &[&["--json", "--by", measure][..], &sides].concat());
            assert_eq!(printed.code, 0, "{}", printed.stderr);
            let printed: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
            assert_eq!(printed["recordings"], serde_json::json!(names));
            assert_eq!(printed["runs_before"], serde_json::json!(counts[..2]));
            assert_eq!(printed["runs_after"], serde_json::json!(counts[2..]));
            assert_eq!(printed["samples_before"], counts[0] + counts[1]);
            // The functions of each recording add up to it.
            for (key, run) in
                ["runs_before", "runs_after"].into_iter().flat_map(|key| [(key, 0), (key, 1)])
            {
                let of = |row: &serde_json::Value| row[key][run].as_u64().expect("a number");
                let rows = printed["functions"].as_array().expect("rows");
                assert_eq!(
                    printed[key][run],
                    rows.iter().map(of).sum::<u64>(),
                    "{measure} {key} {run}"
                );
            }
        }
        let printed = diff(&bench, &sides);
        let head = format!(
            "before: {} samples in 2 recordings; after: {} samples in 2 recordings",
            counts[0] + counts[1],
            counts[2] + counts[3]
        );
        assert!(printed.stdout.replace(',', "").starts_with(&head), "{}", printed.stdout);

        let done = diff(&bench, &[&["--html"][..], &sides].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stderr.contains("b1.data, b2.data ("), "{}", done.stderr);
        let mut browser = Browser::start();
        let mut page = browser.open(&bench.path("diff.html"), "", (1200, 900));
        let text = page.text("#selection").replace(',', "");
        assert!(
            text.contains(&format!("before: {} samples in 2 recordings", counts[0] + counts[1])),
            "{text}"
        );
        assert_eq!(page.text("#about"), "b1.data, b2.data → a1.data, a2.data");
        assert_eq!(page.finish(), Seen::default());

        for words in [
            &["--before", "b1.data"][..],
            &["--after", "a1.data"],
            &["b1.data", "a1.data", "--before", "b2.data", "--after", "a2.data"],
            &["b1.data"],
        ] {
            assert_eq!(diff(&bench, words).code, 2, "{words:?}");
        }
        // One of one side tells nothing of how much its runs differ, and is compared with those of the other.
        let words = ["--before", "b1.data", "--after", "a1.data", "a2.data"];
        assert_eq!(diff(&bench, &words).code, 0);
    }
}

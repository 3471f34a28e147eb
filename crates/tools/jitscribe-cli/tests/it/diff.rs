//! `jitscribe diff --html` on recordings of perf, and the page in Chromium.

use std::collections::BTreeMap;

use crate::common::Bench;
use crate::inject::recording::Recording;
use serde_json::json;
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

fn record(bench: &Bench, name: &str, first: u32, second: u32) {
    let program = PROGRAM.replace("FIRST", &first.to_string());
    bench.write("program.py", program.replace("SECOND", &second.to_string()));
    bench.run(&format!("perf record -q -g -o {name} -- python3 program.py"));
}

#[test]
fn only_a_page_of_ours_is_replaced_without_force() {
    let recording = Recording::new().comm(1, 1, "app", 1).sample(1, 0x1000, 2).file();
    let bench = Bench::with("one.data", recording);
    bench.expect_replaced_by_force("diff.html", "diff --html -q one.data one.data");
    // Options that say nothing to a page are refused.
    for options in ["--html --json", "-o other.html", "--open", "--html --open -o -"] {
        bench.ask(&format!("diff {options} one.data one.data")).ends(2);
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
        let done = bench.ask("diff --html before.data after.data").ok();
        assert_eq!(done.stdout, "");
        done.says("written: diff.html");
        let counts = ["before.data", "after.data"].map(|name| {
            let count = bench.samples(name);
            done.says(&format!("{name} ({count} samples)"));
            count
        });

        // The page has the rows of the text.
        let mut browser = Browser::start();
        for (option, fragment) in [("", ""), ("--total", "#compared=total")] {
            let printed = bench.ask(&format!("diff --json {option} before.data after.data")).json();
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
            for [parent, _, _, before, after] in tree.iter().rev() {
                let sum = sums.entry(*parent).or_default();
                (sum[0], sum[1]) = (sum[0] + before, sum[1] + after);
            }
            assert_eq!(sums[&-1].map(|sum| sum as usize), counts);
            for (place, [_, own_before, own_after, before, after]) in (0..).zip(&tree) {
                let below = sums.get(&place).copied().unwrap_or_default();
                assert_eq!([own_before + below[0], own_after + below[1]], [*before, *after]);
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
        let (before, after) = (counts[0] + counts[1], counts[2] + counts[3]);
        let sides = "--before b1.data b2.data --after a1.data a2.data";
        for measure in ["share", "time"] {
            let printed = bench.ask(&format!("diff --json --by {measure} {sides}")).ok().json();
            assert_eq!(printed["recordings"], json!(names));
            assert_eq!(printed["samples_before"], before);
            for (key, counts) in [("runs_before", &counts[..2]), ("runs_after", &counts[2..])] {
                assert_eq!(printed[key], json!(counts));
                // The functions of each recording add up to it.
                for (run, count) in counts.iter().enumerate() {
                    let rows = printed["functions"].as_array().expect("rows").iter();
                    let sum: u64 = rows.map(|row| row[key][run].as_u64().expect("a number")).sum();
                    assert_eq!(sum, *count, "{measure} {key} {run}");
                }
            }
        }
        let printed = bench.ask(&format!("diff {sides}")).stdout.replace(',', "");
        let of_before = format!("before: {before} samples in 2 recordings");
        let head = format!("{of_before}; after: {after} samples in 2 recordings");
        assert!(printed.starts_with(&head), "{printed}");

        bench.ask(&format!("diff --html {sides}")).ok().says("b1.data, b2.data (");
        let mut browser = Browser::start();
        let mut page = browser.open(&bench.path("diff.html"), "", (1200, 900));
        let text = page.text("#selection").replace(',', "");
        assert!(text.contains(&of_before), "{text}");
        assert_eq!(page.text("#about"), "b1.data, b2.data → a1.data, a2.data");
        assert_eq!(page.finish(), Seen::default());

        for words in [
            "--before b1.data",
            "--after a1.data",
            "b1.data a1.data --before b2.data --after a2.data",
            "b1.data",
        ] {
            bench.ask(&format!("diff {words}")).ends(2);
        }
        // One of one side tells nothing of how much its runs differ, and is compared with those of the other.
        bench.ask("diff --before b1.data --after a1.data a2.data").ok();
    }
}

//! `jitscribe report` on a recording of node, and the page in Chromium.

use std::fs;
use std::path::Path;

use crate::common::{Bench, Done, finish};
use serde_json::Value;
use test_browser::{Browser, Seen};

const PROGRAM: &str = "// Adds numbers for a while.
function hottest(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) {
    sum = (sum + i * i) % 1000003;
  }
  return sum;
}
let all = 0;
const end = Date.now() + 1500;
while (Date.now() < end) all += hottest(200000);
";

fn report(bench: &Bench, words: &[&str]) -> Done {
    bench.ask(&[&["report"], words].concat())
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn a_recording_of_node_shows_functions_source_and_assembly() {
        let bench = Bench::new();
        bench.write("hot.js", PROGRAM);
        let recorded = bench.record(&["-o", "run.data", "--", "node", "hot.js"]);
        assert_eq!(recorded.code, 0, "{}", recorded.stderr);
        let done = report(&bench, &["-i", "run.data"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(
            done.stdout.is_empty() && done.stderr.contains("written: report.html"),
            "{}",
            done.stderr
        );

        // As many samples as perf counts.
        let samples = bench.samples("run.data");
        let shown = format!("{samples} samples");
        assert!(done.stderr.contains(&shown), "{shown}: {}", done.stderr);

        let mut browser = Browser::start();
        let mut page = browser.open(&bench.path("report.html"), "#view=functions", (1400, 900));
        let selection = page.text("#selection").replace(',', "");
        assert_eq!(selection, format!("{samples} of {samples} samples"));
        let first = page.eval(
            "[...document.querySelector('#functions .row').children].map((cell) => cell.innerText)",
        );
        assert_eq!(first[4], "hottest", "{first}");
        assert!(first[5].as_str().is_some_and(|kind| kind.starts_with("jitted")), "{first}");
        page.click("#functions .row .name");
        page.key("Enter");
        page.eval("new Promise((done) => { const look = () => document.querySelector('.instruction') ? done() : setTimeout(look, 5); look(); })");
        page.settle();
        let line = page.eval(
            "[...document.querySelectorAll('.source-line')].map((row) => row.children[3].innerText)",
        );
        let line = |number: usize| line[number - 1].as_str().unwrap_or_default().to_owned();
        assert_eq!(line(5), "    sum = (sum + i * i) % 1000003;");
        let hot = page.eval("[...document.querySelectorAll('.instruction')].filter((row) => row.children[0].innerText !== '').length");
        assert!(hot.as_u64().is_some_and(|hot| hot > 0), "{hot}");
        assert_eq!(page.finish(), Seen::default());
    }

    #[test]
    fn only_a_report_is_replaced_without_force() {
        let bench = Bench::new();
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let record = ["perf", "record", "-q", "-o", "native.data", "--", "sh", "-c", spin];
        assert_eq!(bench.run(&record), "");
        bench.write("report.html", "<!DOCTYPE html>\nmine");
        let refused = report(&bench, &["-i", "native.data"]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("report.html") && refused.stderr.contains("--force"),
            "{}",
            refused.stderr
        );
        assert_eq!(
            fs::read_to_string(bench.path("report.html")).expect("a file"),
            "<!DOCTYPE html>\nmine"
        );
        assert_eq!(report(&bench, &["-q", "-i", "native.data", "--force"]).stderr, "");
        // A report is replaced; one to standard output is the same.
        assert_eq!(report(&bench, &["-q", "-i", "native.data"]).code, 0);
        let printed = report(&bench, &["-q", "-i", "native.data", "-o", "-"]);
        let written = fs::read_to_string(bench.path("report.html")).expect("a report");
        assert_eq!((printed.code, printed.stdout == written), (0, true));
        // Of a recording without any JIT.
        let mut browser = Browser::start();
        let mut page = browser.open(&bench.path("report.html"), "", (1000, 700));
        let kinds = page.eval("jitscribe.session.categories.list.map((each) => each.kind)");
        let kinds: Vec<&str> =
            kinds.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert!(kinds.contains(&"native") && !kinds.contains(&"jitted"), "{kinds:?}");
        assert_eq!(page.finish(), Seen::default());

        let usage = report(&bench, &["-i", "native.data", "-o", "-", "--open"]);
        assert_eq!(usage.code, 2, "{}", usage.stderr);
        let absent = report(&bench, &["-i", "none.data", "-o", "other.html"]);
        assert_eq!(absent.code, 1, "{}", absent.stderr);
        assert!(!bench.path("other.html").exists());
        // The browser gets the absolute path of what was written.
        bench.write(
            "browser",
            "#!/bin/sh\nprintf %s \"$1\" > opened.part && mv opened.part opened\n",
        );
        let mut command = bench.jitscribe("report");
        command.args(["-i", "native.data", "--open"]).env("BROWSER", bench.path("browser"));
        bench.run(&["chmod", "+x", "browser"]);
        assert_eq!(finish(command).code, 0);
        while !bench.path("opened").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let opened = fs::read_to_string(bench.path("opened")).expect("a path");
        assert!(Path::new(&opened).is_absolute() && opened.ends_with("/report.html"), "{opened}");
    }
}

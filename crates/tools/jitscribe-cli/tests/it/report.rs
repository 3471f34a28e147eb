//! `jitscribe report` on a recording of node, and the page in Chromium.

use crate::common::{Bench, finish, wait_until};
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

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn a_recording_of_node_shows_functions_source_and_assembly() {
        let bench = Bench::with("hot.js", PROGRAM);
        bench.record("-o run.data -- node hot.js").ok();
        let done = bench.ask("report -i run.data").ok();
        // As many samples as perf counts.
        let samples = bench.samples("run.data");
        done.says("written: report.html").says(&format!("{samples} samples"));
        assert_eq!(done.stdout, "");

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
        let lines = page.eval(
            "[...document.querySelectorAll('.source-line')].map((row) => row.children[3].innerText)",
        );
        assert_eq!(lines[4], "    sum = (sum + i * i) % 1000003;");
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
        bench.expect_replaced_by_force("report.html", "report -q -i native.data");
        // Of a recording without any JIT.
        let mut browser = Browser::start();
        let mut page = browser.open(&bench.path("report.html"), "", (1000, 700));
        let kinds = page.eval("jitscribe.session.categories.list.map((each) => each.kind)");
        let kinds: Vec<String> = serde_json::from_value(kinds).expect("a list");
        let has = |kind: &str| kinds.iter().any(|it| it == kind);
        assert!(has("native") && !has("jitted"), "{kinds:?}");
        assert_eq!(page.finish(), Seen::default());

        bench.ask("report -i native.data -o - --open").ends(2);
        bench.ask("report -i none.data -o other.html").ends(1);
        assert!(!bench.path("other.html").exists());
        // The browser gets the absolute path of what was written.
        let script = "#!/bin/sh\nprintf %s \"$1\" > opened.part && mv opened.part opened\n";
        bench.write("browser", script).run("chmod +x browser");
        let mut open = bench.jitscribe("report -i native.data --open");
        finish(open.env("BROWSER", bench.path("browser"))).ok();
        wait_until("the browser has it", || bench.path("opened").exists());
        let opened = String::from_utf8(bench.read("opened")).expect("a path");
        assert!(opened.starts_with('/') && opened.ends_with("/report.html"), "{opened}");
    }
}

//! SBCL, whose functions are named by the lines of Lisp in the documentation.

use std::fs;
use std::path::Path;

use end_to_end::record::{Record, Recorded};

const PROGRAM: &str = "(defun leaf (n) (declare (fixnum n))
  (let ((s 0)) (declare (fixnum s)) (dotimes (i n s) (setf s (mod (+ (* 31 s) i) 1000003)))))
(defun outer () (dotimes (i 100) (leaf 1000)))
(defun sorted () (sort (loop for i below 2000 collect (random 100000)) #'<))
(let ((end (+ (get-internal-run-time) (* 2 internal-time-units-per-second))))
  (loop while (< (get-internal-run-time) end) do (outer) (sorted)))
";

/// The lines of Lisp in the documentation.
fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/runtimes/sbcl.md");
    let page = fs::read_to_string(path).expect("the page");
    let (_, rest) = page.split_once("```lisp\n").expect("lines of Lisp");
    rest.split_once("```").expect("their end").0.to_owned()
}

fn recorded(words: &[&str]) -> Recorded {
    let record = Record::new(&["-F", "499", "--force"]);
    fs::write(record.folder().join("perf-map.lisp"), documented()).expect("a file");
    fs::write(record.folder().join("app.lisp"), PROGRAM).expect("a program");
    record.program(&[&["sbcl", "--noinform"], words].concat())
}

#[test]
fn the_documented_lines_name_all_functions() {
    let recorded = recorded(&["--load", "perf-map.lisp", "--script", "app.lisp"]);
    let samples = recorded.samples();
    let of_sbcl = samples.iter().filter(|sample| {
        sample.dso.contains(".jit/")
            || sample.dso.ends_with("sbcl.core")
            || sample.in_anonymous_memory()
    });
    let names: Vec<_> = of_sbcl.map(|sample| sample.name().unwrap_or("[unknown]")).collect();
    let count = |wanted: &str| names.iter().filter(|name| **name == wanted).count();
    assert!(names.len() > 200, "{names:?}");
    // SBCL starts before the lines are loaded, and runs them.
    assert!(count("[unknown]") * 20 < names.len(), "{names:?}");
    assert!(count("LEAF") * 5 > names.len(), "{names:?}");
    assert!(names.iter().any(|name| name.contains("STABLE-SORT-LIST")), "{names:?}");
    let map = recorded.said.split_whitespace().find(|word| word.starts_with("/tmp/perf-"));
    fs::remove_file(map.expect("the path of a map")).expect("removed");
}

#[test]
fn without_them_record_says_what_to_do() {
    let said = recorded(&["--script", "app.lisp"]).said;
    for part in
        ["are in compiled functions without symbols: [sbcl.core]", "it is SBCL without a perf map"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

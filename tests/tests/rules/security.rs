//! Checks that the tests exist which SECURITY.md names for its promises.

use std::fs;
use std::path::{Path, PathBuf};

use end_to_end::tool::crate_dir;

fn root() -> &'static Path {
    crate_dir().parent().expect("the workspace")
}

/// The file that a cell names: below the repository, below `tests/tests`, or beside the file that it named before.
fn file(name: &str, before: Option<&Path>) -> Option<PathBuf> {
    let beside = before.into_iter().flat_map(|before| before.ancestors().skip(1).take(2));
    let folders = [root().to_owned(), crate_dir().join("tests")];
    let folders = folders.into_iter().chain(beside.map(Path::to_owned));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[test]
fn each_promise_has_a_test_that_exists() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("a file");
    let (_, table) = text.split_once("| Who runs what | Promise | Test |\n").expect("a table");
    let rows: Vec<&str> = table.lines().skip(1).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for row in rows {
        let tests = row.trim_end_matches(['|', ' ']).rsplit('|').next().expect("a cell");
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(names.iter().any(|name| name.ends_with(".rs")), "no test: {row}");
        let mut before: Option<PathBuf> = None;
        for name in names {
            if name.ends_with(".rs") {
                let found = file(name, before.as_deref());
                let path = found.unwrap_or_else(|| panic!("there is no {name}: {row}"));
                let code = fs::read_to_string(&path).expect("a file");
                let is_tested = ["#[test]", "TESTS: &[Test]", "fn main()"];
                assert!(is_tested.iter().any(|word| code.contains(word)), "{name} tests nothing");
                before = Some(path);
            } else {
                let path = before.as_deref().expect("a file before it");
                let code = fs::read_to_string(path).expect("a file");
                assert!(code.contains(&format!("fn {name}(")), "{} has no {name}", path.display());
            }
        }
    }
}

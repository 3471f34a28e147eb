//! `go tool pprof` on exported profiles.

use std::collections::BTreeMap;
use std::path::Path;

use crate::tool::{cache, run, tool};

/// What pprof prints of a file. It looks for files of its own in the folder `home`.
#[must_use]
pub fn pprof(file: &Path, home: &Path, options: &[&str]) -> String {
    let path = cache().join("pprof-1.21.13/pprof");
    assert!(path.exists(), "{} is not there: run scripts/setup.sh live", path.display());
    run(tool(path).env("HOME", home).args(options).arg(file)).stdout
}

/// The rows of `pprof -top`: a function's own samples, and with those in what it called.
#[must_use]
pub fn pprof_top(file: &Path, home: &Path, options: &[&str]) -> BTreeMap<String, (u64, u64)> {
    let mut all = vec!["-top", "-sample_index=samples", "-nodefraction=0"];
    all.extend(options);
    let printed = pprof(file, home, &all);
    let rows = printed.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse().expect("a number");
        (words[5].to_owned(), (number(words[0]), number(words[3])))
    };
    rows.map(row).collect()
}

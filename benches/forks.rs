//! What forks cost under the bridge: processor time of a process and its children. `cargo bench -p benches --bench forks`
//!
//! The program is in C (`forks.c`), and the library its release build.

use std::path::Path;
use std::process::Command;

use benches::built::{bridge_and_program, figures};
use benches::table;

const ROUNDS: usize = 9;

/// What is run: lines before the first fork, children, lines before each fork, lines of each child.
type Shape = [u32; 4];

/// Rows, and for some the rows whose work is the same together, without any code that a child inherits.
const ROWS: [(&str, Shape, &[usize]); 6] = [
    ("30,000 lines", [30_000, 0, 0, 0], &[]),
    ("100 children with 1 line each", [0, 100, 0, 1], &[]),
    ("30,000 lines, then 100 children with 1 line each", [30_000, 100, 0, 1], &[0, 1]),
    ("300 times: 400 lines, and a child without", [0, 300, 400, 0], &[]),
    ("300 times: a child with 400 lines", [0, 300, 0, 400], &[]),
    ("300 times: 400 lines, and a child with 400", [0, 300, 400, 400], &[3, 4]),
];

fn main() {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (library, program) = bridge_and_program("forks", made);

    let folder = tempfile::tempdir().expect("a folder");
    let mut times = [const { [const { Vec::new() }; 2] }; ROWS.len()];
    for _ in 0..ROUNDS {
        for ((_, shape, _), times) in ROWS.iter().zip(&mut times) {
            for (with, times) in times.iter_mut().enumerate() {
                let mut command = Command::new(&program);
                command.arg(folder.path()).args(shape.map(|number| number.to_string()));
                if with == 1 {
                    command.env("LD_PRELOAD", &library);
                }
                let figures = figures(command.env_remove("JITSCRIBE"));
                assert_eq!(figures.len(), 1);
                times.extend(figures);
            }
        }
    }
    let medians = times.map(|times| times.map(median));
    let rows: Vec<_> = ROWS
        .iter()
        .zip(&medians)
        .map(|((name, _, parts), [without, with])| {
            let sum: f64 = parts.iter().filter_map(|part| Some(medians.get(*part)?[1])).sum();
            let ratio = if parts.is_empty() { String::new() } else { format!("{:.2}", with / sum) };
            let time = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
            vec![(*name).to_owned(), time(*without), time(*with), ratio]
        })
        .collect();
    let title = format!("Processor time of all processes, median of {ROUNDS} runs by turns.");
    let head = ["", "without the bridge", "with", "of its parts"];
    table::print(&title, &head, &rows).expect("standard output");
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

//! What the bridge adds to a runtime's own writes, by turns with and without it. `cargo bench -p benches --bench bridge`
//!
//! The program is in C (`bridge.c`), and the library its release build. Where `chrt` may be used, it runs at real-time priority.

use std::path::Path;
use std::process::{Command, Stdio};

use benches::built::{bridge_and_program, figures};
use benches::table;

const ROUNDS: usize = 12;
const ROWS: [&str; 3] =
    ["a line into a perf map", "a line into another file", "a write of nothing"];

fn main() {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (library, program) = bridge_and_program("bridge", made);

    let chrt = Command::new("chrt").args(["-f", "1", "true"]).stderr(Stdio::null()).status();
    let is_real_time = chrt.is_ok_and(|status| status.success());
    let folder = tempfile::tempdir().expect("a folder");
    let mut least = [[f64::INFINITY; 3]; 2];
    for _ in 0..ROUNDS {
        for (with, least) in least.iter_mut().enumerate() {
            let mut command = Command::new(if is_real_time { "chrt" } else { "env" });
            if is_real_time {
                command.args(["-f", "1", "env"]);
            }
            if with == 1 {
                // For the program alone.
                let mut setting = std::ffi::OsString::from("LD_PRELOAD=");
                setting.push(&library);
                command.arg(setting);
            }
            command.arg(&program).arg(folder.path());
            let figures = figures(command.env_remove("JITSCRIBE"));
            assert_eq!(figures.len(), ROWS.len());
            for (least, figure) in least.iter_mut().zip(figures) {
                *least = least.min(figure);
            }
        }
    }
    let [without, with] = least;
    let rows: Vec<_> = ROWS
        .iter()
        .enumerate()
        .map(|(row, name)| {
            let time = |nanoseconds: f64| format!("{nanoseconds:.0} ns");
            let more = with[row] - without[row];
            vec![(*name).to_owned(), time(without[row]), time(with[row]), time(more)]
        })
        .collect();
    let title = format!(
        "Least of {ROUNDS} runs by turns{}.",
        if is_real_time { ", chrt -f 1" } else { "" }
    );
    table::print(&title, &["", "without", "with", "more"], &rows).expect("standard output");
}

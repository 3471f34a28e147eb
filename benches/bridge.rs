//! What the bridge adds to a runtime's own writes, by turns with and without it. `cargo bench -p benches --bench bridge`
//!
//! The program is in C (`bridge.c`), and the library its release build. Where `chrt` may be used, it runs at real-time priority.

use std::path::Path;
use std::process::{Command, Stdio};

use benches::table;

const ROUNDS: usize = 12;
const ROWS: [&str; 3] =
    ["a line into a perf map", "a line into another file", "a write of nothing"];

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = made.parent().expect("the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "-p", "jitscribe-preload"]);
    run(build.arg("--target-dir").arg(target).current_dir(here.join("..")));
    let library = target.join("release/libjitscribe_preload.so");
    let program = made.join("bridge");
    run(Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(here.join("bridge.c")));

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

/// What the program printed.
fn figures(command: &mut Command) -> [f64; 3] {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", done.status);
    let printed = String::from_utf8(done.stdout).expect("figures");
    let mut figures = printed.split_whitespace().map(|figure| figure.parse().expect("a figure"));
    std::array::from_fn(|_| figures.next().expect("three figures"))
}

fn run(command: &mut Command) {
    let done = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.success(), "{command:?}: {done}");
}

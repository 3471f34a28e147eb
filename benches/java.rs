//! What agents for Java cost: none, one that does nothing, ours, perf's, and HotSpot's own perf map, by turns.
//! `cargo bench -p benches --bench java [RUNS]`; it prints tables, and takes some six minutes.
//!
//! perf's agent is taken from `PERF_JVMTI=FILE`, or from where packages put it, or is built from the sources of Debian's
//! `linux-source` (`/usr/src/linux-source-*.tar.xz`), in this order; without any of them it is left out, and that is said.

#![allow(clippy::print_stdout, reason = "tables")]

#[path = "java/agents.rs"]
mod agents;
#[path = "java/run.rs"]
mod run;

use std::path::Path;
use std::time::Duration;

use agents::Way;
use run::{Taken, Workload};

/// Enough for medians, in less than five minutes.
const RUNS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let runs = words.first().map_or(RUNS, |word| word.parse().expect("a number of runs"));
    let dir = tempfile::tempdir().expect("a folder");
    agents::compile(&["Load.java", "../../tests/workloads/Tiers.java"], dir.path());
    let ways = agents::ways(dir.path());

    let none = Workload { name: "nothing", steps: 0 };
    table(
        "Start-up: a program that does nothing",
        &ways,
        &measure(&ways, none, 3 * runs, dir.path()),
        &START,
    );
    let tiers = Workload { name: "tiers", steps: 40 };
    table(
        "`Tiers`: a small program at work",
        &ways,
        &measure(&ways, tiers, runs, dir.path()),
        &WORK,
    );
    steady(&ways, dir.path());
    let javac = Workload { name: "javac", steps: 6 };
    table("javac: a large program starts", &ways, &measure(&ways, javac, runs, dir.path()), &WORK);
}

/// What agents take where nothing is left to be compiled: what runs of them runs on these threads.
fn steady(ways: &[Way], dir: &Path) {
    const TIME: Duration = Duration::from_secs(8);
    println!("\nSteady state: what of {TIME:?} is taken by whom\n");
    println!(
        "| | all threads | the service thread | of all | the agent's own | methods compiled |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for way in ways {
        let workload = Workload { name: "steady", steps: 80 };
        let taken = run::steady(way, workload, TIME, dir);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "| {} | {:.0} ms | {:.3} ms | {:.5} % | {:.3} ms | {} |",
            way.name,
            ms(taken.all),
            ms(taken.service),
            100.0 * taken.service.as_secs_f64() / taken.all.as_secs_f64(),
            ms(taken.own),
            taken.methods
        );
    }
}

/// For each run what each way took.
fn measure(ways: &[Way], workload: Workload, runs: usize, dir: &Path) -> Vec<Vec<Taken>> {
    let turn = |_| ways.iter().map(|way| run::run(way, workload, dir)).collect();
    (0..runs).map(turn).collect()
}

/// A column's heading, and its figure for one run.
type Column = (&'static str, fn(&Taken) -> Duration);

const START: [Column; 2] =
    [("until it ends", |taken| taken.wall), ("user and system", |taken| taken.processor)];
const WORK: [Column; 3] = [
    ("first step", |taken| taken.steps.first().copied().unwrap_or_default()),
    ("later steps", |taken| median(&taken.steps[taken.steps.len() / 2..])),
    ("user and system", |taken| taken.processor),
];

/// Medians, each with the median of its ratios to the first way in the same turn.
fn table(title: &str, ways: &[Way], turns: &[Vec<Taken>], columns: &[Column]) {
    println!(
        "\n{title}; medians of {} runs by turns, and the median of the ratios to `none` in the same turn\n",
        turns.len()
    );
    print!("| |");
    columns.iter().for_each(|(heading, _)| print!(" {heading} | |"));
    let has_methods = turns.iter().flatten().any(|taken| taken.methods > 0);
    if has_methods {
        print!(" methods | service thread, a method | on top of `null` |");
    }
    println!("\n|---|{}", "---:|".repeat(2 * columns.len() + if has_methods { 3 } else { 0 }));
    // That of the thread is the sum of all runs: each has few methods.
    let service = |way: usize| {
        let of = |taken: &Taken| (taken.service.as_secs_f64() * 1e6, taken.methods);
        let all = turns.iter().map(|turn| of(&turn[way]));
        let (time, methods) = all.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        time / methods.max(1) as f64
    };
    let null = ways.iter().position(|way| way.name == "null").map(service);
    for (index, way) in ways.iter().enumerate() {
        print!("| {} |", way.name);
        for (_, figure) in columns {
            let all: Vec<Duration> = turns.iter().map(|turn| figure(&turn[index])).collect();
            let ratio = |turn: &Vec<Taken>| {
                let (ours, none) = (figure(&turn[index]), figure(&turn[0]));
                ours.as_secs_f64() / none.as_secs_f64()
            };
            let mut ratios: Vec<f64> = turns.iter().map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            print!(
                " {:.1} ms | {:.3} |",
                median(&all).as_secs_f64() * 1e3,
                ratios[ratios.len() / 2]
            );
        }
        if has_methods {
            let mut methods: Vec<usize> = turns.iter().map(|turn| turn[index].methods).collect();
            methods.sort_unstable();
            let of_null = null.filter(|_| way.has_events);
            let on_top = of_null.map(|null| format!("{:.1} µs", service(index) - null));
            print!(" {} | {:.1} µs |", methods[methods.len() / 2], service(index));
            print!(" {} |", on_top.unwrap_or_default());
        }
        println!();
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

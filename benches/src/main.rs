//! Measures jitscribe side by side with what users have today, and prints tables.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use benches::case::{Bench, Case, Compared, Injected, Taken, Workload};
use benches::measure::Cost;
use benches::table::{self, megabytes, seconds, times};
use benches::{jit, library, logs, profile};
use clap::{Parser, Subcommand};

/// Measures jitscribe side by side with perf inject --jit and with plain copying.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make the workloads, measure, print tables
    Run {
        /// The jitscribe command to measure
        #[arg(long)]
        jitscribe: PathBuf,
        /// Another version of it: its times are shown, too
        #[arg(long, value_name = "JITSCRIBE")]
        before: Option<PathBuf>,
        /// Where to write; some 5 GB with --full. In memory, no disk's speed is in the figures
        #[arg(long, default_value = "/dev/shm")]
        folder: PathBuf,
        /// All sizes, 1 million functions and 1 GB recordings among them: the better part of an hour
        #[arg(long)]
        full: bool,
        /// Measure only one of the tables
        #[arg(long)]
        only: Option<Part>,
        /// Runs of each way to inject, of which the median counts
        #[arg(long, default_value_t = 5)]
        runs: usize,
        /// Run perf inject on no more functions than this: it takes 4 ms and 17 KB of memory a
        /// function
        #[arg(long, default_value_t = 175_000)]
        stock_functions: u32,
        /// A command that takes longer than this is stopped, and its row says so
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        limit: u64,
    },
    /// Be the process that is recorded
    #[command(hide = true)]
    Jit { folder: PathBuf, functions: u32, epochs: u32, milliseconds: u64 },
}

/// One table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// More functions
    Functions,
    /// Functions recompiled at the same addresses
    Epochs,
    /// Longer recordings
    Samples,
    /// perf on what was made
    Reading,
    /// Profiles of callgrind's, and files of valgrind's other tools
    Callgrind,
    /// Announcements, beside what runtimes do without the library
    Library,
}

fn main() -> io::Result<()> {
    match Args::parse().verb {
        Verb::Jit { folder, functions, epochs, milliseconds } => {
            jit::run(&folder, functions, epochs, Duration::from_millis(milliseconds))
        }
        Verb::Run { jitscribe, before, folder, full, only, runs, stock_functions, limit } => {
            let folder = tempfile::Builder::new().prefix("jitscribe-bench-").tempdir_in(folder)?;
            let bench = Bench {
                jitscribe: jitscribe.canonicalize()?,
                before: before.map(|path| path.canonicalize()).transpose()?,
                itself: std::env::current_exe()?,
                folder: folder.path().to_owned(),
                limit: Duration::from_secs(limit),
                stock_functions,
            };
            let parts: [(Part, Table); 6] = [
                (Part::Functions, by_functions),
                (Part::Epochs, by_epochs),
                (Part::Samples, by_samples),
                (Part::Reading, reading),
                (Part::Callgrind, valgrind),
                (Part::Library, announcing),
            ];
            let chosen = parts.iter().filter(|(part, _)| only.is_none_or(|only| only == *part));
            chosen.map(|(_, table)| table).try_for_each(|table| table(&bench, full, runs))
        }
    }
}

/// Measures and prints one table; whether all sizes, and how many runs.
type Table = fn(&Bench, bool, usize) -> io::Result<()>;

/// Samples of a workload: at 5 kHz for 3 s they take about half a megabyte.
const PLAIN: Workload = Workload {
    functions: 10_000,
    epochs: 1,
    time: Duration::from_secs(3),
    options: &["-F", "5000"],
};

/// From so many functions on, perf inject is run once: that takes minutes.
const MANY_FUNCTIONS: u32 = 175_000;

fn by_functions(bench: &Bench, full: bool, runs: usize) -> io::Result<()> {
    let sizes: &[u32] =
        if full { &[10_000, 50_000, 175_000, 1_000_000] } else { &[10_000, 50_000] };
    let mut rows = Vec::new();
    for &functions in sizes {
        let case = bench.record("functions", &Workload { functions, ..PLAIN })?;
        let stock_runs = match functions {
            _ if functions > bench.stock_functions => 0,
            MANY_FUNCTIONS.. => 1,
            _ => runs.min(3),
        };
        let compared = bench.compare(&case, runs, stock_runs)?;
        rows.push(row(&format!("{functions} functions"), &case, &compared)?);
        std::fs::remove_dir_all(bench.folder.join("functions"))?;
    }
    table::print("The same process with more functions.", &head(bench), &rows)
}

fn by_epochs(bench: &Bench, full: bool, runs: usize) -> io::Result<()> {
    let counts: &[u32] = if full { &[1, 10, 100] } else { &[1, 10] };
    let mut rows = Vec::new();
    for &epochs in counts {
        let case = bench.record("epochs", &Workload { epochs, ..PLAIN })?;
        let compared = bench.compare(&case, runs, usize::from(epochs <= 10))?;
        rows.push(row(&format!("10000 functions × {epochs}"), &case, &compared)?);
        std::fs::remove_dir_all(bench.folder.join("epochs"))?;
    }
    table::print(
        "All functions recompiled at the same addresses, several times.",
        &head(bench),
        &rows,
    )
}

fn by_samples(bench: &Bench, full: bool, runs: usize) -> io::Result<()> {
    const MEGABYTE: u64 = 1_000_000;
    let mut rows = Vec::new();
    let mut measure = |name: &str, case: &Case, stock: bool| -> io::Result<()> {
        let compared = bench.compare(case, runs.min(3), usize::from(stock))?;
        rows.push(row(name, case, &compared)?);
        Ok(())
    };
    let plain = bench.record("plain", &PLAIN)?;
    let packed = bench.record("packed", &Workload { options: &["-F", "5000", "-z"], ..PLAIN })?;
    let options = &["-F", "5000", "--call-graph", "dwarf"];
    let stacks = bench.record("stacks", &Workload { options, ..PLAIN })?;
    measure("zstd", &packed, false)?;
    measure("with stacks, 8 KB a sample", &stacks, true)?;
    let hundred = bench.grow(&plain, 100 * MEGABYTE)?;
    measure("100 MB of samples", &hundred, true)?;
    if full {
        let thousand = bench.grow(&plain, 1000 * MEGABYTE)?;
        measure("1 GB of samples", &thousand, true)?;
        let thousand = bench.grow(&stacks, 1000 * MEGABYTE)?;
        measure("1 GB of stacks", &thousand, true)?;
    }
    for folder in ["plain", "packed", "stacks"] {
        std::fs::remove_dir_all(bench.folder.join(folder))?;
    }
    table::print("10,000 functions in longer recordings.", &head(bench), &rows)
}

/// What perf takes to read the recordings.
fn reading(bench: &Bench, full: bool, runs: usize) -> io::Result<()> {
    let mut rows = Vec::new();
    let sizes: &[u32] = if full { &[10_000, 175_000] } else { &[10_000] };
    for &functions in sizes {
        let case = bench.record("reading", &Workload { functions, ..PLAIN })?;
        let ours = bench.folder.join("ours");
        let stock = bench.folder.join("stock");
        bench.inject(&case, &ours)?;
        bench.inject_by_perf(&case, &stock)?;
        let home = ours.join("home");
        std::fs::create_dir_all(&home)?;
        let recordings = [
            Injected { recording: case.recording.clone(), home: home.clone() },
            Injected { recording: ours.join("out.data"), home },
            Injected { recording: stock.join("out.data"), home: stock.join("home") },
        ];
        let mut read = |what: &str, recordings: &[Injected], runs| -> io::Result<()> {
            let costs =
                bench.read(&what.split(' ').skip(1).collect::<Vec<_>>(), recordings, runs)?;
            let mut row = vec![format!("{functions} functions: {what}")];
            row.extend(costs.iter().map(|cost| match cost.stopped {
                true => format!("> {}", seconds(cost.wall)),
                false => seconds(cost.wall),
            }));
            row.resize(4, "-".to_owned());
            rows.push(row);
            Ok(())
        };
        read("perf report --stdio", &recordings, runs)?;
        if functions == 10_000 {
            // perf itself takes longer than anyone waits on what it made.
            let with_stock = if full { 3 } else { 2 };
            read("perf script -F ip,sym,srcline", &recordings[..with_stock], 1)?;
        }
        bench.clean_up_after_perf(&case, &stock)?;
        std::fs::remove_dir_all(&ours)?;
        std::fs::remove_dir_all(bench.folder.join("reading"))?;
    }
    let head = ["command", "as recorded", "jitscribe", "perf inject"];
    table::print("What perf takes to read the recordings.", &head, &rows)
}

/// Files of valgrind's. callgrind_annotate has to read the same profile as we.
fn valgrind(bench: &Bench, full: bool, runs: usize) -> io::Result<()> {
    const MEGABYTE: u64 = 1_000_000;
    let profiled = bench.profile("profile")?;
    let sizes: &[u64] = if full { &[20, 200, 1000] } else { &[20, 200] };
    let mut rows = Vec::new();
    for &size in sizes {
        let large = bench.folder.join("callgrind.out.large");
        profile::grow(&profiled.recording, &large, size * MEGABYTE)?;
        let named = |command: &mut Command| _ = command.arg("--jitdump").arg(&profiled.dump);
        let ours = bench.name("callgrind", &large, runs, named)?;
        let mut row =
            figures(&format!("callgrind, {}", megabytes(size * MEGABYTE)), &large, &ours)?;
        // It takes a minute and a half for 200 MB, and the same a byte for all sizes.
        if size <= 20 || full {
            let annotated = bench.annotate(&large)?;
            row.push(match annotated.stopped {
                true => format!("> {}", seconds(annotated.wall)),
                false => seconds(annotated.cpu),
            });
            row.push(format!(
                "{:.2} %",
                100.0 * ours.cpu.as_secs_f64() / annotated.cpu.as_secs_f64()
            ));
        }
        row.resize(7, "-".to_owned());
        rows.push(row);
        std::fs::remove_file(large)?;
    }
    let codes = logs::Codes::of(&profiled.recording)?;
    for tool in
        [logs::Tool::Memcheck, logs::Tool::MemcheckXml, logs::Tool::Massif, logs::Tool::Dhat]
    {
        let file = bench.folder.join(format!("{}.out.{}", tool.verb(), codes.pid));
        logs::make(tool, &codes, &file, 100 * MEGABYTE)?;
        let named = |command: &mut Command| _ = command.arg("--jitdump").arg(&profiled.dump);
        let ours = bench.name(tool.verb(), &file, runs, named)?;
        let mut row = figures(&format!("{}, 100 MB", tool.title()), &file, &ours)?;
        row.resize(7, "-".to_owned());
        rows.push(row);
        std::fs::remove_file(file)?;
    }
    let head =
        ["file", "size", "jitscribe (cpu)", "MB/s of cpu", "memory", "callgrind_annotate", "share"];
    table::print("Names for jitted code in what valgrind wrote.", &head, &rows)
}

/// The library beside what runtimes do without it. A round takes a tenth of a second.
fn announcing(bench: &Bench, full: bool, runs: usize) -> io::Result<()> {
    let rounds = runs.max(if full { 31 } else { 11 });
    let mut rows = Vec::new();
    for group in library::measure(&bench.folder, rounds)? {
        let first = group.first().map_or(f64::NAN, library::Way::median);
        rows.extend(group.iter().map(|way| {
            let figure = |time: f64| match time {
                short @ ..100.0 => format!("{short:.1} ns"),
                long => format!("{long:.0} ns"),
            };
            let ratio = times(way.median(), first);
            vec![way.name.to_owned(), figure(way.fastest()), figure(way.median()), ratio]
        }));
    }
    let head = ["one code", "fastest", "median", "to the first"];
    table::print("Processor time of announcements.", &head, &rows)
}

fn figures(name: &str, file: &Path, cost: &Cost) -> io::Result<Vec<String>> {
    let size = std::fs::metadata(file)?.len();
    Ok(vec![
        name.to_owned(),
        megabytes(size),
        wall_and_cpu(cost),
        format!("{:.0}", size as f64 / 1e6 / cost.cpu.as_secs_f64()),
        megabytes(cost.peak),
    ])
}

const HEAD: [&str; 12] = [
    "workload",
    "input",
    "copy (cpu)",
    "jitscribe (cpu)",
    "to copy (cpu)",
    "memory",
    "to dump",
    "files",
    "recording",
    "perf inject",
    "memory",
    "cpu to jitscribe",
];

/// The columns: with another version of `jitscribe`, there are two more.
fn head(bench: &Bench) -> Vec<&'static str> {
    let more: &[&str] =
        if bench.before.is_some() { &["before (cpu)", "to before (cpu)"] } else { &[] };
    [&HEAD, more].concat()
}

fn row(name: &str, case: &Case, compared: &Compared) -> io::Result<Vec<String>> {
    let recording = std::fs::metadata(&case.recording)?.len();
    let dump = std::fs::metadata(&case.dump)?.len();
    let Compared { floor, ours, stock, before } = compared;
    let growth = (ours.recording as f64 / recording as f64 - 1.0) * 100.0;
    let files = |taken: &Taken| format!("{} / {}", taken.files, megabytes(taken.bytes));
    let mut row = vec![
        name.to_owned(),
        format!("{} + {}", megabytes(recording), megabytes(dump)),
        wall_and_cpu(floor),
        wall_and_cpu(&ours.cost),
        format!(
            "{} ({})",
            times(ours.cost.wall.as_secs_f64(), floor.wall.as_secs_f64()),
            times(ours.cost.cpu.as_secs_f64(), floor.cpu.as_secs_f64())
        ),
        megabytes(ours.cost.peak),
        times(ours.cost.peak as f64, dump as f64),
        files(ours),
        format!("{growth:+.2} %"),
    ];
    match stock {
        Some(stock) => row.extend([
            format!("{}, {}", wall_and_cpu(&stock.cost), files(stock)),
            megabytes(stock.cost.peak),
            times(stock.cost.cpu.as_secs_f64(), ours.cost.cpu.as_secs_f64()),
        ]),
        None => row.extend(["-", "-", "-"].map(String::from)),
    }
    if let Some(before) = before {
        let ratio = |now: Duration, then: Duration| {
            format!("{:.2}", now.as_secs_f64() / then.as_secs_f64())
        };
        let (wall, cpu) = (ratio(ours.cost.wall, before.wall), ratio(ours.cost.cpu, before.cpu));
        row.extend([wall_and_cpu(before), format!("{wall} ({cpu})")]);
    }
    Ok(row)
}

fn wall_and_cpu(cost: &Cost) -> String {
    let more = if cost.stopped { "stopped after " } else { "" };
    format!("{more}{} ({})", seconds(cost.wall), seconds(cost.cpu))
}

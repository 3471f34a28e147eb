//! `jitscribe collect`: windows of processes that run, and their tables, compared with one recording of the same time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use end_to_end::engines::{DUCKDB, Engine, SPARK, is_of_runtime, reported_functions};
use end_to_end::jitscribe::{interruptible_jitscribe, jitscribe};
use end_to_end::live::workload;
use end_to_end::running::{Running, wait_for, wait_until};
use end_to_end::tool::{ended, run, tool};
use serde_json::Value;
use tempfile::TempDir;
use test_privilege::needs;
use test_privilege::unshare;

const TOP: &str = "
    SELECT f.name, SUM(s.sample_count) AS own_samples
    FROM samples AS s
    JOIN (SELECT DISTINCT function_key, name, origin FROM functions) AS f
        ON f.function_key = s.function_key
    WHERE f.origin = 'runtime' AND f.name LIKE '%steady%'
    GROUP BY f.name
    ORDER BY own_samples DESC, f.name
";

/// Starts a program of a runtime; in a container of its own, its `/tmp` is its own, too. It leaves the processors to what records it, and to other tests.
fn start(command: &[&str], folder: &Path, contained: bool) -> Running {
    let mut started = if contained {
        let mut unshare = unshare();
        unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        unshare.args(["sh", "-e", "-c", "mount -t tmpfs none /tmp; exec nice -n 19 \"$@\"", "sh"]);
        unshare.args(command);
        unshare
    } else {
        let mut alone = tool("nice");
        alone.args(["-n", "19"]).args(command);
        alone
    };
    Running::start(started.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()))
}

/// Samples by function, of the programs that the test starts: other tests run at the same time.
type Counts = BTreeMap<String, u64>;

/// Whether the function is one of their three.
fn is_steady(name: &str) -> bool {
    name.contains("steady")
        && ["heavy", "middle", "light"].iter().any(|part| name.to_lowercase().contains(part))
}

fn ask(engine: Engine, tables: &Path, query: &Path) -> Counts {
    let answers = engine.ask(tables, [query]);
    let row = |row: &Vec<Value>| Some((row[0].as_str()?.to_owned(), row[1].as_u64()?));
    let rows = answers[0].1.iter().map(|it| row(it).expect("a name and a number"));
    rows.filter(|(name, _)| is_steady(name)).collect()
}

fn reported(data: &Path) -> Counts {
    let mut counts = Counts::new();
    for function in reported_functions(data).iter().filter(|function| is_of_runtime(function)) {
        let own = function["samples"].as_u64().expect("a number");
        let name = function["name"].as_str().expect("a name");
        if own > 0 && is_steady(name) {
            *counts.entry(name.to_owned()).or_default() += own;
        }
    }
    counts
}

/// All processes: in one recording, and at the same time in windows, whose tables are added to a folder.
fn record_both_ways(data: &Path, tables: &Path) {
    let mut at_once = jitscribe();
    at_once.args(["record", "-q", "-a", "-F", "97", "--duration", "18", "-o"]).arg(data);
    let at_once = Running::start(at_once.stdout(Stdio::null()));
    let mut collect = jitscribe();
    collect.args(["collect", "-q", "-a", "-F", "99", "--interval", "4", "-n", "4", "--"]);
    collect.arg(jitscribe().get_program());
    collect.args(["export", "-q", "--service", "steady", "-i", "{}", "--parquet"]);
    run(collect.arg(tables));
    at_once.finish();
}

/// Twenty processes of three runtimes, one of each in a container: the tables of four windows have the shares that one recording of the same time has,
/// but for what sampling makes differ, which is less than five standard deviations and one percentage point.
#[test]
fn tables_of_windows_equal_a_recording() {
    needs!(Processes);
    let folder = TempDir::with_prefix("jitscribe-collect-").expect("a folder");
    let folder = folder.path();
    // Containers do not see `/tmp`, where the workspace may be.
    let place = TempDir::new_in("/var/tmp").expect("a folder");
    for name in ["steady/steady.js", "steady/steady.php", "steady/steady.erl"] {
        let from = workload(name);
        fs::copy(&from, place.path().join(from.file_name().expect("a name"))).expect("copied");
    }
    run(tool("erlc").current_dir(place.path()).arg("steady.erl"));
    let node = ["node", "--perf-basic-prof", "steady.js"];
    let settings = "opcache.enable_cli=1 opcache.jit=function opcache.jit_buffer_size=16M \
                    opcache.jit_debug=0x10 opcache.file_update_protection=0";
    let settings = settings.split(' ').flat_map(|setting| ["-d", setting]);
    let php: Vec<&str> = ["php"].into_iter().chain(settings).chain(["steady.php"]).collect();
    let erl = ["erl", "+S", "1", "+JPperf", "map", "-noshell", "-s", "steady", "main"];
    let programs = [&node[..], &php, &erl].into_iter().cycle().take(20).enumerate();
    let mut running: Vec<Running> =
        programs.map(|(number, program)| start(program, place.path(), number < 3)).collect();
    // However long it takes them on a busy machine.
    for program in &mut running {
        program.wait_for_line("steady");
    }

    let data = folder.join("at-once.data");
    let tables = folder.join("fleet");
    let query = folder.join("top.sql");
    fs::write(&query, TOP).expect("written");
    let mut recorded = Counts::new();
    let sum = |counts: &Counts| counts.values().sum::<u64>();
    // Where others use the processors, as often as it takes for enough samples.
    let mut rounds = 0;
    let duckdb = loop {
        rounds += 1;
        record_both_ways(&data, &tables);
        for (name, own) in reported(&data) {
            *recorded.entry(name).or_default() += own;
        }
        let windows = ask(DUCKDB, &tables, &query);
        if sum(&windows).min(sum(&recorded)) > 300 {
            break windows;
        }
        assert!(rounds < 10, "{windows:?}\n{recorded:?}");
    };
    for program in running {
        let map = format!("/tmp/perf-{}.map", program.pid());
        drop(program);
        // Those in containers have none here.
        _ = fs::remove_file(map);
    }

    assert_eq!(duckdb, ask(SPARK, &tables, &query));
    let [all, all_recorded] = [&duckdb, &recorded].map(|it| sum(it) as f64);
    let share =
        |counts: &Counts, name: &str, all: f64| counts.get(name).copied().unwrap_or(0) as f64 / all;
    let names = duckdb.keys().chain(recorded.keys());
    for name in names {
        let shares = [share(&duckdb, name, all), share(&recorded, name, all_recorded)];
        let mean = (shares[0] * all + shares[1] * all_recorded) / (all + all_recorded);
        let deviation = (mean * (1.0 - mean) * (1.0 / all + 1.0 / all_recorded)).sqrt();
        assert!(
            (shares[0] - shares[1]).abs() < 5.0 * deviation + 0.01,
            "{name}: {shares:?}\n{duckdb:#?}\n{recorded:#?}"
        );
    }
    // All three functions of all three runtimes, with the names that they have in each.
    for part in ["heavy", "middle", "light"] {
        let of_all = duckdb.keys().filter(|name| name.to_lowercase().contains(part)).count();
        assert_eq!(of_all, 3, "{part}: {duckdb:#?}");
    }
}

/// A file in a folder whose name begins so.
fn find(folder: &Path, begin: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(begin))
    })
}

/// The time that a process had a processor, as a user.
fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    // In hundredths of a second: field 14 of proc(5), of which two are cut off.
    let ticks: u64 = fields.split(' ').nth(11).expect("a time").parse().expect("a number");
    Duration::from_millis(10 * ticks)
}

#[test]
fn an_interrupt_ends_the_last_window_early() {
    let folder = TempDir::with_prefix("jitscribe-collect-").expect("a folder");
    let folder = folder.path();
    let script = workload("steady/steady.js");
    // Its log lies where it is started.
    let node =
        Running::start(tool("node").arg("--perf-basic-prof").arg(script).current_dir(folder));
    let mut collect = interruptible_jitscribe();
    collect.args(["collect", "-F", "999", "--interval", "3600", "-p", &node.pid().to_string()]);
    collect.args(["--"]);
    collect.arg(jitscribe().get_program()).args(["export", "--folded", "-i", "{}", "-o", "folded"]);
    collect.current_dir(folder).env("TMPDIR", folder);
    let collect = Running::start(collect.stderr(Stdio::piped()));
    let is_recording = || {
        let window = find(folder, "jitscribe-window-")?;
        let workspace = find(&window, ".jitscribe-")?;
        let data = workspace.join("perf.data").metadata().ok()?;
        (data.len() > 1000).then_some(())
    };
    wait_for(|| "it records nothing".into(), is_recording);
    // It has samples soon, however busy the machine is.
    let begun = processor_time(node.pid());
    let is_enough = || processor_time(node.pid()) >= begun + Duration::from_secs(1);
    wait_until(|| "node has no processor".into(), is_enough);
    collect.interrupt();
    let said = collect.finish().stderr;
    assert!(said.contains("1 window was recorded"), "{said}");
    let stacks = fs::read_to_string(folder.join("folded")).expect("stacks");
    assert!(stacks.contains("steadyHeavy"), "{stacks}");
    assert!(find(folder, "jitscribe-window-").is_none(), "windows are removed");
    let map = format!("/tmp/perf-{}.map", node.pid());
    drop(node);
    fs::remove_file(map).expect("the map");
}

#[test]
fn a_command_that_fails_is_reported() {
    let node = Running::start(tool("node").arg(workload("steady/steady.js")));
    let collect = |count: &str, words: &[&str]| -> (Option<i32>, String) {
        let mut collect: Command = jitscribe();
        collect.args(["collect", "--interval", "0.5", "-n", count, "-p", &node.pid().to_string()]);
        collect.args(["--"]);
        let ended = ended(collect.args(words));
        (ended.code, ended.stderr)
    };
    let (code, said) = collect("2", &["test", "-d", "{}"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("test failed for window 2: exit status: 1"), "{said}");
    assert!(said.contains("error: the command failed for 2 of 2 windows"), "{said}");
    let (code, said) = collect("1", &["jitscribe", "export", "--folded"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("write {} for it"), "{said}");
    let (code, said) = collect("1", &["/nothing/here", "{}"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("/nothing/here"), "{said}");
}

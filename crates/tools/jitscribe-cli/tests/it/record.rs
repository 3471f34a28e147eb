//! `jitscribe record` with the real perf and real runtimes.

use std::time::Duration;

use crate::common::{Bench, Running, expect_tool, finish, interrupt, removed_map};
use test_privilege::needs;

/// Spends half a second in one function.
const SPIN_JS: &str = "function spin(n) { return n < 2 ? n : spin(n - 1) + spin(n - 2) }
const end = Date.now() + 500; while (Date.now() < end) spin(18)";

const SPIN_JAVA: &str = "public class Spin {
    static int spin(int n) { return n < 2 ? n : spin(n - 1) + spin(n - 2); }
    public static void main(String[] words) {
        long end = System.currentTimeMillis() + Long.parseLong(words[0]);
        System.out.println(\"running\");
        while (System.currentTimeMillis() < end) spin(18);
    }
}";

#[test]
fn the_command_s_exit_code_is_passed_through() {
    needs!(Perf);
    let bench = Bench::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        bench.record(&["--force", "--allow-empty", "--", "sh", "-c", script]).ends(code);
        assert!(bench.path("perf.data").exists());
    }
}

#[test]
fn node_has_names_and_leaves_nothing() {
    needs!(Perf);
    expect_tool("node");
    // Started by a script too, where V8's log cannot be put elsewhere.
    for command in [&["node", "spin.js"][..], &["sh", "-c", "node spin.js; exit 0"]] {
        // Long enough to be seen while it runs, on a busy machine too: only then are its files removed, instead of named.
        let bench = Bench::with("spin.js", SPIN_JS.replace("500", "3000"));
        let done = bench.record(&[&["-F", "999", "-o", "out.data", "--"], command].concat()).ok();
        bench.expect_symbol("out.data", "spin ");
        done.says("next: jitscribe report -i out.data").says("perf annotate -i out.data ");
        done.says_not("no longer needed");
        assert_eq!(bench.files(), ["out.data", "out.data.jit", "spin.js"], "{}", done.stderr);
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn files_that_the_user_asked_node_for_stay() {
    needs!(Perf);
    expect_tool("node");
    for (variable, words) in [
        ("", &["--", "node", "--perf-prof", "spin.js"][..]),
        ("--perf-basic-prof", &["--", "node", "spin.js"]),
        ("", &["--", "sh", "-c", "NODE_OPTIONS=--perf-prof node spin.js; exit 0"]),
        ("", &["--keep-raw", "--", "node", "spin.js"]),
    ] {
        let bench = Bench::with("spin.js", SPIN_JS);
        let mut record = bench.jitscribe("record -F 99");
        record.args(words).env("NODE_OPTIONS", variable);
        let done = finish(&mut record).ok();
        let files = bench.files();
        let dump = files.iter().find(|name| name.starts_with("jit-"));
        let dump = dump.unwrap_or_else(|| panic!("{words:?}: {files:?}"));
        done.says(&format!("/{dump}"));
        // A map, which the variable asks for too.
        let pid = dump.trim_start_matches("jit-").trim_end_matches(".dump");
        drop(removed_map(pid.parse().expect("a number")));
    }
}

#[test]
fn variables_are_set_extended_or_left_alone() {
    needs!(Perf);
    let bench = Bench::new();
    let environment = |option: &str| {
        let mut record = bench.jitscribe(&format!("record {option} --force --allow-empty -- env"));
        record.env("NODE_OPTIONS", "--max-old-space-size=99").env("JITDUMPDIR", "/mine");
        finish(record.env_remove("PYTHONPERFSUPPORT")).ok().stdout
    };
    let set = environment("");
    for line in [
        "PYTHONPERFSUPPORT=1",
        "JITDUMPDIR=/mine",
        "NODE_OPTIONS=--max-old-space-size=99 --perf-prof --interpreted-frames-native-stack --perf-basic-prof",
    ] {
        assert!(set.lines().any(|there| there == line), "{line}: {set}");
    }

    let untouched = environment("--no-env");
    assert!(untouched.lines().any(|line| line == "NODE_OPTIONS=--max-old-space-size=99"));
    // perf itself adds some variables.
    for name in [
        "JAVA_TOOL_OPTIONS",
        "PYTHONPERFSUPPORT",
        "ERL_AFLAGS",
        "PHP_INI_SCAN_DIR",
        "MONO_ENV_OPTIONS",
        "JSC_useJITDump",
    ] {
        assert!(untouched.lines().all(|line| !line.starts_with(&format!("{name}="))), "{name}");
    }
}

/// A command that says that it runs, and runs on.
const ENDLESS: [&str; 3] = ["sh", "-c", "echo running; while :; do :; done"];

#[test]
fn an_interrupt_ends_the_recording_and_not_the_work_on_it() {
    needs!(Perf);
    let bench = Bench::new();
    let mut running = Running::start(bench.jitscribe("record --").args(ENDLESS));
    running.wait_for_line("running");
    std::thread::sleep(Duration::from_millis(300));
    interrupt(running.pid());
    assert_eq!(running.code(), 130);
    assert!(!bench.symbols("perf.data").is_empty());
    assert_eq!(bench.files(), ["perf.data"]);
}

#[test]
fn an_interrupt_is_how_a_recording_of_a_process_ends() {
    needs!(Perf);
    let bench = Bench::new();
    let mut spin = Running::start(&mut bench.command(&ENDLESS));
    spin.wait_for_line("running");
    drop(removed_map(spin.pid()));
    let mut record = bench.jitscribe(&format!("record --allow-empty -p {}", spin.pid()));
    let mut running = Running::start(&mut record);
    // perf has begun when its file has content.
    while !bench.recording_has_begun() {
        assert!(running.is_running(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    interrupt(running.pid());
    assert_eq!(running.code(), 0);
    assert_eq!(bench.files(), ["perf.data"]);
}

#[test]
fn a_time_limit_ends_a_command_and_says_so() {
    needs!(Perf);
    let bench = Bench::new();
    let spin = ["-f", "--duration", "0.5", "--", "sh", "-c", "while :; do :; done"];
    bench.record(&spin).ok().says("stopped after 0.5 s: perf ends the command with SIGTERM");
    assert!(!bench.symbols("perf.data").is_empty());
    // One that ends before has its own exit code.
    let done = bench.record(&["-f", "--duration", "600", "--", "sh", "-c", "exit 7"]).ends(7);
    done.says_not("stopped");
}

#[test]
fn a_recorded_process_may_end_first() {
    needs!(Perf);
    let bench = Bench::new();
    let short = ["sh", "-c", "echo running; i=0; while [ $i -lt 700000 ]; do i=$((i+1)); done"];
    for (options, says) in [
        ("", "samples"),
        ("--duration 600", "samples"),
        ("-- sleep 600", "the recorded process has ended, so perf ended the command"),
    ] {
        let mut spin = Running::start(&mut bench.command(&short));
        spin.wait_for_line("running");
        bench.record(&format!("-f -p {} {options}", spin.pid())).ok().says(says);
    }
}

#[test]
fn files_with_code_can_be_named_to_record() {
    needs!(Perf);
    let bench = Bench::with("7.map", "1000 20 f\n").and("7.dump", "");
    bench.record("-f --jitdump 7.dump -- true").ends(3).says("7.dump: empty (0 bytes)");
    let done = bench.record("-f --perf-map 4294967295=7.map -- true").ends(3);
    done.says("7.map: its name matches no process of the recording");
    bench.record("--tool=memcheck --perf-map 7.map -- true").ends(2).says("works only with perf");
}

#[test]
fn options_of_perf_reach_it() {
    needs!(Perf);
    let bench = Bench::new();
    let spin = ["--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"];
    let events = |options: &str| {
        let options: Vec<&str> = options.split(' ').collect();
        bench.record(&[&["-f", "--allow-empty"], &options[..], &spin].concat()).ok();
        bench.run("perf evlist -v -i perf.data")
    };
    let of_options = events("-e cpu-clock:u -c 1000000 --call-graph none");
    assert!(of_options.contains("cpu-clock:u"), "{of_options}");
    assert!(of_options.contains("use_clockid: 1"), "{of_options}");
    assert!(!of_options.contains("CALLCHAIN"), "{of_options}");
    let of_stacks = events("-z --call-graph=dwarf,4096");
    assert!(of_stacks.contains("sample_stack_user: 4096"), "{of_stacks}");
}

#[test]
fn what_cannot_be_done_is_said_before_anything_runs() {
    let bench = Bench::with("plain", "text");
    for (words, code, says) in [
        ("", 2, "-- COMMAND"),
        ("true", 2, "unexpected argument 'true'"),
        ("-F 99 true", 2, "-- COMMAND"),
        ("-o - -- true", 2, "jitscribe inject"),
        ("--switch-output -- true", 2, "several recordings"),
        ("--duration 0 -a", 2, "greater than 0"),
        ("--call-graph wrong -- true", 2, "lbr"),
        ("-p x --duration 1", 2, "is not a process id"),
        ("-p 4294967295 --duration 1", 1, "there is no process"),
        ("-- no-such-command", 127, "command not found"),
        ("-- ./plain", 126, "permission denied"),
        ("-e no-such-event -- true", 1, "perf record -k mono"),
        ("-o no/such/folder/out -- touch ran", 1, "no/such/folder"),
    ] {
        bench.record(words).ends(code).says(says);
        assert_eq!(bench.files(), ["plain"], "{words}");
    }
}

#[test]
fn without_perf_the_package_is_named() {
    let bench = Bench::new();
    let mut record = bench.jitscribe("record -- /bin/true");
    finish(record.env("PATH", bench.path("."))).ends(1).says("apt-get install linux-perf");
    assert_eq!(bench.files(), Vec::<String>::new());
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    fn with_java() -> Bench {
        expect_tool("javac");
        let bench = Bench::with("Spin.java", SPIN_JAVA);
        bench.run("javac Spin.java");
        bench
    }

    #[test]
    fn java_has_names_also_when_a_script_starts_it() {
        let bench = with_java();
        let script = "java -cp . Spin 500; exit 5";
        let done = bench.record(&["-F", "999", "--", "sh", "-c", script]).ends(5);
        assert_eq!(done.stdout, "running\n");
        bench.expect_symbol("perf.data", "Spin.spin");
    }

    #[test]
    fn a_running_java_is_asked_for_its_names() {
        let bench = with_java();
        let mut java = Running::start(&mut bench.command("java -cp . Spin 60000"));
        java.wait_for_line("running");
        // Of an earlier process with this id, and its own.
        drop(removed_map(java.pid()));
        let _map = removed_map(java.pid());
        let done = bench.record(&format!("-p {} --duration 2", java.pid())).ok();
        bench.expect_symbol("perf.data", "Spin.spin");
        // It may write there again.
        done.says_not("no longer needed");
    }

    #[test]
    fn php_and_erlang_have_names() {
        expect_tool("php");
        expect_tool("erl");
        let bench = Bench::with(
            "spin.php",
            "<?php function spin($n) { return $n < 2 ? $n : spin($n - 1) + spin($n - 2); }
             $end = microtime(true) + 0.5; while (microtime(true) < $end) spin(18);",
        )
        .and(
            "spin.erl",
            "-module(spin). -export([main/0, spin/1]).
             spin(N) when N < 2 -> N; spin(N) -> spin(N - 1) + spin(N - 2).
             main() -> spin(33), halt().",
        );
        let done = bench.record("-F 999 -- php spin.php").ok();
        done.says("PHP is run with -dopcache.enable_cli=1");
        bench.expect_symbol("perf.data", "spin$");

        bench.run("erlc spin.erl");
        bench.record("-F 999 --force -- erl -noshell -s spin main").ok();
        bench.expect_symbol("perf.data", "spin:spin/1");
    }

    #[test]
    fn what_a_perf_map_names_has_assembly_if_memory_is_read() {
        expect_tool("rakudo");
        let bench = Bench::new();
        // Half of its time is spent in jitted code.
        let work = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/workloads/spin.raku");
        for (option, has_assembly) in [("--force", true), ("--no-memory", false)] {
            let words = ["-F", "999", option, "-o", "out.data", "--", "rakudo", work];
            let done = bench.record(&words).ok();
            done.says("next: jitscribe report -i out.data");
            let has_none = done.stderr.contains("no code bytes available, so no assembly");
            assert_eq!(has_none, !has_assembly, "{}", done.stderr);
            assert_eq!(done.stderr.contains("perf annotate"), has_assembly, "{}", done.stderr);
        }
    }
}

#[test]
fn only_running_processes_have_an_inspector_to_open() {
    let done = Bench::new().record(&["--inspect", "--", "true"]).ends(2);
    done.says("--inspect needs a running process (-p PID)");
}

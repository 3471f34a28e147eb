//! `jitscribe record` of processes in a container, with mounts and process ids of their own, that run when it ends or have ended.

use std::fs;
use std::time::Duration;

use crate::common::{
    Bench, Done, Running, children, contained, expect_tool, only_child, removed_map,
};
use crate::inject::scene::Jit;
use serde_json::Value;
use test_privilege::needs;

/// A process in mount and pid namespaces of its own, where it is process 1.
struct Contained {
    /// Ended with all in it when dropped.
    _unshare: Running,
    /// What we call the process.
    pid: u32,
}

impl Contained {
    /// Runs a script in the bench's folder, which says "running" when it does.
    fn start(bench: &Bench, script: &str) -> Self {
        let mut unshare = Running::start(&mut bench.by(&contained(), &["sh", "-e", "-c", script]));
        unshare.wait_for_line("running");
        let pid = only_child(unshare.pid());
        Self { _unshare: unshare, pid }
    }

    fn record(&self, bench: &Bench) -> Done {
        bench.record(&format!("-F 999 -p {} --duration 1", self.pid)).ok()
    }
}

/// perf shows the function while the process runs, when it looks at files from inside the container,
/// and afterwards.
fn expect_shown(bench: &Bench, process: Contained, function: &str) {
    bench.expect_symbol("perf.data", function);
    drop(process);
    bench.expect_symbol("perf.data", function);
}

#[test]
fn a_perf_map_in_a_folder_that_only_the_process_sees() {
    needs!(Processes, Perf);
    let bench = with_program("node", "spin.js", SPIN_JS);
    let process = Contained::start(
        &bench,
        "mount -t tmpfs none /tmp; cp ./spin.js /tmp; cd /tmp; exec node --perf-basic-prof spin.js",
    );
    // Of a process that had this number before.
    let stale = removed_map(process.pid);
    fs::write(&stale.0, b"1000 10 stale\n").expect("a file");
    process.record(&bench).says("build-id cache");
    expect_shown(&bench, process, "spin ");
}

/// A program runs until there is a file of this name in the bench's folder, which a container hides: descriptor 9 leads there.
const GO: &str = "go";

/// Says "running", and ends when it has used half a second of processor time since that file exists: so it is sampled however late a recording of it begins.
const SPIN_JS: &str = "function spin(n) { return n < 2 ? n : spin(n - 1) + spin(n - 2) }
    const mayEnd = () => require('fs').existsSync('/proc/self/fd/9/go');
    console.log('running');
    while (!mayEnd()) spin(22);
    const begin = process.cpuUsage();
    while (process.cpuUsage(begin).user < 500000) spin(22);";

const SPIN_PHP: &str =
    "<?php function spin($n) { return $n < 2 ? $n : spin($n - 1) + spin($n - 2); }
    echo \"running\\n\";
    while (getrusage()['ru_utime.tv_sec'] < 1 || !file_exists('/proc/self/fd/9/go')) {
        for ($i = 0; $i < 10; $i++) spin(18);
        clearstatcache();
    }";

const SPIN_JAVA: &str = "public class Spin {
    static int spin(int n) { return n < 2 ? n : spin(n - 1) + spin(n - 2); }
    public static void main(String[] words) throws Exception {
        System.out.println(\"running\");
        java.nio.file.Path go = java.nio.file.Path.of(\"/proc/self/fd/9/go\");
        while (ProcessHandle.current().info().totalCpuDuration().get().toMillis() < 1500
                || !java.nio.file.Files.exists(go)) spin(27);
    }
}";

/// A folder with the source of a program, for which there is a tool.
fn with_program(tool: &str, name: &str, text: &str) -> Bench {
    expect_tool(tool);
    Bench::with(name, text)
}

/// A recording that has ended.
struct Recorded {
    report: Value,
    symbols: Vec<String>,
}

impl Recorded {
    /// Reads the report of `record --json`, and what perf shows.
    fn of(bench: &Bench, mut record: Running) -> Self {
        let mut printed = String::new();
        record.read_to_end(&mut printed);
        assert_eq!(record.code(), 0, "{printed}");
        let report = printed.find('{').map_or("", |at| &printed[at..]);
        let report: Value = serde_json::from_str(report).expect("a report");
        for source in report["sources"].as_array().expect("sources") {
            // Of a process outside.
            let path = source["path"].as_str().expect("a path");
            if path.starts_with("/tmp/perf-") || path.starts_with("/tmp/jit-") {
                _ = fs::remove_file(path);
            }
        }
        Self { report, symbols: bench.symbols("perf.data") }
    }

    /// All samples in jitted code, but for one in fifty, have a name, and one of the names is this.
    fn expect_named(&self, function: &str, what: &str) {
        let count = |key: &str| self.report["samples"][key].as_u64().expect("a count");
        let (named, unnamed) = (count("named"), count("unnamed"));
        assert!(named > 50 && unnamed * 50 <= named, "{what}: {}", self.report);
        let is_shown = self.symbols.iter().any(|symbol| symbol.contains(function));
        assert!(is_shown, "{what}: {:#?}", self.symbols);
    }
}

/// Waits until the worker that follows processes has looked at all that run now: each time it waits for its next look, it gives up the
/// processor.
fn wait_for_looks(record: u32) {
    let is_helper = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"look-at-foreign-processes")
    };
    let helper = children(record).into_iter().find(is_helper).expect("a helper");
    let workers = children(helper);
    let waits = || -> u64 {
        let of_worker = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let mut lines = status.lines();
            let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            count.trim().parse::<u64>().ok()
        };
        workers.iter().filter_map(of_worker).sum()
    };
    let before = waits();
    while waits() < before + 20 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Records a command that ends before the recording does: in a container with a `/tmp` of its own, where it finds `file`, or without.
fn record_to_its_end(bench: &Bench, file: &str, command: &str, in_container: bool) -> Recorded {
    _ = fs::remove_file(bench.path(GO));
    let mut record = bench.jitscribe("record --force --json -F 999 --");
    let mut script = String::from("exec 9<.;");
    if in_container {
        let container = contained();
        record.arg(container.get_program()).args(container.get_args());
        script +=
            &format!("mount -t tmpfs none /tmp; mkdir /tmp/own; cp {file} /tmp/own; cd /tmp/own;");
    }
    record.args(["sh", "-e", "-c", &format!("{script} exec {command}")]);
    let mut record = Running::start(&mut record);
    record.wait_for_line("running");
    wait_for_looks(record.pid());
    bench.write(GO, "");
    Recorded::of(bench, record)
}

fn expect_named_as_outside(bench: &Bench, file: &str, command: &str, function: &str) {
    for (in_container, what) in [(false, "outside"), (true, "in a container")] {
        record_to_its_end(bench, file, command, in_container).expect_named(function, what);
    }
}

#[test]
fn the_files_of_a_container_that_has_ended() {
    needs!(Processes, Perf);
    // A perf map, and a jitdump.
    for command in ["node --perf-basic-prof --no-perf-prof spin.js", "node --perf-prof spin.js"] {
        let bench = with_program("node", "spin.js", SPIN_JS);
        expect_named_as_outside(&bench, "spin.js", command, "spin ");
    }
}

/// Its root is held before perf begins.
#[test]
fn a_container_that_was_attached_to_and_has_ended() {
    needs!(Processes, Perf);
    let bench = with_program("node", "spin.js", SPIN_JS);
    let process = Contained::start(
        &bench,
        "exec 9<.; mount -t tmpfs none /tmp; cp spin.js /tmp; cd /tmp; exec node --perf-basic-prof spin.js",
    );
    let mut record = bench.jitscribe(&format!("record --json -F 999 -p {}", process.pid));
    let record = Running::start(&mut record);
    while !bench.recording_has_begun() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Something has to be recorded.
    wait_for_looks(record.pid());
    bench.write(GO, "");
    let recorded = Recorded::of(&bench, record);
    drop(process);
    recorded.expect_named("spin ", "in a container");
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    const PHP: &str = "php -dopcache.enable_cli=1 -dopcache.jit=function -dopcache.jit_debug=32 \
                       -dopcache.jit_buffer_size=16M -dopcache.file_update_protection=0 spin.php";

    fn with_java() -> Bench {
        let bench = with_program("javac", "Spin.java", SPIN_JAVA);
        bench.run("javac Spin.java");
        bench
    }

    #[test]
    fn a_jitdump_in_a_folder_that_only_the_process_sees() {
        needs!(Processes, Perf);
        let bench = with_program("php", "spin.php", SPIN_PHP);
        // What we see under the path that the process tells of is another's.
        bench.write("private/jit-1.dump", Jit::new(1, 1).bytes());
        let process = Contained::start(
            &bench,
            &format!("mount -t tmpfs none private; cp spin.php private; cd private; exec {PHP}"),
        );
        process.record(&bench);
        expect_shown(&bench, process, "spin");
    }

    #[test]
    fn java_is_asked_for_its_map_inside() {
        needs!(Processes, Perf);
        let bench = with_java();
        let process = Contained::start(
            &bench,
            "mount -t tmpfs none /tmp; cp ./Spin.class /tmp; cd /tmp; exec java -cp . Spin",
        );
        process.record(&bench).says_not("wrote no perf map");
        expect_shown(&bench, process, "Spin.spin");
    }

    #[test]
    fn php_in_a_container_that_has_ended() {
        needs!(Processes, Perf);
        let bench = with_program("php", "spin.php", SPIN_PHP);
        // The folder with our settings is hidden too.
        expect_named_as_outside(&bench, "spin.php", PHP, "spin");
    }

    #[test]
    fn java_in_a_container_that_has_ended() {
        needs!(Processes, Perf);
        let bench = with_java();
        expect_named_as_outside(&bench, "Spin.class", "java -cp . Spin", "Spin.spin");
    }
}

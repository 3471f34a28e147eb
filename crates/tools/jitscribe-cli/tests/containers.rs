//! `jitscribe record -p` of processes in a container: with mounts and process ids of their own.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{Bench, Done, Running, expect_tool};
use jitdump::{Endian, Writer, WriterConfig};
use rustix::process::geteuid;
use test_privilege::{Privilege, have};

/// A process in mount and pid namespaces of its own, where it is process 1.
struct Contained {
    /// Ended with all in it when dropped.
    _unshare: Running,
    /// What we call the process.
    pid: String,
}

impl Contained {
    /// Runs a script in the bench's folder, which says "running" when it does.
    fn start(bench: &Bench, script: &str) -> Self {
        expect_tool("unshare");
        let mut unshare = bench.command("unshare");
        if !geteuid().is_root() {
            unshare.arg("--map-root-user");
        }
        unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
        unshare.args(["sh", "-e", "-c", script]).stdout(Stdio::piped());
        let mut unshare = Running::start(unshare);
        unshare.wait_for_line("running");
        let parent = unshare.pid();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let pid = children.expect("children").trim().to_owned();
        Self { _unshare: unshare, pid }
    }

    fn record(&self, bench: &Bench) -> Done {
        let done = bench.record(&["-F", "999", "-p", &self.pid, "--duration", "1"]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done
    }
}

/// A file of ours outside, which is removed again.
struct Outside(PathBuf);

impl Outside {
    fn write(path: impl AsRef<Path>, bytes: &[u8]) -> Self {
        fs::write(&path, bytes).expect("a file");
        Self(path.as_ref().to_owned())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It may be gone already.
        _ = fs::remove_file(&self.0);
    }
}

/// perf shows the function while the process runs, when it looks at files from inside the container,
/// and afterwards.
fn expect_shown(bench: &Bench, process: Contained, function: &str) {
    let shows = || bench.symbols("perf.data").iter().any(|symbol| symbol.contains(function));
    assert!(shows(), "while it runs: {:#?}", bench.symbols("perf.data"));
    drop(process);
    assert!(shows(), "when it has ended: {:#?}", bench.symbols("perf.data"));
}

/// What [`Contained::start`] needs.
const CONTAINER: &[Privilege] = &[Privilege::Processes];

#[test]
fn a_perf_map_in_a_folder_that_only_the_process_sees() {
    if !have(CONTAINER) {
        return;
    }
    expect_tool("node");
    let bench = Bench::new();
    bench.write(
        "spin.js",
        "function spin(n) { return n < 2 ? n : spin(n - 1) + spin(n - 2) }
         console.log('running'); for (;;) spin(18)",
    );
    let process = Contained::start(
        &bench,
        "mount -t tmpfs none /tmp; cp ./spin.js /tmp; cd /tmp; exec node --perf-basic-prof spin.js",
    );
    // Of a process that had this number before.
    let _stale = Outside::write(format!("/tmp/perf-{}.map", process.pid), b"1000 10 stale\n");
    let done = process.record(&bench);
    assert!(done.stderr.contains("build-id cache"), "{}", done.stderr);
    expect_shown(&bench, process, "spin ");
}

#[test]
fn a_jitdump_in_a_folder_that_only_the_process_sees() {
    if !have(CONTAINER) {
        return;
    }
    expect_tool("php");
    let bench = Bench::new();
    bench.write(
        "spin.php",
        "<?php function spin($n) { return $n < 2 ? $n : spin($n - 1) + spin($n - 2); }
         for ($i = 0; $i < 1000; $i++) spin(10);
         echo \"running\\n\"; for (;;) spin(18);",
    );
    // What we see under the path that the process tells of is another's.
    fs::create_dir(bench.path("private")).expect("a folder");
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: 1, timestamp: 1, flags: 0 };
    let others = Writer::new(Vec::new(), &config).expect("a jitdump").into_sink();
    fs::write(bench.path("private/jit-1.dump"), others).expect("a jitdump");
    let process = Contained::start(
        &bench,
        "mount -t tmpfs none private; cp spin.php private; cd private
         exec php -dopcache.enable_cli=1 -dopcache.jit=function -dopcache.jit_buffer_size=16M \
         -dopcache.jit_debug=32 -dopcache.file_update_protection=0 spin.php",
    );
    process.record(&bench);
    expect_shown(&bench, process, "spin");
}

#[test]
fn java_is_asked_for_its_map_inside() {
    if !have(CONTAINER) {
        return;
    }
    expect_tool("javac");
    let bench = Bench::new();
    bench.write(
        "Spin.java",
        "public class Spin {
             static int spin(int n) { return n < 2 ? n : spin(n - 1) + spin(n - 2); }
             public static void main(String[] words) {
                 System.out.println(\"running\");
                 for (;;) spin(18);
             }
         }",
    );
    bench.run(&["javac", "Spin.java"]);
    let process = Contained::start(
        &bench,
        "mount -t tmpfs none /tmp; cp ./Spin.class /tmp; cd /tmp; exec java -cp . Spin",
    );
    let done = process.record(&bench);
    assert!(!done.stderr.contains("wrote no perf map"), "{}", done.stderr);
    expect_shown(&bench, process, "Spin.spin");
}

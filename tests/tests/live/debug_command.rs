//! `jitscribe debug` with gdb 13 and gdb 16: stacks, breakpoints, and processes and core files that were not prepared.
//!
//! The program is `crowd`: only the unwind info of its functions leads to their callers, and it prints the true stack of each
//! stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use end_to_end::debugger::crowd_frames;
use end_to_end::jitscribe::{jitscribe, json};
use end_to_end::running::Running;
use end_to_end::tool::{ended, installed, path_behind, run, tool};
use serde_json::Value;

const CROWD: &str = env!("CARGO_BIN_EXE_crowd");

/// Begins each script: settings, and a function that prints the stack between marks.
const PRELUDE: &str = r#"
import gdb
for setting in (
    "breakpoint pending on", "debuginfod enabled off", "width 0", "height 0", "backtrace past-main on", "confirm off",
):
    gdb.execute("set " + setting)

def show(mark, command):
    gdb.write("@%s\n%s\n@\n" % (mark, gdb.execute(command, to_string=True)))

def run(file):
    words = gdb.execute("show args", to_string=True).split('"')[1]
    gdb.execute("set args %s > %s" % (words, file))
    gdb.execute("run")

def alive():
    return gdb.selected_inferior().pid != 0
"#;

/// gdb 13 of Debian 12, and gdb 16 of Debian 13.
fn debuggers() -> [PathBuf; 2] {
    ["gdb".into(), installed("trixie/run/gdb")]
}

/// lldb 19 of Debian 13.
fn newer_lldb() -> PathBuf {
    installed("trixie/run/lldb")
}

/// A session in a folder of its own.
struct Session {
    folder: tempfile::TempDir,
    debugger: PathBuf,
    /// The value of `JITSCRIBE` for the program.
    setting: Option<&'static str>,
}

impl Session {
    fn new(debugger: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, debugger: debugger.to_owned(), setting: None }
    }

    /// For a program that registers nothing with debuggers.
    fn unprepared(debugger: &Path) -> Self {
        Self { setting: Some("gdb=off"), ..Self::new(debugger) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, which ends when the script does.
    fn command(&self, script: &str) -> Command {
        let file = self.path("script.py");
        fs::write(&file, format!("{PRELUDE}{script}")).expect("a file");
        let temporary = self.path("tmp");
        fs::create_dir_all(&temporary).expect("a folder");
        let mut command = jitscribe();
        command.arg("debug").arg("--debugger").arg(&self.debugger);
        for word in ["-q", "-nx", "-batch", "-x"] {
            command.arg("--arg").arg(word);
        }
        command.arg("--arg").arg(file);
        self.set_up(&mut command);
        command.env("TMPDIR", temporary);
        command
    }

    fn set_up(&self, command: &mut Command) {
        command.env("TERM", "dumb").env_remove("DEBUGINFOD_URLS").env_remove("JITSCRIBE");
        command.stdin(Stdio::null());
        if let Some(setting) = self.setting {
            command.env("JITSCRIBE", setting);
        }
    }

    /// Runs it to its end, and checks that it left no files.
    fn run(&self, command: &mut Command) -> Said {
        let said = Said(run(command).stdout);
        let left: Vec<_> = fs::read_dir(self.path("tmp")).expect("a folder").collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        said
    }

    /// Debugs the program with these words, by a script in which `OUT` is the file for what it prints.
    fn debug(&self, script: &str, words: &[&str]) -> Said {
        let script = script.replace("OUT", &format!("{:?}", self.path("out")));
        self.run(self.command(&script).args(["--no-env", "--", CROWD]).args(words))
    }

    /// The stacks that the program says to have, in order.
    fn truth(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("out")).expect("the program's output");
        text.lines().filter_map(|line| Some(line.strip_prefix("truth: ")?.to_owned())).collect()
    }
}

/// What gdb said.
struct Said(String);

impl Said {
    /// What was shown with this mark.
    fn parts(&self, mark: &str) -> Vec<&str> {
        let mark = format!("@{mark}\n");
        let parts = self.0.split(&mark).skip(1);
        parts.map(|part| part.split_once("\n@\n").map_or(part, |(part, _)| part)).collect()
    }

    /// All stacks, each as the program prints them. Each must end with `_start`, and have no unknown frames.
    #[track_caller]
    fn stacks(&self) -> Vec<String> {
        let stacks = self.parts("stack");
        for stack in &stacks {
            let last = stack.trim_end().lines().last().unwrap_or_default();
            assert!(last.ends_with("_start ()"), "not whole:\n{stack}");
            // The C library of Debian 12 has no symbols that gdb of Debian 13 finds.
            let is_unknown = |line: &&str| line.contains("?? ()") && !line.contains(" from /");
            assert_eq!(stack.lines().find(is_unknown), None, "unknown frames:\n{stack}");
        }
        stacks.into_iter().map(|stack| crowd_frames(stack).join(" ")).collect()
    }
}

/// Runs the program to its end, with the stack at each stop.
const STACKS: &str = r#"
gdb.execute("break stop_here")
run(OUT)
while alive():
    show("stack", "backtrace")
    gdb.execute("continue")
"#;

fn stacks_are_true(session: &Session, words: &[&str]) {
    let said = session.debug(STACKS, words);
    let truth = session.truth();
    assert!(!truth.is_empty());
    assert_eq!(said.stacks(), truth, "{words:?}\n{}", said.0);
}

#[test]
fn stacks_are_whole_at_any_moment() {
    for debugger in debuggers() {
        for (count, seed) in [("10", "1"), ("1000", "2"), ("10000", "3")] {
            stacks_are_true(&Session::new(&debugger), &[count, "--stops", "8", "--seed", seed]);
        }
        let unprepared = Session::unprepared(&debugger);
        stacks_are_true(&unprepared, &["100000", "--stops", "3", "--seed", "4"]);
    }
}

#[test]
fn code_that_took_the_place_of_other_code_is_shown() {
    for debugger in debuggers() {
        let words = ["2000", "--stops", "12", "--seed", "5", "--churn"];
        stacks_are_true(&Session::unprepared(&debugger), &words);
    }
}

#[test]
fn pending_breakpoints_are_hit_by_the_first_call() {
    let script = r#"
gdb.execute("break many_70")
gdb.execute("break crowd.lang:433")
run(OUT)
while alive():
    show("stack", "backtrace")
    show("table", "info breakpoints")
    gdb.execute("continue")
"#;
    for debugger in debuggers() {
        let words = ["100", "--call", "43,70", "--stops", "0"];
        let said = Session::new(&debugger).debug(script, &words);
        // gdb stops at the first or the second line of a function.
        let hits = said.stacks();
        assert_eq!(hits[0], "many_43:433", "{}", said.0);
        assert!(hits[1].starts_with("many_70:70"), "{}", said.0);
        for table in said.parts("table") {
            assert!(!table.contains("MULTIPLE"), "a code is known twice:\n{table}");
        }
    }
}

/// gdb takes a breakpoint out of code that is freed, and puts it into what is compiled to the same address.
#[test]
fn a_breakpoint_is_hit_in_each_version_of_a_function() {
    let script = r#"
gdb.execute("break many_0")
gdb.execute("run")
while alive():
    show("hit", "backtrace 1")
    gdb.execute("continue")
"#;
    for debugger in debuggers() {
        let words = ["10", "--call", "0", "--rejit", "5"];
        let said = Session::new(&debugger).debug(script, &words);
        let hits = said.parts("hit");
        assert_eq!(hits.len(), 6, "{}", said.0);
        for hit in hits {
            assert!(hit.starts_with("#0  many_0 () at /src/crowd.lang:"), "{}", said.0);
        }
    }
}

#[test]
fn breakpoints_that_do_not_fit_into_the_log_are_hit_too() {
    let script = r#"
for number in range(400):
    gdb.execute("break a_function_with_a_long_name_%d" % number, to_string=True)
gdb.execute("break many_70")
gdb.execute("run")
show("stack", "backtrace")
show("info", "jitscribe info")
gdb.execute("kill")
"#;
    let said = Session::new(Path::new("gdb")).debug(script, &["100", "--call", "70"]);
    assert!(said.0.contains("jitscribe: too many breakpoints to announce"), "{}", said.0);
    assert!(said.stacks()[0].starts_with("many_70:70"), "{}", said.0);
    assert!(!said.parts("info")[0].contains("calls gdb"), "{}", said.0);
}

/// Starts the program, which waits for its input to end before its last stop.
fn start_waiting(setting: &str, words: &[&str]) -> Running {
    let mut command = Command::new(CROWD);
    command.args(words).arg("--wait").env("JITSCRIBE", setting);
    let mut program = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    program.wait_for_line("ready");
    program
}

#[test]
fn a_process_that_was_not_prepared_is_attached_to() {
    let script = r#"
show("name", "info line many_77777")
gdb.execute("break stop_here")
gdb.execute("break many_99999")
open(MARK, "w").close()
gdb.execute("continue")
show("hit", "backtrace 1")
gdb.execute("delete 2")
gdb.execute("continue")
show("stack", "backtrace")
show("info", "jitscribe info")
gdb.execute("detach")
"#;
    for debugger in debuggers() {
        let session = Session::unprepared(&debugger);
        let mut program = start_waiting("gdb=off", &["100000", "--seed", "6"]);
        let mark = session.path("mark");
        let script = script.replace("MARK", &format!("{mark:?}"));
        let mut command = session.command(&script);
        command.arg("-p").arg(program.pid().to_string());
        let said = std::thread::scope(|scope| {
            let debugged = scope.spawn(|| run(&mut command));
            while !mark.exists() && !debugged.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
            }
            program.close_input();
            let printed = debugged.join().expect("no panic");
            Said(printed.stdout + &printed.stderr)
        });
        let truth = program.line();
        assert_eq!(said.stacks(), [truth.trim_start_matches("truth: ")], "{}", said.0);
        assert!(
            said.parts("name")[0].starts_with("Line 777771 of \"/src/crowd.lang\""),
            "{}",
            said.0
        );
        assert!(
            said.parts("hit")[0].contains("many_99999 () at /src/crowd.lang:999"),
            "{}",
            said.0
        );
        assert!(said.parts("info")[0].contains("100000 codes in "), "{}", said.0);
    }
}

#[test]
fn a_core_file_shows_all_code() {
    let debugger = &debuggers()[0];
    let session = Session::unprepared(debugger);
    let (core, out) = (session.path("core"), session.path("out"));
    let mut make = tool("gdb");
    make.args(["-q", "-nx", "-batch", "-ex", "break stop_here", "-ex"]);
    make.arg(format!("run 5000 --seed 7 > {}", out.display()));
    make.arg("-ex")
        .arg(format!("generate-core-file {}", core.display()))
        .args(["-ex", "kill", CROWD]);
    session.set_up(&mut make);
    let made = ended(&mut make);
    assert!(core.is_file(), "{}", made.stderr);

    for debugger in debuggers() {
        let reader = Session::unprepared(&debugger);
        let mut command = reader.command("show('stack', 'backtrace')\n");
        let said = reader.run(command.arg("--core").arg(&core).arg(CROWD));
        assert_eq!(said.stacks(), session.truth(), "{}", said.0);
    }
    let mut lldb = jitscribe();
    lldb.args(["debug", "--lldb", "--debugger"]).arg(newer_lldb());
    lldb.args(["--arg", "--no-lldbinit", "--arg", "--batch", "--arg", "-o", "--arg", "bt"]);
    lldb.args(["--core"]);
    session.set_up(&mut lldb);
    let said = ended(lldb.arg(&core).arg(CROWD)).stdout;
    assert_eq!([crowd_frames(&said).join(" ")], session.truth()[..], "{said}");
}

#[test]
fn a_hook_of_the_user_still_runs() {
    for debugger in debuggers() {
        let session = Session::new(&debugger);
        let script = format!(
            "gdb.execute('define hook-stop\\necho @hook\\\\n\\nend')\n{}",
            STACKS.replace("OUT", &format!("{:?}", session.path("out")))
        );
        let words = ["--no-env", "--", CROWD, "50", "--stops", "3", "--seed", "8"];
        let said = session.run(session.command(&script).args(words));
        assert_eq!(said.stacks(), session.truth(), "{}", said.0);
        assert!(said.0.matches("@hook\n").count() >= 3, "{}", said.0);
    }
}

#[test]
fn the_printed_script_does_the_same_for_any_gdb() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = run(jitscribe().args(["debug", "--print-script"]));
    let script = folder.path().join("jitscribe.py");
    fs::write(&script, printed.stdout).expect("a file");
    // It runs the command that is on the PATH.
    let command = PathBuf::from(jitscribe().get_program());
    let path = path_behind(command.parent().expect("a folder"));
    let session = Session::unprepared(Path::new("gdb"));
    let mut gdb = tool("gdb");
    gdb.args(["-q", "-nx", "-batch", "-ex"]).arg(format!("source {}", script.display()));
    gdb.args(["-ex", "break stop_here", "-ex", "run", "-ex", "backtrace", "--args", CROWD, "20"]);
    session.set_up(&mut gdb);
    let text = ended(gdb.env("PATH", path)).stdout;
    assert!(text.contains("in many_19 () at /src/crowd.lang:193"), "{text}");
}

/// Calls itself deeply enough for an optimizing compiler, and stops by a signal to itself.
const SCRIPT: &str = "
function leaf(n) { let sum = 0; for (let i = 0; i < n; i++) sum += Math.sqrt(i) | 0; return sum; }
function middle(list) { return list.map(x => { if (x < 0) process.kill(process.pid, 'SIGUSR2'); return leaf(x); }); }
function outer(n, last) { for (let i = 0; i < n; i++) middle([100, 200, last]); }
outer(3000, 300);
outer(1, -1);
";

#[test]
fn stacks_of_node_are_whole() {
    let script = r#"
gdb.execute("handle SIGUSR2 stop nopass")
gdb.execute("run")
show("stack", "backtrace")
gdb.execute("kill")
"#;
    for debugger in debuggers() {
        let session = Session::new(&debugger);
        let file = session.path("app.js");
        fs::write(&file, SCRIPT).expect("a file");
        let mut command = session.command(script);
        // node writes its dump where it runs.
        command.current_dir(session.folder.path());
        let ended = ended(command.args(["--", "node"]).arg(&file));
        let said = Said(ended.stdout);
        assert_eq!(said.stacks().len(), 1, "{}\n{}", said.0, ended.stderr);
        let stack = said.parts("stack")[0];
        // What is called by what, the innermost first.
        let mut rest = stack;
        let expected = [
            "uv_kill",
            "node::Kill",
            "Builtins_CEntry",
            "kill node:internal",
            "Builtins_ArrayMap",
            "middle ",
            "outer ",
            "Builtins_JSEntry",
            "node::LoadEnvironment",
            "main",
        ];
        for name in expected {
            let found = rest.split_once(name);
            rest = found.unwrap_or_else(|| panic!("no {name} behind the others in\n{stack}")).1;
        }
    }
}

/// Stops node by the signal of [`SCRIPT`], and shows the stack. `then` is done in gdb, and the process killed.
fn stack_of_node(session: &Session, flags: &[&str], then: &str) -> Said {
    let file = session.path("app.js");
    fs::write(&file, SCRIPT).expect("a file");
    let script = format!(
        "gdb.execute('handle SIGUSR2 stop nopass')\ngdb.execute('run')\nshow('stack', 'backtrace')\n\
         {then}\ngdb.execute('kill')\n"
    );
    let mut command = session.command(&script);
    command.current_dir(session.folder.path()).args(["--no-env", "--", "node"]).args(flags);
    let ended = ended(command.arg(&file));
    assert!(ended.stdout.contains("@stack"), "{}\n{}", ended.stdout, ended.stderr);
    Said(ended.stdout)
}

/// The functions in a stack, the innermost first.
fn functions(stack: &str) -> Vec<&str> {
    let frames = stack.lines().filter(|line| line.starts_with('#'));
    frames.filter_map(function_of).collect()
}

/// The function of a frame: `#0  main ()`, or `#1  0x1234 in f ()`.
fn function_of(frame: &str) -> Option<&str> {
    let place = frame.split_once(' ')?.1.trim_start();
    let named = place.split_once(" in ").filter(|(address, _)| address.starts_with("0x"));
    named.map_or(place, |(_, name)| name).split(" (").next()
}

#[track_caller]
fn is_whole(said: &Said) -> &str {
    let stack = said.parts("stack")[0];
    let last = stack.trim_end().lines().last().unwrap_or_default();
    assert!(last.ends_with("_start ()"), "not whole:\n{}", said.0);
    stack
}

/// What is said of a node that was started without options.
const SWITCH: &str = "Start it so: node --perf-basic-prof";

#[test]
fn code_that_nothing_announces_is_unwound() {
    for debugger in debuggers() {
        let session = Session::new(&debugger);
        let said = stack_of_node(&session, &["--no-opt", "--always-sparkplug"], "");
        let stack = is_whole(&said);
        assert!(stack.matches(" in ?? ()").count() >= 3, "{stack}");
        assert_eq!(said.0.matches(SWITCH).count(), 1, "{}", said.0);
    }
}

/// With its perf map, and without.
#[test]
fn stacks_in_a_core_file_of_node_are_whole() {
    let first = &debuggers()[0];
    let session = Session::new(first);
    let (core, map) = (session.path("core"), session.path("map"));
    let then = format!(
        "gdb.execute('generate-core-file {}')\n\
         import os; os.symlink('/tmp/perf-%d.map' % gdb.selected_inferior().pid, {map:?})",
        core.display()
    );
    // Baseline code has no prologue of its own.
    let flags = ["--perf-basic-prof", "--interpreted-frames-native-stack", "--always-sparkplug"];
    let said = stack_of_node(&session, &flags, &then);
    let live = functions(is_whole(&said));
    let map = fs::read_link(map).expect("a link");
    let show = |debugger: &Path, options: &[&str]| {
        let reader = Session::new(debugger);
        let mut command = reader.command("show('stack', 'backtrace')\n");
        command.args(options);
        reader.run(command.arg("--core").arg(&core).arg(node()))
    };
    let names = |said: &Said| {
        let stack = is_whole(said);
        ["middle ", "outer "].iter().filter(|name| stack.contains(**name)).count()
    };
    assert_eq!(names(&said), 2, "{}", said.0);
    for debugger in debuggers() {
        let of_core = show(&debugger, &[]);
        assert_eq!(names(&of_core), 2, "{}", of_core.0);
        // The C library of Debian 12 has no symbols that gdb of Debian 13 finds.
        if debugger == *first {
            assert_eq!(functions(is_whole(&of_core)), live, "{}", of_core.0);
        }
    }
    let moved = session.path("moved.map");
    fs::copy(&map, &moved).expect("a copy");
    fs::remove_file(&map).expect("the map");
    for debugger in debuggers() {
        let without = show(&debugger, &[]);
        assert_eq!(names(&without), 0, "{}", without.0);
        assert_eq!(functions(is_whole(&without)).len(), live.len(), "{}", without.0);
        assert_eq!(without.0.matches(SWITCH).count(), 1, "{}", without.0);
        let is_missing = format!("{} (not there)", map.display());
        assert_eq!(without.0.matches(&is_missing).count(), 1, "{}", without.0);
    }
    let of_named = show(first, &["--perf-map", moved.to_str().expect("UTF-8")]);
    assert_eq!(functions(is_whole(&of_named)), live, "{}", of_named.0);
}

/// The program of node's core files.
fn node() -> PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    let places = std::env::split_paths(&path).map(|folder| folder.join("node"));
    places.into_iter().find(|place| place.is_file()).expect("node is installed")
}

/// An lldb whose Python lacks its module, as that of Debian 12: it asks for the state of the process.
#[test]
fn a_process_is_asked_to_register_its_code_for_an_lldb_without_python() {
    let session = Session::new(Path::new("lldb"));
    let lldb = session.path("lldb");
    let status = format!("{:?} ctl -p $PROCESS --json status", jitscribe().get_program());
    let text = format!("#!/bin/sh\ncase \"$1\" in --no-lldbinit) ;; *) {status} ;; esac\n");
    fs::write(&lldb, text).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&lldb, executable).expect("permissions");
    for (setting, before) in [("gdb=auto", false), ("gdb", true)] {
        let program = start_waiting(setting, &["100"]);
        let pid = program.pid().to_string();
        let mut command = jitscribe();
        command.args(["debug", "--lldb", "--debugger"]).arg(&lldb).args(["-p", &pid]);
        let ended = ended(command.env("PROCESS", &pid));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let during: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(during["gdb"], true, "{setting}");
        // It waits for its input, and announces nothing.
        assert_eq!(during["asked"], !before, "{setting}");
        let is_said = ended.stderr.contains("it does so with its next announcement");
        assert_eq!(is_said, !before, "{}", ended.stderr);
        let after = json(jitscribe().args(["ctl", "-p", &pid, "--json", "status"]));
        assert_eq!(after["gdb"], before, "{setting}");
    }
}

#[test]
fn lldb_shows_stacks_of_a_program_that_was_not_prepared() {
    let lldb = newer_lldb();
    let session = Session::unprepared(&lldb);
    let mut command = jitscribe();
    command.args(["debug", "--lldb", "--debugger"]).arg(&lldb);
    let script = [
        "settings set target.output-path OUT",
        "breakpoint set -n stop_here",
        "run",
        "bt",
        "breakpoint set -n many_150",
        "jitscribe info",
    ];
    command.args(["--arg", "--no-lldbinit", "--arg", "--batch"]);
    let out = session.path("out");
    for line in script {
        let line = line.replace("OUT", &out.display().to_string());
        command.args(["--arg", "-o", "--arg"]).arg(line);
    }
    session.set_up(&mut command);
    let ended = ended(command.args(["--no-env", "--", CROWD, "200", "--seed", "9"]));
    let (said, errors) = (ended.stdout, ended.stderr);
    // The command `bt` prints the stack, and others print places.
    let stack = said.split("(lldb) ").find(|part| part.starts_with("bt\n")).unwrap_or_default();
    assert_eq!([crowd_frames(stack).join(" ")], session.truth()[..], "{said}\n{errors}");
    assert!(said.contains("200 codes in 1 symbol files"), "{said}\n{errors}");
}

#[test]
fn a_gdb_without_python_is_started_without_the_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let gdb = folder.path().join("gdb");
    let text = "#!/bin/sh\ncase \"$1\" in --configuration) echo '  --without-python' ;; *) echo \"$JITSCRIBE:$*\" ;; esac\n";
    fs::write(&gdb, text).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&gdb, executable).expect("permissions");
    let mut command = jitscribe();
    command.args(["debug", "--no-env", "--debugger"]).arg(&gdb).args(["--", "/bin/true"]);
    let ended = ended(&mut command);
    // The reader is loaded where it was built.
    let words = &ended.stdout;
    let of_the_program = words.strip_prefix("gdb,gdb-synchronous:").and_then(|words| {
        let reader = words.strip_prefix("-iex jit-reader-load ");
        reader.map_or(Some(words), |reader| reader.split_once(' ').map(|(_, rest)| rest))
    });
    assert_eq!(of_the_program, Some("--args /bin/true\n"), "{words}");
    assert!(ended.stderr.contains("has no Python"));
}

#[test]
fn a_process_that_is_left_registers_as_before() {
    let script =
        "gdb.execute('break many_1')\nshow('info', 'jitscribe info')\ngdb.execute('detach')\n";
    for (setting, expected) in [("gdb=off", false), ("gdb", true)] {
        let session = Session::unprepared(Path::new("gdb"));
        let program = start_waiting(setting, &["100"]);
        let pid = program.pid().to_string();
        let said = session.run(session.command(script).args(["-p", &pid]));
        assert!(
            said.parts("info")[0].contains("calls gdb for code with breakpoints"),
            "{}",
            said.0
        );
        let status = json(jitscribe().args(["ctl", "-p", &pid, "--json", "status"]));
        let log = status.get("logs").map_or(&status, |logs| &logs[0]);
        assert_eq!(log["gdb"], expected, "{setting}: {status}");
    }
}

//! The library for `LD_PRELOAD`, in programs that write maps and dumps in every way there is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use end_to_end::jitscribe::{jitscribe, preload};
use end_to_end::running::Running;
use end_to_end::tool::{crate_dir, ended, run, tool};
use jitdump::{CodeEvent, Dump};
use tempfile::TempDir;
use test_privilege::needs;

/// A program of `workloads/bridge`, compiled into a folder of its own.
fn compiled(source: &str, options: &[&str]) -> (TempDir, PathBuf) {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let program = compiled_into(dir.path(), source, options);
    (dir, program)
}

fn compiled_into(dir: &Path, source: &str, options: &[&str]) -> PathBuf {
    let program = dir.join(source.split('.').next().expect("a name"));
    let mut compile = tool(if source.ends_with(".cpp") { "c++" } else { "cc" });
    compile.args(["-O1", "-o"]).arg(&program).args(options);
    run(compile.arg(crate_dir().join("workloads/bridge").join(source)));
    program
}

/// A program that has written all it had to, and waits.
struct Waiting {
    program: Running,
    said: Vec<String>,
}

impl Waiting {
    /// Starts `program DIR WORDS…`, with the library or without.
    fn start(program: &Path, dir: &Path, words: &[&str], bridged: bool) -> Self {
        Self::start_with(Command::new(program).arg(dir).args(words), bridged)
    }

    fn start_with(command: &mut Command, bridged: bool) -> Self {
        if bridged {
            command.env("LD_PRELOAD", preload());
        }
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Running::start(command);
        let said = program.lines_until("done");
        Self { program, said }
    }

    fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// The codes that it reports as alive: address, size and name.
    fn codes(&self) -> Codes {
        self.said.iter().map(|line| code(line)).collect()
    }

    /// Lets it end, and gives its exit code.
    fn end(mut self) -> Option<i32> {
        self.program.write("\n");
        self.program.code()
    }
}

type Codes = BTreeMap<(u64, u64), String>;

fn code(line: &str) -> ((u64, u64), String) {
    let mut fields = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(fields.next().expect("a field"), 16).expect("a number");
    let place = (number(), number());
    (place, fields.next().expect("a name").to_owned())
}

/// What is alive in a process, as `jitscribe` finds it from outside.
fn announced(pid: u32) -> Codes {
    let printed = run(jitscribe().args(["dump", "--perf-map", "-p", &pid.to_string()]));
    printed.stdout.lines().map(code).collect()
}

/// What a process writes in one way is announced, all of it and nothing else.
fn expect_announced_by(program: &Path, dir: &Path, way: &str) {
    let waiting = Waiting::start(program, dir, &[way], true);
    // What is written through a mapping is seen at two looks.
    let mut tries = 0;
    while way == "mapping" && announced(waiting.pid()) != waiting.codes() && tries < 50 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        tries += 1;
    }
    assert_eq!(announced(waiting.pid()), waiting.codes(), "{way}");
    assert_eq!(waiting.end(), Some(3), "{way}");
}

#[test]
fn what_is_written_in_any_way_is_announced() {
    let (dir, program) = compiled("writes.c", &["-Wall"]);
    // A stream writes records in parts, which the bridge follows without reading the file. What else happens to the file must not mislead it.
    let parts =
        ["pieces", "lines", "written", "duplicated", "again", "truncated", "large", "whole"];
    let parts = parts.map(|step| format!("parts {step}"));
    // When a file is truncated or written `anew`, its content begins again, and a later line replaces an earlier one.
    let ways = ["write", "dprintf", "stream", "descriptors", "mapping", "dump", "signal", "anew"];
    for way in ways.into_iter().chain(parts.iter().map(String::as_str)) {
        expect_announced_by(&program, dir.path(), way);
    }
}

/// The functions that the compiler calls instead, to check at run time what is given to them.
#[test]
fn by_checked_functions() {
    let flags = ["-O2", "-D_FORTIFY_SOURCE=2", "-D_LARGEFILE64_SOURCE"];
    let (dir, program) = compiled("writes.c", &flags);
    let symbols = run(tool("nm").arg("-D").arg(&program)).stdout;
    let checked = "open_2 open64_2 openat_2 openat64_2 dprintf_chk vdprintf_chk fprintf_chk";
    for name in checked.split(' ') {
        assert!(symbols.contains(&format!(" __{name}@")), "{name}: {symbols}");
    }
    for way in ["checked", "dprintf", "stream"] {
        expect_announced_by(&program, dir.path(), way);
    }
}

#[test]
fn by_a_stream_of_cpp() {
    let (dir, program) = compiled("ofstream.cpp", &[]);
    let waiting = Waiting::start(&program, dir.path(), &[], true);
    assert_eq!(waiting.codes().len(), 3);
    assert_eq!(announced(waiting.pid()), waiting.codes());
    assert_eq!(waiting.end(), Some(3));
}

/// The dynamic linker binds such an object past what was preloaded; also one that it makes read-only behind itself, and one
/// whose functions it looks for when they are called.
#[test]
fn by_an_object_that_asks_its_own_libraries_first() {
    for binding in ["-Wl,-z,now,-z,relro", "-Wl,-z,lazy"] {
        let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
        let object =
            compiled_into(dir.path(), "deepbound.c", &["-DOBJECT", "-shared", "-fPIC", binding]);
        std::fs::rename(object, dir.path().join("object.so")).expect("an object");
        let program = compiled_into(dir.path(), "deepbound.c", &[]);
        let waiting = Waiting::start(&program, dir.path(), &["object.so"], true);
        assert_eq!(waiting.codes().len(), 3);
        assert_eq!(announced(waiting.pid()), waiting.codes(), "{binding}");
        assert_eq!(waiting.end(), Some(3));
    }
}

/// The bytes are those that were there when the line was written.
#[test]
fn lines_of_a_map_get_bytes() {
    let (dir, program) = compiled("writes.c", &[]);
    let mut command = Command::new(&program);
    command.arg(dir.path()).arg("write");
    // Not where the program deletes what it takes for its own.
    let log = dir.path().join("log");
    std::fs::create_dir(&log).expect("a folder");
    command.env("JITSCRIBE", "jitdump").env("JITSCRIBE_DIR", &log);
    let waiting = Waiting::start_with(&mut command, true);
    let (pid, codes) = (waiting.pid(), waiting.codes());
    assert_eq!(waiting.end(), Some(3));
    let written = std::fs::read(log.join(format!("jit-{pid}.dump"))).expect("a dump");
    let mut loads = 0;
    for event in Dump::parse(&written).expect("a dump").codes() {
        let CodeEvent::Load(load) = event.expect("an event") else { continue };
        let name = codes.get(&(load.address, load.size)).expect("a code");
        assert_eq!(name.as_bytes(), load.name);
        let number: u8 =
            name.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
        let bytes = (0..load.size as u8).map(|at| number.wrapping_mul(7).wrapping_add(at));
        assert!(load.bytes.iter().copied().eq(bytes), "{name}");
        loads += 1;
    }
    assert_eq!(loads, codes.len());
}

/// It may run as another user by then: what is open stays so.
#[test]
fn in_a_program_that_drops_its_privileges() {
    needs!(OtherUsers);
    let (dir, program) = compiled("writes.c", &[]);
    let waiting = Waiting::start(&program, dir.path(), &["nobody"], true);
    assert_eq!(announced(waiting.pid()), waiting.codes());
    assert_eq!(waiting.end(), Some(3));
}

/// Threads that write, children in all ways, signals: everything is as without the library, and nothing is lost.
#[test]
fn in_a_program_with_many_forks_and_threads() {
    let (dir, program) = compiled("churn.c", &["-pthread"]);
    let same = |said: &[String]| -> Vec<String> {
        said.iter().filter(|line| !line.starts_with("child ")).cloned().collect()
    };
    let without = Waiting::start(&program, dir.path(), &[], false);
    let with = Waiting::start(&program, dir.path(), &[], true);
    assert_eq!(same(&with.said), same(&without.said));

    let map = |pid: u32| {
        let path = dir.path().join(format!("perf-{pid}.map"));
        std::fs::read_to_string(path).expect("a map")
    };
    let wrote = |pid: u32, who: &str| -> Codes {
        map(pid).lines().filter(|line| line.contains(who)).map(code).collect()
    };
    let pid = with.pid();
    let mut expected = wrote(pid, "thread");
    expected.extend(wrote(pid, "signal"));
    assert_eq!(expected.len(), 4 * 1500 + 20);
    let mut found = announced(pid);
    // The child wrote this into its parent's map: it is the child's code, in whichever file it is.
    found.retain(|_, name| !name.starts_with("heir in"));
    assert_eq!(found, expected);
    // The child has what its parent had, and what it wrote itself.
    let child = with.said.iter().find_map(|line| line.strip_prefix("child ")?.parse().ok());
    let child = child.expect("a child");
    expected.extend(wrote(child, "heir"));
    expected.extend(wrote(pid, "heir in"));
    assert_eq!(announced(child), expected);

    assert_eq!(with.end(), Some(3));
    assert_eq!(without.end(), Some(3));
}

/// An heir has what was alive at the fork and what it announced itself, whatever the process does that it was forked from.
#[test]
fn a_child_has_exactly_the_codes_of_the_fork_and_its_own() {
    const OLD: u64 = 2000;
    let (dir, program) = compiled("heirs.c", &["-Wall"]);
    for how in ["lives", "exits", "replaces", "forks", "idles"] {
        let waiting = Waiting::start(&program, dir.path(), &[how], true);
        let heir: u32 = waiting.said[0].parse().expect("a process");
        let found = announced(heir);
        let mut names: BTreeMap<String, u64> = (0..OLD).map(|n| (format!("old {n}"), n)).collect();
        names.extend((3 * OLD..3 * OLD + 3).map(|n| (format!("heir {n}"), n)));
        if how == "replaces" {
            for n in 100..110 {
                names.remove(&format!("old {n}"));
                names.insert(format!("mine {n}"), n);
            }
        }
        if how == "forks" {
            names.extend((4 * OLD..4 * OLD + 2).map(|n| (format!("late {n}"), n)));
        }
        let start = found.keys().next().expect("codes").0;
        let expected: Codes =
            names.into_iter().map(|(name, n)| ((start + n * 64, 64), name)).collect();
        assert!(found == expected, "{how}: {} of {} codes", found.len(), expected.len());

        // Until the heir has copied them, the inherited codes are in the log of the process that it was forked from.
        let status = run(jitscribe().args(["ctl", "-p", &heir.to_string(), "status"])).stdout;
        let is_shared = status.contains("(the parent's code log as of the fork)");
        assert_eq!(is_shared, ["lives", "exits"].contains(&how), "{how}: {status}");
        assert!(!is_shared || status.contains(&format!("{OLD} codes alive, 0 dead")), "{status}");

        let core = dir.path().join("core");
        run(tool("gcore").arg("-o").arg(&core).arg(heir.to_string()));
        let core = dir.path().join(format!("core.{heir}"));
        let printed = run(jitscribe().args(["dump", "--perf-map", "--core"]).arg(&core));
        let found: Codes = printed.stdout.lines().map(code).collect();
        assert!(found == expected, "{how}, core file: {} codes", found.len());
        std::fs::remove_file(core).expect("a core file");
        assert_eq!(waiting.end(), Some(3));
    }
}

/// glibc unwinds a cancelled thread out of the function that it is in, through the library's own: destructors run, and nobody
/// aborts. All is as without the library.
#[test]
fn threads_are_cancelled_in_every_function() {
    for flags in [&["-pthread"][..], &["-pthread", "-fexceptions"]] {
        let (dir, program) = compiled("cancelled.c", flags);
        let folder = |name: &str| {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            folder
        };
        let without = Waiting::start(&program, &folder("without"), &[], false);
        let with = Waiting::start(&program, &folder("with"), &[], true);
        assert_eq!(with.said, without.said);
        assert_eq!(with.said.len(), 3 * 9 + 2);
        for line in &with.said {
            assert!(line.ends_with(": cancelled, 1 cleaned up"), "{line}");
        }
        assert_eq!(with.end(), Some(3));
        assert_eq!(without.end(), Some(3));
    }
}

/// Nothing can be loaded into it: it runs, and this is reported.
#[test]
fn a_static_program_is_reported() {
    let (dir, program) = compiled("writes.c", &["-static"]);
    let mut command = jitscribe();
    command.arg("run").arg("--").arg(&program).arg(dir.path()).arg("write");
    command.env("JITSCRIBE_PRELOAD", preload()).stdin(Stdio::null());
    let done = ended(&mut command);
    assert_eq!(done.code, Some(3));
    assert!(done.stderr.contains("it is statically linked"), "{}", done.stderr);
}

/// musl's dynamic linker ends a program into which it should load the library, but finds none: the program runs, and this is
/// reported. A program that the command starts runs just as well, and what is linked with glibc beside it has the library.
#[test]
fn a_musl_program_runs_without_the_library() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let program = dir.path().join("musl");
    let source = crate_dir().join("workloads/bridge/ends.c");
    run(tool("musl-gcc").arg("-o").arg(&program).arg(source));
    let refused = ended(Command::new(&program).env("LD_PRELOAD", preload()));
    assert_ne!(refused.code, Some(3), "it can be loaded: then nothing need be done");

    let with_bridge = || {
        let mut command = jitscribe();
        command.env("JITSCRIBE_PRELOAD", preload()).args(["run", "--"]);
        command
    };
    let done = ended(with_bridge().arg(&program));
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    assert!(done.stderr.contains("it is linked with musl"), "{}", done.stderr);

    let script = r#""$0"; echo $?; while read -r line; do echo "$line"; done < /proc/self/maps"#;
    let done = ended(with_bridge().args(["sh", "-c", script]).arg(&program));
    assert_eq!((done.code, &*done.stderr), (Some(0), ""));
    let said = done.stdout;
    assert_eq!(said.lines().next(), Some("3"));
    let library = preload().canonicalize().expect("the library");
    assert!(said.contains(&*library.to_string_lossy()), "{said}");
}

/// Also those of processes that the command started, and the files beside them.
#[test]
fn files_that_are_left_are_reported() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let mut all = jitscribe();
    all.args(["run", "--", "sh", "-c", "node -e 'process.exit(3)'"]);
    all.env("JITSCRIBE_PRELOAD", preload()).current_dir(dir.path());
    let done = ended(&mut all);
    assert_eq!(done.code, Some(3));
    let said = done.stderr;
    let left = said.lines().find_map(|line| line.strip_prefix("no longer needed: rm "));
    let mut left: Vec<_> = left.expect("files").split(' ').map(Path::new).collect();
    left.retain(|path| path.starts_with(dir.path()));
    let mut there: Vec<_> = std::fs::read_dir(dir.path())
        .expect("a folder")
        .flatten()
        .map(|file| file.path())
        .collect();
    there.sort();
    assert!(!there.is_empty());
    assert_eq!(left, there);
}

/// `run` is as if it were not there: output, exit code, the end by a signal.
#[test]
fn a_command_runs_as_without_the_bridge() {
    let mut run = jitscribe();
    run.args(["run", "--", "sh", "-c", "echo out; echo err >&2; kill -TERM $$"]);
    let done = ended(run.env("JITSCRIBE_PRELOAD", preload()));
    assert_eq!(done.code, Some(128 + 15));
    assert_eq!((&*done.stdout, &*done.stderr), ("out\n", "err\n"));
}

/// However often the bridge is refused memory, once or from some time on: the program goes on, what is missing is counted, and
/// what is written when there is memory again is announced.
#[test]
fn allocations_fail() {
    let dir = TempDir::with_prefix("jitscribe-bridge-").expect("a folder");
    let refuse = dir.path().join("refuse.so");
    let source = crate_dir().join("workloads/bridge/refuse.c");
    run(tool("cc").args(["-O1", "-Wall", "-shared", "-fPIC", "-o"]).arg(&refuse).arg(source));
    let refuse = refuse.to_str().expect("a path");
    // Named before what uses it.
    let options = ["-Wall", "-Wl,--no-as-needed", refuse];
    let program = compiled_into(dir.path(), "refused.c", &options);
    let libraries = format!("{refuse} {}", preload().display());
    // Says how many requests there were, and how many of them were refused.
    let survives = |settings: &str, from: u32, to: u32| {
        let mut command = Command::new(&program);
        command.arg(dir.path()).args([from, to].map(|number| number.to_string()));
        command.env("LD_PRELOAD", &libraries).env("JITSCRIBE", settings);
        let mut waiting = Waiting::start_with(&mut command, false);
        let counted = waiting.said.remove(0);
        let mut counted = counted.split(' ').filter_map(|word| word.parse::<u32>().ok());
        let counted = (counted.next().expect("a number"), counted.next().expect("a number"));
        let what = format!("JITSCRIBE={settings}, {from} to {to}: {counted:?}");
        let (all, known) = (waiting.codes(), announced(waiting.pid()));
        assert!(known.iter().all(|(place, name)| all.get(place) == Some(name)), "{what}");
        for name in ["first line", "first record", "last line", "last record"] {
            assert!(known.values().any(|known| known == name), "{what}: no {name}");
        }
        if known.len() < all.len() {
            let seen = run(jitscribe().args(["dump", "-p", &waiting.pid().to_string()]));
            let missing = format!("{} codes are missing", all.len() - known.len());
            assert!(seen.stderr.contains(&missing), "{what}: {missing}: {}", seen.stderr);
        }
        assert_eq!(waiting.end(), Some(3), "{what}");
        counted
    };
    for settings in ["log", "bytes", "gdb"] {
        let (asked, refused) = survives(settings, 0, 0);
        assert!(asked > 5 && refused == 0, "{asked} {refused}");
        for from in 1..=asked {
            // One run may ask less often than another.
            let (asked, refused) = survives(settings, from, from);
            assert_eq!(refused, u32::from(asked >= from), "{settings}: {asked} {from}");
            let (asked, refused) = survives(settings, from, u32::MAX);
            assert_eq!(refused > 0, asked >= from, "{settings}: {asked} {from}");
        }
    }
}

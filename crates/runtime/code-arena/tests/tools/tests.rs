//! What the tools must show.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use test_privilege::{Privilege, have, unshare};

use crate::run::{file_in, output, role};

/// A test gets a folder for its files.
type Test = (&'static str, fn(&Path));

pub const ALL: &[Test] = &[
    #[cfg(target_arch = "x86_64")]
    ("perf_names_and_annotates", perf_names_and_annotates),
    #[cfg(target_arch = "x86_64")]
    ("perf_names_what_was_only_mapped", perf_names_what_was_only_mapped),
    #[cfg(target_arch = "x86_64")]
    ("perf_unwinds_by_the_tables", perf_unwinds_by_the_tables),
    #[cfg(target_arch = "x86_64")]
    ("gdb_that_attaches_knows_all", gdb_that_attaches_knows_all),
    #[cfg(target_arch = "x86_64")]
    ("lldb_that_attaches_knows_all", lldb_that_attaches_knows_all),
    ("backtraces_have_names", backtraces_have_names),
    ("panics_pass_through", panics_pass_through),
    ("dladdr_knows_it", dladdr_knows_it),
    ("checkers_take_the_file", checkers_take_the_file),
    ("libunwind_knows_it", libunwind_knows_it),
    #[cfg(target_arch = "x86_64")]
    ("heaptrack_names_who_allocates", heaptrack_names_who_allocates),
    ("churn_leaves_what_is_alive", churn_leaves_what_is_alive),
    ("forks_do_not_meet", forks_do_not_meet),
    ("a_full_disk_is_no_signal", a_full_disk_is_no_signal),
];

/// `perf record` of a role. The cache of object files is in the directory, too.
fn record(directory: &Path, options: &[&str], command: &Command) {
    let mut perf = perf(directory);
    perf.args(["record", "-q", "-F", "997", "-o", "perf.data"]).args(options).arg("--");
    output(with_program(&mut perf, command));
}

/// A tool that runs a role: with the program and the environment of its command.
fn with_program<'a>(tool: &'a mut Command, command: &Command) -> &'a mut Command {
    let environment = command.get_envs().map(|(name, value)| (name, value.unwrap()));
    tool.arg(command.get_program()).envs(environment)
}

fn perf(directory: &Path) -> Command {
    let mut perf = Command::new("perf");
    perf.arg("--buildid-dir").arg(directory.join("cache")).current_dir(directory);
    perf
}

/// What a command of perf prints about the recording.
fn shown(directory: &Path, subcommand: &str, options: &[&str]) -> String {
    output(perf(directory).args([subcommand, "-i", "perf.data"]).args(options))
}

/// Asserts that the first occurrences of these parts come one after another.
#[track_caller]
fn assert_order(text: &str, parts: &[&str]) {
    let place = |part: &&str| text.find(*part).unwrap_or_else(|| panic!("no {part} in\n{text}"));
    let places: Vec<usize> = parts.iter().map(place).collect();
    assert!(places.is_sorted_by(|one, next| one < next), "not in the order {parts:?}:\n{text}");
}

fn names_of(report: &str) -> Vec<(&str, f64)> {
    report
        .lines()
        .filter_map(|line| line.trim().split_once('|'))
        .filter_map(|(share, name)| {
            Some((name.trim(), share.trim().trim_end_matches('%').parse().ok()?))
        })
        .collect()
}

fn check_spin(directory: &Path) {
    let options = ["--stdio", "-q", "-t", "|", "-F", "overhead,sym"];
    let report = shown(directory, "report", &options);
    let names = names_of(&report);
    let jitted: f64 =
        names.iter().filter(|(name, _)| name.contains("jit::count")).map(|(_, share)| share).sum();
    assert!(jitted > 80.0, "{report}");
    for number in 0..4 {
        let name = format!("jit::count{number}");
        let share =
            names.iter().find(|(has, _)| has.ends_with(&name)).map_or(0.0, |(_, share)| *share);
        assert!(share > 10.0, "{report}");
    }
    let unknown: f64 =
        names.iter().filter(|(name, _)| name.contains("0x00007f")).map(|(_, share)| share).sum();
    assert!(unknown < 2.0, "{report}");
}

fn perf_names_and_annotates(directory: &Path) {
    if !have(&[Privilege::Perf]) {
        return;
    }
    record(directory, &[], &role("spin", directory));
    check_spin(directory);
    let annotated = shown(directory, "annotate", &["--stdio", "-s", "jit::count2"]);
    assert!(annotated.contains("dec    %rdi"), "{annotated}");
    let lines = shown(directory, "script", &["-F", "ip,sym,srcline"]);
    assert!(lines.contains("arena.jit:10"), "{}", &lines[..lines.len().min(2000)]);
}

fn perf_names_what_was_only_mapped(directory: &Path) {
    if !have(&[Privilege::Perf]) {
        return;
    }
    let mut command = role("spin", directory);
    command.env("UNLINKED", "1");
    record(directory, &[], &command);
    check_spin(directory);
}

fn perf_unwinds_by_the_tables(directory: &Path) {
    if !have(&[Privilege::Perf]) {
        return;
    }
    record(directory, &["--call-graph", "dwarf"], &role("stack", directory));
    let stacks = shown(directory, "script", &["-F", "ip,sym"]);
    let (mut through, mut all) = (0, 0);
    for stack in stacks.split("\n\n").filter(|stack| stack.contains("spin_a_while")) {
        all += 1;
        let jitted = stack.find("jit::caller");
        let native = stack.find("native_bottom");
        let main = stack.find("main");
        through += usize::from(jitted.is_some() && jitted < native && native < main);
    }
    assert!(
        all > 20 && through * 100 >= all * 98,
        "{through} of {all}\n{}",
        &stacks[..stacks.len().min(3000)]
    );
}

/// A role that waits, and its output.
struct Waiting(Child, BufReader<ChildStdout>);

impl Waiting {
    fn start(command: &mut Command) -> (Self, Vec<String>) {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut waiting = Self(child, out);
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(waiting.1.read_line(&mut line).unwrap(), 0, "it ended: {said:?}");
            if line == "ready\n" {
                return (waiting, said);
            }
            said.push(line.trim_end().to_owned());
        }
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
        drop(self.1);
    }
}

fn gdb_that_attaches_knows_all(directory: &Path) {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let (waiting, _) = Waiting::start(&mut role("wait", directory));
    let pid = waiting.0.id().to_string();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-p", &pid, "-ex", "bt", "-ex", "info line *'jit::caller'"]);
    gdb.args(["-ex", "info sharedlibrary code-", "-ex", "disassemble 'jit::caller'"]);
    let text = output(gdb.env("DEBUGINFOD_URLS", ""));
    waiting.end();
    assert_order(&text, &["in jit::caller () at /src/arena.jit:11", "native_bottom", "main ("]);
    assert!(text.contains("xor    %ebp,%ebp"), "{text}");
}

fn lldb_that_attaches_knows_all(directory: &Path) {
    let (waiting, _) = Waiting::start(&mut role("wait", directory));
    let pid = waiting.0.id().to_string();
    let mut lldb = Command::new("lldb");
    let text = output(lldb.args(["-x", "-b", "-p", &pid, "-o", "bt", "-o", "detach"]));
    waiting.end();
    assert_order(&text, &["jit::caller at arena.jit:11", "native_bottom"]);
}

fn backtraces_have_names(directory: &Path) {
    let text = output(&mut role("backtrace", directory));
    assert_order(&text, &["print_backtrace", "jit::caller", "native_bottom"]);
    assert_order(&text, &["/src/arena.jit:11", "native_bottom"]);
}

fn panics_pass_through(directory: &Path) {
    assert_eq!(output(&mut role("panic", directory)), "caught\n");
}

fn dladdr_knows_it(directory: &Path) {
    let text = output(&mut role("dladdr", directory));
    assert_eq!(text.trim(), format!("jit::caller in {}", file_in(directory).display()));
}

fn libunwind_knows_it(directory: &Path) {
    // Version 1.6.2, that of Debian 12, ends a walk at a signed return address.
    let text = output(role("libunwind", directory).env(crate::jit::UNSIGNED, "1"));
    assert_order(&text, &["jit::caller", "native_bottom", "main"]);
}

fn checkers_take_the_file(directory: &Path) {
    let (waiting, _) = Waiting::start(&mut role("wait", directory));
    let file = file_in(directory);
    let read = output(Command::new("readelf").arg("-aW").arg("--debug-dump=frames").arg(&file));
    assert!(read.contains("FUNC    GLOBAL DEFAULT    2 jit::caller"), "{read}");
    assert!(!read.contains("Warning") && !read.contains("Error"), "{read}");
    let verified =
        output(Command::new("llvm-dwarfdump").args(["--verify", "--eh-frame"]).arg(&file));
    assert!(verified.contains("No errors"), "{verified}");
    // Elsewhere the process is QEMU.
    if cfg!(target_arch = "x86_64") {
        let notes =
            output(Command::new("eu-unstrip").arg("-n").arg("-p").arg(waiting.0.id().to_string()));
        assert!(notes.contains(file.to_str().unwrap()), "{notes}");
    }
    let address = format!("{:#x}", crate::roles::page_size() + 8);
    let line = output(Command::new("addr2line").arg("-fe").arg(&file).arg(address));
    assert_eq!(line, "jit::caller\n/src/arena.jit:11\n");
    waiting.end();
}

/// Including code that was announced after heaptrack had read the file.
fn heaptrack_names_who_allocates(directory: &Path) {
    let files = directory.join("files");
    std::fs::create_dir(&files).unwrap();
    let mut heaptrack = Command::new("heaptrack");
    heaptrack.arg("-o").arg(directory.join("heap"));
    output(with_program(&mut heaptrack, &role("allocate", &files)));
    let recorded = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_stem().is_some_and(|stem| stem == "heap"))
        .expect("a recording");
    let said = output(Command::new("heaptrack_print").args(["-l", "1", "-f"]).arg(recorded));
    for name in ["jit::generous", "jit::wasteful"] {
        let at = said.find(name).unwrap_or_else(|| panic!("no {name} in\n{said}"));
        let caller: Vec<&str> = said[at..].lines().take(4).collect();
        assert!(caller[1].contains("/src/arena.jit:11"), "{caller:?}");
        assert!(caller[3].contains("native_bottom"), "{caller:?}");
    }
}

fn churn_leaves_what_is_alive(directory: &Path) {
    let (waiting, said) = Waiting::start(&mut role("churn", directory));
    let file = file_in(directory);
    let symbols = output(Command::new("nm").arg("-S").arg(&file));
    for line in &said {
        let mut words = line.split(' ');
        let address = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let size: u64 = words.next().unwrap().parse().unwrap();
        let wanted = format!("{address:016x} {size:016x} T {}", words.next().unwrap());
        assert!(symbols.contains(&wanted), "{wanted}\n{symbols}");
    }
    assert_eq!(said.len(), 100);
    // The search table finds every FDE, and the unit every line.
    for tool in [&["readelf", "-wfil"][..], &["llvm-dwarfdump", "--verify"]] {
        let text = output(Command::new(tool[0]).args(&tool[1..]).arg(&file));
        assert!(!text.contains("arning") && !text.contains("error:"), "{text}");
    }
    let size = std::fs::metadata(&file).unwrap();
    let used = std::os::unix::fs::MetadataExt::blocks(&size) * 512;
    assert!(used < 2 << 20, "{used} bytes");
    waiting.end();
}

fn forks_do_not_meet(directory: &Path) {
    assert_eq!(output(&mut role("fork", directory)), "forked\n");
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 2);
}

/// On a disk of 1 MiB, and with a limit for the size of files.
fn a_full_disk_is_no_signal(directory: &Path) {
    let count = |shell: &mut Command, script: &str| -> usize {
        let text = output(with_program(shell.args(["-c", script]), &role("full", directory)));
        text.split(' ').next().unwrap().parse().unwrap()
    };
    if have(&[Privilege::Mounts]) {
        let script = "mount -t tmpfs -o size=1m none \"$DIRECTORY\" && \"$0\"";
        let full = count(unshare().args(["--mount", "sh"]), script);
        assert!((100..1000).contains(&full), "{full}");
    }
    let limited = count(&mut Command::new("sh"), "ulimit -f 5500; \"$0\"");
    assert!(limited > 10, "{limited}");
}

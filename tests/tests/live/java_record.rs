//! `jitscribe record` and Java: which JVMs it gives the agent, and that none keeps it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Instant;

use end_to_end::java::{Java, Jdk, LONG};
use end_to_end::jitscribe::{demo_jit, java_agent, jitscribe};
use end_to_end::on_each_jdk;
use end_to_end::perf::Perf;
use end_to_end::record::Record;
use end_to_end::running::{PATIENCE, Running, wait_until};
use end_to_end::sample::Sample;
use end_to_end::tool::{output, run, tool};
use tempfile::TempDir;
use test_privilege::needs;

on_each_jdk! {
    record_attaches_names_all_and_lets_go,
    record_gives_a_command_the_agent,
    a_jvm_lets_go_of_a_record_that_was_killed,
    a_jvm_that_cannot_load_the_agent_gives_a_map,
}

fn record_attaches_names_all_and_lets_go(jdk: &Jdk) {
    let java = Java::start(jdk, &["-XX:+PreserveFramePointer"], &[LONG]);
    let threads = java.threads().join(",");
    let map = format!("/tmp/perf-{}.map", java.pid());
    // Of a process that had this number before.
    _ = fs::remove_file(&map);
    for whose in [["-p", &java.pid()], ["-t", &threads]] {
        let options = ["--duration", "1", "-F", "999"];
        let recorded = Record::new(&[&whose[..], &options].concat()).processes();
        assert!(!recorded.said.contains("warning"), "{}", recorded.said);
        assert_eq!(java.alive().len(), 0, "the agent goes on");
        let perf = Perf::installed();
        let samples = perf.samples_with_lines(&recorded.data());
        let jitted: Vec<_> = samples.iter().filter(|sample| sample.dso.contains(".jit/")).collect();
        let named: Vec<_> = jitted
            .iter()
            .filter(|sample| sample.name().is_some_and(|name| name.starts_with("Tiers.")))
            .collect();
        // Of all samples, the JVM's compiler has a large part on a busy machine.
        let count = named.len();
        assert!(count > 20 && count * 2 > jitted.len(), "{count} of {}", jitted.len());
        let unknown = samples.iter().filter(|sample| sample.in_anonymous_memory()).count();
        assert!(unknown * 100 <= samples.len(), "{unknown} of {} have no name", samples.len());
        let has_line = |line: &str| line.contains(".java:");
        let without: Vec<_> = named
            .iter()
            .filter(|sample| !sample.srcline.as_deref().is_some_and(has_line))
            .map(|sample| sample.to_string())
            .collect();
        assert!(without.len() * 10 < named.len(), "of {}: {without:#?}", named.len());
    }
    assert!(!Path::new(&map).exists(), "a map was asked for");
    // Who started it keeps it.
    java.agent("");
    Record::new(&["-p", &java.pid(), "--duration", "0.3"]).processes();
    assert!(java.alive().len() > 100, "it was stopped by who only recorded");
}

/// Records a command that starts Java, without a word of complaint: how many samples have the names of methods.
fn named_in_a_command(jdk: &Jdk) -> usize {
    let record = Record::new(&["-F", "999", "--force"]).env("PATH", jdk.path());
    jdk.compile("Tiers.java", record.folder());
    let recorded = record.program(&["sh", "-c", "java Tiers 3000; exit 0"]);
    // A map that a test before left for another process with this id is skipped, which is said.
    let is_expected = |line: &str| {
        line.starts_with("Picked up JAVA_TOOL_OPTIONS")
            || line.contains("an earlier process with this id")
    };
    let mut said = recorded.said.lines().filter(|line| !is_expected(line));
    assert!(!said.any(|line| line.contains("warning")), "{}", recorded.said);
    let samples = recorded.samples();
    let named =
        samples.iter().filter(|s| s.name().is_some_and(|n| n.starts_with("Tiers."))).count();
    let unknown = samples.iter().filter(|sample| sample.in_anonymous_memory()).count();
    assert!(unknown * 20 <= named, "{named} of {}, {unknown} unknown", samples.len());
    let left = fs::read_dir(recorded.folder()).expect("a folder").flatten();
    let left: BTreeSet<_> = left.map(|e| e.file_name().into_string().expect("UTF-8")).collect();
    let left: Vec<_> = left.iter().filter(|name| !name.ends_with(".class")).collect();
    assert_eq!(left, ["it.data", "it.data.jit"]);
    named
}

fn record_gives_a_command_the_agent(jdk: &Jdk) {
    // Where others have the processors, three seconds may give few samples.
    expect_so_many(100, || named_in_a_command(jdk));
}

/// Records again and again, until so many samples are named.
fn expect_so_many(enough: usize, mut named: impl FnMut() -> usize) {
    let sum = Cell::new(0);
    wait_until(
        || format!("{} samples are named", sum.get()),
        || {
            sum.set(sum.get() + named());
            sum.get() >= enough
        },
    );
}

/// Waits until as many codes are alive in its log as are wanted.
fn wait_for_codes(java: &Java, are_there: impl Fn(usize) -> bool) {
    let alive = || {
        // Before the agent came there is no log.
        let dump = output(jitscribe().args(["dump", "--json", "-p", &java.pid()]));
        if dump.status.success() { java.alive().len() } else { 0 }
    };
    wait_until(|| format!("{} codes are alive", alive()), || are_there(alive()));
}

/// The pipes for it whose names are in `/tmp`.
fn pipes(java: &Java) -> Vec<String> {
    let entries = fs::read_dir("/tmp").expect("/tmp").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let prefix = format!(".jitscribe-{}-", java.pid());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

fn a_jvm_lets_go_of_a_record_that_was_killed(jdk: &Jdk) {
    let java = Java::start(jdk, &["-Xcheck:jni"], &[LONG]);
    let mut record = jitscribe();
    record.args(["record", "-p", &java.pid(), "--duration", "100"]).current_dir(java.dir());
    // With a process group of its own, so that perf ends as well.
    record.env("JITSCRIBE_JAVA_AGENT", java_agent()).process_group(0);
    let killed = Running::start(&mut record);
    wait_for_codes(&java, |alive| alive > 100);
    // It has a name until all code that was compiled before is announced.
    wait_until(|| format!("{:?} stay", pipes(&java)), || pipes(&java).is_empty());
    let kill = format!("kill -KILL -{}", killed.pid());
    run(tool("sh").args(["-c", &kill]));
    wait_for_codes(&java, |alive| alive == 0);
    // Another is heard.
    let said = Record::new(&["-p", &java.pid(), "--duration", "0.5"]).processes().said;
    assert!(!said.contains("warning"), "{said}");
    java.expect_no_complaint();
}

/// Records for a second, with an agent that lies elsewhere, and checks that a warning says why it is not used, and that methods
/// have names nevertheless. Returns how many samples have.
fn named_by_a_map(java: &Java, agent: &Path, why: &str) -> usize {
    let options = ["-p", &java.pid(), "--duration", "1", "-F", "999", "--force"];
    let recorded = Record::new(&options).env("JITSCRIBE_JAVA_AGENT", agent).processes();
    let said = &recorded.said;
    let map = format!("/tmp/perf-{}.map", java.pid());
    assert!(Path::new(&map).exists(), "no map was asked for:\n{said}");
    fs::remove_file(map).expect("removed");
    let warning = said.lines().find(|line| line.contains("does not load the agent"));
    let warning = warning.unwrap_or_else(|| panic!("no word of it:\n{said}"));
    assert!(warning.contains(why) && warning.contains("perf map"), "{warning}");
    let samples = recorded.samples();
    let (named, nameless) = counts(&samples);
    assert!(nameless <= named, "{nameless} have no name, {named} have");
    assert_eq!(pipes(java), [""; 0], "left in /tmp");
    named
}

/// How many samples have the name of a method of the workload's, and how many are of jitted code and have none. What the JVM
/// itself does, as compiling, is neither: on a busy machine it is a large part.
fn counts<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> (usize, usize) {
    let (mut named, mut nameless) = (0, 0);
    for sample in samples {
        match sample.name() {
            Some(name) if name.contains("Tiers.") => named += 1,
            None if sample.in_anonymous_memory() => nameless += 1,
            _ => {}
        }
    }
    (named, nameless)
}

fn a_jvm_that_cannot_load_the_agent_gives_a_map(jdk: &Jdk) {
    // One that the dynamic linker refuses.
    let java = Java::start(jdk, &["-XX:+PreserveFramePointer"], &[LONG]);
    let broken = java.dir().join("broken.so");
    fs::write(&broken, "no library").expect("written");
    // Where others have the processors, a second may be without a sample of it.
    expect_so_many(20, || named_by_a_map(&java, &broken, "broken.so"));
    drop(java);

    needs!(Mounts);
    let elsewhere = TempDir::with_prefix("jitscribe-agent-").expect("a temporary folder");
    let agent = elsewhere.path().join("agent.so");
    fs::copy(java_agent(), &agent).expect("copied");
    let dir = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
    jdk.compile("Tiers.java", dir.path());
    // There is another file system where we see the agent.
    let mut hidden = tool("unshare");
    if !rustix::process::geteuid().is_root() {
        hidden.arg("--map-current-user");
    }
    hidden.args(["--mount", "sh", "-ec", "mount -t tmpfs none \"$1\"; shift; exec \"$@\"", "sh"]);
    hidden.arg(elsewhere.path()).arg(jdk.tool("java").get_program());
    hidden.args(["-XX:+PreserveFramePointer", "Tiers", LONG]).current_dir(dir.path());
    let java = Java::started(jdk, hidden, dir);
    expect_so_many(20, || named_by_a_map(&java, &agent, "in its file system"));
}

/// What one shell does in a PID namespace of its own, so that it is about no JVM of anybody else's. The third JVM is stopped, a
/// fourth begins when the others are recorded already.
const ALL: &str = r#"
mount -t proc proc /proc
for number in 1 2 3; do
    eval java=\$JAVA$number
    "$java" Tiers 300000 >$number.out 2>&1 &
    eval pid$number=$!
done
trap 'kill -KILL $pid1 $pid2 $pid3 $pid4' EXIT
for number in 1 2 3; do
    while ! grep -q running $number.out; do sleep 0.1; done
done
kill -STOP $pid3
sh -c 'while ! grep -q "is loaded" said; do sleep 0.1; done; exec "$JAVA1" Tiers 300000' >4.out 2>&1 &
pid4=$!
# A session of its own makes a process group, which gets the signal of Ctrl-C.
setsid env --default-signal=INT "$JITSCRIBE" record -a -F 999 -o all.data 2>said &
recorder=$!
# However long it takes on a busy machine.
while ! grep -q running 4.out; do
    kill -0 $recorder
    sleep 0.1
done
sleep 2
kill -INT -$recorder
wait $recorder
echo $pid1 $pid2 $pid3 $pid4 >pids
rm /tmp/perf-$pid4.map
for pid in $pid1 $pid2; do
    "$JITSCRIBE" dump --json -p $pid >$pid.json
done
kill -CONT $pid3
# The command may still reach it: it has to find nobody.
sleep 1
if "$JITSCRIBE" dump --json -p $pid3 >third.json 2>third.said; then grep -c '"died":null' third.json || true; fi
"#;

#[test]
fn record_of_all_processes_loads_the_agent_into_each_jvm_and_stops_it() {
    needs!(Processes);
    let (one, two) = (Jdk::of_debian_12(), Jdk::of_debian_13());
    let dir = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
    one.compile("Tiers.java", dir.path());
    let mut all = tool("unshare");
    if !rustix::process::geteuid().is_root() {
        all.arg("--map-root-user");
    }
    all.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ALL]);
    for (number, jdk) in [("1", &one), ("2", &two), ("3", &one)] {
        all.env(format!("JAVA{number}"), jdk.tool("java").get_program());
    }
    all.env("JITSCRIBE", jitscribe().get_program()).env("JITSCRIBE_JAVA_AGENT", java_agent());
    // Outside of the namespace, processes for which perf has no number map jitdumps of their own all the while.
    let outside = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
    let mut demos = tool("sh");
    demos.args(["-c", "while :; do \"$0\" --quiet --phase 50 --dump-dir .; done"]);
    demos.arg(demo_jit().get_program()).current_dir(outside.path());
    let demos = Running::start(&mut demos);
    let before = Instant::now();
    let printed = run(all.current_dir(dir.path()));
    assert!(before.elapsed() < PATIENCE, "it was held up");
    drop(demos);
    let said = fs::read_to_string(dir.path().join("said")).expect("what it said");
    let pids = fs::read_to_string(dir.path().join("pids")).expect("ids");
    let pids: Vec<&str> = pids.split_whitespace().collect();
    let loaded =
        format!("loaded into 2 processes (--no-env prevents this): {}, {}", pids[0], pids[1]);
    assert!(said.contains(&loaded), "{said}");
    assert!(said.contains(&format!("process {}: not responding, skipped", pids[2])), "{said}");
    for pid in &pids[..2] {
        let told = fs::read_to_string(dir.path().join(format!("{pid}.json"))).expect("a dump");
        let loads: Vec<_> = told.lines().filter(|line| line.contains("\"load\"")).collect();
        let alive = loads.iter().filter(|line| line.contains("\"died\":null")).count();
        assert!(loads.len() > 100 && alive == 0, "{alive} of {} are alive", loads.len());
    }
    // What the third has alive in its log, if it has one.
    assert!(["", "0"].contains(&printed.stdout.trim()), "it works for nobody: {}", printed.stdout);
    let samples = Perf::installed().samples(&dir.path().join("all.data"));
    for pid in [pids[0], pids[1], pids[3]] {
        let (named, nameless) =
            counts(samples.iter().filter(|sample| sample.pid.to_string() == pid));
        assert!(named > 20 && nameless <= named, "{named} have a name, {nameless} have none");
    }
}

/// Without the agent, a perf map has names alone: `record` says so, unless the user wants it.
#[test]
fn a_missing_agent_is_reported() {
    for (agent, is_reported) in [
        (Path::new("/nothing/there.so"), true),
        ("".as_ref(), false),
        (java_agent().as_path(), false),
    ] {
        let record = Record::new(&["--allow-empty", "--force"]).env("JITSCRIBE_JAVA_AGENT", agent);
        let said = record.program(&["java", "-version"]).said;
        assert_eq!(said.contains("the Java agent is not installed"), is_reported, "{said}");
    }
}

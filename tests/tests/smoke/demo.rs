//! The demo JIT, recorded in every way, compared with its own record of what it compiled.

use std::path::Path;
use std::process::{Command, Stdio};

use end_to_end::chains::Chain;
use end_to_end::demo::{demo, demo_with_phases, record_demo};
use end_to_end::jitscribe::{inject, interruptible_jitscribe, jitscribe};
use end_to_end::live::Recorder;
use end_to_end::perf::Perf;
use end_to_end::recordings::{DEMO, DEMO_COPIED, FRAME_POINTERS};
use end_to_end::running::{Running, wait_until};
use end_to_end::sample::Sample;
use end_to_end::tool::{ToolOutput, ended, run, tool};
use end_to_end::truth::Truth;
use test_privilege::needs;
use test_privilege::{Privilege, have};

#[test]
fn each_sample_gets_the_version_that_ran_then_and_its_line() {
    needs!(Perf);
    let (recording, truth) = DEMO.with_truth();
    assert!(truth.most_versions_at_one_address() >= 3);
    let ours = recording.ours();
    truth.expect(&recording.perf().samples_with_lines(&ours.data), true);
    if have(&[Privilege::NewerPerf]) {
        truth.expect(&Perf::newer().samples_with_lines(&ours.data), true);
    }
}

/// Every stack that begins in a code without frame pointers reaches `main`.
#[test]
fn dwarf_stacks_reach_main_without_frame_pointers() {
    needs!(Perf);
    let (recording, truth) = DEMO_COPIED.with_truth();
    let ours = recording.ours();
    truth.expect(&ours.samples, false);
    let mut perfs = vec![("installed", Perf::installed())];
    if have(&[Privilege::NewerPerf]) {
        perfs.push(("6.12", Perf::newer()));
    }
    for (name, perf) in perfs {
        let chains = perf.chains(&ours.data);
        assert_eq!(chains.len(), ours.samples.len());
        expect_stacks_to_main(&truth, &ours.samples, &chains, name);
    }
}

/// Every stack has to reach `main`, but for some of those where perf's unwinder mistakes the code for the one
/// that was at the address before.
fn expect_stacks_to_main(truth: &Truth, samples: &[Sample], chains: &[Chain], name: &str) {
    let (mut stacks, mut mistaken) = (0, 0);
    for (sample, chain) in samples.iter().zip(chains) {
        if !truth.covers(sample.ip, sample.time) {
            continue;
        }
        stacks += 1;
        if !chain.passes("main") {
            assert!(truth.is_reused(sample.ip), "perf {name}: {sample}: {}", chain.line());
            mistaken += 1;
        }
    }
    assert!(stacks > 50, "perf {name}: only {stacks} stacks");
    assert!(mistaken * 20 < stacks, "perf {name}: {mistaken} of {stacks} stacks lead nowhere");
}

#[test]
fn annotate_shows_assembly_and_source() {
    needs!(Perf);
    let recording = DEMO.get();
    let ours = recording.ours();
    let mut annotate = recording.perf().command();
    annotate.args(["annotate", "--stdio", "-l", "-i"]).arg(&ours.data).arg("baseline::fib");
    let shown = run(&mut annotate).stdout;
    assert!(shown.contains("ret"), "no assembly:\n{shown}");
    assert!(shown.contains("demo.scribe:"), "no source lines:\n{shown}");
}

/// Records the demo, where that is allowed, and compares the names of all samples.
#[track_caller]
fn expect_names(options: &[&str], more: &[&str]) {
    needs!(Perf);
    let (recording, truth) = record_demo(Recorder::new().options(options), more);
    truth.expect(&recording.ours().samples, false);
}

#[test]
fn code_in_a_memfd() {
    expect_names(FRAME_POINTERS, &["--memory", "memfd"]);
}

#[test]
fn a_compressed_recording() {
    expect_names(&[FRAME_POINTERS, &["-z"]].concat(), &[]);
}

#[test]
fn a_process_that_was_attached_to() {
    needs!(Perf);
    let recorder = Recorder::new();
    let start = recorder.dir().join("start");
    let start_when = ["--start-when", start.to_str().expect("UTF-8")];
    let words = demo_with_phases("500", recorder.dir(), "truth.json", &start_when);
    let running = start_demo(&words);
    let mut record = recorder.command();
    record.args(["-p", &running.pid().to_string()]);
    let printed = start_both(&mut record, &start).finish();
    running.finish();
    let recording = recorder.finish(printed);
    let truth = Truth::read(&recording.dir().join("truth.json"));
    truth.expect(&recording.ours().samples, false);
}

#[test]
fn code_that_was_announced_before_the_recording() {
    needs!(Perf);
    let recorder = Recorder::new();
    let dir = recorder.dir().to_owned();
    let start = dir.join("start");
    let more = ["--no-frame-pointers", "--start-when", start.to_str().expect("UTF-8")];
    let words = without_dump(demo_with_phases("500", &dir, "truth.json", &more));
    let running = start_demo(&words);
    let data = dir.join("perf.data");
    let pid = running.pid().to_string();
    // The log has to be there when the recording begins: it ends with the process.
    wait_until(
        || "the demo announces nothing".to_owned(),
        || {
            let dump = ended(jitscribe().args(["dump", "-p", &pid]));
            dump.code == Some(0) && dump.stdout.contains("fib")
        },
    );
    let mut record = jitscribe();
    record
        .args(["record", "-p", &pid, "-F", "499", "--call-graph", "dwarf,16384", "-o"])
        .arg(&data);
    let printed = start_both(&mut record, &start).finish();
    running.finish();
    let dumps = std::fs::read_dir(&dir).expect("the folder").flatten();
    let dumps = dumps.filter(|file| file.path().extension().is_some_and(|kind| kind == "dump"));
    assert_eq!(dumps.count(), 0);
    let recording = recorder.finish(printed);
    let truth = Truth::read(&dir.join("truth.json"));
    let perf = recording.perf();
    let samples = perf.samples(&data);
    truth.expect(&perf.samples_with_lines(&data), true);
    let chains = perf.chains(&data);
    expect_stacks_to_main(&truth, &samples, &chains, "6.1");
}

#[test]
fn processes_that_began_during_the_recording() {
    needs!(PerfOfAll);
    let recorder = Recorder::new();
    let mut record = jitscribe();
    let later = Later::new(recorder.dir());
    // The shell ends when the demo has run all of its code, and waits to be ended.
    let script = format!("{} until [ -e '{}' ]; do sleep 0.1; done", later.script(), later.truth());
    record.args(["record", "-F", "499", "--no-env", "-o"]).arg(recorder.dir().join("perf.data"));
    record.args(["-a", "--", "sh", "-c", &script]);
    let printed = run(&mut record);
    later.expect(recorder, printed);
}

#[test]
fn children_forked_during_the_recording() {
    needs!(Perf);
    let recorder = Recorder::new();
    let later = Later::new(recorder.dir());
    let start = recorder.dir().join("start");
    let script =
        format!("until [ -e '{}' ]; do sleep 0.1; done; {} wait", start.display(), later.script());
    let shell = Running::start(Command::new("sh").arg("-c").arg(script));
    let mut record = interruptible_jitscribe();
    record.args(["record", "-F", "499", "-o"]).arg(recorder.dir().join("perf.data"));
    record.args(["-p", &shell.pid().to_string()]);
    let record = start_both(&mut record, &start);
    later.wait_for_truth();
    record.interrupt();
    let printed = record.finish();
    later.expect(recorder, printed);
    shell.finish();
}

/// The words of a command for the demo that leave nothing but the log in its memory.
fn without_dump(mut words: Vec<String>) -> Vec<String> {
    let dump = words.iter().position(|word| word == "--dump-dir").expect("an option");
    words.splice(dump..dump + 2, ["--log".to_owned()]);
    words
}

/// Starts the demo, which is killed if the test fails.
fn start_demo(words: &[String]) -> Running {
    Running::start(tool(&words[0]).args(&words[1..]).stdout(Stdio::null()))
}

/// Starts a command that records, and creates the file that the recorded process waits for, once perf has opened its events.
fn start_both(record: &mut Command, start: &Path) -> Running {
    let record = record.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let record = Running::start(record);
    wait_until(|| "perf records nothing".to_owned(), || has_events(record.pid()));
    std::fs::write(start, "").expect("a file");
    record
}

/// Whether this process or one of its children has events of perf open.
fn has_events(pid: u32) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = open.filter_map(|descriptor| descriptor.path().read_link().ok());
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .collect::<String>();
    targets.any(|target| target.as_os_str() == "anon_inode:[perf_event]")
        || children.split_whitespace().any(|child| has_events(child.parse().expect("a process id")))
}

/// A demo that starts during a recording and still runs at its end. All that describes its code is the log in its memory.
struct Later(std::path::PathBuf);

impl Later {
    fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    fn truth(&self) -> String {
        self.0.join("truth.json").display().to_string()
    }

    /// What the shell writes its process id into.
    fn pid_file(&self) -> std::path::PathBuf {
        self.0.join("pid")
    }

    /// The shell's commands that start it.
    fn script(&self) -> String {
        let end = self.0.join("end");
        let more = ["--end-when", end.to_str().expect("UTF-8")];
        let words = without_dump(demo_with_phases("600", &self.0, "truth.json", &more));
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let started = format!("{} >/dev/null 2>&1 &", quoted.join(" "));
        format!("{started} echo $! >'{}';", self.pid_file().display())
    }

    /// Waits until it has run all of its code.
    fn wait_for_truth(&self) {
        wait_until(|| "the demo still runs".to_owned(), || Path::new(&self.truth()).exists());
    }

    /// Ends it, and compares what was recorded of it.
    fn expect(&self, recorder: Recorder, printed: ToolOutput) {
        std::fs::write(self.0.join("end"), "").expect("a file");
        let said = printed.stderr.clone();
        let recording = recorder.finish(printed);
        let truth = Truth::read(&recording.dir().join("truth.json"));
        // Without lines: perf would look for those of all that ran on the machine.
        let samples = recording.perf().samples(&recording.data());
        // Others may have run at the same addresses.
        let of_demo = |pid: u32| {
            let own = samples.iter().filter(|sample| sample.pid == pid);
            own.filter(|sample| truth.covers(sample.ip, sample.time)).count()
        };
        let pid = recording.pids().into_iter().max_by_key(|pid| of_demo(*pid)).expect("a process");
        let own: Vec<_> = samples.iter().filter(|sample| sample.pid == pid).cloned().collect();
        assert!(own.iter().any(|sample| sample.symbol.is_some()), "no names: {said}");
        truth.expect(&own, false);
    }
}

impl Drop for Later {
    /// Kills it if the test fails: then it may wait for its end for ever. Otherwise it has ended, and its process id may be another's.
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(pid) = std::fs::read_to_string(self.pid_file())
        {
            _ = Command::new("sh").arg("-c").arg(format!("kill -KILL {pid}")).status();
        }
    }
}

#[test]
fn a_pid_namespace() {
    needs!(Processes, OtherUsers, Perf);
    let recorder = Recorder::new();
    let mut words = vec!["unshare".to_owned(), "-pf".into()];
    words.extend(demo(recorder.dir(), "truth.json", &[]));
    let recording = recorder.record(&words);
    assert!(recording.dir().join("jit-1.dump").exists(), "the demo is process 1 of its namespace");
    let truth = Truth::read(&recording.dir().join("truth.json"));
    truth.expect(&recording.ours().samples, false);
}

#[test]
fn two_jits_on_the_whole_machine() {
    needs!(PerfOfAll);
    let recorder = Recorder::new().options(&["-k", "mono", "-F", "999", "-g", "-a"]);
    // A folder each: both write their program's source.
    let both: Vec<String> = ["one", "two"]
        .map(|name| {
            let dir = recorder.dir().join(name);
            std::fs::create_dir(&dir).expect("a folder");
            let words = demo(&dir, "truth.json", &[]);
            words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
        })
        .to_vec();
    let script = format!("{} & {}; wait", both[0], both[1]);
    let recording = recorder.record(&["sh", "-c", &script]);
    let ours = recording.ours();
    let mut jits = 0;
    for name in ["one", "two"] {
        let truth = Truth::read(&recording.dir().join(name).join("truth.json"));
        // Both may have used the same addresses: only the process distinguishes them.
        for pid in recording.pids() {
            let own: Vec<_> = ours.samples.iter().filter(|s| s.pid == pid).cloned().collect();
            if own.iter().filter(|sample| truth.covers(sample.ip, sample.time)).count() > 50 {
                truth.expect(&own, false);
                jits += 1;
            }
        }
    }
    assert_eq!(jits, 2, "both JITs were sampled");
}

#[test]
fn a_pipe() {
    needs!(Perf);
    let recorder = Recorder::new();
    let words = demo(recorder.dir(), "truth.json", &[]);
    let out = recorder.dir().join("ours.data");
    // A later -o wins over the recorder's own.
    let mut command = recorder.command();
    command.args(["-o", "-", "--"]).args(&words).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut recording = command.spawn().expect("perf starts");
    let mut injecting = jitscribe();
    injecting.args(["inject", "-i", "-", "-o"]).arg(&out);
    injecting.stdin(recording.stdout.take().expect("a pipe"));
    run(&mut injecting);
    assert!(recording.wait().expect("perf ends").success());
    let truth = Truth::read(&recorder.dir().join("truth.json"));
    truth.expect(&Perf::installed().samples(&out), false);
}

#[test]
fn a_deleted_dump_is_reported_and_the_rest_is_used() {
    needs!(Perf);
    let (recording, _) = record_demo(Recorder::new(), &[]);
    let name = format!("jit-{}.dump", recording.pid());
    std::fs::remove_file(recording.dir().join(&name)).expect("the dump");
    let out = recording.dir().join("ours.data");
    let mut inject = jitscribe();
    let said =
        ended(inject.args(["inject", "-i"]).arg(recording.data()).arg("-o").arg(&out)).stderr;
    assert!(said.contains(&name), "the missing dump is not named:\n{said}");
    assert_eq!(recording.perf().samples(&out).len(), recording.raw().len());
}

#[test]
fn a_recording_that_was_cut_off() {
    needs!(Perf);
    let (recording, truth) = DEMO.with_truth();
    let whole = std::fs::read(recording.data()).expect("the recording");
    let folder = tempfile::tempdir().expect("a folder");
    let [cut, out] = ["cut.data", "ours.data"].map(|name| folder.path().join(name));
    std::fs::write(&cut, &whole[..whole.len() / 3 * 2]).expect("a shorter recording");
    let printed: ToolOutput = inject::<_, &str>(&cut, &out, []);
    let samples = recording.perf().samples(&out);
    assert!(samples.len() > 50, "{} samples are left\n{}", samples.len(), printed.stderr);
    truth.expect(&samples, false);
}

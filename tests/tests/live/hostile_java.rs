//! `jitscribe record` of hostile processes that look like JVMs: what they can do to the user who records, and to other JVMs.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use end_to_end::java::{Java, Jdk, LONG};
use end_to_end::jitscribe::{interruptible_jitscribe, java_agent, jitscribe};
use end_to_end::live::workload;
use end_to_end::perf::Perf;
use end_to_end::running::{Running, wait_until};
use end_to_end::tool::tool;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use test_privilege::needs;

/// An ordinary user.
const NOBODY: u32 = 65534;

/// What root has in its environment.
const OF_ROOT: (&str, &str) = ("A_SECRET", "of-root");

/// What the user has in the environment of a program of its own.
const OWN: (&str, &str) = ("A_SECRET", "of-its-own");

/// `record` gives those that were named thirty seconds. Much more than that is for ever.
const FOR_EVER: Duration = Duration::from_secs(240);

/// A command of the ordinary user's.
fn as_nobody(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", program]);
    command
}

/// A folder where anybody may put files.
fn open_folder(place: &Path) {
    fs::create_dir_all(place).expect("made");
    fs::set_permissions(place, fs::Permissions::from_mode(0o777)).expect("opened");
}

/// A folder where the ordinary user may put files, with copies of what this user opens: the folders of the sources and of what was
/// built may be closed to others.
struct Scene(TempDir);

impl Scene {
    fn new() -> Self {
        let dir = TempDir::with_prefix("jitscribe-hostile-").expect("a temporary folder");
        open_folder(dir.path());
        let scene = Self(dir);
        fs::copy(workload("hostile/fake_jvm.py"), scene.fake_jvm()).expect("copied");
        fs::copy(java_agent(), scene.agent()).expect("copied");
        scene
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn fake_jvm(&self) -> PathBuf {
        self.path().join("fake_jvm.py")
    }

    fn agent(&self) -> PathBuf {
        self.path().join("libjitscribe_jvmti.so")
    }
}

/// A hostile process.
struct Fake {
    child: Running,
    out: PathBuf,
    mode: &'static str,
}

impl Fake {
    fn start(mode: &'static str, scene: &Scene) -> Self {
        let fakes = std::iter::repeat_with(|| Self::start_once(mode, scene));
        // A JVM that was killed may have left a socket for this number.
        let fake = fakes.take(20).find(|fake| !fake.printed().contains("in use"));
        fake.expect("a number that is free")
    }

    fn start_once(mode: &'static str, scene: &Scene) -> Self {
        let folder = scene.path().join(mode);
        open_folder(&folder);
        let out = folder.join("out");
        let file = File::create(&out).expect("a file");
        let mut fake = as_nobody("python3");
        fake.arg(scene.fake_jvm()).arg(mode).arg(&folder).env_clear().env("PATH", "/usr/bin:/bin");
        fake.stdin(Stdio::piped()).stderr(file.try_clone().expect("a copy")).stdout(file);
        let fake = Self { child: Running::start(&mut fake), out, mode };
        let is_there = || ["running", "in use"].iter().any(|word| fake.printed().contains(word));
        wait_until(|| format!("{mode} does not start: {}", fake.printed()), is_there);
        fake
    }

    fn pid(&self) -> String {
        self.child.pid().to_string()
    }

    fn printed(&self) -> String {
        fs::read_to_string(&self.out).expect("its output")
    }

    fn wait_for(&self, wanted: &str) {
        let instead = || format!("{} never said {wanted}: {}", self.mode, self.printed());
        wait_until(instead, || self.printed().contains(wanted));
    }

    /// The files that it left or created in `/tmp`, except its own socket.
    fn left(&self) -> Vec<String> {
        let (attach, pipe) =
            (format!(".attach_pid{}", self.pid()), format!(".jitscribe-{}-", self.pid()));
        let names = fs::read_dir("/tmp").expect("/tmp").flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| *name == attach || name.starts_with(&pipe)).collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // It may have made none.
        _ = fs::remove_file(format!("/tmp/.java_pid{}", self.pid()));
    }
}

/// Runs `record`, which must end by itself, and returns its output.
fn record(arguments: &[&str], agent: &Path, dir: &Path) -> String {
    let said = dir.join("said");
    let file = File::create(&said).expect("a file");
    let mut record = jitscribe();
    record
        .args(["record", "--allow-empty"])
        .args(arguments)
        .args(["-e", "cpu-clock", "-F", "999"])
        .current_dir(dir);
    record.env("JITSCRIBE_JAVA_AGENT", agent).env(OF_ROOT.0, OF_ROOT.1);
    record.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let mut record = record.spawn().expect("jitscribe");
    let code = end_of(&mut record);
    let said = fs::read_to_string(said).expect("what it said");
    assert_eq!(code, Some(0), "{said}");
    said
}

fn end_of(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + FOR_EVER;
    loop {
        if let Some(status) = child.try_wait().expect("waited") {
            return status.code();
        }
        if Instant::now() >= end {
            child.kill().expect("killed");
            panic!("it is held up: it still runs after {} s", FOR_EVER.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The line that is about a process.
fn line_about<'s>(said: &'s str, fake: &Fake) -> &'s str {
    let (long, short) =
        (format!("process {} is Java", fake.pid()), format!("process {}:", fake.pid()));
    let line = said.lines().find(|line| line.contains(&long) || line.contains(&short));
    line.unwrap_or_else(|| panic!("no word of {}: {said}", fake.mode))
}

#[test]
fn named_hostile_processes_cause_no_delay_and_learn_nothing() {
    needs!(OtherUsers, Perf);
    let scene = Scene::new();
    let modes = [
        "silent", "slow", "mute", "endless", "garbage", "escapes", "fifo", "file", "link",
        "clinging",
    ];
    let fakes = modes.map(|mode| Fake::start(mode, &scene));
    let fake = |mode| fakes.iter().find(|fake| fake.mode == mode).expect("a mode");
    // What they look for can be found: they see it in a program of their own.
    let _own = Running::start(as_nobody("sleep").arg("600").env(OWN.0, OWN.1));
    fakes.iter().for_each(|fake| fake.wait_for(OWN.1));

    let jdk = Jdk::of_debian_12();
    let java = Java::start(&jdk, &["-XX:+PreserveFramePointer"], &[LONG]);
    let mut pids: Vec<_> = fakes.iter().map(Fake::pid).collect();
    pids.push(java.pid());
    let options = ["-p", &pids.join(","), "--duration", "1", "-o", "it.data"];
    let said = record(&options, &scene.agent(), java.dir());

    for mode in ["silent", "slow", "mute"] {
        assert!(
            line_about(&said, fake(mode)).contains("not responding, skipped"),
            "{mode}: {said}"
        );
    }
    assert!(line_about(&said, fake("endless")).contains("answer is longer than"), "{said}");
    assert!(line_about(&said, fake("garbage")).contains("not that of a JVM"), "{said}");
    assert!(line_about(&said, fake("escapes")).contains("red"), "{said}");
    assert!(!said.contains(['\x1b', '\x07']), "{said:?}");
    for mode in ["fifo", "file", "link"] {
        assert!(line_about(&said, fake(mode)).contains("is not a socket"), "{mode}: {said}");
    }
    // It was requested to let go, and a refusal causes no wait.
    fake("clinging").wait_for("the pipe is full");
    // Each request was made as the process's own user.
    for mode in ["silent", "slow", "endless", "garbage", "escapes", "clinging"] {
        assert!(fake(mode).printed().contains(&format!("asked by user {NOBODY}")), "{mode}");
    }
    assert!(fake("mute").printed().contains("signal"), "{}", fake("mute").printed());
    let own = format!("read {}={}", OWN.0, OWN.1);
    for fake in &fakes {
        let printed = fake.printed();
        let learnt: Vec<_> = printed.lines().filter(|line| line.starts_with("read ")).collect();
        assert_eq!(learnt, [&own], "{}", fake.mode);
        // Of its own program at most, where the kernel lets it.
        let stolen = printed.lines().filter(|line| line.starts_with("stole "));
        assert!(stolen.count() <= 1, "{}: {printed}", fake.mode);
        assert_eq!(fake.left(), [""; 0], "{} is left with files", fake.mode);
    }
    // The real one has been recorded as if it were alone.
    assert!(!said.contains(&format!(" {} is Java", java.pid())), "{said}");
    let samples = Perf::installed().samples(&java.dir().join("it.data"));
    let its = samples.iter().filter(|sample| sample.pid.to_string() == java.pid());
    let names: Vec<_> = its.map(|sample| sample.name().unwrap_or_default()).collect();
    let named = names.iter().filter(|name| name.starts_with("Tiers.")).count();
    assert!(named > 20 && named * 2 > names.len(), "{named} of {} are named", names.len());
    assert_eq!(java.alive().len(), 0, "the agent goes on");
}

#[test]
fn a_signal_ends_the_command_without_an_answer_and_leaves_no_files() {
    needs!(OtherUsers, Perf);
    let scene = Scene::new();
    for signal in [Signal::INT, Signal::KILL] {
        // With nothing to listen at, so that there are both a pipe and a file that asks it to listen.
        let fake = Fake::start("mute", &scene);
        let mut record = interruptible_jitscribe();
        record.args(["record", "--allow-empty", "-p", &fake.pid(), "--duration", "1"]);
        record
            .args(["-e", "cpu-clock"])
            .env("JITSCRIBE_JAVA_AGENT", scene.agent())
            .current_dir(scene.path());
        let mut record =
            record.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("jitscribe");
        fake.wait_for("signal");
        assert_eq!(fake.left().len(), 2, "{:?}", fake.left());
        let begun = Instant::now();
        kill_process(Pid::from_child(&record), signal).expect("a signal");
        assert_eq!(end_of(&mut record), None);
        // By itself it would have waited for thirty seconds.
        assert!(begun.elapsed() < Duration::from_secs(25), "it waited for the process");
        while !fake.left().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(25), "{:?} is left", fake.left());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a shell does in namespaces of its own, so that it is about no process of anybody else's.
const ALL: &str = r#"
mount -t proc proc /proc
setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=/usr/bin:/bin python3 "$FAKE" crowd:100 fakes >fakes/out 2>&1 &
fakes=$!
while ! grep -q running fakes/out; do sleep 0.1; done
"$JAVA" Tiers 300000 >java.out 2>&1 &
java=$!
trap 'kill -TERM $fakes; kill -KILL $java' EXIT
while ! grep -q running java.out; do sleep 0.1; done
"$JITSCRIBE" record -a --duration 1 -e cpu-clock -F 999 -o all.data 2>said
echo $java >pid
"#;

#[test]
fn many_processes_of_another_user_do_not_block_requests_to_a_jvm() {
    needs!(OtherUsers, Processes, Perf);
    let jdk = Jdk::of_debian_12();
    let dir = Scene::new();
    open_folder(&dir.path().join("fakes"));
    jdk.compile("Tiers.java", dir.path());
    let mut all = tool("unshare");
    all.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ALL]);
    all.env("JAVA", jdk.tool("java").get_program()).env("FAKE", dir.fake_jvm());
    all.env("JITSCRIBE", jitscribe().get_program()).env("JITSCRIBE_JAVA_AGENT", dir.agent());
    all.stdin(Stdio::null()).stdout(Stdio::null()).current_dir(dir.path());
    let mut all = all.spawn().expect("unshare");
    let code = end_of(&mut all);
    let said = fs::read_to_string(dir.path().join("said")).unwrap_or_default();
    assert_eq!(code, Some(0), "{said}");
    let java = fs::read_to_string(dir.path().join("pid")).expect("an id");
    let loaded = format!("loaded into 1 process (--no-env prevents this): {}", java.trim());
    assert!(said.contains(&loaded), "{said}");
    // With the one that made the others. One may be refused at once, and is told of for the agent and for the map: ids are small
    // here, and its socket's name may have been left by somebody else.
    let given_up =
        said.lines().filter_map(|line| line.strip_prefix("jitscribe: warning: process "));
    let given_up = given_up.filter_map(|line| line.split([' ', ':']).next());
    assert_eq!(given_up.collect::<BTreeSet<_>>().len(), 101, "{said}");
    assert!(said.matches(": not responding, skipped").count() >= 90, "{said}");
}

//! Hostile processes as targets of `dump -p`, `ctl`, `record -p` and `record -a`.
//!
//! The programs are in `workloads/hostile/`; as root they are run as an ordinary user.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::jitscribe::{interruptible_jitscribe, jitscribe, shared_library};
use end_to_end::running::Running;
use end_to_end::tool::{run, tool};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use test_privilege::needs;
use test_privilege::{Privilege, have};

/// An ordinary user.
const NOBODY: u32 = 65_534;
/// What does not hang takes less, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

/// A folder for a hostile program, owned by the user that it runs as.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        fs::create_dir(folder.path().join("his")).expect("a folder");
        if geteuid().is_root() {
            chown(folder.path().join("his"), Some(NOBODY), Some(NOBODY)).expect("an owner");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Where the hostile program runs, and may write.
    fn his(&self, name: &str) -> PathBuf {
        self.0.path().join("his").join(name)
    }

    /// Compiles a program of `workloads/hostile/`.
    fn compile(&self, name: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = root.join("workloads/hostile").join(name).with_extension("c");
        let program = self.path(name);
        let mut cc = tool("cc");
        cc.args(["-O1", "-w", "-o"]).arg(&program).arg(&source);
        if fs::read_to_string(&source).expect("a source").contains("<jitscribe.h>") {
            // Where the other user can read it.
            let library = self.path("libjitscribe.so.0");
            if !library.exists() {
                fs::copy(shared_library(), &library).expect("a library");
                symlink("libjitscribe.so.0", self.path("libjitscribe.so")).expect("a link");
            }
            cc.arg("-I").arg(root.join("../crates/bindings/jitscribe-capi/include"));
            cc.arg("-L").arg(self.0.path()).args(["-ljitscribe", "-Wl,-rpath,$ORIGIN"]);
        }
        run(&mut cc);
        program
    }

    /// Starts it, as an ordinary user if we are root, and waits for its first line.
    fn start(&self, name: &str, words: &[&OsStr]) -> Hostile {
        let program = self.compile(name);
        let mut command = as_nobody(&program);
        command.args(words).current_dir(self.path("his"));
        Hostile::start(command)
    }
}

fn as_nobody(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = tool("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
    command
}

/// A running program, and its first line.
struct Hostile {
    program: Running,
    first: String,
}

impl Hostile {
    fn start(mut command: Command) -> Self {
        command.env_remove("JITSCRIBE").env_remove("JITSCRIBE_DIR").env_remove("JITSCRIBE_LIMIT");
        let mut program = Running::start(command.stdout(Stdio::piped()));
        let first = program.line();
        Self { program, first }
    }

    /// What it calls itself.
    fn pid(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }
}

/// Runs `jitscribe` to its end, which comes.
fn look(words: &[&str]) -> Output {
    let mut command = jitscribe();
    command.args(words);
    ends(command)
}

fn ends(mut command: Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut out = child.stdout.take().expect("a pipe");
    let mut said = child.stderr.take().expect("a pipe");
    let read = |from: &mut dyn Read| {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("output");
        bytes
    };
    thread::scope(|scope| {
        let (out, said) = (scope.spawn(|| read(&mut out)), scope.spawn(|| read(&mut said)));
        let status = status_at_end(&mut child, &command);
        let (stdout, stderr) = (out.join().expect("output"), said.join().expect("output"));
        Output { status, stdout, stderr }
    })
}

/// Waits until it ends; kills it if it hangs.
fn status_at_end(child: &mut Child, command: &Command) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if begun.elapsed() > LONG {
            _ = child.kill();
            panic!("{command:?} hangs");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// It ended by itself, with success or with an error message.
fn assert_sound(done: &Output) {
    let said = text(&done.stderr);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}: {said}", done.status);
    assert!(!said.contains("panicked"), "{said}");
}

/// `record -p` for a second.
fn record(scene: &Scene, pid: &str) -> Output {
    record_for_a_second(scene, &["-p", pid])
}

/// `record` of these processes for a second.
fn record_for_a_second(scene: &Scene, processes: &[&str]) -> Output {
    let mut command = jitscribe();
    command.args(["record", "--force", "--allow-empty", "-e", "cpu-clock", "--duration", "1"]);
    command.args(processes).arg("-o").arg(scene.path("recording"));
    ends(command)
}

#[test]
fn a_replacement_of_a_log_is_not_written_to() {
    // For others than root, nothing is to be gained.
    needs!(OtherUsers, Perf);
    let secret = vec![b'.'; 4096];
    for what in ["file", "fifo", "folder", "device"] {
        let scene = Scene::new();
        let target = scene.path("target");
        match what {
            "file" => fs::write(&target, &secret).expect("a file"),
            "fifo" => drop(run(tool("mkfifo").arg(&target))),
            "folder" => fs::create_dir(&target).expect("a folder"),
            _ => symlink("/dev/full", &target).expect("a link"),
        }
        if what != "device" {
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
        let hostile = scene.start("swap", &["path".as_ref(), target.as_ref()]);
        assert_sound(&record(&scene, hostile.pid()));
        for words in [["ctl", "on"], ["ctl", "off"]] {
            assert_sound(&look(&[words[0], "-p", hostile.pid(), words[1], "--wait", "0"]));
        }
        if what == "file" {
            assert_eq!(fs::read(&target).expect("the file"), secret);
        }
    }
}

#[test]
fn a_log_that_changes_during_a_request_does_no_harm() {
    for mode in ["memfd", "unmapped", "truncated", "program", "still"] {
        let scene = Scene::new();
        let hostile = scene.start("swap", &[mode.as_ref(), "-".as_ref()]);
        let pid = hostile.pid().to_owned();
        assert_sound(&record(&scene, &pid));
        assert_sound(&look(&["ctl", "-p", &pid, "off", "--wait", "0"]));
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).expect("it still runs");
        let expected = match mode {
            "memfd" => "same",
            "program" => "sleep",
            _ => "swap",
        };
        assert_eq!(name.trim_end(), expected, "{mode}");
    }
}

#[test]
fn a_file_that_the_process_may_only_read_is_not_written_to_where_its_log_was() {
    // For others than root, nothing is to be gained.
    needs!(OtherUsers, Perf);
    let scene = Scene::new();
    let target = scene.his("target");
    let hostile = scene.start("swap", &["remapped".as_ref(), target.as_ref()]);
    // It is root's now, and begins as this process's log does.
    chown(&target, Some(0), Some(0)).expect("an owner");
    let before = fs::read(&target).expect("the file");
    assert_sound(&record(&scene, hostile.pid()));
    assert_sound(&look(&["ctl", "-p", hostile.pid(), "off", "--wait", "0"]));
    assert_eq!(fs::read(&target).expect("the file"), before);
}

#[test]
fn files_with_the_name_of_a_log_cause_no_delay() {
    let scene = Scene::new();
    let hostile = scene.start("named", &[]);
    let pid = hostile.pid();
    for words in
        [&["dump", "-p", pid][..], &["ctl", "-p", pid, "status"], &["ctl", "-p", pid, "on"]]
    {
        let done = look(words);
        assert_sound(&done);
        assert!(text(&done.stderr).contains("keeps no code log"), "{}", text(&done.stderr));
    }
    assert_sound(&record(&scene, pid));
    if have(&[Privilege::PerfOfAll]) {
        assert_sound(&record_for_a_second(&scene, &["-a"]));
    }
}

/// Runs `jitscribe` where it may have only so much memory.
fn look_with_memory(mebibytes: u64, words: &[&str]) -> Output {
    let bytes = (mebibytes << 20).to_string();
    let built = jitscribe();
    let mut command = tool("prlimit");
    command.arg(format!("--as={bytes}")).arg(built.get_program()).args(words);
    ends(command)
}

#[test]
fn a_log_with_false_sizes_costs_its_real_size() {
    for how in ["filler", "group", "chunks", "anon"] {
        let scene = Scene::new();
        let hostile = scene.start("sparse", &["31".as_ref(), how.as_ref()]);
        for words in [&["dump", "-p", hostile.pid()][..], &["ctl", "-p", hostile.pid(), "status"]] {
            let done = look_with_memory(1024, words);
            let said = text(&done.stderr);
            assert!(done.status.success(), "{how} {words:?}: {}: {said}", done.status);
        }
        // Looking has not made what was not there.
        let status =
            fs::read_to_string(format!("/proc/{}/status", hostile.pid())).expect("it runs");
        let shared =
            status.lines().find_map(|line| line.strip_prefix("RssShmem:")).expect("a line");
        let kibibytes: u64 = shared.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(kibibytes < 600 << 10, "{how}: {kibibytes} KiB");
    }
}

#[test]
fn codes_at_the_same_addresses_are_copied_once() {
    for how in ["untouched", "touched"] {
        let scene = Scene::new();
        let hostile = scene.start("lean", &["48".as_ref(), how.as_ref()]);
        let dump = scene.path("x.dump");
        let words = ["dump", "-p", hostile.pid(), "--jitdump", dump.to_str().expect("a path")];
        let done = look_with_memory(2048, &words);
        let said = text(&done.stderr);
        assert!(done.status.success(), "{how}: {}: {said}", done.status);
        assert!(said.contains("48 codes, 48 alive"), "{said}");
        let size = fs::metadata(&dump).expect("the dump").len();
        assert!(size < 100 << 20, "{how}: {size} bytes");
        // What is there is copied once.
        assert_eq!(size > 64 << 20, how == "touched", "{size} bytes");
    }
}

#[test]
fn memory_of_an_unresponsive_file_system_causes_no_delay() {
    needs!(Fuse);
    let scene = Scene::new();
    let mount = scene.path("m");
    fs::create_dir(&mount).expect("a folder");
    let mut command = Command::new(scene.compile("fuse"));
    command.arg(&mount).current_dir(scene.path("his"));
    let hostile = Hostile::start(command);
    let _unmounted = Unmount(mount);
    let pid = hostile.pid();

    // It has names all the same.
    let done = look(&["dump", "-p", pid]);
    let (shown, said) = (text(&done.stdout), text(&done.stderr));
    assert!(
        done.status.success() && shown.contains("sound") && shown.contains("stuck"),
        "{shown}{said}"
    );
    assert!(said.contains("timed out"), "{said}");

    for (processes, needed) in
        [(&["-p", pid][..], Privilege::Perf), (&["-a"], Privilege::PerfOfAll)]
    {
        if !have(&[needed]) {
            continue;
        }
        let done = record_for_a_second(&scene, processes);
        assert_sound(&done);
        assert!(text(&done.stderr).contains(&format!("process {pid}: ")), "{}", text(&done.stderr));
    }

    // A file there that is named for a perf map of the recording.
    if have(&[Privilege::Perf]) {
        let mut command = jitscribe();
        command.args(["inject", "--force", "--allow-empty", "-i"]).arg(scene.path("recording"));
        command.arg("-o").arg(scene.path("again"));
        command.arg("--perf-map").arg(format!("{pid}={}", scene.path("m/f").display()));
        let done = ends(command);
        assert_sound(&done);
        assert!(text(&done.stderr).contains("m/f: not responding"), "{}", text(&done.stderr));
    }

    // A signal ends the command at once, also while it waits.
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = interruptible_jitscribe();
        command.args(["dump", "-p", pid]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        // Nothing shows that it waits: it may share the read of an earlier command, so that the file system sees none.
        thread::sleep(Duration::from_millis(500));
        _ = kill_process(Pid::from_child(&child), signal);
        assert_eq!(status_at_end(&mut child, &command).signal(), Some(signal.as_raw()));
    }
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        // The program that serves it may have ended.
        _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_corrupted_log_is_read_or_refused() {
    for seed in 1..=3 {
        let scene = Scene::new();
        let hostile = scene.start("scribbler", &[seed.to_string().as_ref()]);
        for _ in 0..8 {
            for words in
                [&["dump", "-p", hostile.pid()][..], &["ctl", "-p", hostile.pid(), "status"]]
            {
                assert_sound(&look_with_memory(4096, words));
            }
        }
        assert_sound(&record(&scene, hostile.pid()));
    }
}

/// The names of the codes that `dump` finds alive.
fn alive(words: &[&str]) -> Vec<String> {
    let mut all = vec!["dump", "--perf-map"];
    all.extend(words);
    let done = look(&all);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let map = text(&done.stdout);
    let mut names: Vec<_> =
        map.lines().filter_map(|line| Some(line.rsplit_once(' ')?.1.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn a_forked_worker_without_announcements_has_the_code_from_the_fork() {
    let scene = Scene::new();
    let mut server = scene.start("prefork", &[]);
    assert_eq!(server.program.line(), "ready");
    let worker = server.first.split(' ').nth(1).expect("a worker").to_owned();
    let names = alive(&["-p", &worker]);
    assert_eq!(names.len(), 50, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("before")), "{names:?}");
    let own = alive(&["-p", server.pid()]);
    assert_eq!(own.len(), 50, "{own:?}");
    assert_eq!(own.iter().filter(|name| name.starts_with("after")).count(), 10);

    let status = text(&look(&["ctl", "-p", &worker, "status"]).stdout);
    assert!(
        status.contains("the parent's code log") && status.contains("50 codes alive"),
        "{status}"
    );
    let refused = look(&["ctl", "-p", &worker, "off"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("since the fork"), "{}", text(&refused.stderr));
    // The parent got no request.
    assert!(text(&look(&["ctl", "-p", server.pid(), "status"]).stdout).contains(": on\n"));

    needs!(Perf);
    let done = record(&scene, &worker);
    let said = text(&done.stderr);
    assert!(done.status.success() && said.contains("before0"), "{said}");
    assert!(said.contains("100.0 % now"), "{said}");
}

#[test]
fn all_logs_of_a_process_are_merged() {
    let scene = Scene::new();
    let hostile = scene.start("scribes", &[]);
    let pid = hostile.pid().to_owned();
    let both = ["of_the_expressions", "of_the_jit"];
    assert_eq!(alive(&["-p", &pid]), both);
    let status = text(&look(&["ctl", "-p", &pid, "status"]).stdout);
    assert_eq!(status.matches(&format!("process {pid}: on\n")).count(), 2, "{status}");

    if have(&[Privilege::Trace]) {
        run(tool("gcore").arg("-o").arg(scene.path("core")).arg(&pid));
        let core = scene.path(&format!("core.{pid}"));
        assert_eq!(alive(&["--core", core.to_str().expect("a path")]), both);
    }
    if have(&[Privilege::Perf]) {
        let said = text(&record(&scene, &pid).stderr);
        let has_both = both.iter().all(|name| said.contains(name));
        assert!(has_both && said.contains("100.0 % now"), "{said}");
    }

    let done = look(&["ctl", "-p", &pid, "off", "--wait", "0"]);
    assert!(done.status.success());
    let status = text(&look(&["ctl", "-p", &pid, "status"]).stdout);
    assert_eq!(status.matches("off (requested)").count(), 2, "{status}");
}

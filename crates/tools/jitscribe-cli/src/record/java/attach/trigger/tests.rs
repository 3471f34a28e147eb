//! With a shell in the place of a JVM, which catches the signal or does not.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::*;
use crate::foreign::Limit;

struct Scene {
    dir: TempDir,
    folder: Folder,
    shell: Child,
    target: Target,
    said: BufReader<std::process::ChildStdout>,
}

impl Scene {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(File::open(dir.path()).expect("opened").into());
        // A shell catches no signal that was ignored when it began, as in a background job.
        let mut shell = Command::new("env");
        shell
            .args(["--default-signal=QUIT", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut said = BufReader::new(shell.stdout.take().expect("a pipe"));
        said.read_line(&mut String::new()).expect("a line");
        let target = Target::open(shell.id()).expect("it runs");
        Self { dir, folder, shell, target, said }
    }

    fn listen(&self, time: Duration) -> Result<OwnedFd, Failure> {
        let wait = Wait::new(Limit::of(time), Some(&self.target), None);
        listen(&self.target, &self.folder, ".java_pid", &wait)
    }

    fn attach_file(&self) -> std::path::PathBuf {
        self.dir.path().join(format!(".attach_pid{}", self.shell.id()))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        line
    }

    fn names(&self) -> usize {
        fs::read_dir(self.dir.path()).expect("a folder").count()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        _ = self.shell.kill();
        _ = self.shell.wait();
    }
}

/// Says whether it got the signal, for as long as its standard input is open.
const CATCHES: &str = "trap 'echo signal' QUIT; echo ready; while ! read x; do :; done";

#[test]
fn a_jvm_that_gets_file_and_signal_listens() {
    let mut scene = Scene::new(CATCHES);
    let attach_file = scene.attach_file();
    let socket = scene.dir.path().join(".java_pid");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !attach_file.exists() {
                thread::sleep(Duration::from_millis(1));
            }
            UnixListener::bind(&socket).expect("a socket")
        });
        scene.listen(Duration::from_secs(60)).expect("it listens");
    });
    assert_eq!(scene.names(), 1, "the file is left");
    assert_eq!(scene.line(), "signal\n");
}

#[test]
fn a_jvm_that_does_not_listen_is_given_up_and_the_file_removed() {
    let mut scene = Scene::new(CATCHES);
    let given_up = scene.listen(Duration::from_millis(200));
    assert!(matches!(given_up, Err(Failure::NotAnswering)), "{given_up:?}");
    assert_eq!(scene.line(), "signal\n");
    assert_eq!(scene.names(), 0);
}

#[test]
fn a_signal_that_would_end_it_is_not_sent() {
    let mut scene = Scene::new("echo ready; read x");
    let refused = scene.listen(Duration::from_secs(60));
    assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    assert_eq!(scene.names(), 0);
    assert!(scene.shell.try_wait().expect("waited").is_none(), "it has ended");
}

#[test]
fn a_stopped_jvm_gets_no_signal() {
    let mut scene = Scene::new(CATCHES);
    let pid = Pid::from_child(&scene.shell);
    kill_process(pid, Signal::STOP).expect("stopped");
    while !scene.target.is_stopped().expect("it is there") {
        thread::sleep(Duration::from_millis(1));
    }
    let given_up = scene.listen(Duration::from_millis(200));
    assert!(matches!(given_up, Err(Failure::NotAnswering)), "{given_up:?}");
    assert_eq!(scene.names(), 0);
    kill_process(pid, Signal::CONT).expect("continued");
    drop(scene.shell.stdin.take());
    kill_process(pid, Signal::KILL).expect("killed");
    assert_eq!(scene.line(), "", "it got the signal");
}

#[test]
fn a_file_of_another_client_is_used_and_kept() {
    let scene = Scene::new(CATCHES);
    File::create(scene.attach_file()).expect("a file");
    assert!(matches!(scene.listen(Duration::from_millis(50)), Err(Failure::NotAnswering)));
    assert!(scene.attach_file().exists());
}

#[test]
fn a_file_that_the_jvm_would_ignore_is_refused() {
    let scene = Scene::new(CATCHES);
    std::os::unix::fs::symlink("/proc/self/status", scene.attach_file()).expect("a link");
    // The link is ours, and is neither followed nor replaced.
    assert!(matches!(scene.listen(Duration::from_millis(50)), Err(Failure::NotAnswering)));
    assert!(scene.attach_file().is_symlink());
    if !rustix::process::geteuid().is_root() {
        #[expect(clippy::print_stderr, reason = "who reads the tests should know")]
        {
            eprintln!("skipped: a file of another user's needs root");
        }
        return;
    }
    fs::remove_file(scene.attach_file()).expect("removed");
    File::create(scene.attach_file()).expect("a file");
    std::os::unix::fs::chown(scene.attach_file(), Some(65534), None).expect("changed");
    assert!(matches!(scene.listen(Duration::from_secs(60)), Err(Failure::Refused(_))));
}

#[test]
fn a_jvm_that_ends_is_not_waited_for() {
    let mut scene = Scene::new(CATCHES);
    scene.shell.kill().expect("killed");
    scene.shell.wait().expect("ended");
    assert!(matches!(scene.listen(Duration::from_secs(60)), Err(Failure::System(_))));
    assert_eq!(scene.names(), 0);
}

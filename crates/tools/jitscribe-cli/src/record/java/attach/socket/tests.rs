//! Against what a hostile process may put where a JVM has its socket.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, mknodat};
use rustix::net::{bind, listen};
use tempfile::TempDir;

use super::*;
use crate::foreign::{Limit, Output};

const NAME: &str = ".java_pid1";

/// Much more than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Within which what never answers is given up.
const SHORT: Duration = Duration::from_millis(200);

struct Scene {
    dir: TempDir,
    folder: File,
    user: u32,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = File::open(dir.path()).expect("opened");
        Self { user: folder.metadata().expect("a folder").uid(), dir, folder }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(NAME)
    }

    /// This process.
    fn us(&self) -> Peer {
        Peer { pid: std::process::id(), user: self.user }
    }

    fn find(&self) -> Result<Option<OwnedFd>, Failure> {
        find(&self.folder, NAME, self.user)
    }

    fn ask(&self, peer: Peer, time: Duration) -> Result<Answer, Failure> {
        let file = self.find()?.expect("it is there");
        let request = Request::jcmd("Compiler.perfmap").expect("a request");
        ask(&file, peer, &request, &Wait::new(Limit::of(time), None, None))
    }

    /// Has a JVM of this behaviour listen, and asks it.
    fn answer(
        &self,
        time: Duration,
        jvm: impl FnOnce(UnixStream) + Send,
    ) -> Result<Answer, Failure> {
        let listener = UnixListener::bind(self.path()).expect("a socket");
        let answer = thread::scope(|scope| {
            scope.spawn(move || jvm(listener.accept().expect("somebody").0));
            self.ask(self.us(), time)
        });
        fs::remove_file(self.path()).expect("removed");
        answer
    }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Failure>) -> String {
    match result {
        Err(Failure::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Reads until the other end is closed.
fn drain(mut stream: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // It may be closed with something unread.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn an_answer_is_read_to_its_end() {
    let scene = Scene::new();
    let answer = scene.answer(LONG, |mut stream| {
        let mut request = [0; 26];
        stream.read_exact(&mut request).expect("a request");
        assert_eq!(&request, b"1\0jcmd\0Compiler.perfmap\0\0\0");
        for part in ["0", "\nso", " it is\n"] {
            stream.write_all(part.as_bytes()).expect("written");
            thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(answer.expect("an answer"), Answer { code: 0, text: "so it is\n".into() });
    assert!(scene.find().expect("looked").is_none());
}

#[test]
fn an_endless_answer_is_given_up() {
    let scene = Scene::new();
    let silent = scene.answer(SHORT, |stream| drop(drain(stream)));
    assert!(matches!(silent, Err(Failure::NotAnswering)), "{silent:?}");
    let slow = scene.answer(SHORT, |mut stream| {
        while stream.write_all(b"0").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    assert!(matches!(slow, Err(Failure::NotAnswering)), "{slow:?}");
    let endless = scene.answer(LONG, |mut stream| while stream.write_all(&[b'0'; 4096]).is_ok() {});
    assert!(refusal(endless).contains("64 KiB"));
}

#[test]
fn without_a_waiting_command_there_is_no_wait() {
    let scene = Scene::new();
    let _listener = UnixListener::bind(scene.path()).expect("a socket");
    let (stop, stopper) = UnixStream::pair().expect("a pair");
    let file = scene.find().expect("looked").expect("it is there");
    let request = Request::jcmd("Compiler.perfmap").expect("a request");
    let output = Output::new(stop.into());
    let wait = Wait::new(Limit::of(LONG), None, Some(&output));
    drop(stopper);
    assert!(matches!(ask(&file, scene.us(), &request, &wait), Err(Failure::Stopped)));
}

#[test]
fn a_jvm_that_does_not_accept_is_given_up() {
    let scene = Scene::new();
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .expect("made");
    bind(&socket, &SocketAddrUnix::new(scene.path()).expect("a path")).expect("bound");
    listen(&socket, 0).expect("it listens");
    // One is in line, and the next would wait for it.
    let _first = UnixStream::connect(scene.path()).expect("connected");
    assert!(matches!(scene.ask(scene.us(), SHORT), Err(Failure::NotAnswering)));
}

#[test]
fn invalid_answers_are_refused() {
    let scene = Scene::new();
    let closed = scene.answer(LONG, drop);
    assert!(refusal(closed).contains("without an answer"));
    let garbage = scene.answer(LONG, |mut stream| {
        stream.write_all(&[0xff; 5000]).expect("written");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        drain(stream);
    });
    assert!(refusal(garbage).contains("not that of a JVM"));
}

#[test]
fn nothing_is_sent_to_another_process() {
    let scene = Scene::new();
    let us = scene.us();
    for other in
        [Peer { pid: us.pid + 1, ..us }, Peer { user: us.user + 1, ..us }, Peer { pid: 0, ..us }]
    {
        let listener = UnixListener::bind(scene.path()).expect("a socket");
        assert!(refusal(scene.ask(other, LONG)).contains("another process"));
        let (stream, _) = listener.accept().expect("somebody");
        assert_eq!(drain(stream), b"");
        fs::remove_file(scene.path()).expect("removed");
    }
}

#[test]
fn a_file_that_is_not_a_socket_is_refused_at_once() {
    let scene = Scene::new();
    let elsewhere = scene.dir.path().join("elsewhere");
    let _listener = UnixListener::bind(&elsewhere).expect("a socket");
    let (path, flags) = (scene.path(), Mode::RUSR | Mode::WUSR);
    let fifo = || mknodat(CWD, &path, FileType::Fifo, flags, 0).expect("a pipe");
    let file = || drop(File::create(&path).expect("a file"));
    let link = || symlink(&elsewhere, &path).expect("a link");
    let loose = || symlink("/nowhere", &path).expect("a link");
    for make in [&fifo as &dyn Fn(), &file, &link, &loose] {
        make();
        assert!(refusal(scene.find()).contains("is not a socket"));
        fs::remove_file(&path).expect("removed");
    }
    fs::create_dir(&path).expect("a folder");
    assert!(refusal(scene.find()).contains("is not a socket"));
}

#[test]
fn a_socket_of_another_user_is_refused() {
    let scene = Scene::new();
    let _listener = UnixListener::bind(scene.path()).expect("a socket");
    let other = find(&scene.folder, NAME, scene.user + 1);
    assert!(refusal(other).contains("another user"));
}

#[test]
fn a_stale_socket_is_refused() {
    let scene = Scene::new();
    drop(UnixListener::bind(scene.path()).expect("a socket"));
    assert!(refusal(scene.ask(scene.us(), LONG)).contains("no process listens"));
}

#[test]
fn the_checked_socket_is_the_one_connected_to() {
    let scene = Scene::new();
    let first = UnixListener::bind(scene.path()).expect("a socket");
    let file = scene.find().expect("looked").expect("it is there");
    fs::remove_file(scene.path()).expect("removed");
    let _second = UnixListener::bind(scene.path()).expect("a socket");
    let wait = Wait::new(Limit::of(LONG), None, None);
    let _connected = connected(&file, &wait).expect("connected");
    first.set_nonblocking(true).expect("set");
    first.accept().expect("it came to the first");
}

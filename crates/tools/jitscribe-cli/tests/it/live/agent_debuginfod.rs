//! The images that `jitscribe agent` keeps, as debuginfod serves them and gdb reads them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::agent::Agent;
use crate::common::announcer::{bytes, started_with_bytes};
use crate::common::images::{Image, image};
use crate::common::{Bench, Running, expect_tool, finish};

/// debuginfod, which serves a folder.
struct Server {
    running: Running,
    port: u16,
}

impl Server {
    fn start(bench: &Bench, folder: &Path) -> Self {
        expect_tool("debuginfod");
        loop {
            // A port that is free: the system chose it a moment ago, but another program may take it now.
            let port = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = port.local_addr().expect("bound").port();
            // It looks for new files every second.
            let words = format!("debuginfod -p {port} -d {} -t 1 -F", bench.name("index.sqlite"));
            let mut command = bench.command(&words);
            let file = File::create(bench.path("debuginfod.said")).expect("a file");
            command.arg(folder).stdout(file.try_clone().expect("a descriptor")).stderr(file);
            let mut running = Running::spawn(&mut command);
            // The port is not connected to before it is listened on: a socket that connects to a free port of this range may get it, and is connected to itself.
            while running.is_running() {
                if is_listened_on(port) {
                    return Self { running, port };
                }
                std::thread::yield_now();
            }
            let said = String::from_utf8(bench.read("debuginfod.said")).expect("text");
            assert!(said.contains("Address already in use"), "{said}");
        }
    }

    /// What is at an address; `None` unless it is served.
    fn get(&self, path: &str) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET /{path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let end = answer.windows(4).position(|end| end == b"\r\n\r\n")?;
        let is_there = answer.get(..end)?.splitn(3, |byte| *byte == b' ').nth(1)? == b"200";
        is_there.then(|| answer.split_off(end + 4))
    }

    /// What is served of an image, once it was found.
    fn image(&mut self, image: &Image, kind: &str) -> Vec<u8> {
        loop {
            if let Some(content) = self.get(&format!("buildid/{}/{kind}", image.build_id)) {
                return content;
            }
            assert!(self.running.is_running(), "debuginfod ended");
            std::thread::yield_now();
        }
    }

    /// Has a tool ask it. What the tool gets is below the folder `got`.
    fn tell(&self, bench: &Bench, command: &mut Command) {
        command.env("DEBUGINFOD_URLS", format!("http://127.0.0.1:{}", self.port));
        command.env("DEBUGINFOD_CACHE_PATH", bench.path("got"));
    }
}

/// Whether a program listens on this port.
fn is_listened_on(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let sockets = fs::read_to_string(table).unwrap_or_default();
        sockets.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            // The address, and the state LISTEN.
            words.get(1).is_some_and(|at| at.ends_with(&wanted)) && words.get(3) == Some(&"0A")
        })
    })
}

/// A folder that debuginfod has read once before there was anything in it, and the images of two codes that came then.
struct Scene {
    bench: Bench,
    server: Server,
    folder: PathBuf,
    images: [Image; 2],
    agent: Agent,
}

const FIRST: u64 = 0x7000;
const SECOND: u64 = 0x7f00_0000_8010;

impl Scene {
    fn new() -> Self {
        let bench = Bench::new();
        bench.open();
        let folder = bench.path("images");
        let agent = Agent::start(&bench, &format!("--images {}", bench.name("images")));
        // It answers when it has opened the folder.
        agent.processes();
        let mut server = Server::start(&bench, &folder);
        let mut process = started_with_bytes();
        process.load(FIRST, 64, "first");
        process.load(SECOND, 64, "second");
        let images = [FIRST, SECOND].map(|address| image(&agent, process.pid(), address));
        for image in &images {
            let content = image.read(&folder);
            // Instructions, and names.
            for kind in ["executable", "debuginfo"] {
                assert!(server.image(image, kind) == content, "{kind} differs");
            }
        }
        Self { bench, server, folder, images, agent }
    }

    /// The file that a client of debuginfod gets.
    fn found(&self, kind: &str, image: &Image) -> PathBuf {
        let mut find = self.bench.command(&["debuginfod-find", kind, &image.build_id]);
        self.server.tell(&self.bench, &mut find);
        PathBuf::from(finish(&mut find).ok().stdout.trim())
    }
}

#[test]
fn what_debuginfod_serves_is_the_image_that_was_answered() {
    let scene = Scene::new();
    for (image, address) in scene.images.iter().zip([FIRST, SECOND]) {
        let content = fs::read(scene.found("executable", image)).expect("a file");
        assert!(content == image.read(&scene.folder));
        let at = usize::try_from(image.address).expect("small");
        assert_eq!(content[at..][..64], bytes(address >> 12, 64));
    }
    let section = scene.server.get(&format!("buildid/{}/section/.text", scene.images[1].build_id));
    let text = section.expect("a section");
    assert_eq!(text[0x10..][..64], bytes(SECOND >> 12, 64));
    assert!(scene.agent.socket.exists());
}

#[test]
fn gdb_has_names_and_lines_by_a_build_id_alone() {
    expect_tool("gdb");
    expect_tool("objcopy");
    let scene = Scene::new();
    for (image, name) in scene.images.iter().zip(["first", "second"]) {
        // Nothing is left of it but instructions and the build-id.
        let mut strip = scene.bench.command("objcopy --strip-all");
        finish(strip.arg(image.path(&scene.folder)).arg(name)).ok();
        let at = image.address + 2;
        let mut gdb = scene.bench.command(&["gdb", "-nx", "-batch", name]);
        gdb.args(["-iex", "set debuginfod enabled on"]);
        gdb.args(["-ex", &format!("info symbol {at}"), "-ex", &format!("info line *{at}")]);
        scene.server.tell(&scene.bench, &mut gdb);
        let printed = finish(&mut gdb).stdout;
        assert!(printed.contains(&format!("{name} + 2 in section .text")), "{printed}");
        let line = format!("Line 8 of \"/src/a.lang\" starts at address {at:#x} <{name}+2>");
        assert!(printed.contains(&line), "{printed}");
    }
}

//! A process whose code has bytes, and the images that an agent keeps of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jitscribe::{Code, Line, LoadedCode, Scribe};
use serde_json::Value;

use super::agent::Agent;
use super::announcer::Announcer;

/// Starts the process: this test program, with the ignored test [`announcer`].
pub fn started() -> Announcer {
    let program = Command::new(std::env::current_exe().expect("this program"));
    Announcer::start("common::images::announcer", program, "")
}

/// The bytes of a code: a function that returns a number, and then traps.
pub fn bytes(number: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0xcc; size];
    let number = u8::try_from(number & 0x7f).expect("seven bits");
    bytes[..4].copy_from_slice(&[0x6a, number, 0x58, 0xc3]);
    bytes
}

/// Announces code as the lines of standard input say: `load ADDRESS SIZE NAME`.
#[test]
#[ignore = "the process that the other tests look at, started by them"]
#[allow(clippy::print_stdout, reason = "standard output is how it answers")]
fn announcer() {
    if std::env::var_os("ANNOUNCER").is_none() {
        return;
    }
    let scribe = Scribe::builder().with_bytes().build();
    let lines = [Line::new(0, "/src/a.lang", 7), Line::new(2, "/src/a.lang", 8)];
    let mut loaded: Vec<LoadedCode> = Vec::new();
    println!("done");
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("{line}"));
        assert_eq!(word(), "load");
        let address: u64 = word().parse().expect("an address");
        let size = word().parse().expect("a size");
        let bytes = bytes(address >> 12, size);
        let code = Code::new(&bytes).runs_at(address).named(word()).lines(&lines);
        loaded.push(scribe.load(&code));
        println!("done");
    }
}

/// The image of a code, as an answer names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub build_id: String,
    /// Where the code is in it.
    pub address: u64,
}

impl Image {
    pub fn of(answer: &Value) -> Option<Self> {
        let image =
            answer["code"].as_object().unwrap_or_else(|| panic!("{answer}")).get("image")?;
        let build_id = image["build_id"].as_str().expect("a build-id").to_owned();
        Some(Self { build_id, address: image["address"].as_u64().expect("an address") })
    }

    /// The path of the file in the folder of `--images`.
    pub fn path(&self, folder: &Path) -> PathBuf {
        let (first, rest) = self.build_id.split_at(2);
        folder.join(format!(".build-id/{first}/{rest}.debug"))
    }

    /// The file, once it is there: the agent answers before it is written.
    pub fn read(&self, folder: &Path) -> Vec<u8> {
        loop {
            if let Ok(content) = fs::read(self.path(folder)) {
                return content;
            }
            std::thread::yield_now();
        }
    }
}

/// The image of the code at an address.
pub fn image(agent: &Agent, pid: u32, address: u64) -> Image {
    let answer = code_at(agent, pid, address);
    Image::of(&answer).unwrap_or_else(|| panic!("no image: {answer}"))
}

/// The code at an address, once it is known: a process that changes much is read less often.
pub fn code_at(agent: &Agent, pid: u32, address: u64) -> Value {
    loop {
        let answer = agent.code_at(pid, address);
        if answer["unknown"] != "code" {
            return answer;
        }
        std::thread::yield_now();
    }
}

/// The files below a folder, with their paths in it, sorted.
pub fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(folder).expect("below it");
                all.push(path.to_str().expect("UTF-8").to_owned());
            }
        }
    }
    all.sort();
    all
}

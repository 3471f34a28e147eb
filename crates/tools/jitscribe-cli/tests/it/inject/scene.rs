//! A folder with a recording and what JITs wrote; `jitscribe inject` on it; what perf then shows.

use std::ops::{Deref, Range};
use std::process::Output;

use jitdump::{DebugEntry, Endian, EntryName, ExtendedCode, Load, Move, Writer, WriterConfig};
use serde_json::Value;

use crate::common::{Bench, JITSCRIBE, files};
use crate::inject::recording::{Attr, Recording, USUAL};

/// A process id that no process of this machine can have.
pub const PID: u32 = 5_000_007;
/// Another one.
pub const OTHER: u32 = 5_000_008;

/// The jitdump of `PID`.
pub const DUMP: &str = "jit-5000007.dump";

/// Where the code lies.
pub const CODE: u64 = 0x7f00_0000_0000;
/// Memory around it.
pub const ARENA: Range<u64> = CODE..CODE + 0x10_0000;
/// Where markers are mapped.
pub const MARKER: Range<u64> = 0x7e00_0000_0000..0x7e00_0000_1000;

/// A millisecond.
pub const MS: u64 = 1_000_000;

/// A folder with a recording, and the files that belong to it.
#[derive(Debug)]
pub struct Scene(Bench);

impl Deref for Scene {
    type Target = Bench;

    fn deref(&self) -> &Bench {
        &self.0
    }
}

impl Scene {
    pub fn new() -> Self {
        Self(Bench::new())
    }

    /// Writes the jitdump of `PID`.
    pub fn dump(&self, jit: Jit) {
        self.write(DUMP, jit.bytes());
    }

    /// `jitscribe inject -i perf.data -o out.data ARGS`.
    pub fn inject(&self, recording: &Recording, args: &[&str]) -> Injected {
        self.write("perf.data", recording.file());
        self.inject_file("perf.data", args)
    }

    /// The same with a recording that lies there already.
    pub fn inject_file(&self, input: &str, args: &[&str]) -> Injected {
        let fixed = ["-i", input, "-o", "out.data", "--json"];
        self.injected(&[&fixed[..], args].concat())
    }

    /// `jitscribe inject ARGS`, which must end by itself within a minute. Inferred names have tests of their own (`tests/tests/live/unnamed.rs`);
    /// without them, these tests see where nothing is announced.
    pub fn injected(&self, args: &[&str]) -> Injected {
        let mut command = self.command(&["timeout", "60", JITSCRIBE, "inject"]);
        command.args(["--allow-empty", "--no-inferred-names"]).args(args);
        let output = command.output().unwrap();
        assert_ne!(output.status.code(), Some(124), "jitscribe inject {args:?} hangs");
        Injected { output }
    }

    /// What perf shows of `out.data`, sample by sample: time in milliseconds, symbol and offset,
    /// file.
    pub fn shown(&self) -> Vec<String> {
        self.script("out.data").into_iter().map(|sample| sample.shown()).collect()
    }

    /// The same without offset and file.
    pub fn names(&self) -> Vec<String> {
        self.shown().iter().map(|line| line.split('+').next().unwrap().to_owned()).collect()
    }

    /// The names of the samples of `out.data`, which need not have times.
    pub fn names_alone(&self) -> Vec<String> {
        let shown = self.run("perf script -i out.data -F ip,sym");
        let lines = shown.lines().filter_map(|line| line.trim().split_once(' '));
        lines.map(|(_, name)| name.trim().to_owned()).collect()
    }

    /// Injects the recording with these samples in it. Nothing is warned of, and perf shows the samples so.
    pub fn expect(&self, recording: &mut Recording, samples: &[Expected<'_>]) -> Injected {
        for &(pid, time, offset, _) in samples {
            recording.sample(pid, CODE + offset, time * MS);
        }
        let injected = self.inject(recording, &[]);
        injected.clean();
        self.expect_shown(samples);
        injected
    }

    /// perf shows these samples of `out.data`, and no others.
    pub fn expect_shown(&self, samples: &[Expected<'_>]) {
        let shown = self.script("out.data").into_iter();
        let shown: Vec<String> =
            shown.map(|sample| format!("{} at {}", sample.pid, sample.shown())).collect();
        let expected = samples.iter();
        let expected: Vec<String> =
            expected.map(|(pid, time, _, shown)| format!("{pid} at {time} {shown}")).collect();
        assert_eq!(shown, expected);
    }

    /// `perf script` on a recording.
    pub fn script(&self, recording: &str) -> Vec<Sample> {
        let fields = "comm,pid,tid,time,ip,sym,symoff,dso";
        let out = self.run(&format!("perf script --ns -i {recording} -F {fields}"));
        let mut samples: Vec<Sample> = Vec::new();
        for line in out.lines().filter(|line| !line.trim().is_empty()) {
            match line.split_once(": ").filter(|(head, _)| head.contains('/')) {
                Some((head, frame)) => {
                    let mut words = head.split_whitespace().rev();
                    let time = words.next().unwrap().replace('.', "").parse().unwrap();
                    let (pid, tid) = words.next().unwrap().split_once('/').unwrap();
                    let (pid, tid) = (pid.parse().unwrap(), tid.parse().unwrap());
                    let comm = words.next().unwrap_or_default().to_owned();
                    let frames = frame_of(frame).into_iter().collect();
                    samples.push(Sample { comm, pid, tid, time, frames });
                }
                None => samples.last_mut().unwrap().frames.extend(frame_of(line)),
            }
        }
        samples
    }

    /// The source line of each sample in `out.data`; `??` for none.
    pub fn source_lines(&self) -> Vec<String> {
        let out = self.run("perf script --ns -i out.data -F time,ip,srcline");
        let mut lines = Vec::new();
        let mut told = out.lines().filter(|line| !line.trim().is_empty()).peekable();
        while let Some(line) = told.next() {
            let time = line.trim().split(':').next().unwrap().replace('.', "");
            let time = time.parse::<u64>().unwrap() as f64 / MS as f64;
            let source = told.next_if(|line| !line.contains(": ")).unwrap_or("??").trim();
            lines.push(format!("{time} {}", source.split(":0").next().unwrap()));
        }
        lines
    }

    /// The names of the files in the folder and below.
    pub fn all_files(&self) -> Vec<String> {
        files(&self.path(""))
    }
}

/// A sample: its process, millisecond, and distance from `CODE`; and what perf shows of it: symbol and offset, file.
pub type Expected<'a> = (u32, u64, u64, &'a str);

/// One sample as perf shows it.
#[derive(Clone, Debug)]
pub struct Sample {
    pub comm: String,
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    /// Symbol and offset, file.
    pub frames: Vec<(String, String)>,
}

impl Sample {
    /// In one line. Times are in milliseconds.
    pub fn shown(&self) -> String {
        let frame = |(symbol, file): &(String, String)| format!("{symbol} {file}");
        let frames: Vec<String> = self.frames.iter().map(frame).collect();
        format!("{} {}", self.time as f64 / MS as f64, frames.join(" < "))
    }
}

/// `ADDRESS SYMBOL+OFFSET (FILE)`.
fn frame_of(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.trim().split_once(' ')?;
    let (symbol, file) = rest.split_once(" (")?;
    let file = file.strip_suffix(')').unwrap();
    let file = if file.starts_with("/memfd:") { file } else { file.rsplit('/').next().unwrap() };
    Some((symbol.to_owned(), file.to_owned()))
}

/// How an injection ended.
#[derive(Debug)]
pub struct Injected {
    pub output: Output,
}

impl Injected {
    /// What it printed, if it went well.
    pub fn json(&self) -> Value {
        assert!(self.output.status.success(), "{}\n{}", self.output.status, self.said());
        serde_json::from_slice(&self.output.stdout).unwrap()
    }

    /// Standard error.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// It failed, and said this.
    #[track_caller]
    pub fn fails(&self, text: &str) {
        assert_eq!(self.output.status.code(), Some(1), "{}", self.said());
        self.says(text);
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.said().contains(text), "no {text:?}: {}", self.said());
        self
    }

    /// The warnings.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.json()["warnings"].clone();
        serde_json::from_value(warnings).unwrap()
    }

    /// `(named, unnamed)` samples.
    pub fn counts(&self) -> (u64, u64) {
        let json = self.json();
        let count = |what: &str| json["samples"][what].as_u64().unwrap();
        (count("named"), count("unnamed"))
    }

    /// The names of the images.
    pub fn images(&self) -> Vec<String> {
        let json = self.json();
        let images = json["images"].as_array().unwrap().iter();
        images.map(|image| base_name(image["path"].as_str().unwrap())).collect()
    }

    /// Went well without a word of warning.
    pub fn clean(&self) -> &Self {
        assert_eq!(self.warnings(), [""; 0]);
        self
    }
}

/// The last part of a path.
pub fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

/// A jitdump in the making.
#[derive(Debug)]
pub struct Jit {
    writer: Writer<Vec<u8>>,
    pid: u32,
    next_index: u64,
}

impl Jit {
    /// Of process `pid`, begun at `time`.
    pub fn new(pid: u32, time: u64) -> Self {
        Self::with_flags(pid, time, 0)
    }

    /// Of `PID`, which has its marker at the same time.
    pub fn begun() -> Self {
        Self::new(PID, 10 * MS)
    }

    /// With the processor's counter for times.
    pub fn by_counter(pid: u32, ticks: u64) -> Self {
        Self::with_flags(pid, ticks, jitdump::FLAG_ARCH_TIMESTAMP)
    }

    fn with_flags(pid: u32, timestamp: u64, flags: u64) -> Self {
        let config = WriterConfig { endian: Endian::Little, machine: 62, pid, timestamp, flags };
        Self { writer: Writer::new(Vec::new(), &config).unwrap(), pid, next_index: 0 }
    }

    /// Records from here on say this process.
    pub fn by(mut self, pid: u32) -> Self {
        self.pid = pid;
        self
    }

    /// The number of the code that comes next.
    pub fn index(mut self, index: u64) -> Self {
        self.next_index = index;
        self
    }

    /// Code came. Its number is how many came before it.
    pub fn load(mut self, time: u64, address: u64, size: usize, name: &str) -> Self {
        let load = Load {
            pid: self.pid,
            tid: self.pid,
            vma: address,
            code_addr: address,
            code_index: self.next_index,
            name: name.as_bytes(),
            code: &vec![0x90; size],
            padding: &[],
            missing: 0,
        };
        self.writer.load(time, &load).unwrap();
        self.next_index += 1;
        self
    }

    /// The same at a millisecond, so far from `CODE`, of 0x40 bytes.
    pub fn code(self, time: u64, offset: u64, name: &str) -> Self {
        self.load(time * MS, CODE + offset, 0x40, name)
    }

    /// Code came, of which all is told.
    pub fn extended(mut self, code: &ExtendedCode<'_>) -> Self {
        let index = self.next_index;
        self.writer.extended(&ExtendedCode { pid: self.pid, index, ..*code }).unwrap();
        self.next_index += 1;
        self
    }

    /// Where the lines of the code that comes next begin.
    pub fn lines(self, time: u64, address: u64, lines: &[(u64, u32)]) -> Self {
        self.lines_of("/src/app.js", time, address, lines)
    }

    /// The same for another source file.
    pub fn lines_of(mut self, file: &str, time: u64, address: u64, lines: &[(u64, u32)]) -> Self {
        let name = EntryName::Path(file.as_bytes());
        let entry = |&(addr, line)| DebugEntry { addr, line, discrim: 0, name };
        self.writer.debug_info(time, address, lines.iter().map(entry)).unwrap();
        self
    }

    /// Code went elsewhere.
    pub fn moved(mut self, time: u64, index: u64, from: u64, to: u64, size: u64) -> Self {
        let moved = Move {
            pid: self.pid,
            tid: self.pid,
            vma: to,
            old_code_addr: from,
            new_code_addr: to,
            code_size: size,
            code_index: index,
        };
        self.writer.move_code(time, &moved).unwrap();
        self
    }

    /// The file.
    pub fn bytes(self) -> Vec<u8> {
        self.writer.into_sink()
    }
}

/// The recording of a process that is seen from its beginning, and has this memory for code at 2 ms.
pub fn app(pid: u32, memory: &str) -> Recording {
    let mut recording = Recording::new();
    recording.comm(pid, pid, "app", MS).map_path(pid, ARENA, memory, 2 * MS);
    recording
}

/// A process that wrote `jit-PID.dump`, seen from its exec on: comm at 1 ms, memory for code at
/// 2 ms, marker at 10 ms.
pub fn process(scene: &Scene, recording: &mut Recording, pid: u32) {
    let marker = scene.name(&format!("jit-{pid}.dump"));
    recording.comm(pid, pid, "app", MS).map(pid, ARENA, "//anon", 2 * MS);
    recording.map(pid, MARKER, &marker, 10 * MS);
}

/// A folder with a dump of `PID`, and a recording that begins with that process.
pub fn begun(jit: Jit) -> (Scene, Recording) {
    begun_with(Attr::new(USUAL), jit)
}

/// The same with a recording of another event.
pub fn begun_with(attr: Attr, jit: Jit) -> (Scene, Recording) {
    let scene = Scene::new();
    let mut recording = Recording::of(&[attr]);
    process(&scene, &mut recording, PID);
    scene.dump(jit);
    (scene, recording)
}

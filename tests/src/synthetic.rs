//! Synthetic recordings, jitdumps and perf maps, for tests of content that no runtime writes.
//!
//! Everything is little-endian, and x86-64 unless another machine is named. Nothing is checked: the requested content is written, valid or not.

use std::fmt::Write as _;
use std::path::Path;

/// `PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4;
/// `PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER`.
const STACK_COPIES: u64 = 1 << 12 | 1 << 13;
/// `PERF_RECORD_MISC_USER`.
const USER: u16 = 2;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const EXEC: u16 = 0x2000;
/// The size of a perf.data header.
const HEADER: u64 = 104;
/// Where the header's bits of features are.
const FEATURES: usize = 72;
/// The feature that names the machine.
const HEADER_ARCH: u32 = 6;
/// The size of an event's attributes.
const ATTR: u64 = 128;

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn u32s(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn u64s(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A length that a record holds in 32 bits.
fn short(len: usize) -> u32 {
    u32::try_from(len).expect("a record of less than 4 GiB")
}

/// Pads with NULs to a multiple of 8.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A name with its NUL, padded.
fn c_string(name: &[u8]) -> Vec<u8> {
    padded(bytes(&[name, b"\0"]))
}

fn write(path: &Path, contents: &[u8]) {
    std::fs::write(path, contents).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// A perf.data file of one event: instruction pointer, thread and time in each sample.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    stack_copies: bool,
    machine: Option<&'static str>,
    data: Vec<u8>,
}

impl Recording {
    /// No records yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, whose samples hold copies of registers and stack (of no bytes), as those of `--call-graph dwarf`.
    #[must_use]
    pub fn with_stack_copies() -> Self {
        Self { stack_copies: true, ..Self::default() }
    }

    /// The same, of a machine of this name (`uname -m`).
    #[must_use]
    pub fn made_on(machine: &'static str) -> Self {
        Self { machine: Some(machine), ..Self::default() }
    }

    /// Appends a record of any type, right or wrong.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let size = u16::try_from(8 + body.len()).expect("a record of less than 64 KiB");
        self.data.extend(kind.to_le_bytes());
        self.data.extend(misc.to_le_bytes());
        self.data.extend(size.to_le_bytes());
        self.data.extend(body);
    }

    /// The process has this name; its program began now if `exec`.
    pub fn comm(&mut self, pid: u32, name: impl AsRef<[u8]>, time: u64, exec: bool) {
        let name = c_string(name.as_ref());
        let body = bytes(&[&u32s(&[pid, pid]), &name, &u32s(&[pid, pid]), &u64s(&[time])]);
        self.record(3, if exec { EXEC } else { 0 }, &body);
    }

    /// `pid` was forked off `parent`.
    pub fn fork(&mut self, pid: u32, parent: u32, time: u64) {
        let ids = u32s(&[pid, parent, pid, parent]);
        let of_sample = u32s(&[parent, parent]);
        self.record(7, 0, &bytes(&[&ids, &u64s(&[time]), &of_sample, &u64s(&[time])]));
    }

    /// The process mapped `len` bytes of a file, executable.
    pub fn map(&mut self, pid: u32, address: u64, len: u64, name: impl AsRef<[u8]>, time: u64) {
        let ids = u32s(&[pid, pid]);
        let place = u64s(&[address, len, 0]);
        let device_and_inode = bytes(&[&u32s(&[8, 1]), &u64s(&[1, 0])]);
        let protection_and_flags = u32s(&[5, 2]);
        let name = c_string(name.as_ref());
        let of_sample = bytes(&[&ids, &u64s(&[time])]);
        let parts: [&[u8]; 6] =
            [&ids, &place, &device_and_inode, &protection_and_flags, &name, &of_sample];
        self.record(10, USER, &bytes(&parts));
    }

    /// The process ran at `ip`.
    pub fn sample(&mut self, pid: u32, ip: u64, time: u64) {
        let mut body = bytes(&[&u64s(&[ip]), &u32s(&[pid, pid]), &u64s(&[time])]);
        if self.stack_copies {
            // No registers, and a stack of no bytes.
            body.extend(u64s(&[0, 0]));
        }
        self.record(9, USER, &body);
    }

    /// A FINISHED_ROUND.
    pub fn round(&mut self) {
        self.record(68, 0, &[]);
    }

    /// The file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // inherit, mmap, comm, freq, task, sample_id_all, mmap2, comm_exec, use_clockid
        let flags: u64 = [1, 8, 9, 10, 13, 18, 23, 24, 25].iter().map(|bit| 1 << bit).sum();
        let (kinds, registers, stack) = match self.stack_copies {
            true => (SAMPLE_TYPE | STACK_COPIES, 0xff_0fff, 1024),
            false => (SAMPLE_TYPE, 0, 0),
        };
        // Type 1: a software event. Its size follows, then the configuration, the frequency…
        let mut attr = u32s(&[1, short(ATTR as usize)]);
        attr.extend(u64s(&[0, 1000, kinds, 0, flags]));
        attr.extend(u32s(&[0, 0])); // wakeup, breakpoint
        attr.extend(u64s(&[0, 0, 0, registers]));
        attr.extend(u32s(&[stack, 1])); // size of the stack, CLOCK_MONOTONIC
        attr.resize(ATTR as usize, 0);

        let mut file = b"PERFILE2".to_vec();
        let data = HEADER + ATTR + 16;
        file.extend(u64s(&[HEADER, ATTR + 16, HEADER, ATTR + 16, data, self.data.len() as u64]));
        // The features that follow the data: a bit for each.
        file.resize(FEATURES, 0);
        file.extend(u64s(&[self.machine.map_or(0, |_| 1 << HEADER_ARCH)]));
        file.resize(HEADER as usize, 0);
        file.extend(attr);
        file.extend(u64s(&[0, 0])); // no ids
        file.extend(&self.data);
        if let Some(machine) = self.machine {
            // The table of features, of one, and then what it says.
            let mut text = machine.as_bytes().to_vec();
            text.resize(64, 0);
            let begin = file.len() as u64 + 16;
            file.extend(u64s(&[begin, 4 + text.len() as u64]));
            file.extend(u32s(&[short(text.len())]));
            file.extend(text);
        }
        file
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        write(path, &self.to_bytes());
    }
}

/// A jitdump of x86-64 code.
#[derive(Clone, Debug)]
pub struct Dump {
    pid: u32,
    data: Vec<u8>,
    index: u64,
}

/// A row of a record of debug info: address, line, column, file.
pub type Row<'a> = (u64, u32, u32, &'a str);

impl Dump {
    /// A dump of process `pid`, without records.
    #[must_use]
    pub fn new(pid: u32, time: u64) -> Self {
        let mut data = u32s(&[0x4A69_5444, 1, 40, 62, 0, pid]);
        data.extend(u64s(&[time, 0]));
        Self { pid, data, index: 0 }
    }

    /// Appends any bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.data.extend(bytes);
    }

    fn head(&mut self, kind: u32, body: usize, time: u64) {
        self.data.extend(u32s(&[kind, short(16 + body)]));
        self.data.extend(time.to_le_bytes());
    }

    /// A LOAD of the dump's process; its number is given back.
    pub fn load(&mut self, address: u64, code: &[u8], name: impl AsRef<[u8]>, time: u64) -> u64 {
        self.load_of(self.pid, address, code, name, time)
    }

    /// A LOAD of another process.
    pub fn load_of(
        &mut self,
        pid: u32,
        address: u64,
        code: &[u8],
        name: impl AsRef<[u8]>,
        time: u64,
    ) -> u64 {
        let (name, index) = (name.as_ref(), self.index);
        self.index += 1;
        self.head(0, 40 + name.len() + 1 + code.len(), time);
        self.data.extend(u32s(&[pid, self.pid]));
        self.data.extend(u64s(&[address, address, code.len() as u64, index]));
        self.data.extend(name);
        self.data.push(0);
        self.data.extend(code);
        index
    }

    /// A MOVE of the code with this number.
    pub fn moved(&mut self, old: u64, new: u64, size: u64, index: u64, time: u64) {
        self.head(1, 48, time);
        self.data.extend(u32s(&[self.pid, self.pid]));
        self.data.extend(u64s(&[new, old, new, size, index]));
    }

    /// Source lines of the code that is loaded next.
    pub fn lines(&mut self, address: u64, rows: &[Row<'_>], time: u64) {
        let mut body = u64s(&[address, rows.len() as u64]);
        for &(address, line, column, file) in rows {
            body.extend(u64s(&[address]));
            body.extend(u32s(&[line, column]));
            body.extend(file.as_bytes());
            body.push(0);
        }
        self.head(2, body.len(), time);
        self.data.extend(body);
    }

    /// A code of a code log, without its bytes: it takes little, whatever size it claims. `died` is 0 for one that
    /// is alive; `items` is what else is said of it (see [`item`]).
    pub fn without_bytes(
        &mut self,
        address: u64,
        size: u64,
        name: impl AsRef<[u8]>,
        time: u64,
        died: u64,
        items: &[u8],
    ) {
        let name = name.as_ref();
        let name = [u16s(2, 0, short(name.len())), padded(name.to_vec())].concat();
        let total = 40 + 48 + name.len() + items.len();
        let mut code = u16s(1, 0, 40);
        code.extend(u64s(&[died, size, self.index]));
        code.extend(u32s(&[short(total), self.pid]));
        code.extend([0, 1, 0, 0, 0, 0, 0, 0]);
        self.index += 1;
        self.head(2, total - 16, time);
        self.data.extend(u64s(&[address, 0]));
        self.data.extend(u32s(&[0x5243_534A, short(total - 40)]));
        self.data.extend([&code[..], &name, items].concat());
    }

    /// The file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.data.clone()
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        write(path, &self.data);
    }
}

fn u16s(kind: u16, flags: u16, len: u32) -> Vec<u8> {
    bytes(&[&kind.to_le_bytes(), &flags.to_le_bytes(), &len.to_le_bytes()])
}

/// One more item about a code without bytes: its kind, and what it holds.
#[must_use]
pub fn item(kind: u16, body: &[u8]) -> Vec<u8> {
    [u16s(kind, 0, short(body.len())), padded(body.to_vec())].concat()
}

/// The items of a code into which `depth` calls are inlined, each within the one before.
#[must_use]
pub fn inlined_within_each_other(depth: u32) -> Vec<u8> {
    let mut calls = u32s(&[depth, depth]);
    calls.extend((0..depth).flat_map(|i| u32s(&[i.wrapping_sub(1), i + 1, 1, 1])));
    calls.extend((0..depth).flat_map(|_| u32s(&[0, 16])));
    for i in 0..depth {
        let file = if i == 0 { "f.js" } else { "" };
        calls.extend(format!("i{i}\0{file}\0").bytes());
    }
    let lines = bytes(&[&u32s(&[1, 1, 0, 7, 1, 0]), b"f.js\0"]);
    [item(5, &calls), item(4, &lines)].concat()
}

/// A perf map.
#[derive(Clone, Debug, Default)]
pub struct Map(String);

impl Map {
    /// No lines yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more line.
    pub fn line(&mut self, address: u64, size: u64, name: &str) {
        let _ = writeln!(self.0, "{address:x} {size:x} {name}");
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        write(path, self.0.as_bytes());
    }
}

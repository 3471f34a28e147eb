//! Recordings made event by event, as `perf record` would write them.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// `PERF_SAMPLE_*`.
pub const IP: u64 = 1;
pub const TID: u64 = 1 << 1;
pub const TIME: u64 = 1 << 2;
pub const CALLCHAIN: u64 = 1 << 5;
pub const CPU: u64 = 1 << 7;
pub const PERIOD: u64 = 1 << 8;
pub const REGS_USER: u64 = 1 << 12;
pub const STACK_USER: u64 = 1 << 13;
pub const IDENTIFIER: u64 = 1 << 16;

/// `HEADER_HOSTNAME`.
pub const HOSTNAME: u32 = 3;

/// What samples of `perf record` say.
pub const USUAL: u64 = IP | TID | TIME | PERIOD;

/// `PERF_CONTEXT_USER`.
const CONTEXT_USER: u64 = 512u64.wrapping_neg();

const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
/// `mmap`, `comm`, `task`, `mmap2` and `comm_exec`.
const TRACKING: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24;
const CLOCK_MONOTONIC: u32 = 1;

/// An event that was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    sample_type: u64,
    flags: u64,
    id: u64,
}

impl Attr {
    /// One whose samples hold `sample_type`, by `-k mono`.
    pub fn new(sample_type: u64) -> Self {
        Self { sample_type, flags: TRACKING | SAMPLE_ID_ALL | USE_CLOCKID, id: 0 }
    }

    /// One that is told from others by this id.
    pub fn id(self, id: u64) -> Self {
        Self { id, ..self }
    }

    /// Without `-k mono`.
    pub fn scheduler_clock(self) -> Self {
        Self { flags: self.flags & !USE_CLOCKID, ..self }
    }

    /// As kernels before 2.6.38 knew it: records but samples do not say when they are of.
    pub fn without_sample_id_all(self) -> Self {
        Self { flags: self.flags & !SAMPLE_ID_ALL, ..self }
    }

    /// One that only samples, and leaves mappings and processes to another.
    pub fn only_samples(self) -> Self {
        Self { flags: self.flags & !TRACKING, ..self }
    }

    fn has(self, field: u64) -> bool {
        self.sample_type & field != 0
    }
}

/// A recording in the making. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Recording {
    attrs: Vec<Attr>,
    big_endian: bool,
    data: Vec<u8>,
    features: Vec<(u32, Vec<u8>)>,
}

impl Recording {
    /// An empty recording by `perf record -k mono`.
    pub fn new() -> Self {
        Self::of(&[Attr::new(USUAL)])
    }

    /// An empty recording of these events; the first also tells of mappings and processes.
    pub fn of(attrs: &[Attr]) -> Self {
        Self { attrs: attrs.to_vec(), big_endian: false, data: Vec::new(), features: Vec::new() }
    }

    /// From a machine of the other byte order; before any event.
    pub fn big_endian(mut self) -> Self {
        assert!(self.data.is_empty());
        self.big_endian = true;
        self
    }

    /// A feature section.
    pub fn feature(&mut self, number: u32, bytes: &[u8]) -> &mut Self {
        self.features.push((number, bytes.to_vec()));
        self
    }

    /// Thread `tid` of `pid` calls itself so.
    pub fn comm(&mut self, pid: u32, tid: u32, name: &str, time: u64) -> &mut Self {
        self.name(pid, tid, name, time, 0)
    }

    /// `pid` is another program from now on.
    pub fn exec(&mut self, pid: u32, name: &str, time: u64) -> &mut Self {
        self.name(pid, pid, name, time, 1 << 13)
    }

    fn name(&mut self, pid: u32, tid: u32, name: &str, time: u64, misc: u16) -> &mut Self {
        let mut body = [self.u32(pid), self.u32(tid)].concat();
        body.extend(text(name.as_bytes()));
        body.extend(self.trailer(pid, tid, time));
        self.event(3, misc, &body)
    }

    /// `parent` became two processes.
    pub fn fork(&mut self, pid: u32, parent: u32, time: u64) -> &mut Self {
        self.task(7, [pid, parent, pid, parent], time)
    }

    /// `pid` has one thread more.
    pub fn thread(&mut self, pid: u32, tid: u32, time: u64) -> &mut Self {
        self.task(7, [pid, pid, tid, pid], time)
    }

    /// `pid` is no more.
    pub fn exit(&mut self, pid: u32, time: u64) -> &mut Self {
        self.task(4, [pid; 4], time)
    }

    fn task(&mut self, kind: u32, who: [u32; 4], time: u64) -> &mut Self {
        let mut body: Vec<u8> = who.iter().flat_map(|&word| self.u32(word)).collect();
        body.extend(self.u64(time));
        body.extend(self.trailer(who[0], who[2], time));
        self.event(kind, 0, &body)
    }

    /// A file or memory was mapped executable, from its beginning.
    pub fn map(&mut self, pid: u32, range: Range<u64>, name: &str, time: u64) -> &mut Self {
        self.map_bytes(pid, range.start, range.end - range.start, name.as_bytes(), time)
    }

    /// The same with any length and name.
    pub fn map_bytes(
        &mut self,
        pid: u32,
        start: u64,
        len: u64,
        name: &[u8],
        time: u64,
    ) -> &mut Self {
        self.map_inode(pid, start..start.wrapping_add(len), name, [8, 1], 77, time)
    }

    /// A file that is there was mapped.
    pub fn map_file(&mut self, pid: u32, range: Range<u64>, path: &Path, time: u64) -> &mut Self {
        let file = path.metadata().unwrap();
        let device = [rustix::fs::major(file.dev()), rustix::fs::minor(file.dev())];
        self.map_inode(pid, range, path.as_os_str().as_bytes(), device, file.ino(), time)
    }

    /// A file with this path was mapped: the one that is there, if one is.
    pub fn map_path(&mut self, pid: u32, range: Range<u64>, path: &str, time: u64) -> &mut Self {
        match Path::new(path) {
            file if file.is_file() => self.map_file(pid, range, file, time),
            _ => self.map(pid, range, path, time),
        }
    }

    fn map_inode(
        &mut self,
        pid: u32,
        range: Range<u64>,
        name: &[u8],
        device: [u32; 2],
        inode: u64,
        time: u64,
    ) -> &mut Self {
        let mut body = [self.u32(pid), self.u32(pid)].concat();
        body.extend(self.u64s(&[range.start, range.end.wrapping_sub(range.start), 0]));
        body.extend(device.map(|number| self.u32(number)).concat());
        body.extend(self.u64s(&[inode, 1]));
        body.extend([self.u32(5), self.u32(2)].concat());
        body.extend(text(name));
        body.extend(self.trailer(pid, pid, time));
        self.event(10, 2, &body)
    }

    /// A sample of the first event.
    pub fn sample(&mut self, pid: u32, ip: u64, time: u64) -> &mut Self {
        self.sample_of(0, (pid, pid), ip, &[], time)
    }

    /// A sample with its callers.
    pub fn chain(&mut self, pid: u32, ip: u64, callers: &[u64], time: u64) -> &mut Self {
        self.sample_of(0, (pid, pid), ip, callers, time)
    }

    /// A sample of an event, in a thread.
    pub fn sample_of(
        &mut self,
        attr: usize,
        (pid, tid): (u32, u32),
        ip: u64,
        callers: &[u64],
        time: u64,
    ) -> &mut Self {
        let attr = self.attrs[attr];
        let mut body = Vec::new();
        if attr.has(IDENTIFIER) {
            body.extend(self.u64(attr.id));
        }
        body.extend(self.u64(ip));
        body.extend([self.u32(pid), self.u32(tid)].concat());
        if attr.has(TIME) {
            body.extend(self.u64(time));
        }
        if attr.has(CPU) {
            body.extend(self.u64(0));
        }
        if attr.has(PERIOD) {
            body.extend(self.u64(1));
        }
        if attr.has(CALLCHAIN) {
            body.extend(self.u64s(&[callers.len() as u64 + 2, CONTEXT_USER, ip]));
            body.extend(self.u64s(callers));
        }
        // No registers were had, and no stack.
        for _ in [REGS_USER, STACK_USER].into_iter().filter(|field| attr.has(*field)) {
            body.extend(self.u64(0));
        }
        self.event(9, 2, &body)
    }

    /// A sample of the first event in the kernel.
    pub fn kernel_sample(&mut self, pid: u32, ip: u64, time: u64) -> &mut Self {
        let at = self.data.len();
        self.sample(pid, ip, time);
        let misc = self.u16(1);
        self.data[at + 4..at + 6].copy_from_slice(&misc);
        self
    }

    /// The kernel compiled a BPF program.
    pub fn bpf_program(&mut self, address: u64, len: u32, name: &str, time: u64) -> &mut Self {
        let mut body = [self.u64(address).to_vec(), self.u32(len).to_vec()].concat();
        body.extend([1, 0].map(|half| self.u16(half)).concat());
        body.extend(text(name.as_bytes()));
        body.extend(self.trailer(u32::MAX, 0, time));
        self.event(17, 0, &body)
    }

    /// `perf record` went through the buffers of all CPUs once.
    pub fn round(&mut self) -> &mut Self {
        self.event(68, 0, &[])
    }

    /// One tick of the processor's counter is `mult / 2^shift` ns, and tick 0 was at `zero`.
    pub fn time_conv(&mut self, shift: u64, mult: u64, zero: u64) -> &mut Self {
        self.event(79, 0, &self.u64s(&[shift, mult, zero, 0, 0, 0]))
    }

    /// Where the next event will lie, from the beginning of the first.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    fn event(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Self {
        let size = u16::try_from(body.len() + 8).unwrap();
        self.data.extend(self.u32(kind));
        let halves = [misc, size].map(|half| self.u16(half));
        self.data.extend(halves.concat());
        self.data.extend(body);
        self
    }

    /// What stands behind all records but samples, by the first event's layout.
    fn trailer(&self, pid: u32, tid: u32, time: u64) -> Vec<u8> {
        let attr = self.attrs[0];
        let mut bytes = Vec::new();
        if attr.flags & SAMPLE_ID_ALL == 0 {
            return bytes;
        }
        bytes.extend([self.u32(pid), self.u32(tid)].concat());
        if attr.has(TIME) {
            bytes.extend(self.u64(time));
        }
        if attr.has(CPU) {
            bytes.extend(self.u64(0));
        }
        if attr.has(IDENTIFIER) {
            bytes.extend(self.u64(attr.id));
        }
        bytes
    }

    fn attr(&self, attr: Attr) -> Vec<u8> {
        let flags = if self.big_endian { attr.flags.reverse_bits() } else { attr.flags };
        // PERF_TYPE_SOFTWARE, and the size of all this.
        let mut bytes = [self.u32(1), self.u32(128)].concat();
        // PERF_COUNT_SW_CPU_CLOCK, and a period.
        bytes.extend(self.u64s(&[0, 1_000_000, attr.sample_type, 0, flags]));
        bytes.resize(80, 0);
        bytes.extend(self.u64(if attr.has(REGS_USER) { 0xff } else { 0 }));
        bytes.extend(self.u32(if attr.has(STACK_USER) { 8192 } else { 0 }));
        bytes.extend(self.u32(if attr.flags & USE_CLOCKID != 0 { CLOCK_MONOTONIC } else { 0 }));
        bytes.resize(128, 0);
        bytes
    }

    /// The recording as a file.
    pub fn file(&self) -> Vec<u8> {
        let mut front = Vec::new();
        let mut table = Vec::new();
        for &attr in &self.attrs {
            let at = 104 + front.len() as u64;
            front.extend(self.u64(attr.id));
            table.extend(self.attr(attr));
            table.extend(self.u64s(&[at, 8]));
        }
        let attrs = 104 + front.len() as u64;
        front.extend(&table);
        let data = 104 + front.len() as u64;
        let mut bits = [0u64; 4];
        for (number, _) in &self.features {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        let mut file = self.magic();
        let data_len = self.data.len() as u64;
        file.extend(self.u64s(&[104, 144, attrs, table.len() as u64, data, data_len, 0, 0]));
        file.extend(self.u64s(&bits));
        file.extend(front);
        file.extend(&self.data);
        let mut at = file.len() as u64 + 16 * self.features.len() as u64;
        for (_, bytes) in &self.features {
            file.extend(self.u64s(&[at, bytes.len() as u64]));
            at += bytes.len() as u64;
        }
        file.extend(self.features.iter().flat_map(|(_, bytes)| bytes.iter().copied()));
        file
    }

    /// The recording as `perf record -o -` writes it.
    pub fn pipe(&self) -> Vec<u8> {
        let mut whole = Self { data: Vec::new(), ..self.clone() };
        for &attr in &self.attrs {
            let body = [self.attr(attr), self.u64(attr.id).to_vec()].concat();
            whole.event(64, 0, &body);
        }
        [&self.magic(), &self.u64(16)[..], &whole.data, &self.data].concat()
    }

    fn magic(&self) -> Vec<u8> {
        self.u64(u64::from_le_bytes(*b"PERFILE2")).to_vec()
    }

    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u64s(&self, values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.u64(value)).collect()
    }

    fn u64(&self, value: u64) -> [u8; 8] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

/// A text with its NUL, filled up to 8 bytes.
fn text(name: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.resize((name.len() + 1).next_multiple_of(8), 0);
    bytes
}

/// A text as feature sections hold it.
pub fn feature_text(text: &str) -> Vec<u8> {
    let mut bytes = 64u32.to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(68, 0);
    bytes
}

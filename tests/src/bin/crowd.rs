//! Announces many functions, one at a time, and stops in stacks of them at random moments, for the tests of debuggers.
//!
//! ```text
//! crowd COUNT [--stops N] [--seed S] [--churn] [--settle] [--call NUMBER[,NUMBER…]] [--wait] [--again]
//!       [--rejit TIMES] [--over]
//! ```
//!
//! The functions are `many_0`, `many_1`, …: `many_N` has the lines 10 N + 1 to 10 N + 4 of `/src/crowd.lang`. They have no frame
//! pointer and overwrite rbp and rbx, so that only their unwind info leads to their callers. At each stop, a chain of live
//! functions calls `stop_here`, and the line `truth: NAME:LINE …`, innermost first, is printed before.
//!
//! With `--churn`, functions are freed on the way, and others take their places, which have frames of other sizes. The functions
//! of `--call` are called as soon as they are announced. With `--settle`, each stop waits until all live functions are registered
//! through GDB's JIT interface. With `--wait`, the process prints `ready`, and waits for its input to end before the last stop.
//! With `--again`, the last stop is repeated. With `--rejit`, the first function is then compiled again, this many times, at its
//! address and under its name, and called each time. Before, it is freed; with `--over`, the new code is written over it.
#![allow(unsafe_code, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::ptr::with_exposed_provenance as pointer_at;
use std::time::Duration;

use jitscribe::{Code, Line, LoadedCode, Row, Scribe, Unwind};
use object::{Object, ObjectSymbol, SymbolKind};

const SIZE: usize = 64;
/// Offset of the instruction behind the call.
const RETURN: u32 = 25;
const LONGEST_CHAIN: u64 = 6;

/// Where debuggers stop. `truth` is the stack that they are to show.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn stop_here(chain: *const u64, truth: *const c_char) {
    std::hint::black_box((chain, truth));
}

/// The end of a chain in which no debugger is to stop.
#[inline(never)]
extern "C" fn go_on(chain: *const u64, truth: *const c_char) {
    std::hint::black_box((chain, truth));
}

/// A function that calls the next one of a chain: its machine code, with a frame of this many bytes. x86-64.
fn machine_code(frame: u8) -> [u8; 32] {
    [
        0x55, // push rbp
        0x53, // push rbx
        0x48, 0x83, 0xec, frame, // sub rsp, frame
        0xbd, 0x11, 0x11, 0x11, 0x11, // mov ebp, 0x11111111
        0xbb, 0x22, 0x22, 0x22, 0x22, // mov ebx, 0x22222222
        0x48, 0x8b, 0x07, // mov rax, [rdi]
        0x48, 0x83, 0xc7, 0x08, // add rdi, 8
        0xff, 0xd0, // call rax
        0x48, 0x83, 0xc4, frame, // add rsp, frame
        0x5b,  // pop rbx
        0x5d,  // pop rbp
        0xc3,  // ret
    ]
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

struct Options {
    count: u64,
    stops: u64,
    random: Random,
    churn: bool,
    settle: bool,
    call: Vec<u64>,
    wait: bool,
    again: bool,
    rejit: u64,
    over: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Self {
        let number = |word: Option<String>| -> u64 {
            word.and_then(|word| word.parse().ok()).expect("a number")
        };
        let mut options = Self {
            count: number(words.next()),
            stops: 1,
            random: Random(1),
            churn: false,
            settle: false,
            call: Vec::new(),
            wait: false,
            again: false,
            rejit: 0,
            over: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--stops" => options.stops = number(words.next()),
                "--seed" => options.random = Random(number(words.next()).max(1)),
                "--churn" => options.churn = true,
                "--settle" => options.settle = true,
                "--again" => options.again = true,
                "--rejit" => options.rejit = number(words.next()),
                "--over" => options.over = true,
                "--call" => {
                    let list = words.next().expect("numbers");
                    options.call =
                        list.split(',').map(|word| word.parse().expect("a number")).collect();
                }
                "--wait" => options.wait = true,
                other => panic!("unknown option {other}"),
            }
        }
        options
    }
}

/// A live function.
struct Function {
    number: u64,
    address: u64,
    loaded: LoadedCode,
}

/// Memory for code, and what lives in it.
struct Crowd {
    scribe: Scribe,
    memory: u64,
    live: Vec<Function>,
    /// Addresses of functions that were freed.
    free: Vec<u64>,
}

impl Crowd {
    fn new(count: u64) -> Self {
        let size = usize::try_from(count).expect("a size").saturating_mul(SIZE).max(1);
        // SAFETY: a new mapping.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(memory, libc::MAP_FAILED, "no memory");
        let scribe = Scribe::global();
        Self {
            scribe,
            memory: memory.expose_provenance() as u64,
            live: Vec::new(),
            free: Vec::new(),
        }
    }

    fn announce(&mut self, number: u64) {
        let address = self.free.pop().unwrap_or(self.memory + number * SIZE as u64);
        let frame = [8, 24, 40, 56][(number % 4) as usize];
        let bytes = machine_code(frame);
        // SAFETY: it lies in the mapping, and nothing runs there.
        unsafe {
            let at = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        let name = format!("many_{number}");
        let first = (10 * number) as u32;
        let line = |offset, line| Line::new(offset, "/src/crowd.lang", first + line).column(1);
        let lines = [line(0, 1), line(6, 2), line(23, 3), line(RETURN, 4)];
        let (rbp, rbx, rsp) = (6, 3, 7);
        let both = [(rbp, -16), (rbx, -24)];
        let rows = [
            Row::new(1, rsp, 16).saved(&both[..1]),
            Row::new(2, rsp, 24).saved(&both),
            Row::new(6, rsp, 24 + i32::from(frame)).saved(&both),
            Row::new(29, rsp, 24).saved(&both),
            Row::new(30, rsp, 16).saved(&both[..1]),
            Row::new(31, rsp, 8),
        ];
        let code = Code::new(&bytes).runs_at(address).named(&name);
        let loaded = self.scribe.load(&code.lines(&lines).unwind(Unwind::Rows(&rows)));
        self.live.push(Function { number, address, loaded });
    }

    /// Compiles the first function again, at its address, and calls it.
    fn rejit(&mut self, over: bool) {
        let old = self.live.swap_remove(0);
        self.free.push(old.address);
        if over {
            old.loaded.leak();
        } else {
            drop(old.loaded);
        }
        self.announce(old.number);
        let newest: Vec<&Function> = self.live.last().into_iter().collect();
        call(&newest, "", go_on);
        let last = self.live.len() - 1;
        self.live.swap(0, last);
    }

    fn free(&mut self, random: &mut Random) {
        if !self.live.is_empty() {
            let at = random.below(self.live.len() as u64) as usize;
            self.free.push(self.live.swap_remove(at).address);
        }
    }

    /// A chain of live functions: the newest, and others.
    fn chain(&self, random: &mut Random) -> Vec<&Function> {
        let Some(newest) = self.live.last() else { return Vec::new() };
        let mut chain: Vec<&Function> = (0..random.below(LONGEST_CHAIN))
            .map(|_| &self.live[random.below(self.live.len() as u64) as usize])
            .collect();
        chain.insert(random.below(chain.len() as u64 + 1) as usize, newest);
        chain
    }

    /// Stops in a chain, of which the truth is printed, this many times.
    fn stop(&self, random: &mut Random, times: usize) {
        let chain = self.chain(random);
        let frames: Vec<String> = chain
            .iter()
            .rev()
            .map(|Function { number, .. }| format!("many_{number}:{}", 10 * number + 3))
            .collect();
        let truth = frames.join(" ");
        for _ in 0..times {
            say(&format!("truth: {truth}\n"));
            call(&chain, &truth, stop_here);
        }
    }

    /// Waits until all functions are registered through GDB's JIT interface.
    fn settle(&self) {
        let live: BTreeSet<u64> = self.live.iter().map(|function| function.address).collect();
        while registered().is_none_or(|registered| registered != live) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

unsafe extern "C" {
    static __jit_debug_descriptor: [u64; 3];
}

/// The addresses of the functions in the files of GDB's JIT interface; `None` while it is changed or the debugger is called.
fn registered() -> Option<BTreeSet<u64>> {
    // Files are freed while they are read here: not by way of a reference.
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    let words = |at: u64| -> Option<[u64; 4]> {
        let mut bytes = [0; 32];
        memory.read_exact_at(&mut bytes, at).ok()?;
        let mut words = bytes.chunks_exact(8);
        Some(std::array::from_fn(|_| {
            words.next().and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
        }))
    };
    let mut functions = BTreeSet::new();
    // A pointer to the first entry is the third word of the descriptor.
    let [_, _, mut at, _] = words((&raw const __jit_debug_descriptor).addr() as u64)?;
    while at != 0 {
        let [next, _, file, size] = words(at)?;
        let mut bytes = vec![0; usize::try_from(size).ok().filter(|size| *size < 1 << 28)?];
        memory.read_exact_at(&mut bytes, file).ok()?;
        let object = object::File::parse(&*bytes).ok()?;
        let symbols = object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        functions.extend(symbols.map(|symbol| symbol.address()));
        at = next;
    }
    // A file is in the list before the debugger is called for it. Version, action:
    let [head, ..] = words((&raw const __jit_debug_descriptor).addr() as u64)?;
    (head >> 32 == 0).then_some(functions)
}

/// Calls the first function of a chain, which calls the next, and so on up to `end`.
fn call(chain: &[&Function], truth: &str, end: extern "C" fn(*const u64, *const c_char)) {
    let mut addresses: Vec<u64> = chain.iter().map(|function| function.address).collect();
    addresses.push(end as usize as u64);
    let truth = CString::new(truth).expect("no NUL");
    // SAFETY: each of the functions takes the rest of the chain and the truth, and calls the next.
    let first: extern "C" fn(*const u64, *const c_char) =
        unsafe { std::mem::transmute(pointer_at::<()>(addresses[0] as usize)) };
    first(addresses[1..].as_ptr(), truth.as_ptr());
}

/// Prints it at once.
fn say(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("somebody reads this");
}

fn main() {
    let mut options = Options::parse(std::env::args().skip(1));
    let random = &mut options.random;
    let mut crowd = Crowd::new(options.count);
    // The last stop is behind the last announcement.
    let mut stops: Vec<u64> = (1..options.stops).map(|_| random.below(options.count)).collect();
    stops.push(options.count.saturating_sub(1));
    stops.sort_unstable();
    let mut stops = stops.into_iter().peekable();
    for number in 0..options.count {
        crowd.announce(number);
        if options.call.contains(&number) {
            let newest: Vec<&Function> = crowd.live.last().into_iter().collect();
            call(&newest, "", go_on);
        }
        while stops.next_if_eq(&number).is_some() {
            let is_last = stops.peek().is_none();
            if is_last && options.wait {
                say("ready\n");
                std::io::stdin().read_to_end(&mut Vec::new()).expect("an input that ends");
            }
            if options.settle {
                crowd.settle();
            }
            crowd.stop(random, if is_last && options.again { 2 } else { 1 });
        }
        if options.churn && random.below(3) == 0 {
            crowd.free(random);
        }
    }
    for _ in 0..options.rejit {
        crowd.rejit(options.over);
    }
}

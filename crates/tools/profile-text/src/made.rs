//! A profile for tests: `main` calls `fib` of a small language, which was compiled twice, and has `add` inlined the second time.

use printable::Escaped;
use profile::{
    Builder, Code, CodeId, CodeSource, Frame, Function, FunctionId, FunctionKind, ListedFrame,
    ListedLine, Listing, Profile, SampleRow, Source, StackId,
};

/// The names and numbers in the profile.
pub struct Made {
    pub profile: Profile,
    pub fib: FunctionId,
    pub add: FunctionId,
    pub code: MadeCode,
}

/// The machine code and the source of the profile.
pub struct MadeCode {
    baseline: CodeId,
    optimized: CodeId,
}

#[rustfmt::skip]
const OPTIMIZED: [u8; 30] = [
    0x48, 0x83, 0xff, 0x01,       // 0  cmp rdi, 1
    0x76, 0x0b,                   // 4  jbe 0x11
    0x48, 0xff, 0xcf,             // 6  dec rdi
    0xe8, 0xf2, 0xff, 0xff, 0xff, // 9  call 0x0
    0x48, 0x01, 0xf8,             // 14 add rax, rdi
    0x48, 0x89, 0xf8,             // 17 mov rax, rdi
    0xc3,                         // 20 ret
    0x06,                         // 21 no instruction
    0, 0, 0, 0, 0, 0, 0, 0,       // 22 padding
];

const SOURCE: &str = "// A program.\nfn fib(n) {\n\tif (n <= 1) return n\n\treturn add(fib(n - 1), n)\n}\nfn add(a, b) {\n\treturn a + b\n}\n";

impl CodeSource for MadeCode {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let frame = |function: &str, line| ListedFrame {
            function: function.into(),
            file: b"fib.toy".to_vec(),
            line,
            column: 1,
        };
        let fib = |offset, line| ListedLine { offset, frames: vec![frame("fib", line)] };
        let inlined = ListedLine { offset: 14, frames: vec![frame("add", 7), frame("fib", 4)] };
        (code == self.optimized).then(|| Listing {
            address: 0x2000,
            machine: 62,
            bytes: OPTIMIZED.to_vec(),
            lines: vec![fib(0, 3), fib(6, 4), inlined, fib(17, 5)],
        })
    }

    fn name_at(&mut self, _: CodeId, address: u64) -> Option<(Vec<u8>, u64)> {
        (0x2000..0x2016).contains(&address).then(|| (b"fib".to_vec(), address - 0x2000))
    }

    fn source(&mut self, file: &[u8]) -> Option<Source> {
        (file == b"fib.toy").then(|| Source { text: SOURCE.into(), is_newer: false })
    }
}

impl MadeCode {
    /// The compilation without bytes.
    pub fn baseline(&self) -> CodeId {
        self.baseline
    }
}

/// The profile.
pub fn made() -> Made {
    let mut builder = Builder::new();
    let event = builder.event(b"cycles");
    let process = builder.process(4711, b"app");
    let thread = builder.thread(process, 4711, b"app");
    let mut function = |name: &[u8], kind, line| {
        let mut function = Function::new(builder.string(name), kind);
        if line > 0 {
            (function.file, function.line) = (builder.string(b"fib.toy"), line);
        }
        builder.function(function)
    };
    let main = function(b"main", FunctionKind::Native, 0);
    let fib = function(b"fib", FunctionKind::Jitted, 2);
    let add = function(b"add", FunctionKind::Jitted, 6);
    let rare = function(b"rare\n\x1b[2J", FunctionKind::Native, 0);
    let mut code = |address, tier: &[u8], size, loaded, gone| {
        let mut code = Code::new(fib, size);
        (code.tier, code.symbol) = (builder.string(tier), builder.string(b"fib"));
        (code.process, code.address) = (Some(process), address);
        (code.loaded, code.gone) = (loaded, gone);
        builder.code(code)
    };
    let baseline = code(0x1000, b"baseline", 40, None, Some(2_000_000_000));
    let optimized = code(0x2000, b"optimized", 30, Some(1_500_000_000), None);
    let mut stack =
        |parent: Option<StackId>, function, code: Option<CodeId>, address, depth, line| {
            let mut frame = Frame::new(function);
            (frame.code, frame.address, frame.depth, frame.line) = (code, address, depth, line);
            let frame = builder.frame(frame);
            builder.stack(parent, frame)
        };
    let base = stack(None, main, None, 0x500, 0, 0);
    let early = stack(Some(base), fib, Some(baseline), 0x1010, 0, 3);
    let compare = stack(Some(base), fib, Some(optimized), 0x2004, 0, 3);
    let call = stack(Some(base), fib, Some(optimized), 0x200d, 0, 4);
    let around = stack(Some(call), fib, Some(optimized), 0x200e, 0, 4);
    let inlined = stack(Some(around), add, Some(optimized), 0x200e, 1, 7);
    let rare = stack(Some(base), rare, None, 0x600, 0, 0);
    let mut time = 1_000_000_000;
    for (stack, samples) in [(early, 10), (base, 4), (compare, 50), (inlined, 135), (rare, 1)] {
        for _ in 0..samples {
            time += 5_000_000;
            builder.sample(SampleRow { time, thread, event, weight: 1, stack });
        }
    }
    Made { profile: builder.finish(), fib, add, code: MadeCode { baseline, optimized } }
}

/// Lines as one text, as a terminal gets them.
pub fn text(lines: &[crate::Line]) -> String {
    lines.iter().map(|line| format!("{}\n", Escaped(line.text().as_bytes()))).collect()
}

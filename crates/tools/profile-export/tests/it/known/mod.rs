//! A profile whose numbers are known: two generations of a jitted function, calls inlined into the second, native code, the kernel, two threads, an idle second.

use std::path::Path;

use profile::{
    Builder, Code, Frame, Function, FunctionKind, Listing, Module, ModuleKind, Profile, SampleRow,
    StackId,
};

/// The source that lines refer to.
pub const SOURCE: &str = "\
function outer(n) {          // 1
  let sum = 0;               // 2
  for (;;) sum += mid(n);    // 3
  return sum;                // 4
}                            // 5
                             // 6
function mid(n) {            // 7
  return leaf(n) + 1;        // 8
}                            // 9
function leaf(n) {           // 10
  return n * n;              // 11
}                            // 12
";

/// Machine code of the second generation: `mov rbx, rax; imul rax, rbx; add rax, 1; ret`, and no more.
const BYTES: [u8; 12] = [0x48, 0x89, 0xc3, 0x48, 0x0f, 0xaf, 0xc3, 0x48, 0x83, 0xc0, 0x01, 0xc3];

/// Samples of `outer` itself in its first generation, of `outer` itself in the second, of `leaf`, which is inlined into the second, of the kernel, and
/// of the other thread.
pub const COUNTS: [u64; 5] = [20, 10, 30, 5, 7];

/// The period of samples in nanoseconds.
pub const PERIOD: u64 = 1_000_000;

/// How long nothing ran between the first and the second generation.
pub const IDLE: u64 = 1_000_000_000;

/// Makes the profile. The source is at `source`.
pub fn profile(source: &Path) -> Profile {
    let mut builder = Builder::new();
    let mut about = profile::About::default();
    about.recording = b"/tmp/made.data".into();
    about.machine = b"x86_64".into();
    about.host = b"host".into();
    about.command = vec![b"/opt/app".into(), b"run".into()];
    about.frequency = Some(1_000_000_000 / PERIOD);
    about.to_utc = Some(1_700_000_000_000_000_000);
    builder.about(about);
    let event = builder.event(b"cycles");
    let process = builder.process(4711, b"app");
    let threads = [builder.thread(process, 4711, b"app"), builder.thread(process, 4712, b"helper")];
    let mut module = |path: &[u8], kind, build_id: &[u8]| {
        let path = builder.string(path);
        builder.module(Module { kind, path, build_id: build_id.into() })
    };
    let libc = module(b"/lib/libc.so.6", ModuleKind::File, &[1; 20]);
    let program = module(b"/opt/app", ModuleKind::File, &[2; 20]);
    let kernel = module(b"[kernel.kallsyms]", ModuleKind::Kernel, &[3; 20]);
    let file = builder.string(source.as_os_str().as_encoded_bytes());
    let mut function = |name: &[u8], kind, line| {
        let mut function = Function::new(builder.string(name), kind);
        if line > 0 {
            (function.file, function.line, function.column) = (file, line, 1);
        }
        builder.function(function)
    };
    let main = function(b"main", FunctionKind::Native, 0);
    let outer = function(b"outer", FunctionKind::Jitted, 1);
    let mid = function(b"mid", FunctionKind::Jitted, 7);
    let leaf = function(b"leaf", FunctionKind::Jitted, 10);
    let memcpy = function(b"memcpy", FunctionKind::Native, 0);
    let fault = function(b"page_fault", FunctionKind::Kernel, 0);

    let mut native = |function, module, address| {
        let mut code = Code::new(function, 0x100);
        (code.module, code.module_address) = (Some(module), address);
        let code = builder.code(code);
        let mut frame = Frame::new(function);
        (frame.code, frame.module, frame.address) = (Some(code), Some(module), address + 0x10);
        builder.frame(frame)
    };
    let in_main = native(main, program, 0x2000);
    let in_memcpy = native(memcpy, libc, 0x9000);
    let in_kernel = native(fault, kernel, 0xffff_ffff_8100_0000);

    let mut compiled = |tier: &[u8], loaded, gone| {
        let mut code = Code::new(outer, BYTES.len() as u64);
        code.tier = builder.string(tier);
        (code.process, code.address) = (Some(process), 0x7f00_0000_1000);
        (code.loaded, code.gone) = (Some(loaded), gone);
        builder.code(code)
    };
    let first = compiled(b"baseline", 0, Some(IDLE));
    let second = compiled(b"turbofan", IDLE, None);
    let mut jitted = |function, code, offset: u64, depth, line| {
        let mut frame = Frame::new(function);
        (frame.code, frame.address) = (Some(code), 0x7f00_0000_1000 + offset);
        (frame.depth, frame.line, frame.column) = (depth, line, 3);
        builder.frame(frame)
    };
    let in_first = jitted(outer, first, 3, 0, 2);
    let in_second = jitted(outer, second, 7, 0, 4);
    let chain = [(outer, 3), (mid, 8), (leaf, 11)];
    let chain: Vec<_> =
        (0..).zip(chain).map(|(depth, (of, line))| jitted(of, second, 3, depth, line)).collect();

    let mut stack = |frames: &[_]| {
        let stack: Option<StackId> =
            frames.iter().fold(None, |stack, frame| Some(builder.stack(stack, *frame)));
        stack.expect("a frame")
    };
    let stacks = [
        (stack(&[in_main, in_first]), 0, 0),
        (stack(&[in_main, in_second]), 0, IDLE),
        (stack(&[in_main, chain[0], chain[1], chain[2]]), 0, 0),
        (stack(&[in_main, in_memcpy, in_kernel]), 0, 0),
        (stack(&[in_main]), 1, 0),
    ];
    let mut times = [PERIOD, PERIOD];
    for ((stack, thread, idle), count) in stacks.into_iter().zip(COUNTS) {
        times[thread] += idle;
        for _ in 0..count {
            let (time, thread_id) = (times[thread], threads[thread]);
            builder.sample(SampleRow { time, thread: thread_id, event, weight: PERIOD, stack });
            times[thread] += PERIOD;
        }
    }
    builder.finish()
}

/// What a view of machine code gets.
#[derive(Debug)]
pub struct KnownCode;

impl profile::CodeSource for KnownCode {
    fn listing(&mut self, code: profile::CodeId) -> Option<Listing> {
        // The native codes come first.
        (code.0 >= 3).then(|| Listing {
            address: 0x7f00_0000_1000,
            machine: 62,
            bytes: BYTES.into(),
            lines: Vec::new(),
        })
    }

    fn name_at(&mut self, _: profile::CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        None
    }

    fn source(&mut self, file: &[u8]) -> Option<profile::Source> {
        file.ends_with(b"app.js").then(|| profile::Source { text: SOURCE.into(), is_newer: false })
    }
}

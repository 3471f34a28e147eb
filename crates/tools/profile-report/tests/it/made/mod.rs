//! A profile of a small server in JavaScript, made up: two processes, four threads, tiers, inlined calls, generations, and code without a name.

use profile::{
    About, Builder, Code, CodeId, CodeSource, Frame, FrameId, Function, FunctionId, FunctionKind,
    ListedFrame, ListedLine, Listing, Missing, Profile, SampleRow, Source, StackId, ThreadId,
};

pub const MILLISECOND: u64 = 1_000_000;

/// The file of the functions in JavaScript.
pub const FILE: &[u8] = b"/srv/app/render.js";

const TEXT: &str = "// Renders pages.
export function escape(text) {
  let out = '';
  for (const c of text) {
    out += TABLE[c] ?? c;
  }
  return out;
}

export function row(item) {
  return '<li>' + escape(item.name) + '</li>';
}

export function render(items) {
  const rows = [];
  for (const item of items) {
    rows.push(row(item));
  }
  return rows.join('');
}
";

/// `push rbp; mov rbp, rsp; test rdi, rdi; je out; loop: add rax, [rdi]; add rdi, 8; dec rsi; jne loop; call far; out: pop rbp; ret`.
const BYTES: [u8; 32] = [
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x85, 0xff, 0x74, 0x11, 0x48, 0x03, 0x07, 0x48, 0x83, 0xc7, 0x08,
    0x48, 0xff, 0xce, 0x75, 0xf4, 0xe8, 0xe6, 0x0f, 0x00, 0x00, 0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90,
];
/// The offset of the `add rax, [rdi]`.
pub const HOT: u64 = 9;
/// Within the call.
const CALL: u64 = 24;

/// Code and sources of the profile.
pub struct Made;

impl CodeSource for Made {
    fn listing(&mut self, code: CodeId) -> Option<Listing> {
        let mut bytes = BYTES.to_vec();
        // Generations differ in an instruction: `nop` for `dec rsi`.
        if code.0 % 2 == 1 {
            bytes[16..19].copy_from_slice(&[0x0f, 0x1f, 0x00]);
        }
        let frame = |function: &[u8], line| ListedFrame {
            function: function.to_vec(),
            file: FILE.to_vec(),
            line,
            column: 3,
        };
        let inlined = vec![frame(b"escape", 5), frame(b"row", 11), frame(b"render", 17)];
        let lines = vec![
            ListedLine { offset: 0, frames: vec![frame(b"render", 14)] },
            ListedLine { offset: HOT, frames: inlined },
            ListedLine { offset: 21, frames: vec![frame(b"render", 19)] },
        ];
        (code.0 < 4).then_some(Listing { address: 0x4000, machine: 62, bytes, lines })
    }

    fn name_at(&mut self, _: CodeId, address: u64) -> Option<(Vec<u8>, u64)> {
        (address == 0x5000).then(|| (b"Builtins_StringAdd".to_vec(), 0))
    }

    fn source(&mut self, file: &[u8]) -> Option<Source> {
        (file == FILE).then(|| Source { text: TEXT.into(), is_newer: true })
    }
}

pub struct Maker {
    pub builder: Builder,
    random: u64,
}

impl Maker {
    pub fn new() -> Self {
        Self { builder: Builder::new(), random: 1 }
    }

    /// A number below `below`; always the same ones.
    pub fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % below
    }

    pub fn function(
        &mut self,
        name: &[u8],
        kind: FunctionKind,
        file: &[u8],
        line: u32,
    ) -> FunctionId {
        let mut function = Function::new(self.builder.string(name), kind);
        function.file = self.builder.string(file);
        function.line = line;
        self.builder.function(function)
    }

    /// The stack of these frames, the outermost first.
    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        let mut stack = None;
        for &frame in frames {
            stack = Some(self.builder.stack(stack, frame));
        }
        stack.expect("a frame")
    }

    fn plain(&mut self, function: FunctionId) -> FrameId {
        self.builder.frame(Frame::new(function))
    }
}

/// The profile.
pub fn profile() -> Profile {
    let mut maker = Maker::new();
    let event = maker.builder.event(b"cycles");
    let server = maker.builder.process(4711, b"node");
    let worker = maker.builder.process(4720, b"node");
    let threads: Vec<ThreadId> = [
        (server, 4711, &b"node"[..]),
        (server, 4712, b"V8 DefaultWorke"),
        (worker, 4720, b"node"),
        (worker, 4721, b"libuv-worker"),
    ]
    .map(|(process, tid, name)| maker.builder.thread(process, tid, name))
    .into();
    let about = {
        let mut about = About::default();
        about.recording = b"perf.data".to_vec();
        about.host = b"build7".to_vec();
        about.machine = b"x86_64".to_vec();
        about.command = [&b"node"[..], b"server.js"].map(<[u8]>::to_vec).into();
        about.to_utc = Some(1_790_000_000_000_000_000);
        about.frequency = Some(999);
        about
    };
    maker.builder.about(about);

    use FunctionKind::{End, Interpreted, Jitted, Kernel, Native, Unknown};
    let mut named = |name: &str, kind| maker.function(name.as_bytes(), kind, b"", 0);
    let start = named("_start", Native);
    let main = named("node::LoadEnvironment(node::Environment*)", Native);
    let entry = named("Builtins_JSEntry", Native);
    let gc = named("v8::internal::Heap::Scavenge()", Native);
    let compile = named("v8::internal::compiler::Pipeline::Run()", Native);
    let read = named("uv__fs_read", Native);
    let copy = named("copy_user_enhanced_fast_string", Kernel);
    let syscall = named("do_syscall_64", Kernel);
    let unknown = named("[libcrypto.so.3]", Unknown);
    let end = named("[the copy of the stack ends here]", End);
    let [render, row, escape, handle] = [("render", 14), ("row", 10), ("escape", 2), ("handle", 0)]
        .map(|(name, line)| {
            let kind = if name == "handle" { Interpreted } else { Jitted };
            // As in many runtimes, only the lines of its code say which file it is in.
            let file = if name == "row" { &b""[..] } else { FILE };
            maker.function(name.as_bytes(), kind, file, line)
        });

    let first = 1_000 * MILLISECOND;
    let tiers = [
        ("sparkplug", 0, 240),
        ("maglev", 240, 700),
        ("turbofan", 700, 1_400),
        ("turbofan", 1_450, 0),
    ];
    let codes: Vec<CodeId> = tiers
        .iter()
        .map(|&(tier, from, until)| {
            let mut code = Code::new(render, BYTES.len() as u64);
            code.tier = maker.builder.string(tier.as_bytes());
            code.symbol = maker.builder.string(format!("JS:*render {tier}").as_bytes());
            code.process = Some(server);
            code.address = 0x7f00_0000_4000 + from * 0x100;
            code.loaded = Some(first + from * MILLISECOND);
            code.gone = (until > 0).then_some(first + until * MILLISECOND);
            maker.builder.code(code)
        })
        .collect();
    let base: Vec<FrameId> = [start, main, entry, handle].map(|it| maker.plain(it)).into();
    let mut at = |code: CodeId, offset: u64, function, depth, line| {
        let mut frame = Frame::new(function);
        frame.code = Some(code);
        frame.address = maker.builder.code_row(code).expect("a code").address + offset;
        (frame.depth, frame.line, frame.column) = (depth, line, 3);
        maker.builder.frame(frame)
    };
    let inlined: Vec<[FrameId; 3]> = codes
        .iter()
        .map(|&code| {
            [at(code, HOT, render, 0, 17), at(code, HOT, row, 1, 11), at(code, HOT, escape, 2, 5)]
        })
        .collect();
    let calls: Vec<FrameId> = codes.iter().map(|&code| at(code, CALL, render, 0, 19)).collect();
    let tops: Vec<FrameId> = codes.iter().map(|&code| at(code, 0, render, 0, 14)).collect();

    let with = |frames: &[FrameId]| base.iter().chain(frames).copied().collect::<Vec<_>>();
    let hot: Vec<StackId> = inlined.iter().map(|frames| maker.stack(&with(frames))).collect();
    let plain: Vec<StackId> = tops.iter().map(|&frame| maker.stack(&with(&[frame]))).collect();
    let gc = maker.plain(gc);
    let collect: Vec<StackId> = calls.iter().map(|&call| maker.stack(&with(&[call, gc]))).collect();
    let [start, compile, read, syscall, copy, unknown, end] =
        [start, compile, read, syscall, copy, unknown, end].map(|it| maker.plain(it));
    let compiling = maker.stack(&[start, compile]);
    let reading = maker.stack(&[start, read, syscall, copy]);
    let lost = maker.stack(&[end, unknown, unknown, unknown]);
    let handling = maker.stack(&base);
    for tick in 0..2_000 {
        let time = first + tick * MILLISECOND + maker.random(900_000);
        let code = tiers.iter().rposition(|tier| tick >= tier.1).expect("a tier");
        let stack = match maker.random(100) {
            0..50 => hot[code],
            50..68 => plain[code],
            68..80 => collect[code],
            80..96 => handling,
            _ => lost,
        };
        let mut sample = |time, thread, weight, stack| {
            maker.builder.sample(SampleRow { time, thread, event, weight, stack });
        };
        sample(time, threads[0], 1_000_000, stack);
        if tick % 7 < 3 && (200..1_500).contains(&tick) {
            sample(time + 1_000, threads[1], 1_000_000, compiling);
        }
        if tick % 400 > 250 {
            sample(time + 2_000, threads[3], 3_000_000, reading);
        }
        if tick % 90 < 20 {
            sample(time + 3_000, threads[2], 500_000, handling);
        }
    }
    let path = maker.builder.string(b"/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
    maker.builder.missing(Missing {
        path,
        cause: "has another build-id than the recorded file.".to_owned(),
        samples: 80,
    });
    maker.builder.finish()
}

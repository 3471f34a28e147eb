//! Profiles whose numbers are known.

use std::collections::BTreeMap;

use profile::{Builder, Frame, Function, FunctionKind, Module, ModuleKind, Profile, SampleRow};
use profile_export::{Format, Options};
use profile_push::ProfileBody;

/// A profile, and how often each of its stacks was sampled.
pub fn profile(number: u64) -> (Profile, BTreeMap<String, u64>) {
    let mut builder = Builder::new();
    let mut about = profile::About::default();
    about.host = b"host".into();
    about.frequency = Some(1_000);
    about.to_utc = Some(1_700_000_000_000_000_000);
    builder.about(about);
    let event = builder.event(b"cycles");
    let process = builder.process(4711, b"app");
    let thread = builder.thread(process, 4711, b"app");
    let mut stack = None;
    let mut path = String::new();
    let mut truth = BTreeMap::new();
    let mut time = number * 1_000_000_000;
    for (place, name) in ["main", "outer", "inner"].into_iter().enumerate() {
        let function = Function::new(builder.string(name.as_bytes()), FunctionKind::Jitted);
        let function = builder.function(function);
        let frame = builder.frame(Frame::new(function));
        stack = Some(builder.stack(stack, frame));
        path = format!("{path}{}{name}", if path.is_empty() { "" } else { ";" });
        let count = number % 7 + place as u64 + 1;
        for _ in 0..count {
            let stack = stack.expect("a frame");
            builder.sample(SampleRow { time, thread, event, weight: 1_000_000, stack });
            time += 1_000_000;
        }
        truth.insert(path.clone(), count);
    }
    (builder.finish(), truth)
}

/// A profile of two processes and two events, with so many stacks; each was sampled at several times.
pub fn large(stacks: u64, to_utc: Option<i64>) -> Profile {
    let mut builder = Builder::new();
    let mut about = profile::About::default();
    about.host = b"host".into();
    about.to_utc = to_utc;
    builder.about(about);
    let events = [&b"cycles"[..], b"page-faults"].map(|name| builder.event(name));
    let processes =
        [(4711, &b"app"[..]), (4712, b"other")].map(|(pid, name)| builder.process(pid, name));
    let path = builder.string(b"/opt/app/bin/app");
    let program = Module { kind: ModuleKind::File, path, build_id: vec![0xab; 20] };
    let program = builder.module(program);
    for number in 0..stacks {
        let process = processes[usize::from(number % 3 == 0)];
        let thread = builder.thread(process, 5000 + (number % 5) as u32, b"worker");
        let mut stack = None;
        for depth in 0..8 {
            // Outer functions are shared, inner ones are not; every third is inlined into the one before.
            let name =
                format!("function {depth} of {}", if depth < 4 { number % 2 } else { number });
            let mut function = Function::new(builder.string(name.as_bytes()), FunctionKind::Native);
            function.file = builder.string(format!("/src/{depth}.c").as_bytes());
            function.line = 10 * depth + 1;
            let function = builder.function(function);
            let mut frame = Frame::new(function);
            (frame.line, frame.column) = (10 * depth + 3, 7);
            frame.module = Some(program);
            frame.address = 0x1000 + 64 * number + u64::from(depth / 3);
            frame.depth = depth % 3;
            let frame = builder.frame(frame);
            stack = Some(builder.stack(stack, frame));
        }
        let stack = stack.expect("a frame");
        for time in 0..number % 7 + 1 {
            let event = events[usize::from(time % 3 == 0)];
            let time = 1_000_000 * number + time;
            builder.sample(SampleRow { time, thread, event, weight: 3, stack });
        }
    }
    builder.finish()
}

/// An encoded request.
pub fn request(number: u64) -> Vec<u8> {
    encoded(number, Format::Otlp)
}

pub fn encoded(number: u64, format: Format) -> Vec<u8> {
    encode(&profile(number).0, format)
}

pub fn encode(profile: &Profile, format: Format) -> Vec<u8> {
    let mut content = Vec::new();
    format.write(profile, &Options::default(), &mut content).expect("written");
    content
}

pub fn body(number: u64) -> ProfileBody {
    ProfileBody::otlp(&request(number))
}

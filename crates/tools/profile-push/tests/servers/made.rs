//! Profiles whose numbers are known.

use std::collections::BTreeMap;

use profile::{Builder, Frame, Function, FunctionKind, Profile, SampleRow};
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

/// An encoded request.
pub fn request(number: u64) -> Vec<u8> {
    encoded(number, Format::Otlp)
}

pub fn encoded(number: u64, format: Format) -> Vec<u8> {
    let mut content = Vec::new();
    format.write(&profile(number).0, &Options::default(), &mut content).expect("written");
    content
}

pub fn body(number: u64) -> ProfileBody {
    ProfileBody::otlp(&request(number))
}

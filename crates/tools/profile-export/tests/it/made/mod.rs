//! Profiles for tests: several processes, threads and events, inlined calls, generations, and names that break formats.

use proptest::collection::vec;
use proptest::prelude::*;

use profile::{
    Builder, Code, Frame, Function, FunctionKind, Module, ModuleKind, Profile, SampleRow, ThreadId,
};

/// Names as programs may choose them.
pub const NAMES: [&[u8]; 10] = [
    b"plain",
    b"with \"quotes\" and \\",
    b"a;b;c",
    b"two\nlines\r\n",
    b"nul\0inside",
    b"invalid \xff\xfe UTF-8 \xf0\x9f",
    b"ends in a number 17",
    b"</script><b>&amp;",
    b"\x1b]0;owned\x07 \xe2\x80\xae",
    "größe 🦀 名前".as_bytes(),
];

/// What profiles are made of: stacks, and samples of them.
pub fn profile() -> impl Strategy<Value = Profile> {
    // Each frame: a function, its generation, its address, and how many calls are inlined there.
    let frame = (0usize..NAMES.len(), 0usize..3, 0u64..16, 0u32..3);
    let stacks = vec(vec(frame, 1..6), 1..8);
    let sample = (0u64..1_000_000, 0u32..4, 1u64..5, 0usize..2, any::<prop::sample::Index>());
    let frequency = proptest::option::of(1u64..10_000);
    let to_utc = proptest::option::of(0i64..2_000_000_000_000_000_000);
    (stacks, vec(sample, 1..60), frequency, to_utc).prop_map(
        |(stacks, samples, frequency, to_utc)| {
            let mut builder = Builder::new();
            let mut about = profile::About::default();
            (about.frequency, about.to_utc) = (frequency, to_utc);
            about.command = vec![b"app".into(), NAMES[3].into()];
            builder.about(about);
            let events = [builder.event(b"cycles"), builder.event(NAMES[4])];
            let processes = [builder.process(7, b"app"), builder.process(7, NAMES[2])];
            for (tid, process) in [(7, 0), (8, 0), (7, 1), (9, 1)] {
                builder.thread(processes[process], tid, NAMES[tid as usize % NAMES.len()]);
            }
            let path = builder.string(b"/opt/app/bin/app");
            let build_id = vec![0xab; 20];
            let program = builder.module(Module { kind: ModuleKind::File, path, build_id });
            let tiers =
                [builder.string(b""), builder.string(b"baseline"), builder.string(NAMES[1])];
            let file = builder.string(b"/src/a \"b\"\n.js");
            let mut codes = Vec::new();
            for (number, name) in NAMES.into_iter().enumerate() {
                let kind = FunctionKind::ALL[number % FunctionKind::ALL.len()];
                let mut function = Function::new(builder.string(name), kind);
                if number % 2 == 0 {
                    (function.file, function.line) = (file, 3);
                }
                let function = builder.function(function);
                for (generation, tier) in tiers.into_iter().enumerate() {
                    let mut code = Code::new(function, 16);
                    code.tier = tier;
                    let (number, generation) = (number as u64, generation as u64);
                    let start = if kind == FunctionKind::Jitted || number == 7 {
                        code.process = Some(processes[0]);
                        // All generations were at one address.
                        code.address = 0x7f00_0000_0000 + 32 * number;
                        code.loaded = Some(generation * 1000);
                        code.address
                    } else {
                        code.module = Some(program);
                        code.module_address = 0x1000 + 64 * number + 16 * generation;
                        code.module_address
                    };
                    codes.push((function, builder.code(code), start));
                }
            }
            let stacks: Vec<_> = stacks
                .into_iter()
                .map(|frames| {
                    let mut stack = None;
                    for (number, generation, offset, inlined) in frames {
                        let (_, code, start) = codes[number * tiers.len() + generation];
                        for depth in 0..=inlined {
                            let place = (number + depth as usize) % NAMES.len() * tiers.len();
                            let mut frame = Frame::new(codes[place].0);
                            frame.code = Some(code);
                            frame.module = (start < 0x10000).then_some(program);
                            frame.address = start + offset;
                            frame.depth = depth;
                            frame.line = offset as u32 + depth;
                            frame.column = depth;
                            let frame = builder.frame(frame);
                            stack = Some(builder.stack(stack, frame));
                        }
                    }
                    stack.expect("a frame")
                })
                .collect();
            for (time, thread, weight, event, stack) in samples {
                let (thread, stack) = (ThreadId(thread), *stack.get(&stacks));
                builder.sample(SampleRow { time, thread, event: events[event], weight, stack });
            }
            builder.finish()
        },
    )
}

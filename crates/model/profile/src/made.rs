//! Profiles for tests.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Builder, Code, Frame, Function, FunctionKind, Profile, SampleRow, ThreadId};

/// A few functions with codes, in stacks that recur.
pub fn profile() -> impl Strategy<Value = Profile> {
    // Of each frame, its function, and the function whose code it is in: another one if it was inlined.
    let stack = vec((0..6_usize, prop::option::of(0..6_usize)), 1..6);
    let sample = (0u64..60, 0u32..3, 0u64..5, any::<prop::sample::Index>());
    (vec(stack, 1..8), vec(sample, 0..40)).prop_map(|(stacks, samples)| {
        let mut builder = Builder::new();
        let event = builder.event(b"cycles");
        let process = builder.process(1, b"made");
        for tid in 1..=3 {
            builder.thread(process, tid, b"made");
        }
        let pairs: Vec<_> = (0..6_u8)
            .map(|number| {
                let name = builder.string(&[b'a' + number]);
                let function = builder.function(Function::new(name, FunctionKind::Jitted));
                let mut code = Code::new(function, 16);
                let tiers: [&[u8]; 3] = [b"", b"baseline", b"optimized"];
                code.tier = builder.string(tiers[number as usize % 3]);
                (function, builder.code(code))
            })
            .collect();
        let stacks: Vec<_> = stacks
            .into_iter()
            .map(|frames| {
                let mut stack = None;
                for (number, code) in frames {
                    let (function, _) = pairs[number];
                    let mut frame = Frame::new(function);
                    frame.code = code.map(|number| pairs[number].1);
                    let frame = builder.frame(frame);
                    stack = Some(builder.stack(stack, frame));
                }
                stack.expect("a frame")
            })
            .collect();
        for (time, thread, weight, stack) in samples {
            let (thread, stack) = (ThreadId(thread), *stack.get(&stacks));
            builder.sample(SampleRow { time, thread, event, weight, stack });
        }
        builder.finish()
    })
}

//! Profiles for tests.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{Builder, Code, Frame, Function, FunctionKind, Profile, SampleRow, ThreadId};

/// A few functions with codes, in stacks that recur.
pub fn profile() -> impl Strategy<Value = Profile> {
    let stack = vec((0u32..6, any::<bool>()), 1..6);
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
                (function, builder.code(Code::new(function, 16)))
            })
            .collect();
        let stacks: Vec<_> = stacks
            .into_iter()
            .map(|frames| {
                let mut stack = None;
                for (number, has_code) in frames {
                    let (function, code) = pairs[number as usize];
                    let mut frame = Frame::new(function);
                    frame.code = has_code.then_some(code);
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

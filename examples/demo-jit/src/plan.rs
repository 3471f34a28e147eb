//! What a run does in which order.

use std::fmt::Write;

use crate::ast::{FunctionId, Program};
use crate::codegen::Tier;

/// The program of [`demo`].
pub(crate) const DEMO: &str = include_str!("demo.scribe");

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Load functions at the first tier, with room for all of them.
    Load(Vec<FunctionId>, Vec<Tier>),
    /// Compile anew in the same place.
    Replace(FunctionId, Tier),
    /// Move to another address.
    Relocate(FunctionId),
    /// Free.
    Free(FunctionId),
    /// A phase of this name: call each of the functions again and again.
    Run(&'static str, Vec<(FunctionId, i64)>),
}

/// The steps for the program [`DEMO`]: every kind of thing that happens to code, each in a phase of
/// its own, in which all that is loaded is called.
///
/// # Panics
/// If the program lacks a function, which is no matter of input.
pub(crate) fn demo(program: &Program) -> Vec<Step> {
    let id = |name: &str| match program.find(name) {
        Some(id) => id,
        None => panic!("the demo program has no {name}"),
    };
    let run = |phase, last: (&str, i64)| {
        let calls = [("fib", 21), ("longest", 100), ("mix", 20_000), ("tower", 12), last];
        Step::Run(phase, calls.map(|(name, argument)| (id(name), argument)).into())
    };
    let warm = ("warm_up", 40);
    let cool = ("cool_down", 10_000);
    let baseline = ["fib", "longest", "mix", "tower", "roof", "next", "odd", "warm_up"];
    vec![
        Step::Load(baseline.map(id).into(), vec![Tier::Baseline]),
        Step::Load(vec![id("collatz")], Tier::ALL.into()),
        run("baseline", warm),
        Step::Replace(id("collatz"), Tier::Speed),
        run("replaced", warm),
        Step::Relocate(id("fib")),
        run("moved", warm),
        Step::Free(id("warm_up")),
        Step::Load(vec![id("cool_down")], vec![Tier::Speed]),
        run("reused", cool),
        Step::Replace(id("collatz"), Tier::Compact),
        run("replaced again", cool),
    ]
}

/// A program of `count` functions of four lines each, no two alike.
pub(crate) fn many_source(count: u32) -> String {
    let mut text = String::new();
    for number in 0..count {
        // Writing into a String cannot fail.
        let _ = write!(
            text,
            "fn many_{number}(n) {{\n    let a = n * {number};\n    a = a ^ (n >> {});\n    return a + {};\n}}\n",
            number % 63 + 1,
            number % 1000,
        );
    }
    text
}

/// The steps for such a program: load all, then call each in turn.
pub(crate) fn many(program: &Program) -> Vec<Step> {
    let all: Vec<FunctionId> = (0..program.functions.len()).map(FunctionId).collect();
    let calls = all.iter().map(|id| (*id, 1 << 40)).collect();
    vec![Step::Load(all, vec![Tier::Baseline]), Step::Run("many", calls)]
}

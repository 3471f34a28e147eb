//! Call stacks through compiled Java: by frame pointers, and unwound from copies of the stack without them.

use std::collections::BTreeMap;

use end_to_end::chains::{Chain, Frame};
use end_to_end::java::{Java, Jdk, LONG};
use end_to_end::jitscribe::{java_agent, jitscribe};
use end_to_end::on_each_jdk;
use end_to_end::perf::Perf;
use end_to_end::tool::run;

on_each_jdk! {
    unwound_stacks_are_those_of_frame_pointers,
    stacks_through_interpreted_methods,
}

/// The chain that the workload has whenever it is in its leaf, innermost first.
fn wanted() -> Vec<String> {
    let methods = ["leaf", "middle"].into_iter().chain(["down"; 40]).chain(["outer", "main"]);
    methods.map(|method| format!("Chain.{method}")).collect()
}

/// The stacks of a recording of the workload that begin in its leaf, as names.
struct Stacks(Vec<Vec<String>>);

impl Stacks {
    fn record(jdk: &Jdk, options: &[&str], how: &str) -> Self {
        let mut all = vec!["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::*"];
        all.extend(options);
        let java = Java::start_class(jdk, "Chain", &all, &[LONG]);
        // Until then they are interpreted, and show as such.
        let methods = ["leaf", "middle", "down", "outer", "main"];
        let excluded = |method: &&str| {
            options.iter().any(|option| option.ends_with(&format!("exclude,Chain::{method}")))
        };
        let compiled = methods.iter().filter(|method| !excluded(method));
        java.wait_for_compiled(
            &compiled.map(|method| format!("Chain.{method}")).collect::<Vec<_>>(),
        );
        let mut record = jitscribe();
        record.args([
            "record",
            "-p",
            &java.pid(),
            "--duration",
            "2",
            "-F",
            "1999",
            "-o",
            "it.data",
        ]);
        record.args(["--call-graph", how]).current_dir(java.dir());
        run(record.env("JITSCRIBE_JAVA_AGENT", java_agent()));
        let chains = Perf::installed().chains(&java.dir().join("it.data"));
        let name = |frame: &Frame| frame.name().unwrap_or("?").to_owned();
        let names = |chain: &Chain| chain.frames.iter().map(name).collect();
        let mut stacks: Vec<Vec<String>> = chains.iter().map(names).collect();
        stacks.retain(|stack| stack.first().is_some_and(|innermost| innermost == "Chain.leaf"));
        assert!(stacks.len() > 20, "{} of {} samples are in the leaf", stacks.len(), chains.len());
        Self(stacks)
    }

    /// Says of how many of a hundred stacks this holds, and shows the others should they be too many.
    #[expect(clippy::print_stdout, reason = "the figures of docs/runtimes/java.md")]
    fn expect(&self, what: &str, least: usize, holds: impl Fn(&[String]) -> bool) {
        let (good, bad): (Vec<_>, Vec<_>) = self.0.iter().partition(|stack| holds(stack));
        println!("{what}: {} of {} stacks", good.len(), self.0.len());
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        bad.iter().for_each(|stack| *others.entry(stack.join(" < ")).or_default() += 1);
        assert!(good.len() * 100 >= least * self.0.len(), "{what} not in {others:#?}");
    }
}

/// Whether a stack has, behind its compiled frames, those of the JVM down to where Java is entered.
fn enters_java(stack: &[String]) -> bool {
    let entry = ["call_stub", "JavaCalls::call_helper"];
    let entry = stack.windows(2).position(|two| two[0] == entry[0] && two[1] == entry[1]);
    entry.is_some_and(|entry| stack[entry..].iter().any(|name| name == "JavaMain"))
}

fn unwound_stacks_are_those_of_frame_pointers(jdk: &Jdk) {
    let by_pointers = Stacks::record(jdk, &["-XX:+PreserveFramePointer"], "fp");
    let unwound = Stacks::record(jdk, &["-XX:-PreserveFramePointer"], "dwarf");
    let wanted = wanted();
    // In the first instructions of the leaf its caller's frame is not linked yet.
    by_pointers.expect("leaf to main by frame pointers", 95, |stack| stack.starts_with(&wanted));
    unwound.expect("leaf to main unwound", 98, |stack| stack.starts_with(&wanted));
    unwound.expect("main to where Java is entered", 98, enters_java);
}

fn stacks_through_interpreted_methods(jdk: &Jdk) {
    let interpreted = |method| {
        let excluded = format!("-XX:CompileCommand=exclude,Chain::{method}");
        Stacks::record(jdk, &["-XX:-PreserveFramePointer", &excluded], "dwarf")
    };
    let mut wanted = wanted();
    let (outer, main) = (wanted.len() - 2, wanted.len() - 1);
    wanted[main] = "Interpreter".to_owned();
    let stacks = interpreted("main");
    stacks.expect("main interpreted, and seen", 98, |stack| stack.starts_with(&wanted));
    stacks.expect("main interpreted, and all behind it", 98, enters_java);
    wanted[outer] = "Interpreter".to_owned();
    let stacks = interpreted("outer");
    stacks.expect("outer interpreted, and seen", 98, |stack| stack.starts_with(&wanted[..=outer]));
    stacks.expect("outer interpreted, and its caller", 98, |stack| {
        stack.get(main).is_some_and(|name| name == "Chain.main")
    });
    stacks.expect("outer interpreted, and all behind it", 98, enters_java);
}

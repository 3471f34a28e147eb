//! Call stacks through Java, compiled and interpreted: by frame pointers, and unwound from copies of the stack without them.

use std::collections::BTreeMap;

use end_to_end::chains::{Chain, Frame};
use end_to_end::java::{Java, Jdk, LONG};
use end_to_end::on_each_jdk;
use end_to_end::record::Record;
use object::{Object, ObjectSegment};

on_each_jdk! {
    unwound_stacks_are_those_of_frame_pointers,
    stacks_through_interpreted_methods,
    interpreted_stacks,
    interpreted_native_methods,
    intrinsics_that_push,
}

/// The chain that the workload has whenever it is in its leaf, innermost first.
fn wanted() -> Vec<String> {
    let methods = ["leaf", "middle"].into_iter().chain(["down"; 40]).chain(["outer", "main"]);
    methods.map(|method| format!("Chain.{method}")).collect()
}

/// The stacks of a recording that begin in the workload's leaf, as names, and what `record` said.
struct Stacks {
    all: Vec<Vec<String>>,
    said: String,
}

/// Runs a workload, and records it for a moment with the agent. Returns the call chains, and what `record` said.
fn record(
    jdk: &Jdk,
    class: &str,
    options: &[&str],
    compiled: &[String],
    how: Option<&str>,
) -> (Vec<Chain>, String) {
    let java = Java::start_class(jdk, class, options, &[LONG]);
    java.wait_for_compiled(compiled);
    let pid = java.pid();
    let mut all = vec!["-p", &pid, "--duration", "2", "-F", "1999"];
    all.extend(how.iter().flat_map(|how| ["--call-graph", how]));
    let recorded = Record::new(&all).processes();
    (recorded.chains(), recorded.said)
}

/// The chains whose innermost instruction is not a return of the JVM's own code.
///
/// The JVM's unwind tables find the caller's frame pointer where the function had saved it, also after the function has restored it. There it is
/// below the stack pointer, and perf copies the stack from the stack pointer on. So perf has no frame pointer for the caller.
fn without_returns(chains: Vec<Chain>) -> Vec<Chain> {
    const RETURN: u8 = 0xc3;
    let is_jvm = |frame: &&Frame| frame.dso.ends_with("/libjvm.so");
    let innermost = |chain: &Chain| chain.frames.first().filter(is_jvm).cloned();
    let Some(library) = chains.iter().find_map(innermost) else { return chains };
    let bytes = std::fs::read(&library.dso).expect("the JVM");
    let library = object::File::parse(&*bytes).expect("an ELF file");
    let instruction = |address| {
        let bytes = library.segments().find_map(|part| part.data_range(address, 1).ok().flatten());
        bytes.expect("code")[0]
    };
    let returns =
        |chain: &Chain| innermost(chain).is_some_and(|frame| instruction(frame.address) == RETURN);
    chains.into_iter().filter(|chain| !returns(chain)).collect()
}

impl Stacks {
    fn named(chains: &[Chain], said: String) -> Self {
        let name = |frame: &Frame| frame.name().unwrap_or("?").to_owned();
        let names = |chain: &Chain| chain.frames.iter().map(name).collect();
        Self { all: chains.iter().map(names).collect(), said }
    }

    fn record(jdk: &Jdk, options: &[&str], how: impl Into<Option<&'static str>>) -> Self {
        let mut all = vec!["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Chain::*"];
        all.extend(options);
        // Until then they are interpreted.
        let methods = ["leaf", "middle", "down", "outer", "main"];
        let excluded = |method: &&&str| {
            options.iter().any(|option| {
                *option == "-Xint" || option.ends_with(&format!("exclude,Chain::{method}"))
            })
        };
        let compiled = methods.iter().filter(|method| !excluded(method));
        let compiled: Vec<_> = compiled.map(|method| format!("Chain.{method}")).collect();
        let (chains, said) = record(jdk, "Chain", &all, &compiled, how.into());
        Self::named(&chains, said)
            .of(|stack| stack.first().is_some_and(|innermost| innermost == "Chain.leaf"))
    }

    /// Some of the stacks.
    fn of(mut self, are_meant: impl Fn(&[String]) -> bool) -> Self {
        let before = self.all.len();
        self.all.retain(|stack| are_meant(stack));
        assert!(self.all.len() > 20, "only {} of {before} samples are meant", self.all.len());
        self
    }

    /// Says of how many of a hundred stacks this holds, and shows the others should they be too many.
    #[expect(clippy::print_stdout, reason = "the figures of docs/runtimes/java.md")]
    fn expect(&self, what: &str, least: usize, holds: impl Fn(&[String]) -> bool) {
        let (good, bad): (Vec<_>, Vec<_>) = self.all.iter().partition(|stack| holds(stack));
        println!("{what}: {} of {} stacks", good.len(), self.all.len());
        let mut others: BTreeMap<String, usize> = BTreeMap::new();
        bad.iter().for_each(|stack| *others.entry(stack.join(" < ")).or_default() += 1);
        assert!(good.len() * 100 >= least * self.all.len(), "{what} not in {others:#?}");
    }
}

/// Whether a stack has, behind its compiled frames, those of the JVM down to where Java is entered.
fn enters_java(stack: &[String]) -> bool {
    let entry = ["call_stub", "JavaCalls::call_helper"];
    let entry = stack.windows(2).position(|two| two[0] == entry[0] && two[1] == entry[1]);
    entry.is_some_and(|entry| stack[entry..].iter().any(|name| name == "JavaMain"))
}

/// By frame pointers if there are any, which `record` finds out by itself.
fn unwound_stacks_are_those_of_frame_pointers(jdk: &Jdk) {
    let by_pointers = Stacks::record(jdk, &["-XX:+PreserveFramePointer"], None);
    assert!(!by_pointers.said.contains("PreserveFramePointer"), "{}", by_pointers.said);
    let unwound = Stacks::record(jdk, &["-XX:-PreserveFramePointer"], "dwarf");
    let wanted = wanted();
    // In the first instructions of the leaf its caller's frame is not linked yet.
    by_pointers.expect("leaf to main by frame pointers", 95, |stack| stack.starts_with(&wanted));
    unwound.expect("leaf to main unwound", 98, |stack| stack.starts_with(&wanted));
    unwound.expect("main to where Java is entered", 98, enters_java);
    let refused = Stacks::record(jdk, &["-XX:-PreserveFramePointer"], "fp");
    let said = "its stacks end at compiled methods; record it with --call-graph dwarf";
    assert!(refused.said.contains(said), "{}", refused.said);
}

/// The JVM has no frame pointers: without a choice of the user's, stacks are copied as well.
fn stacks_through_interpreted_methods(jdk: &Jdk) {
    let wanted = wanted();
    for (method, how) in [("main", None), ("outer", Some("dwarf"))] {
        let excluded = format!("-XX:CompileCommand=exclude,Chain::{method}");
        let stacks = Stacks::record(jdk, &["-XX:-PreserveFramePointer", &excluded], how);
        let said = "is Java without -XX:+PreserveFramePointer: stacks are copied and unwound";
        assert!(how.is_some() || stacks.said.contains(said), "{}", stacks.said);
        stacks.expect(&format!("{method} interpreted, and named"), 98, |stack| {
            stack.starts_with(&wanted)
        });
        stacks.expect(&format!("{method} interpreted, and all behind it"), 98, enters_java);
    }
}

fn interpreted_stacks(jdk: &Jdk) {
    let wanted = wanted();
    let stacks = Stacks::record(jdk, &["-Xint"], "dwarf");
    stacks.expect("leaf to main interpreted", 98, |stack| stack.starts_with(&wanted));
    stacks.expect("main to where Java is entered", 98, enters_java);
}

fn interpreted_native_methods(jdk: &Jdk) {
    let wanted = ["java.lang.Runtime.availableProcessors", "Natives.ask", "Natives.main"];
    // It is a jump to this function.
    let native = "JVM_ActiveProcessorCount";
    let place = |stack: &[String]| stack.iter().position(|name| name == native);
    let (chains, said) = record(jdk, "Natives", &["-Xint"], &[], Some("dwarf"));
    let stacks = Stacks::named(&without_returns(chains), said);
    let stacks = stacks.of(|stack| place(stack).is_some());
    stacks.expect("a native method interpreted", 98, |stack| {
        place(stack).is_some_and(|place| stack[place + 1..].starts_with(&wanted.map(str::to_owned)))
    });
}

/// `String.compareTo` and `String.indexOf` are expanded into their callers, and push: there, only the frame pointer says where the frame is.
fn intrinsics_that_push(jdk: &Jdk) {
    let inline = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Intrinsics::*"];
    let options = [&inline[..], &["-XX:+PreserveFramePointer"]].concat();
    let methods = ["Intrinsics.compare", "Intrinsics.find"];
    let compiled = methods.map(str::to_owned);
    let (chains, said) = record(jdk, "Intrinsics", &options, &compiled, Some("dwarf"));
    let stacks = Stacks::named(&chains, said);
    let place = |stack: &[String]| stack.iter().position(|name| methods.contains(&name.as_str()));
    let stacks = stacks.of(|stack| place(stack).is_some());
    stacks.expect("the caller of intrinsics", 98, |stack| {
        place(stack)
            .is_some_and(|place| stack.get(place + 1).is_some_and(|at| at == "Intrinsics.main"))
    });
}

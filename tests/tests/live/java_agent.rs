//! The agent for Java, compared with HotSpot's own output and the class files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use end_to_end::java::{Java, Jdk, LONG, address, agent_option, name};
use end_to_end::on_each_jdk;
use end_to_end::tool::{crate_dir, run, tool};
use serde_json::Value;
use tempfile::TempDir;

on_each_jdk! {
    names_tiers_lines_and_chains_are_those_of_hotspot_and_the_class_files,
    attached_late_detached_and_attached_again,
    classes_come_and_go,
    strange_options_are_said_and_do_no_harm,
}

/// Address → name, as the JVM prints it on request.
fn perf_map(java: &Java) -> BTreeMap<u64, String> {
    java.jcmd(&["Compiler.perfmap"]);
    let path = format!("/tmp/perf-{}.map", java.pid());
    let map = fs::read_to_string(&path).expect("a map");
    fs::remove_file(path).expect("removed");
    let lines = map.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let address = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        Some((address, words.nth(1)?.to_owned()))
    });
    lines.collect()
}

/// The tier's number, by what the agent calls it.
fn level(code: &Value) -> u64 {
    match code["tier"].as_str().unwrap_or_default().split(',').next().expect("a word") {
        "C1" => 1,
        "C1 counting" => 2,
        "C1 profiling" => 3,
        "C2" => 4,
        _ => 0,
    }
}

/// All that HotSpot lists as compiled is in the log, under the name that its own perf map has, with its tier.
fn expect_as_hotspot_says(java: &Java) -> usize {
    // Code that is loaded or unloaded in between is in only one of the two.
    let lists = [java.code_list(), BTreeMap::new()];
    let maps = [perf_map(java), BTreeMap::new()];
    let told: BTreeMap<u64, Value> =
        java.alive().into_iter().map(|code| (address(&code["address"]), code)).collect();
    let (lists, maps) = ([&lists[0], &java.code_list()], [&maps[0], &perf_map(java)]);
    let mut compared = 0;
    for (address, level_listed) in lists[0] {
        let stays = lists[1].get(address) == Some(level_listed);
        let Some(wanted) = maps[0].get(address).filter(|name| maps[1].get(address) == Some(name))
        else {
            continue;
        };
        if !stays {
            continue;
        }
        let code =
            told.get(address).unwrap_or_else(|| panic!("{wanted} at {address:x} is not told"));
        assert_eq!(name(code), wanted);
        assert_eq!(level(code), *level_listed, "{code}");
        compared += 1;
    }
    assert!(compared > 100, "{compared} compared");
    // All under one id, which JVMTI has one name for.
    let linkers: BTreeSet<_> = told
        .values()
        .map(name)
        .filter(|name| name.contains(" java.lang.invoke.MethodHandle.linkTo"))
        .collect();
    assert!(linkers.len() > 1, "{linkers:?}");
    compared
}

/// A class file's line tables: name of the method → its lines by bytecode, in its own order of bytecodes.
fn line_tables(jdk: &Jdk, dir: &Path) -> BTreeMap<String, Vec<(u64, u64)>> {
    let classes = ["Tiers", "Tiers$Square", "Tiers$Circle", "Tiers$Passing"];
    let mut tables: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for class in classes {
        let printed =
            run(jdk.tool("javap").args(["-l", "-p", "-cp", "."]).arg(class).current_dir(dir));
        let mut method = String::new();
        for line in printed.stdout.lines().map(str::trim) {
            if let Some((before, _)) = line.split_once('(') {
                let name = before.rsplit(' ').next().expect("a word");
                let name = if name == class { "<init>" } else { name };
                method = format!("{class}.{name}");
            } else if let Some((number, bci)) =
                line.strip_prefix("line ").and_then(|l| l.split_once(": "))
            {
                let entry = (bci.parse().expect("a bytecode"), number.parse().expect("a line"));
                tables.entry(method.clone()).or_default().push(entry);
            }
        }
    }
    tables
}

/// `Tiers.leaf` of `int Tiers.leaf(int)`, without the part that distinguishes hidden classes.
fn short(name: &str) -> String {
    let name = name.split('(').next().expect("a part");
    let name = name.rsplit(' ').next().expect("a part");
    match name.split_once("/0x") {
        Some((class, method)) => {
            format!("{class}.{}", method.rsplit_once('.').map_or("", |(_, method)| method))
        }
        None => name.to_owned(),
    }
}

/// The chains of callees in a code, each with the lines of its calls, outermost first.
fn chains(code: &Value) -> BTreeSet<Vec<(u64, String)>> {
    let calls = code["inlined"].as_array().expect("a list");
    let mut chains: Vec<Vec<(u64, String)>> = Vec::new();
    for call in calls {
        let parent = call["parent"].as_u64().map(|parent| chains[parent as usize].clone());
        let mut chain = parent.unwrap_or_default();
        chain.push((call["line"].as_u64().expect("a line"), short(name(call))));
        chains.push(chain);
    }
    chains.into_iter().collect()
}

/// The calls that `PrintInlining` lists as inlined: for each method compiled by C2, the chains of all its compilations.
fn printed_chains(
    printed: &str,
    tables: &BTreeMap<String, Vec<(u64, u64)>>,
) -> BTreeMap<String, BTreeSet<Vec<(u64, String)>>> {
    let line_of = |method: &str, bci: u64| {
        let table = tables.get(method);
        let entry = table.and_then(|table| table.iter().rev().find(|(start, _)| *start <= bci));
        entry.map_or(0, |(_, line)| *line)
    };
    let mut all: BTreeMap<String, BTreeSet<Vec<(u64, String)>>> = BTreeMap::new();
    let mut root: Option<String> = None;
    // Column of the `@`, and what is there.
    let mut stack: Vec<(usize, u64, String)> = Vec::new();
    for line in printed.lines().filter(|line| !line.contains("   made ")) {
        // What is `synchronized`, or has handlers of exceptions, is marked.
        let is_mark = |mark| " !msbn".contains(mark);
        if let Some(column) = line.find("@ ").filter(|&column| line[..column].chars().all(is_mark))
        {
            let Some(root) = &root else { continue };
            while stack.last().is_some_and(|(before, ..)| *before >= column) {
                stack.pop();
            }
            let mut words = line[column + 2..].split_whitespace();
            let bci = words.next().and_then(|bci| bci.parse().ok()).expect("a bytecode");
            let callee = short(&words.next().expect("a method").replace("::", "."));
            let caller = stack.last().map_or(root, |(_, _, caller)| caller);
            let call = line_of(caller, bci);
            stack.push((column, call, callee));
            let chain = stack.iter().map(|(_, line, callee)| (*line, callee.clone())).collect();
            let verdict = line.rsplit_once(" bytes)").map_or("", |(_, verdict)| verdict.trim());
            if ["inline", "force inline", "accessor"].iter().any(|yes| verdict.starts_with(yes))
                && !verdict.starts_with("inlining")
            {
                all.entry(root.clone()).or_default().insert(chain);
            }
        } else if let Some((before, _)) =
            line.split_once(" (").filter(|(before, _)| before.contains("::"))
        {
            let words: Vec<&str> = before.split_whitespace().collect();
            let method = words.iter().position(|word| word.contains("::"));
            let is_c2 = method.is_some_and(|at| words[..at].contains(&"4"));
            root = method.filter(|_| is_c2).map(|at| short(&words[at].replace("::", ".")));
            stack.clear();
        }
    }
    all
}

fn names_tiers_lines_and_chains_are_those_of_hotspot_and_the_class_files(jdk: &Jdk) {
    let java = Java::start(
        jdk,
        &[
            &agent_option("names=full"),
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+PrintCompilation",
            "-XX:+PrintInlining",
            // One after the other, so that what is printed belongs to the line before.
            "-Xbatch",
        ],
        &[LONG],
    );
    expect_as_hotspot_says(&java);

    let codes = java.codes();
    for special in ["Interpreter", "call_stub"] {
        assert!(codes.iter().any(|code| name(code) == special), "no {special}");
    }
    let tables = line_tables(jdk, java.dir());
    let (mut lines, mut deepest) = (0, 0);
    for code in codes.iter().filter(|code| short(name(code)).starts_with("Tiers.")) {
        for line in
            code["lines"].as_array().expect("a list").iter().filter(|line| line["line"] != 0)
        {
            let at = address(&line["address"]);
            let covers = |call: &&Value| {
                let mut ranges = call["ranges"].as_array().expect("ranges").iter();
                ranges.any(|range| (address(&range[0])..address(&range[1])).contains(&at))
            };
            let innermost = code["inlined"].as_array().expect("a list").iter().rfind(covers);
            let method = short(innermost.map_or(name(code), |call| name(call)));
            let Some(table) = tables.get(&method) else { continue };
            assert_eq!(line["file"], "Tiers.java");
            let number = line["line"].as_u64().expect("a line");
            assert!(table.iter().any(|(_, line)| *line == number), "{method} has no line {number}");
            lines += 1;
        }
    }
    assert!(lines > 100, "{lines} lines were compared");

    let printed = printed_chains(&java.printed(), &tables);
    let mut compared = 0;
    for code in codes.iter().filter(|code| level(code) == 4) {
        let root = short(name(code));
        let Some(printed) = printed.get(&root).filter(|_| tables.contains_key(&root)) else {
            continue;
        };
        for chain in chains(code).into_iter().filter(|chain| {
            // The lines of others are not known here.
            let callers = chain.iter().rev().skip(1).map(|(_, callee)| callee);
            callers
                .into_iter()
                .all(|caller| tables.contains_key(caller) || caller.contains("$$Lambda"))
        }) {
            assert!(printed.contains(&chain), "{root}: {chain:?} was not printed:\n{printed:#?}");
            deepest = deepest.max(chain.len());
            compared += 1;
        }
    }
    assert!(compared > 20 && deepest >= 4, "{compared} chains were compared, of at most {deepest}");
}

fn attached_late_detached_and_attached_again(jdk: &Jdk) {
    let java = Java::start(jdk, &["-Xcheck:jni"], &[LONG]);
    java.agent("names:full");
    let first = expect_as_hotspot_says(&java);
    java.agent("stop");
    assert_eq!(java.alive().len(), 0);
    // Nothing is announced in between.
    let before = java.codes().len();
    java.jcmd(&["Compiler.codecache"]);
    assert_eq!(java.codes().len(), before);
    java.agent("start,names:full");
    let second = expect_as_hotspot_says(&java);
    assert!(second * 2 > first, "{first} methods, and then {second}");
    java.expect_no_complaint();
}

/// Builds the benchmarks' agent that does nothing, and gives its path.
fn null_agent(jdk: &Jdk, folder: &Path) -> PathBuf {
    let include = jdk.include();
    let agent = folder.join("libnull.so");
    let source = crate_dir().join("../benches/java/null_agent.c");
    let mut cc = tool("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&agent).arg("-I").arg(&include);
    run(cc.arg("-I").arg(include.join("linux")).arg(source));
    agent
}

/// Classes come and go for so many seconds: the live codes in the log stay bounded, and the process's memory grows no more than
/// with an agent that receives the same events and does nothing, because HotSpot keeps the ids of their methods for ever. The log is
/// small, so that its space is reused soon.
#[expect(clippy::print_stdout, reason = "the figures of the test of ten minutes")]
fn churn(jdk: &Jdk, seconds: u64, options: &[&str]) {
    // Looking at it takes its time, too.
    let longer = (seconds * 3000 + 300_000).to_string();
    let start = |agent: &[&str]| {
        let dir = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
        jdk.compile("Tiers.java", dir.path());
        let mut java = jdk.tool("java");
        java.args(agent).args(options).args(["-Xcheck:jni", "-XX:+UseSerialGC"]);
        // The whole heap is resident from the start: what grows is something else.
        java.args(["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "Tiers"]);
        java.args([&*longer, "churn"]).current_dir(dir.path()).env("JITSCRIBE_LIMIT", "8M");
        Java::started(jdk, java, dir)
    };
    let java = start(&[&agent_option("names=class")]);
    let idle = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
    let alone = start(&[&format!("-agentpath:{}", null_agent(jdk, idle.path()).display())]);
    let passing = |codes: &[Value]| {
        codes.iter().filter(|code| name(code).starts_with("Tiers$Passing.")).count()
    };
    let (mut alive, mut private, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let steps = 10;
    for _ in 0..steps {
        std::thread::sleep(Duration::from_millis(seconds * 1000 / steps));
        alive.push(java.alive().len());
        private.push(java.private_kib());
        without.push(alone.private_kib());
    }
    let codes = java.codes();
    let gone = codes.iter().filter(|code| !code["died"].is_null()).count();
    assert!(gone > 100, "only {gone} codes are gone");
    assert!(passing(&codes) > 100, "only {} codes of copies", passing(&codes));
    let most = *alive.iter().max().expect("some");
    assert!(most < 6000, "codes alive: {alive:?}");
    // What only the last readings show may be memory that the JVM takes once; what leaks is in all of them.
    let growth = |private: &[u64]| {
        let last = private[steps as usize - 3..].iter().min().copied().unwrap_or_default();
        last.saturating_sub(private[steps as usize / 2])
    };
    let (ours, its_own) = (growth(&private), growth(&without));
    assert!(
        ours < its_own + (4 << 10),
        "private KiB: {private:?}, with one that is idle {without:?}"
    );
    java.expect_no_complaint();
    println!(
        "codes alive {alive:?}, of all {}, {gone} gone; private KiB {private:?}, with one that is idle {without:?}",
        codes.len()
    );
}

fn classes_come_and_go(jdk: &Jdk) {
    // In seconds, the memory that the second compiler takes and gives back is more than what could be lost.
    churn(jdk, 6, &["-XX:TieredStopAtLevel=1"]);
}

/// `cargo test -p end-to-end --test live java_agent:: -- --ignored --nocapture`
#[test]
#[ignore = "takes ten minutes"]
fn classes_are_loaded_and_unloaded_for_ten_minutes() {
    churn(&Jdk::of_debian_12(), 600, &[]);
}

#[test]
#[ignore = "takes ten minutes"]
fn classes_are_loaded_and_unloaded_for_ten_minutes_on_openjdk_21() {
    churn(&Jdk::of_debian_13(), 600, &[]);
}

fn strange_options_are_said_and_do_no_harm(jdk: &Jdk) {
    let dir = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
    let mut java = jdk.tool("java");
    java.arg(agent_option("perfmap,names=long")).arg("-version").current_dir(dir.path());
    let done = run(&mut java);
    assert!(done.stderr.contains("jitscribe: invalid option: names=long"), "{}", done.stderr);
    let unknown = "jitscribe: unknown JITSCRIBE value `perfmap`; known values: ";
    assert!(done.stderr.contains(unknown), "{}", done.stderr);
    assert!(done.stderr.contains("OpenJDK"), "{}", done.stderr);
}

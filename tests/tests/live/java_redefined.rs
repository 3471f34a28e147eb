//! Classes that are redefined while they run: the old code is unloaded, and newly compiled code has the new lines.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use end_to_end::java::{Java, Jdk, LONG, address, agent_option, name};
use end_to_end::live::workload;
use end_to_end::on_each_jdk;
use end_to_end::tool::run;
use serde_json::Value;
use tempfile::TempDir;

on_each_jdk! { redefined_code_has_the_new_lines_and_the_old_is_gone }

fn time(code: &Value) -> u64 {
    code["time"].as_u64().expect("a time")
}

/// The class, with its method this many lines further down. Lines must differ, or HotSpot need not distinguish the versions.
fn version(further: usize) -> String {
    let lines = "\n".repeat(further);
    format!(
        "public class Version {{{lines}
    static int work(int n) {{
        int sum = n + {further};
        for (int i = 0; i < 60; i++) {{
            sum = sum * 31 + i;
        }}
        return sum;
    }}
}}
"
    )
}

/// Compiles a version into `dir/folder`, and gives the lines that its method has.
fn compile(jdk: &Jdk, dir: &Path, folder: &str, further: usize) -> BTreeSet<u64> {
    let source = dir.join(format!("{folder}-source/Version.java"));
    fs::create_dir_all(source.parent().expect("a folder")).expect("made");
    fs::write(&source, version(further)).expect("written");
    run(jdk.tool("javac").arg("-d").arg(dir.join(folder)).arg(&source));
    (3 + further as u64..=7 + further as u64).collect()
}

/// The lines of `Version.java` in a code.
fn lines(code: &Value) -> BTreeSet<u64> {
    let lines = code["lines"].as_array().expect("a list").iter();
    let own = lines.filter(|line| line["file"] == "Version.java");
    own.map(|line| line["line"].as_u64().expect("a line")).filter(|line| *line != 0).collect()
}

fn redefined_code_has_the_new_lines_and_the_old_is_gone(jdk: &Jdk) {
    let dir = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
    let old = compile(jdk, dir.path(), "classes", 0);
    let new = compile(jdk, dir.path(), "new", 100);
    let classes = dir.path().join("classes");
    let mut javac = jdk.tool("javac");
    javac.arg("-cp").arg(&classes).arg("-d").arg(&classes).arg(workload("Redefine.java"));
    run(&mut javac);
    fs::write(dir.path().join("manifest"), "Premain-Class: Redefine\nCan-Redefine-Classes: true\n")
        .expect("written");
    run(jdk.tool("jar").args(["cfm", "agent.jar", "manifest"]).current_dir(dir.path()));

    let mut java = jdk.tool("java");
    java.arg(agent_option("names=full")).args(["-javaagent:agent.jar", "-cp", "classes"]);
    // OpenJDK 17 looks for code that is run no more when much has changed; later ones do so with the garbage.
    java.args(["-XX:ReservedCodeCacheSize=6m", "-XX:SweeperThreshold=0.001"]);
    java.args(["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UseSerialGC", "-Xmx64m"]);
    java.args(["Redefine", LONG]).current_dir(dir.path());
    let java = Java::started(jdk, java, dir);

    let is_of_either = |code: &Value| {
        ["Version.work(", "Redefine.outer(", "Redefine.rounds("]
            .iter()
            .any(|part| name(code).contains(part))
    };
    let before: Vec<_> = java.codes().into_iter().filter(is_of_either).collect();
    assert!(
        before.iter().any(|code| name(code).contains("Version.work(") && !lines(code).is_empty())
    );
    for code in &before {
        assert!(lines(code).is_subset(&old), "{:?} of {}", lines(code), name(code));
    }

    fs::rename(java.dir().join("new"), java.dir().join("next")).expect("renamed");
    java.wait_for("redefined");
    let times: BTreeSet<u64> = before.iter().map(time).collect();
    let is_old = |code: &Value| times.contains(&time(code)) && !lines(code).is_empty();
    // OpenJDK 17 may keep unused code as long as little else happens.
    let (patience, end) = (Duration::from_secs(20), Duration::from_secs(60));
    let since = Instant::now();
    let after = loop {
        let after: Vec<_> = java.codes().into_iter().filter(is_of_either).collect();
        let alive: Vec<_> =
            after.iter().filter(|code| code["died"].is_null() && is_old(code)).collect();
        let listed = java.code_list();
        let is_listed = |code: &&Value| listed.contains_key(&address(&code["address"]));
        if alive.is_empty() || since.elapsed() > patience && alive.iter().all(is_listed) {
            break after;
        }
        assert!(since.elapsed() < end, "alive: {alive:#?}; HotSpot has these: {listed:x?}");
        std::thread::sleep(Duration::from_millis(300));
    };
    // What is only inlined keeps its old lines until it is compiled by itself once more.
    let anew = |code: &&Value| name(code).contains("Version.work(") && lines(code).is_subset(&new);
    let anew = after.iter().filter(|code| !lines(code).is_empty()).find(anew);
    let anew = time(anew.expect("Version.work is not compiled anew"));
    let later: Vec<_> = after.iter().filter(|code| time(code) >= anew).collect();
    for code in &later {
        assert!(lines(code).is_subset(&new), "{:?} of {}", lines(code), name(code));
    }
    let is_inlined = |code: &Value| name(code).contains("Redefine.") && !lines(code).is_empty();
    assert!(later.iter().any(|code| is_inlined(code)), "it is nowhere inlined");
    // Nothing else is at the address of the new code.
    let alive: Vec<_> = java.alive();
    let mut places: Vec<_> = alive
        .iter()
        .map(|code| (address(&code["address"]), code["size"].as_u64().expect("a size")))
        .collect();
    places.sort_unstable();
    assert!(places.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "codes overlap");
}

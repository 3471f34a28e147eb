//! What is said if nothing or little has a name.

use crate::common::finish;
use crate::inject::recording::Recording;
use crate::inject::scene::{CODE, MS, PID, Scene};

/// A process that has mapped these files, with samples in code and, if `elsewhere`, in memory without a file.
fn recording(files: &[&str], elsewhere: bool) -> Recording {
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS);
    for (at, file) in (0..).zip(files) {
        let start = 0x10_0000 * (at + 1);
        recording.map(PID, start..start + 0x1000, file, 2 * MS);
    }
    recording.map(PID, CODE..CODE + 0x4000, "//anon", 2 * MS);
    for time in 10..20 {
        recording.sample(PID, if elsewhere { CODE + 0x2010 } else { 0x10_0010 }, time * MS);
    }
    recording
}

fn said(scene: &Scene, recording: &mut Recording, code: i32) -> String {
    scene.write("perf.data", recording.file());
    scene.ask("inject -f -i perf.data -o out.data").ends(code).stderr
}

#[test]
fn the_memory_and_the_runtime_are_named() {
    let scene = Scene::new();
    let python = ["/usr/bin/python3.11", "/x/cppyy_backend/lib/libCling.so"];
    let text = said(&scene, &mut recording(&python, true), 3);
    for part in [
        "process 5000007 (app): 10 samples (100.0 % of those in jitted code)".to_owned(),
        format!(
            "sampled: {:x}-{:x} in {CODE:x}-{:x} (anonymous; 10 samples)",
            CODE + 0x2010,
            CODE + 0x2010,
            CODE + 0x4000
        ),
        "no jitdump and no perf map of this process was found".to_owned(),
        "it is Cling (cppyy, ROOT) without CLING_PROFILE=1".to_owned(),
        "error: nothing was named".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    for other in ["node", "php", "erl", "jitscribe check"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
    let text = said(&scene, &mut recording(&["/opt/my-jit"], true), 3);
    assert!(text.contains("the JIT compiler in /opt/my-jit is not known"), "{text}");
}

#[test]
fn what_a_source_covers_is_compared_with_the_samples() {
    let scene = Scene::new();
    let node = ["/usr/bin/node"];
    scene.write("perf-5000007.map", "7e0000000000 40 one\n7e0000001000 20 two\n");
    let text = said(&scene, &mut recording(&node, true), 3);
    let part =
        "perf-5000007.map: 2 codes at 7e0000000000-7e0000001020; these samples are elsewhere";
    assert!(text.contains(part), "{text}");
    let around = format!("{CODE:x} 40 one\n{:x} 20 two\n", CODE + 0x3000);
    scene.write("perf-5000007.map", around);
    let text = said(&scene, &mut recording(&node, true), 3);
    assert!(text.contains("these samples are between its codes"), "{text}");
    let report = scene.ask("inject -f --allow-empty --json -i perf.data -o out.data").ok().json();
    assert_eq!(report["unnamed"][0]["samples"], 10, "{report}");
    assert_eq!(report["unnamed"][0]["memory"][0]["first"], CODE + 0x2010, "{report}");
}

#[test]
fn a_program_without_a_jit_compiler_lacks_nothing() {
    let scene = Scene::new();
    let text = said(&scene, &mut recording(&["/opt/plain"], false), 0);
    assert!(!text.contains("error") && !text.contains("warning"), "{text}");
    // A file that was to name code did not.
    scene.write("empty.map", "");
    let done = scene.ask("inject -f -i perf.data -o out.data --perf-map 5000007=empty.map").ends(3);
    done.says("empty.map: empty (0 bytes)");
}

#[test]
fn long_names_are_short_in_the_summary() {
    let scene = Scene::new();
    let name = format!("RegExp:{}", "(a|b)*".repeat(140));
    scene.write("perf-5000007.map", format!("{CODE:x} 4000 {name}\n"));
    let text = said(&scene, &mut recording(&["/usr/bin/node"], true), 0);
    assert!(!text.contains(&name), "{text}");
    let shown = scene.ask("report --stdio -i out.data").ok().stdout;
    let line = shown.lines().find(|line| line.contains("RegExp:")).expect("a row");
    assert!(line.len() < 300 && line.ends_with('…'), "{line}");
}

/// The command in the documentation that lets `stackcollapse-perf.pl --jit` and `inferno-collapse-perf --jit` recognize images.
#[test]
fn the_documented_command_makes_jitted_frames_recognizable() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/export.md");
    let docs = std::fs::read_to_string(path).expect("the documentation");
    let command = docs.lines().find(|line| line.contains("| sed -E")).expect("a command");
    let sed = command.split(" | ").find(|part| part.starts_with("sed")).expect("a sed command");
    let other = "    1000 main+0x10 (/x/jit-1.elf)";
    for folder in ["/x", "/with space", "/copy (1)/a (/b)"] {
        for name in ["f (/a.js:1)+0x10", "f (/a b.js:1) (x)+0xf", "[unknown]"] {
            let frame =
                format!("    7f0000000010 {name} ({folder}/out.data.jit/jit-5000007-0-1.elf)");
            let script = format!("printf '%s\\n%s\\n' '{frame}' '{other}' | {sed}");
            let done = finish(std::process::Command::new("sh").args(["-c", &script])).ok();
            let expected = format!("    7f0000000010 {name} (/tmp/perf-5000007.map)\n{other}\n");
            assert_eq!(done.stdout, expected);
        }
    }
}

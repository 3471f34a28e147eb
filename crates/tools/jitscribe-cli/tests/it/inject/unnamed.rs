//! What is said if nothing or little has a name.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use test_privilege::needs;

use crate::common::{JITSCRIBE, finish};
use crate::inject::recording::Recording;
use crate::inject::scene::{CODE, DUMP, Jit, MARKER, MS, PID, Scene};
use crate::source_maps::readers::unnamed_of_page;

/// The perf map of `PID`.
const MAP: &str = "perf-5000007.map";

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

/// SBCL's functions are in a file that is no object file.
#[test]
fn code_in_a_heap_image_without_symbols_is_noticed() {
    let scene = Scene::new();
    let core = scene.name("sbcl.core");
    let page = |of: &str| {
        let mut recording = recording(&["/usr/bin/sbcl"], false);
        recording.map(PID, MARKER, of, 3 * MS);
        for time in 20..60 {
            recording.sample(PID, MARKER.start + 0x20, time * MS);
        }
        scene.write("perf.data", recording.file()).write("sbcl.core", "no object file");
        scene.ask("report -q -f -i perf.data -o page.html").ok();
        let page = scene.read("page.html");
        unnamed_of_page(std::str::from_utf8(&page).expect("UTF-8")).join("\n")
    };
    let shown = page(&core);
    assert!(shown.contains("process 5000007 (app): 40 samples (80.0 % of all)"), "{shown}");
    assert!(shown.contains("it is SBCL without a perf map"), "{shown}");
    assert_eq!(page("/usr/lib/libother.so"), "");
    // Where a map has names for it, there is nothing to say.
    scene.write(MAP, format!("{:x} 1000 named\n", MARKER.start));
    assert_eq!(page(&core), "");
}

/// A recording of node with samples in unnamed code, and the mark of a jitdump at this path, if there is one.
fn node_with(marker: Option<&str>) -> Recording {
    let mut recording = recording(&["/usr/bin/node"], true);
    if let Some(marker) = marker {
        recording.map(PID, MARKER, marker, 3 * MS);
    }
    recording
}

/// What is said if the process has this file, by the verbs that say it, with the JSON's word for it.
fn expect_unusable(
    scene: &Scene,
    recording: &Recording,
    user: Option<&str>,
    file: &str,
    word: &str,
) {
    scene.write("perf.data", recording.file());
    let by_user = |words: &str| match user {
        Some(user) => {
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--reuid", user, "--regid", user, "--clear-groups", JITSCRIBE]);
            finish(&mut scene.by(&setpriv, words))
        }
        None => scene.ask(words),
    };
    let inject = by_user("inject -f --allow-empty -i perf.data -o out.data");
    let lines: Vec<_> =
        inject.stderr.lines().filter(|line| line.contains("of this process")).collect();
    let [line] = lines[..] else { panic!("{word}: {}", inject.stderr) };
    assert!(line.contains(file) && line.contains("cannot be used: "), "{line}");
    let line = line.split_once(file).expect("the path").1;
    for wrong in [
        "map was found",
        "process was found",
        "--perf-basic-prof",
        "it is node",
        "contains no code to use",
    ] {
        inject.says_not(wrong);
    }
    let json = by_user("inject -q -f --allow-empty --json -i perf.data -o out.data").json();
    let unusable = &json["unnamed"][0]["unusable"];
    assert_eq!(unusable.as_array().expect("a list").len(), 1, "{json}");
    assert_eq!(unusable[0]["why"], word, "{json}");
    let kind = if file.ends_with(".map") { "perf-map" } else { "jitdump" };
    assert_eq!(unusable[0]["kind"], kind, "{json}");
    assert!(unusable[0]["path"].as_str().expect("a path").ends_with(file), "{json}");
    // Of the original, and of what `inject` wrote, the page says the same.
    for data in ["perf.data", "out.data"] {
        by_user(&format!("report -q -f -i {data} -o page.html")).ok();
        let page = scene.read("page.html");
        let shown = unnamed_of_page(std::str::from_utf8(&page).expect("UTF-8")).join("\n");
        assert!(shown.contains(line), "{data}: {line}: {shown}");
        assert!(!shown.contains("it is node"), "{data}: {shown}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_not_said_to_be_missing() {
    let garbage = b"\x01\x02 no perf map,\nand no jitdump\n".repeat(9);
    for (content, word) in [(&b""[..], "empty"), (&garbage, "other-format")] {
        let scene = Scene::new();
        scene.write(DUMP, content);
        expect_unusable(&scene, &node_with(Some(&scene.name(DUMP))), None, DUMP, word);
        let scene = Scene::new();
        scene.write(MAP, content);
        expect_unusable(&scene, &node_with(None), None, MAP, word);
    }
    let scene = Scene::new();
    expect_unusable(&scene, &node_with(Some(&scene.name(DUMP))), None, DUMP, "missing");
    std::fs::create_dir(scene.path(DUMP)).expect("a folder");
    expect_unusable(&scene, &node_with(Some(&scene.name(DUMP))), None, DUMP, "unreadable");
    let scene = Scene::new();
    scene.dump(Jit::begun());
    expect_unusable(&scene, &node_with(Some(&scene.name(DUMP))), None, DUMP, "no-code");
}

#[test]
fn a_file_of_a_stranger_or_without_permission_is_not_said_to_be_missing() {
    needs!(OtherUsers);
    for file in [DUMP, MAP] {
        for (mode, owner, word) in [(0o644, 12345, "untrusted"), (0o000, 65534, "denied")] {
            let scene = Scene::new();
            scene.open();
            scene.write(DUMP, Jit::begun().code(20, 0, "code").bytes());
            scene.write(MAP, format!("{CODE:x} 40 code\n"));
            let other = if file == DUMP { MAP } else { DUMP };
            std::fs::remove_file(scene.path(other)).expect("removed");
            chown(scene.path("."), Some(65534), None).expect("given away");
            chown(scene.path(file), Some(owner), None).expect("given away");
            let mode = PermissionsExt::from_mode(mode);
            std::fs::set_permissions(scene.path(file), mode).expect("set");
            let marker = scene.name(DUMP);
            let recording = node_with((file == DUMP).then_some(marker.as_str()));
            expect_unusable(&scene, &recording, Some("65534"), file, word);
        }
    }
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

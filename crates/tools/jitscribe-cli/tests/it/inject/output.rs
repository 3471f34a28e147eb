//! What is written, and what is left alone.

use std::path::Path;

use crate::inject::recording::{HOSTNAME, Recording, feature_text};
use crate::inject::scene::{CODE, DUMP, Jit, MS, PID, Scene, begun};

/// `HEADER_CMDLINE`.
const CMDLINE: u32 = 11;

fn scene() -> (Scene, Recording) {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0, "code"));
    recording.sample(PID, CODE + 1, 25 * MS);
    (scene, recording)
}

#[test]
fn nothing_is_overwritten_unless_asked() {
    let (scene, recording) = scene();
    scene.write("out.data", b"precious");
    let refused = scene.inject(&recording, &[]);
    refused.fails("");
    let said = "jitscribe: error: out.data: already exists; use --force to replace it\n";
    assert_eq!(refused.said(), said);
    assert_eq!(scene.read("out.data"), b"precious");
    assert_eq!(scene.all_files(), [DUMP, "out.data", "perf.data"]);
    scene.inject(&recording, &["--force"]).clean();
    assert_eq!(scene.shown(), ["25 code+0x1 jit-5000007-0.elf"]);
}

#[test]
fn an_image_in_the_way_is_kept_and_nothing_is_left_behind() {
    let (scene, recording) = scene();
    let image = "out.data.jit/jit-5000007-0.elf";
    scene.write(image, b"precious");
    scene.inject(&recording, &[]).fails("jit-5000007-0.elf: already exists");
    assert_eq!(scene.all_files(), [DUMP, image, "perf.data"]);
    assert_eq!(scene.read(image), b"precious");
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let (scene, _) = scene();
    scene.write("perf.data", b"PERFILE3 is no such thing, whatever one may think of it");
    for (input, says) in [("perf.data", "perf.data: "), ("nowhere.data", "nowhere.data: ")] {
        scene.inject_file(input, &[]).fails(says);
        assert_eq!(scene.all_files(), [DUMP, "perf.data"]);
    }
}

#[test]
fn the_output_goes_beside_the_input_by_default() {
    let (scene, recording) = scene();
    scene.write("perf.data", recording.file());
    let injected = scene.injected(&["--json"]);
    assert_eq!(injected.clean().json()["output"], "perf.data.jitted");
    assert_eq!(
        scene.all_files(),
        [
            DUMP,
            "perf.data",
            "perf.data.jitted",
            "perf.data.jitted.jit/jit-5000007-0.elf",
            "perf.data.jitted.jit/jit-5000007.codes.jsonl",
        ]
    );
}

#[test]
fn the_output_over_the_input() {
    let (scene, recording) = scene();
    scene.write("out.data", recording.file());
    scene.inject_file("out.data", &["--force"]).clean();
    assert_eq!(scene.shown(), ["25 code+0x1 jit-5000007-0.elf"]);
}

#[test]
fn features_are_kept_and_images_named_by_their_build_ids() {
    let (scene, mut recording) = scene();
    let words = [&2u32.to_le_bytes()[..], &feature_text("perf"), &feature_text("record")].concat();
    recording.feature(HOSTNAME, &feature_text("somewhere")).feature(CMDLINE, &words);
    let injected = scene.inject(&recording, &[]);
    let lines = |file| -> Vec<String> {
        let header = scene.run(&["perf", "report", "--header-only", "-i", file]);
        let features = header.lines().filter(|line| line.contains(" : "));
        // Where and how large the file is differs.
        let same = features.filter(|line| {
            !["captured on", "data ", "feat offset"].iter().any(|w| line.contains(w))
        });
        same.map(str::to_owned).collect()
    };
    let kept = lines("out.data");
    assert_eq!(kept, lines("perf.data"));
    assert!(kept.contains(&"# hostname : somewhere".to_owned()), "{kept:?}");
    assert!(kept.iter().any(|line| line.starts_with("# cmdline : ")), "{kept:?}");

    let image = &injected.json()["images"][0];
    let (path, id) = (image["path"].as_str().unwrap(), image["build_id"].as_str().unwrap());
    let of_file = scene.run(&["perf", "buildid-list", "-i", path]);
    assert_eq!(of_file.trim(), id);
    let of_recording = scene.run("perf buildid-list -i out.data");
    assert_eq!(of_recording.trim(), format!("{id} {path}"));
    assert!(Path::new(path).is_absolute());
}

#[test]
fn the_output_is_hardly_larger_and_the_home_untouched() {
    let (scene, mut recording) = scene();
    for time in 0..10_000 {
        recording.sample(PID, CODE + time % 0x40, 25 * MS + time);
    }
    scene.inject(&recording, &[]).clean();
    let size = |name| scene.size(name);
    let grown = size("out.data") - size("perf.data");
    assert!(grown < 1000, "{grown}");
    assert_eq!(std::fs::read_dir(scene.home()).unwrap().count(), 0);
    assert_eq!(
        scene.all_files(),
        [
            DUMP,
            "out.data",
            "out.data.jit/jit-5000007-0.elf",
            "out.data.jit/jit-5000007.codes.jsonl",
            "perf.data"
        ]
    );
}

#[test]
fn the_cache_is_filled_when_asked() {
    let (scene, recording) = scene();
    let injected = scene.inject(&recording, &["--buildid-cache"]);
    let id = injected.clean().json()["images"][0]["build_id"].as_str().unwrap().to_owned();
    let cached = scene.home().join(format!(".debug/.build-id/{}/{}", &id[..2], &id[2..]));
    assert!(cached.join("elf").is_file(), "{cached:?}");
}

#[test]
fn images_are_the_same_each_time() {
    let (scene, recording) = scene();
    let first = scene.inject(&recording, &[]).json()["images"].clone();
    let path = first[0]["path"].as_str().unwrap();
    let bytes = std::fs::read(path).unwrap();
    let again = scene.inject(&recording, &["--force"]).json()["images"].clone();
    assert_eq!(first, again);
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

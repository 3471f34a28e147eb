//! Recordings with copies of the stacks: an image for each span of time.

use object::{Object, ObjectSection};

use crate::inject::recording::{Attr, REGS_USER, Recording, STACK_USER, USUAL};
use crate::inject::scene::{CODE, Injected, Jit, MS, PID, Scene, process};

fn injected(jit: Jit, samples: &[(u64, u64)]) -> (Scene, Injected) {
    let scene = Scene::new();
    let mut recording = Recording::of(&[Attr::new(USUAL | REGS_USER | STACK_USER)]);
    process(&scene, &mut recording, PID);
    for &(ip, time) in samples {
        recording.sample(PID, ip, time * MS);
    }
    scene.write("jit-5000007.dump", &jit.bytes());
    let injected = scene.inject(&recording, &[]);
    injected.clean();
    (scene, injected)
}

fn jit() -> Jit {
    Jit::new(PID, 10 * MS)
}

#[test]
fn each_span_of_time_has_an_image() {
    let jit = jit()
        .load(20 * MS, CODE, 0x40, "first")
        .load(20 * MS, CODE + 0x40, 0x40, "stays")
        .load(30 * MS, CODE, 0x40, "second")
        .load(40 * MS, CODE, 0x40, "third, never seen")
        .load(50 * MS, CODE, 0x40, "fourth");
    let samples = [
        (CODE + 1, 21),
        (CODE + 0x41, 22),
        (CODE + 1, 31),
        (CODE + 0x41, 32),
        (CODE + 1, 51),
        (CODE + 0x41, 52),
    ];
    let (scene, injected) = injected(jit, &samples);
    assert_eq!(
        injected.images(),
        ["jit-5000007-0-0.elf", "jit-5000007-0-1.elf", "jit-5000007-0-2.elf"]
    );
    assert_eq!(
        scene.shown(),
        [
            "21 first+0x1 jit-5000007-0-0.elf",
            "22 stays+0x1 jit-5000007-0-0.elf",
            "31 second+0x1 jit-5000007-0-1.elf",
            "32 stays+0x1 jit-5000007-0-1.elf",
            "51 fourth+0x1 jit-5000007-0-2.elf",
            "52 stays+0x1 jit-5000007-0-2.elf",
        ]
    );
}

#[test]
fn code_that_nobody_saw_running_makes_no_image() {
    let mut jit = jit();
    for version in 0..100 {
        jit = jit.load((20 + version) * MS, CODE, 0x40, &format!("v{version}"));
    }
    let (scene, injected) = injected(jit, &[(CODE + 1, 70)]);
    assert_eq!(injected.images(), ["jit-5000007-0.elf"]);
    assert_eq!(scene.shown(), ["70 v50+0x1 jit-5000007-0.elf"]);
}

/// perf's libunwind ends a stack in a file without any, and follows the frame pointer where they do not have the code.
#[test]
fn images_have_unwind_tables_even_if_no_code_has() {
    let (scene, injected) = injected(jit().load(20 * MS, CODE, 0x40, "plain"), &[(CODE + 1, 21)]);
    let path = injected.json()["images"][0]["path"].as_str().unwrap().to_owned();
    let image = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*image).unwrap();
    for name in [".eh_frame_hdr", ".eh_frame"] {
        let section = file.section_by_name(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(section.size() > 0, "{name}");
    }
    let events = scene.perf(&["script", "-i", "out.data", "--show-mmap-events"]);
    let is_of_tables = |line: &str| line.contains(": r--p ") && line.ends_with(&path);
    assert!(events.lines().any(is_of_tables), "{events}");
}

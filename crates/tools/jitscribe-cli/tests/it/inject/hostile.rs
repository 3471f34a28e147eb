//! Recordings and dumps that no honest tool would write. What they may cost is tested in `tests/tests/hostile/cost.rs`.

use crate::inject::recording::{Attr, REGS_USER, STACK_USER, USUAL};
use crate::inject::scene::{
    CODE, DUMP, Injected, Jit, MARKER, MS, PID, Scene, app, begun, begun_with,
};

#[test]
fn a_dump_that_claims_more_than_it_has() {
    let (scene, mut recording) = begun(Jit::begun());
    recording.sample(PID, CODE + 1, 25 * MS).sample(PID, CODE + 0x101, 26 * MS);
    let mut dump = Jit::begun().code(20, 0, "code").bytes();
    let debug_info = dump.len();
    let rest = Jit::begun().lines(20 * MS, CODE + 0x100, &[(CODE + 0x100, 1)]);
    dump.extend(&rest.code(20, 0x100, "more").bytes()[40..]);
    // The number of entries.
    dump[debug_info + 24..debug_info + 32].copy_from_slice(&(1u64 << 33).to_le_bytes());
    scene.write(DUMP, &dump);
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.counts(), (2, 0), "{}", injected.said());
    let shown = ["25 code+0x1 jit-5000007-0.elf", "26 more+0x1 jit-5000007-0.elf"];
    assert_eq!(scene.shown(), shown);
    // The size of the code: the record cannot be read, what comes before it can.
    let mut dump = Jit::begun().code(20, 0, "code").bytes();
    let load = dump.len();
    dump.extend(&Jit::begun().code(20, 0x100, "more").bytes()[40..]);
    dump[load + 40..load + 48].copy_from_slice(&(u64::MAX - 5).to_le_bytes());
    scene.write(DUMP, &dump);
    let injected = scene.inject(&recording, &["--force"]);
    assert_eq!(injected.counts(), (1, 1), "{}", injected.said());
    assert_eq!(scene.shown()[0], shown[0]);
}

#[test]
fn paths_of_any_bytes() {
    for path in [
        &b"/nowhere/jit-5000007.dump\n\x1b[31mred"[..],
        b"/nowhere/jit-\xff\xfe.dump",
        b"/nowhere/a\0b/jit-5000007.dump",
        b"/",
        b"",
        b"//",
        b"jit-5000007.dump/",
        b"/../../../../jit-5000007.dump",
        &[b'/'; 4095],
    ] {
        let scene = Scene::new();
        let mut recording = app(PID, "//anon");
        recording.map_bytes(PID, MARKER.start, 0x1000, path, 10 * MS);
        recording.sample(PID, CODE + 1, 25 * MS);
        let injected = scene.inject(&recording, &[]);
        assert_eq!(injected.counts(), (0, 1), "{}", path.escape_ascii());
        assert!(!injected.said().contains('\x1b'), "{}", injected.said());
        scene.run("perf script -i out.data");
    }
}

#[test]
fn names_of_code_of_any_bytes() {
    let (scene, mut recording) = begun(Jit::begun().code(20, 0, "a\n\x1b[31mb").code(20, 0x40, ""));
    recording.sample(PID, CODE + 1, 25 * MS).sample(PID, CODE + 0x41, 26 * MS);
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.counts(), (2, 0));
    assert!(!injected.said().contains('\x1b'), "{}", injected.said());
    let script = scene.run("perf script -i out.data");
    assert!(!script.contains('\x1b'), "{script}");
    assert_eq!(script.lines().count(), 2, "{script}");
}

#[test]
fn mappings_of_absurd_size() {
    const RANGES: [(u64, u64); 8] = [
        (0, u64::MAX),
        (u64::MAX - 0xfff, 0x1000),
        (u64::MAX, u64::MAX),
        (CODE, 1 << 63),
        (1 << 63, 1 << 63),
        (CODE, 0),
        (CODE + 0x20, 1),
        (0x1000, u64::MAX - 0x1000),
    ];
    for name in ["//anon", "/nowhere/libx.so", "[anon:x]"] {
        for time in [2, 22] {
            for (start, len) in RANGES {
                let (scene, mut recording) = begun(Jit::begun().code(20, 0, "code"));
                recording.map_bytes(PID, start, len, name.as_bytes(), time * MS);
                recording.sample(PID, CODE + 1, 25 * MS);
                scene.inject(&recording, &[]).json();
            }
        }
    }
}

#[test]
fn code_at_absurd_addresses() {
    let addresses = [0, 1, 0xfff, u64::MAX - 0x40, u64::MAX - 0x3f, u64::MAX, 1 << 63, CODE];
    for attr in [Attr::new(USUAL), Attr::new(USUAL | REGS_USER | STACK_USER)] {
        let (scene, mut recording) = begun_with(attr, Jit::begun());
        let mut jit = Jit::begun();
        for (number, address) in addresses.into_iter().enumerate() {
            jit = jit.load(20 * MS, address, 0x40, &format!("code {number}"));
            recording.sample(PID, address, 25 * MS);
        }
        jit = jit.moved(30 * MS, 7, CODE, u64::MAX - 0x10, u64::MAX);
        recording.sample(PID, u64::MAX - 8, 35 * MS);
        scene.dump(jit);
        scene.inject(&recording, &[]).json();
        let shown = scene.shown();
        let is_named = |line: &String| line.starts_with("25 code 7+0x0 jit-5000007-");
        assert!(shown.iter().any(is_named), "{shown:?}");
    }
}

#[test]
fn processes_that_are_their_own_ancestors() {
    let (scene, mut recording) = begun(Jit::begun().code(12, 0, "code"));
    for step in 0..2000 {
        let (child, parent) = (PID + (step + 1) % 50, PID + step % 50);
        recording.fork(child, parent, 15 * MS + u64::from(step));
    }
    for step in 0..2000 {
        recording.sample(PID + step % 50, CODE + 1, 25 * MS + u64::from(step));
    }
    scene.inject(&recording, &[]).json();
}

/// Code that alternates at one address, each version seen running.
fn alternating(attr: Attr, versions: u64) -> (Scene, Injected) {
    let (scene, mut recording) = begun_with(attr, Jit::begun());
    let mut jit = Jit::begun();
    for version in 0..versions {
        let time = 20 * MS + 100 * version;
        jit = jit.load(time, CODE, 0x20, &format!("v{version}"));
        recording.sample(PID, CODE + 1, time + 50);
        if version % 1000 == 999 {
            recording.round();
        }
    }
    scene.dump(jit);
    let injected = scene.inject(&recording, &[]);
    assert_eq!(injected.counts(), (versions, 0));
    (scene, injected)
}

/// Number of images that show replaced code; the last has all the rest.
const LAYERS: usize = 16;

#[test]
fn many_codes_at_one_address_need_few_images() {
    // Were each span of time to have its own, with stacks, they would be as large as all code times all spans.
    let spans = Attr::new(USUAL | REGS_USER | STACK_USER);
    for (attr, versions, said) in
        [(Attr::new(USUAL), 200_000, ""), (spans, 50_000, "code was replaced too often")]
    {
        let (scene, injected) = alternating(attr, versions);
        assert_eq!(injected.images().len(), LAYERS, "{versions}");
        assert!(injected.said().contains(said), "{versions}: {}", injected.said());
        let samples = scene.script("out.data").into_iter();
        let names = samples.map(|mut sample| sample.frames.remove(0).0);
        assert!(names.eq((0..versions).map(|version| format!("v{version}+0x1"))), "{versions}");
    }
}

#[test]
fn many_mappings_over_many_codes() {
    // Files and memory, mapped over and over across runs of code that lie a page apart.
    for name in ["/nowhere/libx.so", "//anon"] {
        let (scene, mut recording) = begun(Jit::begun());
        let mut jit = Jit::begun();
        for number in 0..5000 {
            let address = CODE + 0x2000 * number;
            jit = jit.load(20 * MS, address, 0x20, &format!("f{number}"));
            recording.sample(PID, address, 900 * MS);
        }
        for number in 0..5000 {
            let range = CODE..CODE + 0x2000 * 5000;
            recording.map(PID, range, name, 30 * MS + number);
        }
        scene.dump(jit);
        scene.inject(&recording, &[]).json();
        let size = |name| scene.size(name);
        assert!(size("out.data") < 10 * size("perf.data"), "{name}: {}", size("out.data"));
    }
}

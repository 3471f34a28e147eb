//! Which source files are shown: those that a user may read whose code names them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use test_privilege::{Privilege, have};

use crate::inject::recording::Recording;
use crate::inject::scene::{ARENA, CODE, Jit, MS, PID, Scene};

/// Two users that are not root.
const USER: u32 = 65534;
const STRANGER: u32 = 12345;

const TEXT: &str = "first line\nCANARY\n";

/// Files with [`TEXT`] that not everyone may read, in a folder that everyone may enter.
fn scene() -> Scene {
    let scene = Scene::new();
    let mode = |name: &str, mode| {
        fs::set_permissions(scene.path(name), Permissions::from_mode(mode)).unwrap();
    };
    for name in ["open", "closed", "private/open", "theirs", "named/file"] {
        scene.write(name, TEXT.as_bytes());
        mode(name, 0o644);
    }
    fs::create_dir(scene.path("links")).unwrap();
    symlink("../private/open", scene.path("links/link")).unwrap();
    for (name, is) in [("", 0o755), ("closed", 0o600), ("theirs", 0o600), ("private", 0o700)] {
        mode(name, is);
    }
    scene
}

/// What `jitscribe VERB` prints of a recording of a process whose code names this file, and whose dump belongs to this user.
fn looked_at(scene: &Scene, file: &str, owner: Option<u32>, words: &[&str]) -> (String, String) {
    record(scene, file, owner);
    shown(scene, words)
}

/// Makes that recording.
fn record(scene: &Scene, file: &str, owner: Option<u32>) {
    let jit = Jit::begun().lines_of(&scene.name(file), 20 * MS, CODE, &[(CODE, 1), (CODE + 1, 2)]);
    scene.write("jit.dump", &jit.load(20 * MS, CODE, 0x40, "hot").bytes());
    chown(scene.path("jit.dump"), owner, None).unwrap();
    let mut recording = Recording::new();
    recording.comm(PID, PID, "app", MS).map(PID, ARENA, "[anon:JIT]", 2 * MS);
    recording.sample(PID, CODE, 25 * MS).sample(PID, CODE + 1, 26 * MS);
    let injected = scene.inject(&recording, &["--jitdump", "jit.dump", "--force"]);
    assert_eq!(injected.counts(), (2, 0));
}

/// What `jitscribe VERB` prints of it.
fn shown(scene: &Scene, words: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitscribe"));
    command.args(words).args(["-i", "out.data"]).current_dir(scene.folder());
    let done = command.env("HOME", scene.path("home")).env("NO_COLOR", "1").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{err}");
    (out, err)
}

/// Both views of it show the source, or say that they do not.
fn expect(scene: &Scene, file: &str, owner: Option<u32>, is_shown: bool) {
    let (out, err) = looked_at(scene, file, owner, &["annotate", "--no-pager"]);
    assert_eq!(out.contains("CANARY"), is_shown, "{file} of {owner:?}: {out}{err}");
    assert_eq!(err.contains("--source-dir"), !is_shown, "{file} of {owner:?}: {err}");
    let report = ["report", "-o", "report.html"];
    let (_, err) = looked_at(scene, file, owner, &report);
    let sources = format!("sources of {} files", u8::from(is_shown));
    assert!(err.contains(&sources), "{file} of {owner:?}: {err}");
    assert_eq!(err.contains("--source-dir"), !is_shown, "{file} of {owner:?}: {err}");
}

#[test]
fn ones_own_sources_are_shown() {
    let scene = scene();
    for file in ["open", "closed", "private/open", "links/link"] {
        expect(&scene, file, None, true);
    }
}

#[test]
fn sources_that_the_recorded_user_may_not_read_are_not_shown() {
    if !have(&[Privilege::OtherUsers]) {
        return;
    }
    let scene = scene();
    chown(scene.path("theirs"), Some(USER), None).unwrap();
    for (file, owner, is_shown) in [
        ("open", USER, true),
        ("theirs", USER, true),
        ("theirs", STRANGER, false),
        ("closed", USER, false),
        ("private/open", USER, false),
        ("links/link", USER, false),
    ] {
        expect(&scene, file, Some(owner), is_shown);
    }
    // Their user names the folder, which is root's.
    for dir in [".", "private"] {
        let words = ["annotate", "--no-pager", "--source-dir", dir];
        let (out, err) = looked_at(&scene, "private/open", Some(USER), &words);
        assert!(out.contains("CANARY") && !err.contains("--source-dir"), "{out}{err}");
    }
    // A path may lead out of the folder.
    let words = ["annotate", "--no-pager", "--source-dir", "named"];
    let (out, err) = looked_at(&scene, "named/../private/open", Some(USER), &words);
    assert!(!out.contains("CANARY") && err.contains("1 source not shown"), "{out}{err}");
    // In a folder of the recorded user's, a link may lead anywhere.
    chown(scene.path("links"), Some(USER), None).unwrap();
    let words = ["annotate", "--no-pager", "--source-dir", "links"];
    let (out, err) = looked_at(&scene, "links/link", Some(USER), &words);
    assert!(!out.contains("CANARY") && err.contains("1 source not shown"), "{out}{err}");
}

/// Any process can map a file with the name of an image, which has a list of codes beside it.
#[test]
fn images_of_other_users_cannot_say_whose_code_it_is() {
    if !have(&[Privilege::OtherUsers]) {
        return;
    }
    let scene = scene();
    record(&scene, "closed", Some(0));
    let annotate = ["annotate", "--no-pager"];
    let (out, err) = shown(&scene, &annotate);
    assert!(out.contains("CANARY"), "{out}{err}");
    let planted = |names: &str, owner: u32| {
        for entry in fs::read_dir(scene.path("out.data.jit")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_str().unwrap().ends_with(names) {
                chown(path, Some(owner), None).unwrap();
            }
        }
    };
    for names in [".elf", ".jsonl"] {
        planted(names, USER);
        let (out, err) = shown(&scene, &annotate);
        assert!(!out.contains("CANARY") && err.contains("1 source not shown"), "{out}{err}");
        planted(names, 0);
    }
}

/// Of another machine's recording, nothing is known of the users.
#[test]
fn a_recording_of_another_machine_shows_what_everyone_may_read() {
    let scene = scene();
    expect(&scene, "open", None, true);
    let jit = Jit::begun().lines_of(&scene.name("closed"), 20 * MS, CODE, &[(CODE, 2)]);
    scene.write("jit.dump", &jit.load(20 * MS, CODE, 0x40, "hot").bytes());
    let mut recording = Recording::new();
    recording.feature(3, &crate::inject::recording::feature_text("elsewhere"));
    recording.comm(PID, PID, "app", MS).map(PID, ARENA, "[anon:JIT]", 2 * MS);
    recording.sample(PID, CODE, 25 * MS);
    let injected = scene.inject(&recording, &["--jitdump", "jit.dump", "--force"]);
    assert_eq!(injected.counts(), (1, 0));
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitscribe"));
    command.args(["annotate", "--no-pager", "-i", "out.data"]).current_dir(scene.folder());
    let done = command.output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(!String::from_utf8_lossy(&done.stdout).contains("CANARY"));
    assert!(done.status.success() && told.contains("1 source not shown"), "{told}");
}

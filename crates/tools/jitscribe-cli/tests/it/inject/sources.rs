//! Which source files are shown: those that a user may read whose code names them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use test_privilege::needs;

use crate::inject::recording::{HOSTNAME, Recording, feature_text};
use crate::inject::scene::{CODE, Jit, MS, PID, Scene, app};

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

/// A recording of a process whose code names this file, and whose dump belongs to this user.
fn record(scene: &Scene, file: &str, owner: Option<u32>) {
    record_as(scene, file, owner, app(PID, "[anon:JIT]"));
}

fn record_as(scene: &Scene, file: &str, owner: Option<u32>, mut recording: Recording) {
    let jit = Jit::begun().lines_of(&scene.name(file), 20 * MS, CODE, &[(CODE, 1), (CODE + 1, 2)]);
    scene.write("jit.dump", jit.load(20 * MS, CODE, 0x40, "hot").bytes());
    chown(scene.path("jit.dump"), owner, None).unwrap();
    recording.sample(PID, CODE, 25 * MS).sample(PID, CODE + 1, 26 * MS);
    let injected = scene.inject(&recording, &["--jitdump", "jit.dump", "--force"]);
    assert_eq!(injected.counts(), (2, 0));
}

/// `jitscribe annotate` of it shows the source, or says that it does not.
fn expect_annotated(scene: &Scene, options: &str, is_shown: bool) {
    let done = scene.ask(&format!("annotate --no-pager -i out.data {options}")).ok();
    assert_eq!(done.stdout.contains("CANARY"), is_shown, "{done:?}");
    assert_eq!(done.stderr.contains("--source-dir"), !is_shown, "{done:?}");
    assert_eq!(done.stderr.contains("1 source not shown"), !is_shown, "{done:?}");
}

/// Both views show the source, or say that they do not.
fn expect(scene: &Scene, file: &str, owner: Option<u32>, is_shown: bool) {
    record(scene, file, owner);
    expect_annotated(scene, "", is_shown);
    let done = scene.ask("report -o report.html -i out.data").ok();
    done.says(&format!("sources of {} files", u8::from(is_shown)));
    assert_eq!(done.stderr.contains("--source-dir"), !is_shown, "{file} of {owner:?}: {done:?}");
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
    needs!(OtherUsers);
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
    record(&scene, "private/open", Some(USER));
    for folder in [".", "private"] {
        expect_annotated(&scene, &format!("--source-dir {folder}"), true);
    }
    // A path may lead out of the folder.
    record(&scene, "named/../private/open", Some(USER));
    expect_annotated(&scene, "--source-dir named", false);
    // In a folder of the recorded user's, a link may lead anywhere.
    chown(scene.path("links"), Some(USER), None).unwrap();
    record(&scene, "links/link", Some(USER));
    expect_annotated(&scene, "--source-dir links", false);
}

/// Java names a source by its package, whose folder only the user knows.
#[test]
fn sources_without_a_path_are_found_in_a_folder() {
    let scene = scene();
    fs::create_dir_all(scene.path("src/app")).unwrap();
    fs::copy(scene.path("open"), scene.path("src/app/Hot.java")).unwrap();
    let jit = Jit::begun().lines_of("app/Hot.java", 20 * MS, CODE, &[(CODE, 1), (CODE + 1, 2)]);
    scene.write("jit.dump", jit.load(20 * MS, CODE, 0x40, "hot").bytes());
    let mut recording = app(PID, "[anon:JIT]");
    recording.sample(PID, CODE, 25 * MS).sample(PID, CODE + 1, 26 * MS);
    let injected = scene.inject(&recording, &["--jitdump", "jit.dump", "--force"]);
    assert_eq!(injected.counts(), (2, 0));
    for (options, is_shown) in [("", false), ("--source-dir src", true), ("--source-dir .", true)] {
        let done = scene.ask(&format!("annotate --no-pager -i out.data {options}")).ok();
        assert_eq!(done.stdout.contains("CANARY"), is_shown, "{done:?}");
        let done = scene.ask(&format!("report -o report.html --force -i out.data {options}")).ok();
        done.says(&format!("sources of {} files", u8::from(is_shown)));
    }
}

/// Any process can map a file with the name of an image, which has a list of codes beside it.
#[test]
fn images_of_other_users_cannot_say_whose_code_it_is() {
    needs!(OtherUsers);
    let scene = scene();
    record(&scene, "closed", Some(0));
    expect_annotated(&scene, "", true);
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
        expect_annotated(&scene, "", false);
        planted(names, 0);
    }
}

/// Of another machine's recording, nothing is known of the users.
#[test]
fn a_recording_of_another_machine_shows_what_everyone_may_read() {
    let scene = scene();
    for (file, is_shown) in [("open", true), ("closed", false)] {
        let mut recording = app(PID, "[anon:JIT]");
        recording.feature(HOSTNAME, &feature_text("elsewhere"));
        record_as(&scene, file, None, recording);
        expect_annotated(&scene, "", is_shown);
    }
}

//! Whose maps and dumps are believed, of those that are found where any user can write.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::process::Command;
use std::time::{Duration, SystemTime};

use test_privilege::needs;

use crate::common::{Running, wait_until};
use crate::inject::scene::{CODE, DUMP, Injected, Jit, MARKER, MS, PID, Scene, app};

/// Two users that are not root.
const USER: u32 = 65534;
const STRANGER: u32 = 12345;

/// A recording of a process with a sample in its code, which a perf map of this owner tells of.
fn map_of(pid: u32, owner: u32) -> (Scene, String) {
    let scene = Scene::new();
    let recording = app(pid, "[anon:JIT]").sample(pid, CODE + 1, 25 * MS).file();
    let map = format!("perf-{pid}.map");
    scene.write("perf.data", recording).write(&map, format!("{CODE:x} 40 named\n"));
    chown(scene.path(&map), Some(owner), None).unwrap();
    (scene, map)
}

fn expect_left_out(injected: &Injected, path: &str, option: &str) {
    assert_eq!(injected.counts(), (0, 1));
    let warnings = injected.warnings();
    let of_file: Vec<_> = warnings.iter().filter(|warning| warning.contains(path)).collect();
    let [warning] = of_file[..] else { panic!("{warnings:?}") };
    assert!(warning.contains(&format!("belongs to user {STRANGER}")), "{warning}");
    assert!(warning.contains(option), "{warning}");
}

#[test]
fn a_strangers_perf_map_is_left_out_unless_it_is_named() {
    needs!(OtherUsers);
    let (scene, map) = map_of(PID, STRANGER);
    let option = format!("--perf-map {PID}=");
    expect_left_out(&scene.inject_file("perf.data", &[]), &map, &option);
    for args in [["--perf-map", &map], ["--aux-dir", "."]] {
        let injected = scene.inject_file("perf.data", &[&args[..], &["--force"]].concat());
        assert_eq!(injected.clean().counts(), (1, 0), "{args:?}");
    }
    // Who made the recording could have written there what the map says.
    chown(scene.path("perf.data"), Some(STRANGER), None).unwrap();
    assert_eq!(scene.inject_file("perf.data", &["--force"]).clean().counts(), (1, 0));
}

#[test]
fn where_others_cannot_make_files_it_does_not_matter_whose_they_are() {
    needs!(OtherUsers);
    // `/tmp` is around all else that a test has.
    let folder = tempfile::TempDir::new_in("/root").unwrap();
    let (scene, map) = map_of(PID, STRANGER);
    let [data, map] = ["perf.data", &map].map(|file| {
        let copy = folder.path().join(file);
        fs::copy(scene.path(file), &copy).unwrap();
        copy
    });
    chown(map, Some(STRANGER), None).unwrap();
    let injected = scene.inject_file(data.to_str().unwrap(), &[]);
    assert_eq!(injected.clean().counts(), (1, 0));
}

/// A process of another user.
fn sleeper() -> Running {
    let user = USER.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "sleep", "600"]);
    let sleeper = Running::start(&mut command);
    let status = format!("/proc/{}/status", sleeper.pid());
    wait_until("it has become another user", || {
        fs::read_to_string(&status).unwrap().contains(&format!("Uid:\t{user}\t{user}"))
    });
    sleeper
}

#[test]
fn the_perf_map_of_a_process_that_runs_is_its_users() {
    needs!(OtherUsers);
    let process = sleeper();
    let pid = process.pid();
    let (scene, map) = map_of(pid, USER);
    assert_eq!(scene.inject_file("perf.data", &[]).clean().counts(), (1, 0));
    // A process that began later has this number by chance, or because its user wanted it.
    let data = File::options().append(true).open(scene.path("perf.data")).unwrap();
    data.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    assert_eq!(scene.inject_file("perf.data", &["--force"]).counts(), (0, 1));
    let (scene, _) = map_of(pid, STRANGER);
    expect_left_out(&scene.inject_file("perf.data", &[]), &map, "--perf-map");
}

#[test]
fn a_dump_of_any_user_that_the_process_has_mapped_is_its_own() {
    needs!(OtherUsers);
    let scene = Scene::new();
    let write = || {
        scene.dump(Jit::begun().code(20, 0, "code"));
        chown(scene.path(DUMP), Some(STRANGER), None).unwrap();
    };
    write();
    let mut recording = app(PID, "[anon:JIT]");
    recording.map_file(PID, MARKER, &scene.path(DUMP), 10 * MS).sample(PID, CODE + 1, 25 * MS);
    assert_eq!(scene.inject(&recording, &[]).clean().counts(), (1, 0));
    // Another file in its place.
    fs::rename(scene.path(DUMP), scene.path("old")).unwrap();
    write();
    expect_left_out(&scene.inject(&recording, &["--force"]), DUMP, &format!("--jitdump {PID}="));
}

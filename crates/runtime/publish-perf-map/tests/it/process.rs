//! Forks, limits, full disks and foreign files: each in a process of its own, which is this program
//! with the name of a role.

// The roles print what happened, for the tests.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::unsafe_parts::{close_all, in_a_fork};
use publish_perf_map::{Options, PerfMap};
use test_privilege::{Privilege, have};

const ROLE: &str = "PUBLISH_PERF_MAP_ROLE";
const FOLDER: &str = "PUBLISH_PERF_MAP_FOLDER";

/// Runs this program in `role` from a shell, after `before`.
fn play(role: &str, folder: &Path, wrapper: &[&str], before: &str) -> Output {
    let me = env::current_exe().unwrap();
    let script =
        format!("set -e; {before}\nexec '{}' --exact process::role --nocapture", me.display());
    let words: Vec<&str> = wrapper.iter().copied().chain(["sh", "-c", &script]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env(ROLE, role).env(FOLDER, folder);
    let output = command.output();
    output.unwrap_or_else(|e| panic!("{command:?}: {e}; see scripts/setup.sh"))
}

/// Runs it and expects success.
fn succeed(role: &str, folder: &Path, wrapper: &[&str], before: &str) -> String {
    let output = play(role, folder, wrapper, before);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role}: {}\n{said}\n{complaint}", output.status);
    assert!(said.contains("played"), "{role} was not played: {said}");
    said
}

/// The roles, one of which runs if the environment requests it.
#[test]
fn role() {
    let Some(role) = env::var_os(ROLE) else { return };
    let folder = PathBuf::from(env::var_os(FOLDER).unwrap());
    match role.to_str().unwrap() {
        "fork" => fork(&folder),
        "fork amid writes" => fork_amid_writes(&folder),
        "daemon" => daemon(&folder),
        "closed" => closed(&folder, false),
        "closed and opened" => closed(&folder, true),
        "fill" => fill(&folder),
        "refused" => refused(&folder),
        "exec" => exec(&folder),
        "many" => many(&folder),
        other => panic!("no role {other}"),
    }
    println!("played");
}

fn create(folder: &Path, said: &Arc<Mutex<Vec<String>>>) -> PerfMap {
    let log = Arc::clone(said);
    let reporter = move |why: &str| log.lock().unwrap().push(why.to_owned());
    PerfMap::create(Options::new().directory(folder).reporter(reporter)).unwrap()
}

/// Every file of the directory: by its pid, the names in it.
fn names(folder: &Path) -> BTreeMap<u32, Vec<String>> {
    let mut names = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(pid) = name.strip_prefix("perf-").and_then(|name| name.strip_suffix(".map"))
        else {
            continue;
        };
        let bytes = fs::read(&path).unwrap();
        let lines = perf_map::entries(&bytes).map(Result::unwrap).filter(|line| line.size > 0);
        let lines = lines.map(|line| String::from_utf8(line.name.to_vec()).unwrap()).collect();
        names.insert(pid.parse().unwrap(), lines);
    }
    names
}

#[test]
fn a_child_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    succeed("fork", folder.path(), &[], "");
    let names = names(folder.path());
    assert_eq!(names.len(), 2);
    let mut said: Vec<Vec<String>> = names.into_values().collect();
    let mut parent = ["child_too", "gone", "outer", "inner", "outer", "parent_later"];
    let mut child = ["child_too", "outer", "inner", "outer", "child_later"];
    parent.sort_unstable();
    child.sort_unstable();
    said.iter_mut().for_each(|names| names.sort());
    said.sort();
    assert_eq!(said, [&child[..], &parent[..]]);
}

fn fork(folder: &Path) {
    let said = Arc::default();
    let map = create(folder, &said);
    map.load(0x1000, 0x10, b"child_too");
    map.load(0x2000, 0x10, b"gone");
    map.unload(0x2000, 0x10);
    map.load(0x3000, 0x100, b"outer");
    map.load(0x3040, 0x10, b"inner");
    // Not a fork: nothing happens.
    let path = map.path();
    map.forked();
    assert_eq!(map.path(), path);

    let status = in_a_fork(|| {
        map.forked();
        let forked = map.path();
        map.forked();
        map.load(0x4000, 0x10, b"child_later");
        u8::from(map.is_off() || forked == path || map.path() != forked)
    });
    assert_eq!(status, 0);
    map.load(0x5000, 0x10, b"parent_later");
    assert!(!map.is_off());
    assert!(said.lock().unwrap().is_empty());
}

#[test]
fn a_fork_during_writes_does_not_hang_or_damage_the_parents_file() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed("fork amid writes", folder.path(), &[], "");
    println!("{said}");
    // Each line of each file is intact, and the children's files contain nothing of each other.
    for (pid, names) in names(folder.path()) {
        let marks: Vec<_> = names.iter().filter(|name| name.starts_with("child_")).collect();
        assert!(marks.iter().all(|name| **name == format!("child_{pid}")), "{marks:?} in {pid}");
    }
}

/// Reports when a scope is left, in any way.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn fork_amid_writes(folder: &Path) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let map = create(folder, &said);
    let stop = AtomicBool::new(false);
    let (lost, forked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                map.load(0x10_0000 + n % 500 * 0x10, 0x10, format!("parent_{n}").as_bytes());
                // Otherwise forks would hardly ever find the map idle.
                if n.is_multiple_of(20) {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        // A panic here must end the writer, too: the scope waits for it.
        let _stop = StopAtEnd(&stop);
        while lost.load(Ordering::Relaxed) < 5 || forked.load(Ordering::Relaxed) < 5 {
            let status = in_a_fork(|| {
                map.forked();
                map.load(0x1000, 0x10, format!("child_{}", std::process::id()).as_bytes());
                u8::from(map.is_off())
            });
            match status {
                0 => forked.fetch_add(1, Ordering::Relaxed),
                1 => lost.fetch_add(1, Ordering::Relaxed),
                other => panic!("child: {other}"),
            };
            assert!(forked.load(Ordering::Relaxed) + lost.load(Ordering::Relaxed) < 5000);
        }
    });
    println!("{lost:?} lost, {forked:?} forked");
    assert!(!map.is_off());
}

#[test]
fn a_daemon_that_closed_all_descriptors_is_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    succeed("daemon", folder.path(), &[], "");
    let mut said: Vec<Vec<String>> = names(folder.path()).into_values().collect();
    said.sort();
    assert_eq!(said, [["child"], ["parent"]]);
}

/// The numbers of the descriptors of the map.
fn numbers(map: &PerfMap) -> Vec<i32> {
    let map = map.path().unwrap();
    let links = fs::read_dir("/proc/self/fd").unwrap().map(|link| link.unwrap().path());
    let of_map = links.filter(|link| fs::read_link(link).is_ok_and(|file| file == map));
    of_map.map(|link| link.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect()
}

/// Opens files, which get the numbers of the closed descriptors, and these numbers, too.
fn victims(folder: &Path, numbers: &[i32]) -> Vec<File> {
    let open = |n| {
        let path = folder.join(format!("victim{n}"));
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path).unwrap();
        file.write_all(b"precious").unwrap();
        file
    };
    let mut files: Vec<File> = (0..8).map(open).collect();
    for (number, n) in numbers.iter().zip(0..8) {
        // The lowest free number is the one that was closed.
        let file = rustix::io::fcntl_dupfd_cloexec(&files[n], *number).unwrap();
        assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&file), *number);
        files.push(file.into());
    }
    files
}

fn check_victims(folder: &Path) {
    for n in 0..8 {
        let path = folder.join(format!("victim{n}"));
        assert_eq!(fs::read_to_string(path).unwrap(), "precious");
    }
}

fn daemon(folder: &Path) {
    let map = create(folder, &Arc::default());
    map.load(0x1000, 0x10, b"parent");
    let numbers = numbers(&map);
    let status = in_a_fork(|| {
        close_all();
        let victims = victims(folder, &numbers);
        map.forked();
        map.load(0x2000, 0x10, b"child");
        check_victims(folder);
        // None of them was closed.
        let open = victims.iter().all(|file| file.metadata().is_ok_and(|data| data.len() == 8));
        u8::from(map.is_off() || !open)
    });
    assert_eq!(status, 0);
}

#[test]
fn descriptors_closed_from_outside_are_not_written_to() {
    for role in ["closed", "closed and opened"] {
        let folder = tempfile::tempdir().unwrap();
        succeed(role, folder.path(), &[], "");
        assert_eq!(names(folder.path()).into_values().next().unwrap(), ["before"]);
    }
}

fn closed(folder: &Path, are_opened: bool) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let map = create(folder, &said);
    map.load(0x1000, 0x10, b"before");
    let mut numbers = numbers(&map);
    assert_eq!(numbers.len(), 2);
    assert!(numbers.iter().all(|number| *number > 40), "in the program's way: {numbers:?}");
    close_all();
    if are_opened {
        // A program that has so many files has opened them for longer than that.
        std::thread::sleep(Duration::from_millis(40));
    } else {
        numbers.clear();
    }
    let victims = victims(folder, &numbers);
    map.load(0x1000, 0x20, b"after");
    check_victims(folder);
    assert!(map.is_off());
    assert!(said.lock().unwrap()[0].contains("descriptor"), "{said:?}");
    drop(map);
    let open = victims.iter().all(|file| file.metadata().is_ok_and(|data| data.len() == 8));
    assert!(open, "a descriptor that is not the map's was closed");
}

/// Loads code until the map is given up, and then checks the content of the file.
fn fill(folder: &Path) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let map = create(folder, &said);
    let path = map.path().unwrap();
    let mut told = 0_u64;
    let name = |n: u64| format!("code_{n}_{}", "x".repeat((n % 300) as usize));
    while !map.is_off() {
        assert!(told < 100_000, "there is no limit");
        map.load(0x1000 + told * 0x10, 0x10, name(told).as_bytes());
        told += 1;
    }
    map.load(0x10, 0x10, b"later");
    let bytes = fs::read(path).unwrap();
    assert!(bytes.ends_with(b"\n"));
    let lines: Vec<_> = perf_map::entries(&bytes).map(|line| line.expect("half a line")).collect();
    // All but the last.
    assert_eq!(lines.len() as u64, told - 1);
    for (n, line) in (0..).zip(&lines) {
        assert_eq!((line.address, line.name), (0x1000 + n * 0x10, name(n).as_bytes()));
    }
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    println!("{}", said[0]);
}

/// A command that makes the user root over mounts, and perhaps over users.
fn mounting() -> &'static [&'static str] {
    let root = rustix::process::geteuid().is_root();
    if root { &["unshare", "-m"] } else { &["unshare", "-r", "-m"] }
}

#[test]
fn on_a_full_disk_the_file_ends_with_complete_lines() {
    if !have(&[Privilege::Mounts]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=64k none '{}'", folder.path().display());
    let said = succeed("fill", folder.path(), mounting(), &mount);
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn the_limit_on_file_sizes_raises_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed("fill", folder.path(), &[], "ulimit -f 64");
    assert!(said.contains("limit on file sizes"), "{said}");
}

#[test]
fn another_users_file_is_not_touched() {
    if !have(&[Privilege::Mounts]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // The shell's pid is the one of the program that it becomes. Without the right to give
    // files away, a file of root's is mounted there, which looks like nobody's within.
    let before = if rustix::process::geteuid().is_root() {
        format!("echo theirs >'{path}'/perf-$$.map; chown 4711 '{path}'/perf-$$.map")
    } else {
        format!("touch '{path}'/perf-$$.map; mount --bind /etc/passwd '{path}'/perf-$$.map")
    };
    let said = succeed("refused", folder.path(), mounting(), &before);
    assert!(said.contains("belongs to user"), "{said}");
}

fn refused(folder: &Path) {
    let before = names_of_folder(folder);
    let error = PerfMap::create(Options::new().directory(folder)).unwrap_err();
    println!("{error}");
    assert_eq!(names_of_folder(folder), before);
}

fn names_of_folder(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn after_an_exec_the_file_is_continued() {
    // The kernel's time of the process's start is compared, and QEMU shows one of its own, which an exec changes.
    if !have(&[Privilege::Kernel]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    succeed("exec", folder.path(), &[], "");
    let names = names(folder.path());
    assert_eq!(names.into_values().collect::<Vec<_>>(), [["before", "after"]]);
}

fn exec(folder: &Path) {
    const AGAIN: &str = "PUBLISH_PERF_MAP_AGAIN";
    let map = create(folder, &Arc::default());
    if env::var_os(AGAIN).is_some() {
        map.load(0x1000, 0x10, b"after");
        return;
    }
    map.load(0x1000, 0x10, b"before");
    let me = env::current_exe().unwrap();
    let error =
        Command::new(me).args(["--exact", "process::role", "--nocapture"]).env(AGAIN, "1").exec();
    panic!("{error}");
}

const MANY: usize = 2_000;

#[test]
fn a_load_is_one_system_call() {
    if !have(&[Privilege::Trace]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let strace = ["strace", "-f", "-qq", "-o", calls.to_str().unwrap()];
    succeed("many", folder.path(), &strace, "");
    let calls = fs::read_to_string(calls).unwrap();
    let lines = calls.lines().skip_while(|line| !line.contains("code_0_")).collect::<Vec<_>>();
    let end = lines.iter().position(|line| line.contains(&format!("code_{}_", MANY - 1)));
    let calls = end.expect("the last line was written") + 1;
    assert!(calls >= MANY, "{calls}");
    // Once in 64 loads, or in ten milliseconds, which pass sooner while each call is traced.
    assert!(calls < MANY + MANY / 8, "{calls} for {MANY}");
}

fn many(folder: &Path) {
    let map = create(folder, &Arc::default());
    for n in 0..MANY {
        map.load(0x1000 + n as u64 * 0x10, 0x10, format!("code_{n}_").as_bytes());
    }
}

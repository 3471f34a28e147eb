//! Directories that others prepared, and full disks: no link is followed, nothing is overwritten, the runtime continues, and each
//! missing feature is reported.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use jitscribe::{Builder, Code, Mode, Scribe, Subject};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use test_privilege::{Privilege, have, unshare};

use crate::Test;
use crate::logs::{bytes_of, errors_in, loads, own_log, player, subjects};
use crate::notices::listening;

pub const TESTS: &[Test] = &[
    ("what_stands_in_the_dumps_place_stays", what_stands_in_the_dumps_place_stays),
    ("a_directory_that_is_none", a_directory_that_is_none),
    ("a_private_directory_of_others", a_private_directory_of_others),
    ("a_dump_is_for_its_user_alone", a_dump_is_for_its_user_alone),
    ("no_space_for_a_dump", no_space_for_a_dump),
    ("no_space_for_a_dump_in_ext4", no_space_for_a_dump_in_ext4),
    ("no_limit_is_a_signal", no_limit_is_a_signal),
];

/// Who announces, and what it heard of.
struct Announced {
    scribe: Scribe,
    notices: Vec<(Subject, String)>,
    written: usize,
}

const CODES: usize = 3_000;

/// Announces, moves and unloads as a runtime would, whatever its scribe can do.
fn announce(builder: Builder, prepare: impl FnOnce()) -> Announced {
    let (builder, heard) = listening(builder);
    let scribe = builder.build();
    prepare();
    let bytes = [0xc3_u8; 300];
    let mut written = 0;
    for n in 0..CODES {
        let name = format!("function {n}");
        let raw = scribe.load(&Code::new(&bytes).named(&name)).into_raw();
        written += usize::from(raw != 0);
        if n % 10 == 0 {
            drop(scribe.load(&Code::new(&bytes).named("dies")));
        }
    }
    let notices = heard.lock().unwrap().clone();
    Announced { scribe, notices, written }
}

impl Announced {
    fn heard(&self, expected: &[Subject]) {
        assert_eq!(subjects(&self.notices), expected, "{:?}", self.notices);
    }

    /// All is in a log in memory that has no file.
    fn has_no_file(&self) {
        assert_eq!((self.scribe.log_fd().is_none(), self.written), (true, CODES));
    }

    /// The log is there, valid, and has all.
    fn has_all(&self) {
        self.has_log();
        assert_eq!(self.written, CODES);
    }

    /// The same with a part of it.
    fn has_some(&self) {
        self.has_log();
        assert!((500..CODES).contains(&self.written), "{}", self.written);
    }

    /// The log is there, valid, and has what was written.
    fn has_log(&self) {
        let file = own_log(self.scribe);
        let snapshot = code_log::snapshot(&file).unwrap();
        assert_eq!(snapshot.torn, 0);
        let raw = bytes_of(&file);
        for dump in [&snapshot.bytes, &raw] {
            let alive = loads(dump).filter(|code| code.name.starts_with(b"function"));
            assert_eq!(alive.count(), self.written);
            assert_eq!(errors_in(dump), [""; 0]);
        }
    }
}

/// A scenario in a process of its own.
fn scenario(name: &str, dir: &Path) -> Command {
    player("hostile", &[name, dir.to_str().unwrap()])
}

fn run(mut command: Command, envs: &[(&str, &Path)]) {
    let status = command.envs(envs.iter().copied()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

pub fn play(arguments: &[&str]) {
    let [scenario, dir] = arguments else { panic!("{arguments:?}") };
    let dir = PathBuf::from(dir);
    let dump = dir.join(format!("jit-{}.dump", std::process::id()));
    let to_dir = || Scribe::builder().jitdump(Mode::On).dir(dir.clone());
    // The fallback for a dump that cannot be created.
    let in_memory = |announced: Announced| {
        announced.heard(&[Subject::Log]);
        assert!(announced.notices[0].1.contains("stays in memory"), "{:?}", announced.notices);
        assert_eq!(announced.scribe.dump_path(), None);
        announced.has_all();
    };
    // If the name of a dump is taken, the dump gets a place beside it.
    let beside = |announced: Announced| {
        announced.heard(&[]);
        let path = dir.join("2").join(dump.file_name().unwrap());
        assert_eq!(announced.scribe.dump_path(), Some(path));
        announced.has_all();
    };
    match *scenario {
        "taken-twice" => {
            // A folder of this number that is not this user's alone is not written to.
            fs::write(&dump, "").unwrap();
            fs::create_dir(dir.join("2")).unwrap();
            fs::set_permissions(dir.join("2"), fs::Permissions::from_mode(0o777)).unwrap();
            in_memory(announce(to_dir(), || ()));
            fs::remove_dir(dir.join("2")).unwrap();
            symlink("/tmp", dir.join("2")).unwrap();
            in_memory(announce(to_dir(), || ()));
        }
        "symlink" | "dangling" | "hard-link" | "folder" | "fifo" => {
            match *scenario {
                "symlink" => symlink(dir.join("victim"), &dump).unwrap(),
                "dangling" => symlink(dir.join("nothing"), &dump).unwrap(),
                "hard-link" => fs::hard_link(dir.join("victim"), &dump).unwrap(),
                "folder" => fs::create_dir(&dump).unwrap(),
                _ => assert!(Command::new("mkfifo").arg(&dump).status().unwrap().success()),
            }
            let kind = || fs::symlink_metadata(&dump).unwrap().file_type();
            let before = kind();
            beside(announce(to_dir(), || ()));
            assert_eq!(kind(), before);
            assert!(!dir.join("nothing").exists());
        }
        "no-directory" => in_memory(announce(to_dir(), || ())),
        "environment" => in_memory(announce(Scribe::builder().environment(), || ())),
        "dump" => {
            let announced = announce(Scribe::builder().environment(), || ());
            announced.heard(&[]);
            announced.has_all();
            let dump = announced.scribe.dump_path().unwrap();
            let found = fs::metadata(&dump).unwrap();
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
            assert!(dump.starts_with(&dir));
        }
        "little-space" => {
            let announced = announce(to_dir(), || ());
            announced.heard(&[Subject::Full]);
            announced.has_some();
        }
        "no-space" => {
            let filler = vec![0; 1 << 20];
            assert!(fs::write(dir.join("filler"), filler).is_err());
            in_memory(announce(to_dir(), || ()));
            assert!(!dump.exists());
        }
        "file-size-0" => {
            limit(Resource::Fsize, 0);
            let announced = announce(Scribe::builder(), || ());
            announced.heard(&[Subject::Log]);
            announced.has_no_file();
        }
        "file-size-little" => {
            limit(Resource::Fsize, 300 << 10);
            let announced = announce(Scribe::builder().bytes(), || ());
            announced.heard(&[Subject::Full]);
            announced.has_some();
        }
        "file-size-little-dump" => {
            limit(Resource::Fsize, 300 << 10);
            let announced = announce(to_dir(), || ());
            announced.heard(&[Subject::Full]);
            announced.has_log();
        }
        "file-size-later" => {
            let later = || limit(Resource::Fsize, 0);
            let announced = announce(Scribe::builder(), later);
            // The log's file has its size already.
            announced.heard(&[]);
            announced.has_all();
        }
        "address-space" => {
            // Room for the runtime, and for a log of less than it may have.
            limit(Resource::As, mapped() + (20 << 20));
            let announced = announce(Scribe::builder(), || ());
            announced.heard(&[]);
            announced.has_all();
        }
        "no-address-space" => {
            limit(Resource::As, mapped() + (16 << 10));
            let announced = announce(Scribe::builder(), || ());
            assert_eq!(announced.written, 0);
            assert!(announced.notices.iter().all(|(subject, _)| *subject != Subject::Full));
        }
        "no-descriptors" => {
            let files = exhaust_descriptors();
            let announced = announce(Scribe::builder(), || ());
            drop(files);
            announced.heard(&[Subject::Log]);
            announced.has_no_file();
        }
        "no-descriptors-for-a-dump" => {
            let files = exhaust_descriptors();
            let announced = announce(to_dir(), || ());
            drop(files);
            announced.heard(&[Subject::Log, Subject::Log]);
            announced.has_no_file();
        }
        _ => panic!("no scenario {scenario}"),
    }
}

fn limit(of: Resource, bytes: u64) {
    let maximum = getrlimit(of).maximum;
    setrlimit(of, Rlimit { current: Some(bytes), maximum }).unwrap();
}

/// Bytes of address space in use.
fn mapped() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

fn exhaust_descriptors() -> Vec<File> {
    limit(Resource::Nofile, 64);
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(files.len() > 32);
    files
}

fn dir_with_victim() -> (TempDir, impl Fn()) {
    let dir = TempDir::new().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let before = fs::metadata(&victim).unwrap();
    let unchanged = move || {
        let after = fs::metadata(&victim).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!((after.mode(), after.mtime_nsec()), (before.mode(), before.mtime_nsec()));
    };
    (dir, unchanged)
}

fn what_stands_in_the_dumps_place_stays() {
    for name in ["symlink", "dangling", "hard-link", "folder", "fifo", "taken-twice"] {
        let (dir, unchanged) = dir_with_victim();
        run(scenario(name, dir.path()), &[]);
        unchanged();
    }
}

fn a_directory_that_is_none() {
    let (dir, unchanged) = dir_with_victim();
    run(scenario("no-directory", &dir.path().join("nowhere")), &[]);
    run(scenario("no-directory", &dir.path().join("victim")), &[]);
    unchanged();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

fn a_private_directory_of_others() {
    let jitdump = Path::new("jitdump");
    let (dir, unchanged) = dir_with_victim();
    let private = dir.path().join("jitscribe");
    let envs = [("JITSCRIBE", jitdump), ("XDG_RUNTIME_DIR", dir.path())];
    let refused = || run(scenario("environment", dir.path()), &envs);
    // Others may write to it.
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o777)).unwrap();
    refused();
    // It is someone else's.
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&private, Some(65_534), None).unwrap();
        refused();
    }
    assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
    fs::remove_dir(&private).unwrap();
    // It leads elsewhere.
    let elsewhere = TempDir::new().unwrap();
    symlink(elsewhere.path(), &private).unwrap();
    refused();
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    fs::remove_file(&private).unwrap();
    fs::write(&private, "a file").unwrap();
    refused();
    unchanged();
}

fn a_dump_is_for_its_user_alone() {
    let dir = TempDir::new().unwrap();
    let jitdump = Path::new("jitdump");
    for variable in ["XDG_RUNTIME_DIR", "JITSCRIBE_DIR"] {
        let envs = [("JITSCRIBE", jitdump), (variable, dir.path())];
        run(scenario("dump", dir.path()), &envs);
    }
    let private = fs::metadata(dir.path().join("jitscribe")).unwrap();
    assert_eq!(private.permissions().mode() & 0o777, 0o700);
}

fn no_space_for_a_dump() {
    if !have(&[Privilege::Mounts]) {
        return;
    }
    for (name, size) in [("little-space", "size=512k"), ("no-space", "size=64k")] {
        let dir = TempDir::new().unwrap();
        let mount = r#"mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@""#;
        let mut shell = unshare();
        shell.args(["--mount", "sh", "-c", mount, "sh", size]).arg(dir.path());
        let player = scenario(name, dir.path());
        shell.arg(player.get_program()).args(player.get_args());
        run(shell, &[]);
    }
}

/// There, space is written and not allocated.
fn no_space_for_a_dump_in_ext4() {
    if !have(&[Privilege::Ext4]) {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (image, mount_point) = (dir.path().join("image"), dir.path().join("mounted"));
    fs::create_dir(&mount_point).unwrap();
    let mount = r#"truncate -s 1M "$1" && mkfs.ext4 -q -O ^has_journal -N 16 "$1" &&
        mount -o loop "$1" "$2" && shift 2 && exec "$@""#;
    let mut shell = unshare();
    shell.args(["--mount", "sh", "-c", mount, "sh"]).arg(&image).arg(&mount_point);
    let player = scenario("little-space", &mount_point);
    shell.arg(player.get_program()).args(player.get_args());
    run(shell, &[]);
}

fn no_limit_is_a_signal() {
    for name in [
        "file-size-0",
        "file-size-little",
        "file-size-little-dump",
        "file-size-later",
        "address-space",
        "no-address-space",
        "no-descriptors",
        "no-descriptors-for-a-dump",
    ] {
        let dir = TempDir::new().unwrap();
        run(scenario(name, dir.path()), &[]);
    }
}

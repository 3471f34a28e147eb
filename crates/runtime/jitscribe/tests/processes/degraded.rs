//! What a process may not do, or does to itself.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use jitdump::{CodeEvent, Dump};
use jitscribe::{Code, Scribe, Subject};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::Test;
use crate::logs::{log_of, player};
use crate::sys;

pub const TESTS: &[Test] = &[
    ("without_memfd_create_the_log_is_found_in_memory", without_memfd_create),
    ("without_what_makes_forks_known", without_what_makes_forks_known),
    ("a_child_that_shares_memory_writes_to_the_same_log", a_child_that_shares_memory),
    ("among_many_descriptors_the_log_is_found", among_many_descriptors),
    ("the_table_of_descriptors_is_enlarged_for_one_thread_alone", table_of_descriptors),
];

/// Starts a scenario, which reports when it is ready and then waits for its end.
fn start(scenario: &str) -> Child {
    let mut child = player("degraded", &[scenario.to_owned()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).expect(scenario);
    assert_eq!(&ready, b"ready\n");
    child
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

pub fn play(arguments: &[&str]) {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = heard.clone();
    let builder =
        Scribe::builder().on_notice(move |notice| listener.lock().unwrap().push(notice.subject()));
    match arguments {
        ["no-memfd", error] => {
            sys::forbid(&[libc::SYS_memfd_create], error.parse().unwrap());
            let scribe = builder.build();
            load(scribe, 0..1_000);
            assert_eq!(*heard.lock().unwrap(), [Subject::Log]);
        }
        ["no-fallocate"] => {
            // The log grows by its mapping.
            sys::forbid(&[libc::SYS_fallocate], libc::EPERM);
            load(builder.build(), 0..1_000);
            assert!(heard.lock().unwrap().is_empty());
        }
        ["no-madvise"] => {
            sys::forbid(&[libc::SYS_madvise], libc::EINVAL);
            let scribe = builder.build();
            load(scribe, 0..500);
            assert_eq!(*heard.lock().unwrap(), [Subject::Fork]);
            // Each announcement asks for the process's id: a child is known all the same.
            let Some(child) = sys::fork() else {
                load(scribe, 5_000..5_010);
                let fd = scribe.log_fd().unwrap().try_clone_to_owned().unwrap();
                let head = code_log::snapshot(&File::from(fd)).unwrap().head;
                sys::exit(i32::from(head.pid != std::process::id()));
            };
            assert_eq!(sys::wait_for(child), 0);
            vfork(scribe);
            load(scribe, 500..1_000);
        }
        ["vfork"] => {
            let scribe = builder.build();
            load(scribe, 0..500);
            vfork(scribe);
            load(scribe, 500..1_000);
            assert!(heard.lock().unwrap().is_empty());
        }
        ["descriptors"] => {
            let many = 4_000;
            let limit = Rlimit { current: Some(many + 100), maximum: Some(many + 100) };
            let files = setrlimit(Resource::Nofile, limit)
                .map(|()| (0..many).map(|_| File::open("/dev/null").unwrap()).collect::<Vec<_>>());
            load(builder.build(), 0..1_000);
            std::mem::forget(files);
        }
        ["table", threads] => {
            // A child's table is as large as what is open needs; that of a program which was started may be larger.
            if let Some(child) = sys::fork() {
                return assert_eq!(sys::wait_for(child), 0);
            }
            let others: usize = threads.parse().unwrap();
            (0..others).for_each(|_| drop(std::thread::spawn(std::thread::park)));
            let before = size_of_table();
            let scribe = builder.build();
            load(scribe, 0..1_000);
            let fd = scribe.log_fd().unwrap();
            assert_eq!(size_of_table() == before, others > 0, "{before}");
            // The kernel begins with 64 numbers.
            assert!(fd.as_raw_fd() >= if others > 0 { 48 } else { 900 }, "{fd:?}");
            has_all(&File::from(fd.try_clone_to_owned().unwrap()));
            sys::exit(0);
        }
        _ => panic!("{arguments:?}"),
    }
    println!("ready");
    let _ = io::stdin().read(&mut [0]);
}

/// The number of descriptors that the kernel allows.
fn size_of_table() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find(|line| line.starts_with("FDSize:")).unwrap().to_owned()
}

fn load(scribe: Scribe, range: std::ops::Range<u64>) {
    for n in range {
        scribe.load(&Code::at(0x1000 + n, 1).named(&format!("code {n}"))).leak();
    }
}

static SCRIBE: OnceLock<Scribe> = OnceLock::new();

fn vfork(scribe: Scribe) {
    extern "C" fn child(_: *mut libc::c_void) -> libc::c_int {
        load(SCRIBE.get().copied().unwrap(), 2_000..2_010);
        0
    }
    SCRIBE.set(scribe).unwrap();
    sys::in_vfork_child(child);
}

/// The codes below 1000 are all there, once.
fn has_all(source: &impl code_log::Source) {
    let snapshot = code_log::snapshot(source).unwrap();
    assert_eq!((snapshot.torn, snapshot.head.left_out), (0, 0));
    let mut found = vec![0; 1_000];
    for event in Dump::parse(&snapshot.bytes).unwrap().codes() {
        let CodeEvent::Load(code) = event.unwrap() else { continue };
        let n = code.address - 0x1000;
        assert_eq!(code.name, format!("code {n}").as_bytes());
        if let Some(found) = found.get_mut(n as usize) {
            *found += 1;
        }
    }
    assert!(found.iter().all(|count| *count == 1));
}

/// Anonymous shared memory of a process, found as `jitscribe dump -p` finds it.
struct Memory {
    file: File,
    start: u64,
    size: u64,
}

impl code_log::Source for Memory {
    fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        let length = room.len().min(self.size.saturating_sub(at) as usize);
        self.file.read_exact_at(&mut room[..length], self.start + at)?;
        Ok(length)
    }
}

fn log_in_memory(child: &Child) -> Memory {
    let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
    let shared = maps.lines().filter(|line| line.contains(" rw-s "));
    let found = shared.filter_map(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let end = u64::from_str_radix(rest.split(' ').next().unwrap(), 16).unwrap();
        let file = File::open(format!("/proc/{}/mem", child.id())).unwrap();
        let memory = Memory { file, start, size: end - start };
        let mut bytes = vec![0; code_log::Head::SIZE];
        code_log::Source::read_at(&memory, 0, &mut bytes).ok()?;
        code_log::Head::parse(&bytes).ok().map(|_| memory)
    });
    let mut found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "{maps}");
    found.pop().unwrap()
}

fn without_memfd_create() {
    for error in [libc::EPERM, libc::ENOSYS] {
        let child = player_with("no-memfd", &error.to_string());
        has_all(&log_in_memory(&child));
        end(child);
    }
    let child = start("no-fallocate");
    has_all(&log_of(&child));
    end(child);
}

fn player_with(scenario: &str, argument: &str) -> Child {
    let mut child = player("degraded", &[scenario.to_owned(), argument.to_owned()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).expect(scenario);
    child
}

fn without_what_makes_forks_known() {
    let child = start("no-madvise");
    has_all(&log_of(&child));
    end(child);
}

fn a_child_that_shares_memory() {
    let child = start("vfork");
    has_all(&log_of(&child));
    end(child);
}

fn among_many_descriptors() {
    let child = start("descriptors");
    has_all(&log_of(&child));
    end(child);
}

fn table_of_descriptors() {
    for threads in ["0", "1"] {
        let status =
            player("degraded", &["table".to_owned(), threads.to_owned()]).status().unwrap();
        assert!(status.success(), "with {threads} more threads: {status}");
    }
}

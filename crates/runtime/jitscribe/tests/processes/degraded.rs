//! What a process may not do, or does to itself.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use jitscribe::{Code, Scribe, Subject};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::Test;
use crate::logs::{
    Mapped, Told, loads, log_of, own_log, own_snapshot, player, say, shared_memory, subjects,
};
use crate::notices::listening;
use crate::sys;

pub const TESTS: &[Test] = &[
    ("without_memfd_create_the_log_is_found_in_memory", without_memfd_create),
    ("without_what_makes_forks_known", || has_all_in_its_log("no-madvise")),
    ("a_child_that_shares_memory_writes_to_the_same_log", || has_all_in_its_log("vfork")),
    ("among_many_descriptors_the_log_is_found", || has_all_in_its_log("descriptors")),
    ("the_table_of_descriptors_is_enlarged_for_one_thread_alone", table_of_descriptors),
];

fn start(scenario: &[&str]) -> Told {
    Told::start(&mut player("degraded", scenario))
}

pub fn play(arguments: &[&str]) {
    let (builder, heard) = listening(Scribe::builder());
    match arguments {
        ["no-memfd", error] => {
            sys::forbid(&[libc::SYS_memfd_create], error.parse().unwrap());
            let scribe = builder.build();
            load(scribe, 0..1_000);
            assert_eq!(subjects(&heard.lock().unwrap()), [Subject::Log]);
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
            assert_eq!(subjects(&heard.lock().unwrap()), [Subject::Fork]);
            // Each announcement asks for the process's id: a child is known all the same.
            let Some(child) = sys::fork() else {
                load(scribe, 5_000..5_010);
                let head = own_snapshot(scribe).head;
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
            has_all(&own_log(scribe));
            sys::exit(0);
        }
        _ => panic!("{arguments:?}"),
    }
    let _ = say("ready");
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
    for code in loads(&snapshot.bytes) {
        let n = code.address - 0x1000;
        assert_eq!(code.name, format!("code {n}").as_bytes());
        if let Some(found) = found.get_mut(n as usize) {
            *found += 1;
        }
    }
    assert!(found.iter().all(|count| *count == 1));
}

/// The log in anonymous shared memory of a process, found as `jitscribe dump -p` finds it.
fn log_in_memory(told: &Told) -> Mapped {
    let is_log = |memory: &Mapped| {
        let mut bytes = vec![0; code_log::Head::SIZE];
        code_log::Source::read_at(memory, 0, &mut bytes).is_ok()
            && code_log::Head::parse(&bytes).is_ok()
    };
    let mut found = shared_memory(&told.pid().to_string(), "");
    found.retain(is_log);
    assert_eq!(found.len(), 1, "{found:?}");
    found.pop().unwrap()
}

fn without_memfd_create() {
    for error in [libc::EPERM, libc::ENOSYS] {
        let told = start(&["no-memfd", &error.to_string()]);
        has_all(&log_in_memory(&told));
        told.end();
    }
    has_all_in_its_log("no-fallocate");
}

fn has_all_in_its_log(scenario: &str) {
    let told = start(&[scenario]);
    has_all(&log_of(&told.child));
    told.end();
}

fn table_of_descriptors() {
    for threads in ["0", "1"] {
        let status = player("degraded", &["table", threads]).status().unwrap();
        assert!(status.success(), "with {threads} more threads: {status}");
    }
}

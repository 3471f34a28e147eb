//! The process context, as a reader in another process finds it: with several scribes, forks, threads, other contexts, without what
//! it needs, and at each instruction of an update.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use jitscribe::{Builder, Code, CodeContext, CodeLog, Mode, Scribe, Subject};
use process_context::{
    Context, LARGEST_PAYLOAD, Mapping, Memory, Published, ReadError, Value, read,
};

use crate::Test;
use crate::logs::{Told, player, say, wait_until};
use crate::notices::{Heard, listening};
use crate::sys::{self, ForeignContext};

pub const TESTS: &[Test] = &[
    ("a_context_says_where_the_logs_are", plain),
    ("a_child_of_a_fork_has_its_own_context", fork),
    ("a_child_that_borrows_memory_leaves_the_context_alone", vfork),
    ("there_is_no_second_context", foreign_first),
    ("a_context_makes_way_for_a_later_one", foreign_later),
    ("a_context_does_without_system_calls", forbidden),
    ("threads_add_logs_to_one_context", threads),
    ("a_context_is_whole_at_each_instruction_of_an_update", steps),
];

fn start(scenario: &str, environment: &[(&str, &str)]) -> Told {
    Told::start(player("context", &[scenario]).envs(environment.iter().copied()))
}

struct ProcessMemory(File);

impl Memory for ProcessMemory {
    fn read_at(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.0.read_exact_at(buffer, address).is_ok()
    }
}

/// What a reader finds in a process.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    name: String,
    at: u64,
    logs: Vec<CodeLog>,
    service: Option<String>,
}

fn maps(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap()
}

fn memory(pid: u32) -> ProcessMemory {
    ProcessMemory(File::open(format!("/proc/{pid}/mem")).unwrap())
}

/// The addresses and names of all contexts of a process.
fn mappings(pid: u32) -> Vec<(u64, String)> {
    let maps = maps(pid);
    let all = maps.lines().filter_map(|line| Mapping::parse(line.as_bytes()));
    all.filter(Mapping::may_be_context)
        .map(|mapping| (mapping.start, String::from_utf8(mapping.name.to_vec()).unwrap()))
        .collect()
}

fn decoded(name: String, published: Published<'_>) -> Found {
    let context = Context::new(published.payload);
    let service = context.resource().map(Result::unwrap).find_map(|attribute| {
        match (attribute.key, attribute.value) {
            ("service.name", Value::Text(name)) => Some(name.to_owned()),
            _ => None,
        }
    });
    let logs = context.code_logs().map(Result::unwrap).collect();
    Found { name, at: published.at, logs, service }
}

/// The one context of a process, once it is complete: another thread may have mapped it just now.
fn context_of(pid: u32) -> Found {
    let mappings = mappings(pid);
    let [(address, name)] = &mappings[..] else { panic!("{mappings:?}") };
    let memory = memory(pid);
    let mut found = None;
    wait_until("the context is complete", || {
        let mut buffer = vec![0; LARGEST_PAYLOAD];
        found = match read(&memory, *address, &mut buffer) {
            Err(ReadError::Busy) => None,
            published => Some(decoded(name.clone(), published.unwrap())),
        };
        found.is_some()
    });
    found.unwrap()
}

/// The logs of a process by the names of their mappings, without regard to parts.
fn logs_by_name(pid: u32) -> Vec<CodeLog> {
    let mut logs: Vec<(CodeLog, &str)> = Vec::new();
    let maps = maps(pid);
    for line in maps.lines().filter(|line| line.contains("/memfd:jitscribe")) {
        let mapping = Mapping::parse(line.as_bytes()).unwrap();
        let file = line.split_whitespace().nth(4).unwrap();
        match logs.last_mut().filter(|(_, of)| *of == file) {
            Some((log, _)) => log.size = mapping.end - log.address,
            None => {
                let size = mapping.end - mapping.start;
                logs.push((CodeLog { address: mapping.start, size, version: 1 }, file));
            }
        }
    }
    sorted(logs.into_iter().map(|(log, _)| log))
}

fn sorted(logs: impl IntoIterator<Item = CodeLog>) -> Vec<CodeLog> {
    let mut logs: Vec<CodeLog> = logs.into_iter().collect();
    logs.sort_by_key(|log| log.address);
    logs
}

fn with_context() -> Builder {
    // Different sizes, so that the kernel does not join the mappings in the list.
    Scribe::builder().limit(1 << 20).process_context(Mode::On)
}

/// What was heard of process contexts.
fn said(heard: &Heard) -> Vec<String> {
    let heard = heard.lock().unwrap();
    let about = heard.iter().filter(|(subject, _)| *subject == Subject::ProcessContext);
    about.map(|(_, text)| text.clone()).collect()
}

fn announce(scribe: Scribe, count: u64) {
    for number in 0..count {
        drop(scribe.load(&Code::at(0x1000 + number, 1).named("f")));
    }
}

pub fn play(arguments: &[&str]) {
    match arguments {
        ["global"] => play_global(),
        ["fork"] => play_fork(),
        ["vfork"] => play_vfork(),
        ["foreign-first"] => play_foreign_first(),
        ["foreign-poll"] => play_foreign_later("poll"),
        ["foreign-announce"] => play_foreign_later("announce"),
        ["foreign-thread"] => play_foreign_later("thread"),
        ["threads"] => play_threads(),
        ["steps"] => play_steps(),
        [calls] if calls.starts_with("without:") => {
            play_without(calls.trim_start_matches("without:"));
        }
        _ => panic!("{arguments:?}"),
    }
}

fn play_global() {
    let scribe = Scribe::global();
    let mut answer = "ready".to_owned();
    while let Some(word) = say(&answer) {
        match word.as_str() {
            "announce" => announce(scribe, 1),
            "another" => _ = Scribe::builder().limit(2 << 20).build(),
            _ => panic!("{word}"),
        }
        answer = "done".to_owned();
    }
}

fn plain() {
    // Off, unless requested.
    for environment in [&[][..], &[("JITSCRIBE", "process-context,process-context=off")]] {
        let told = start("global", environment);
        assert_eq!(mappings(told.pid()), []);
        told.end();
    }
    let environment = [
        ("JITSCRIBE", "process-context"),
        ("JITSCRIBE_LIMIT", "1M"),
        ("OTEL_SERVICE_NAME", "shop"),
    ];
    let mut told = start("global", &environment);
    let first = context_of(told.pid());
    assert_eq!(first.service.as_deref(), Some("shop"));
    assert_eq!((first.logs.len(), &first.logs), (1, &logs_by_name(told.pid())));
    // An announcement leaves it alone.
    told.tell("announce");
    assert_eq!(context_of(told.pid()), first);
    // A scribe without the setting is listed, too.
    told.tell("another");
    let second = context_of(told.pid());
    assert!(second.at > first.at, "{second:?}");
    assert_eq!(second.logs.len(), 2);
    assert_eq!(sorted(second.logs), logs_by_name(told.pid()));
    assert_eq!((second.name, second.service), (first.name, first.service));
    // No descriptor stays behind.
    let files = fs::read_dir(format!("/proc/{}/fd", told.pid())).unwrap().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    assert!(links.into_iter().all(|link| !link.to_string_lossy().contains("OTEL_CTX")));
    told.end();
}

fn play_fork() {
    let scribe = with_context().build();
    let other = Scribe::builder().limit(2 << 20).build();
    announce(scribe, 1);
    announce(other, 1);
    let mut word = say("ready");
    let parent = std::process::id();
    if sys::fork().is_none() {
        // It takes over the pipes; the parent waits for its end.
        assert_eq!(CodeContext::of_process().logs(), []);
        let mut answer = std::process::id().to_string();
        loop {
            word = say(&answer);
            match word.as_deref() {
                Some("announce") => announce(scribe, 1),
                Some("announce-other") => announce(other, 1),
                _ => sys::exit(0),
            }
            assert_ne!(std::process::id(), parent);
            answer = CodeContext::of_process().logs().len().to_string();
        }
    }
    drop(word);
    assert_eq!(sys::failed_children(), 0);
}

fn fork() {
    let mut told = start("fork", &[]);
    let parent = context_of(told.pid());
    assert_eq!(sorted(parent.logs.clone()), logs_by_name(told.pid()));
    let child: u32 = told.tell("fork").parse().unwrap();
    // It has announced nothing.
    assert_eq!(mappings(child), []);
    assert_eq!(told.tell("announce"), "1");
    let first = context_of(child);
    assert_eq!(first.logs.len(), 1);
    let inode = |pid: u32, address: u64| {
        let maps = maps(pid);
        let line = maps.lines().find(|line| line.starts_with(&format!("{address:x}-")));
        line.unwrap().split_whitespace().nth(4).unwrap().to_owned()
    };
    // The log is the child's own, at the address of its parent's.
    let address = first.logs[0].address;
    assert_ne!(inode(child, address), inode(told.pid(), address));
    assert_eq!(told.tell("announce-other"), "2");
    let second = context_of(child);
    assert_eq!(sorted(second.logs), sorted(parent.logs.clone()));
    assert!(second.at > first.at && first.at > parent.at);
    assert_eq!(context_of(told.pid()), parent);
    told.end();
}

static VFORK: std::sync::OnceLock<Scribe> = std::sync::OnceLock::new();

extern "C" fn announce_in_vfork_child(_: *mut libc::c_void) -> libc::c_int {
    announce(*VFORK.get().unwrap(), 5000);
    0
}

fn play_vfork() {
    let scribe = *VFORK.get_or_init(|| with_context().build());
    announce(scribe, 1);
    let _ = say("ready");
    sys::in_vfork_child(announce_in_vfork_child);
    let _ = say("done");
    // As the standard library starts programs, by vfork: the program has no context.
    let mut cat = std::process::Command::new("cat");
    let output = cat.arg("/proc/self/maps").output().unwrap();
    assert!(output.status.success());
    let maps = String::from_utf8(output.stdout).unwrap();
    assert!(maps.contains("/cat") && !maps.contains("OTEL_CTX"), "{maps}");
    let _ = say("done");
}

fn vfork() {
    let mut told = start("vfork", &[]);
    let before = context_of(told.pid());
    for _ in 0..2 {
        assert_eq!(told.tell("go on"), "done");
        assert_eq!(context_of(told.pid()), before);
    }
    told.end();
}

fn play_foreign_first() {
    let foreign = ForeignContext::publish(b"\x12\x00");
    let (builder, heard) = listening(with_context());
    let scribe = builder.build();
    let before = CodeContext::of_process();
    assert_eq!(before.logs().len(), 1);
    let said = said(&heard);
    let [said] = &said[..] else { panic!("{said:?}") };
    assert!(said.contains("another OpenTelemetry process context"), "{said}");
    // What an SDK does with it.
    let mut payload = b"\x12\x00".to_vec();
    let mut entries = [0; CodeContext::MOST_BYTES];
    let size = before.encode_attributes(&mut entries).unwrap();
    payload.extend_from_slice(&entries[..size]);
    assert_eq!(before.encode_attributes(&mut entries[..size - 1]), None);
    let _ = say("ready");
    foreign.update(&payload);
    announce(scribe, 1);
    let _ = say("updated");
}

fn foreign_first() {
    let mut told = start("foreign-first", &[]);
    // The foreign one alone, which knows of no log.
    assert_eq!(context_of(told.pid()).logs, []);
    assert_eq!(told.tell("update"), "updated");
    assert_eq!(context_of(told.pid()).logs, logs_by_name(told.pid()));
    told.end();
}

fn play_foreign_later(how: &str) {
    let builder = with_context();
    let builder = if how == "thread" { builder.control_thread() } else { builder };
    let scribe = builder.build();
    let _ = say("ready");
    let foreign = ForeignContext::publish(b"\x12\x00");
    let count = || mappings(std::process::id()).len();
    let act = || match how {
        "poll" => scribe.poll(),
        "announce" => announce(scribe, 10_000),
        _ => {}
    };
    wait_until("it makes way", || {
        act();
        count() == 1
    });
    let _ = say("yielded");
    // Announcements may run in a signal handler, so that they publish nothing.
    if how != "announce" {
        foreign.withdraw();
        wait_until("it comes back", || {
            act();
            count() == 1
        });
    }
    let _ = say("back");
}

fn foreign_later() {
    let run = |how| {
        let mut told = start(how, &[]);
        let ours = context_of(told.pid());
        assert_eq!(told.tell("go on"), "yielded");
        assert_eq!(context_of(told.pid()).logs, [], "{how}");
        assert_eq!(told.tell("go on"), "back");
        if how != "foreign-announce" {
            let again = context_of(told.pid());
            assert_eq!(again.logs, ours.logs, "{how}");
            assert!(again.at > ours.at);
        }
        told.end();
    };
    // Each waits for a second, and for another.
    std::thread::scope(|scope| {
        for how in ["foreign-poll", "foreign-announce", "foreign-thread"] {
            scope.spawn(move || run(how));
        }
    });
}

fn play_without(calls: &str) {
    for call in calls.split('+') {
        let call = match call {
            "memfd" => libc::SYS_memfd_create,
            "prctl" => libc::SYS_prctl,
            "openat" => libc::SYS_openat,
            "madvise" => libc::SYS_madvise,
            _ => panic!("{call}"),
        };
        sys::forbid(&[call], libc::EPERM);
    }
    let (builder, heard) = listening(with_context());
    let scribe = builder.build();
    announce(scribe, 1);
    assert_eq!(CodeContext::of_process().logs().len(), 1);
    let _ = say("ready");
    let _ = say(&said(&heard).join("; "));
}

fn forbidden() {
    // Whether the kernel has names for anonymous memory: CONFIG_ANON_VMA_NAME.
    let has_names = sys::can_name_memory();
    for (calls, name, notice) in [
        ("memfd", has_names.then_some("[anon:OTEL_CTX]"), "a name for the memory"),
        ("prctl", Some("/memfd:OTEL_CTX (deleted)"), ""),
        ("memfd+prctl", None, "a name for the memory"),
        ("openat", None, "another process context in /proc/self/maps"),
        ("madvise", None, "cleared on fork"),
    ] {
        let mut told = start(&format!("without:{calls}"), &[]);
        let found = mappings(told.pid());
        let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, name.as_slice(), "{calls}");
        if name.is_some() {
            assert_eq!(context_of(told.pid()).logs.len(), 1, "{calls}");
        }
        let said = told.tell("go on");
        let expected = if name.is_some() { "" } else { notice };
        assert!(said.contains(expected), "{calls}: {said}");
        assert_eq!(said.is_empty(), expected.is_empty(), "{calls}: {said}");
        told.end();
    }
}

const THREADS: usize = 8;
const SCRIBES: usize = 3;

fn play_threads() {
    let _ = say("ready");
    let heard: Vec<Heard> = std::thread::scope(|scope| {
        let run = |thread: usize| {
            let mut all = Vec::new();
            for number in 0..SCRIBES {
                let (builder, heard) =
                    listening(with_context().limit((thread * SCRIBES + number + 1) << 17));
                announce(builder.build(), 100);
                all.push(heard);
            }
            all
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let unlisted = heard.iter().filter(|heard| !said(heard).is_empty()).count();
    assert_eq!(CodeContext::of_process().logs().len(), 16);
    let _ = say(&unlisted.to_string());
}

fn threads() {
    let mut told = start("threads", &[]);
    let pid = told.pid();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        // What is read in the middle of it is whole, and never less than before.
        let reader = scope.spawn(|| {
            let (mut seen, mut buffer) = (Vec::new(), vec![0; LARGEST_PAYLOAD]);
            let memory = memory(pid);
            while !is_over.load(order) {
                let Some((address, name)) = mappings(pid).pop() else { continue };
                match read(&memory, address, &mut buffer) {
                    Ok(published) => {
                        let logs = decoded(name, published).logs;
                        assert!(logs.starts_with(&seen), "{logs:?} after {seen:?}");
                        seen = logs;
                    }
                    // The mapping is there before its header.
                    Err(ReadError::Busy) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        // There is no space for eight of the 24.
        assert_eq!(told.tell("go on"), "8");
        is_over.store(true, order);
        reader.join().unwrap();
    });
    let (found, by_name) = (context_of(pid).logs, logs_by_name(pid));
    assert_eq!((found.len(), by_name.len()), (16, THREADS * SCRIBES));
    assert!(found.iter().all(|log| by_name.contains(log)), "{found:x?} of {by_name:x?}");
    told.end();
}

fn play_steps() {
    let _ = with_context().build();
    let _ = say("ready");
    sys::stop_to_be_traced();
    for scribe in 2..=4 {
        let _ = Scribe::builder().limit(scribe << 20).build();
        sys::stop_here();
    }
    panic!("it is killed");
}

/// Stops the process at each instruction of an update, and reads the context.
fn steps() {
    let mut told = start("steps", &[]);
    let pid = told.pid();
    let [(address, name)] = &mappings(pid)[..] else { panic!() };
    let memory = memory(pid);
    told.tell_and_go("go on");
    sys::wait_until_stopped(pid);
    // An update ends with this call. The second one is followed from the last call before it, or an earlier one if reading the
    // list of mappings takes one more.
    let calls = sys::run_to_call(pid, libc::SYS_prctl, usize::MAX);
    sys::run_until_stopped(pid);
    let before = context_of(pid);
    assert_eq!(sys::run_to_call(pid, libc::SYS_prctl, calls - 1), calls - 1);
    let mut buffer = vec![0; LARGEST_PAYLOAD];
    let mut seen: Vec<Result<Found, ReadError>> = vec![Ok(before.clone())];
    let mut instants = [0_u64; 3];
    // In a tight loop of an unoptimised build, tens of thousands.
    while instants[2] < 10 && instants.iter().sum::<u64>() < 1_000_000 {
        sys::step(pid);
        let found = read(&memory, *address, &mut buffer);
        let found = found.map(|published| decoded(name.clone(), published));
        if seen.last() != Some(&found) {
            seen.push(found);
        }
        instants[seen.len() - 1] += 1;
    }
    let [Ok(first), Err(ReadError::Busy), Ok(second)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((first, first.logs.len(), second.logs.len()), (&before, 2, 3));
    assert_eq!(sorted(second.logs.clone()), logs_by_name(pid));
    assert!(instants[1] >= 4, "{instants:?}");
    sys::run_until_stopped(pid);
    told.child.kill().unwrap();
    told.child.wait().unwrap();
}

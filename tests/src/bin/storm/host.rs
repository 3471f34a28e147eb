//! The processes of the storm: each announces codes, and records in the [`Truth`] which are alive.

use std::path::PathBuf;
use std::sync::RwLock;
use std::sync::atomic::Ordering::SeqCst;

use jitscribe::{Code, Line, LoadedCode, Mode, Scribe};

use crate::sys::{self, Fork, Memory, Refusal};
use crate::truth::{Entry, Kit, PLACE, ROWS, SLOTS, State, THREADS, Truth};

/// Announces into some slots of an entry.
struct Hand {
    scribe: Scribe,
    memory: Memory,
    entry: Entry,
    first: usize,
    loaded: [u64; ROWS],
    count: u64,
    random: u64,
}

impl Hand {
    fn new(scribe: Scribe, memory: Memory, entry: Entry, thread: usize) -> Self {
        let random = 0x1234_5678 + sys::pid() * 97 + thread as u64;
        Self { scribe, memory, entry, first: thread * ROWS, loaded: [0; ROWS], count: 0, random }
    }

    /// Another code in one of the slots, or none in it any more.
    fn act(&mut self) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let row = (self.random >> 33) as usize % ROWS;
        let slot = self.first + row;
        if self.loaded[row] != 0 {
            self.entry.set_alive(slot, 0);
            drop(LoadedCode::from_raw(self.scribe, self.loaded[row]));
            self.loaded[row] = 0;
            // Some slots stay empty for a while.
            if self.random >> 62 == 0 {
                return;
            }
        }
        self.count += 1;
        let kit = Kit::new(self.entry.number(), slot, self.count);
        let bytes = self.memory.write(slot * PLACE, &kit.bytes()[..kit.size()]);
        let mut room = [0; 48];
        let lines = [Line::new(0, "storm.c", kit.line()).column(1)];
        let code = Code::new(bytes).named(kit.name(&mut room)).lines(&lines);
        self.loaded[row] = self.scribe.load(&code).into_raw();
        if self.loaded[row] == 0 {
            self.entry.count_refused();
        } else {
            self.entry.set_alive(slot, kit.0);
            self.entry.count_taken();
        }
    }

    /// The same in the child of a fork, which uses another entry: it has everything that its parent had.
    fn heir(&self, entry: Entry) -> Self {
        for slot in 0..SLOTS {
            entry.set_alive(slot, self.entry.alive(slot));
        }
        entry.set_process(sys::pid(), self.memory.address());
        Self { entry, count: self.count + (1 << 31), ..*self }
    }
}

/// What one process is to do, as words of its command line.
#[derive(Clone, Debug)]
pub enum Role {
    /// Announces until it is killed, by four threads.
    Churn,
    /// The same by threads that come and go.
    Threads,
    /// Makes children that announce a little and wait. The parent waits for the first announcement of each, or continues.
    Forks(Fork, bool),
    /// Makes children that run in its memory, by vfork or not.
    Borrowers(bool),
    /// So many announcements under a limit, or without a system call.
    Calls { many: u64, under: Under, late: bool },
}

/// What makes it hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    Nothing,
    Limit { what: u32, to: u64, as_nobody: bool },
    Forbidden { call: i64, how: Refusal },
}

impl Under {
    fn begin(self) {
        match self {
            Self::Nothing => {}
            Self::Limit { what, to, as_nobody } => {
                if as_nobody {
                    sys::become_nobody();
                }
                sys::limit(what, to);
            }
            Self::Forbidden { call, how } => sys::forbid(call, how),
        }
    }
}

impl Role {
    pub fn words(&self) -> Vec<String> {
        let words: Vec<String> = match *self {
            Self::Churn => vec!["churn".into()],
            Self::Threads => vec!["threads".into()],
            Self::Forks(how, waits) => {
                let how = if how == Fork::Library { "fork" } else { "clone3" };
                vec![how.into(), u8::from(waits).to_string()]
            }
            Self::Borrowers(true) => vec!["vfork".into()],
            Self::Borrowers(false) => vec!["clone-vm".into()],
            Self::Calls { many, under, late } => {
                let mut words = vec!["calls".into(), many.to_string(), u8::from(late).to_string()];
                words.extend(match under {
                    Under::Nothing => vec!["nothing".to_owned()],
                    Under::Limit { what, to, as_nobody } => {
                        let numbers = [u64::from(what), to, u64::from(as_nobody)];
                        let numbers = numbers.iter().map(u64::to_string);
                        std::iter::once("limit".to_owned()).chain(numbers).collect()
                    }
                    Under::Forbidden { call, how: Refusal::Error(error) } => {
                        vec!["error".into(), call.to_string(), error.to_string()]
                    }
                    Under::Forbidden { call, how: Refusal::Kill } => {
                        vec!["kill".into(), call.to_string()]
                    }
                });
                words
            }
        };
        words
    }

    fn parse(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match &*words[0] {
            "churn" => Self::Churn,
            "threads" => Self::Threads,
            "fork" => Self::Forks(Fork::Library, number(1) != 0),
            "clone3" => Self::Forks(Fork::Clone3, number(1) != 0),
            "vfork" => Self::Borrowers(true),
            "clone-vm" => Self::Borrowers(false),
            "calls" => {
                let forbidden = |how| Under::Forbidden { call: number(4) as i64, how };
                let under = match &*words[3] {
                    "nothing" => Under::Nothing,
                    "limit" => Under::Limit {
                        what: number(4) as u32,
                        to: number(5),
                        as_nobody: number(6) != 0,
                    },
                    "error" => forbidden(Refusal::Error(number(5) as i32)),
                    "kill" => forbidden(Refusal::Kill),
                    other => panic!("{other}"),
                };
                Self::Calls { many: number(1), under, late: number(2) != 0 }
            }
            other => panic!("{other}"),
        }
    }
}

/// `storm host FD ENTRY FOLDER|- ROLE…`
pub fn main(words: &[String]) -> ! {
    sys::end_with_parent();
    let truth =
        Truth(sys::Shared::open(words[0].parse().expect("a descriptor"), crate::truth::WORDS));
    let entry = truth.entry(words[1].parse().expect("a number"));
    let folder = (words[2] != "-").then(|| PathBuf::from(&words[2]));
    let role = Role::parse(&words[3..]);
    let memory = Memory::new(SLOTS * PLACE);
    entry.set_process(sys::pid(), memory.address());
    let (under, late) = match role {
        Role::Calls { under, late, .. } => (under, late),
        _ => (Under::Nothing, false),
    };
    if !late {
        under.begin();
    }
    // No perf map, and nothing but the log: each publisher has tests of its own.
    let builder = Scribe::builder().perf_map(Mode::Off);
    let scribe = match folder {
        Some(folder) => builder.jitdump(Mode::On).dir(folder).build(),
        None => builder.build(),
    };
    if late {
        under.begin();
    }
    match role {
        Role::Churn => churn(scribe, memory, entry),
        Role::Threads => threads(scribe, memory, entry),
        Role::Forks(how, waits) => forks(scribe, memory, entry, truth, (how, waits)),
        Role::Borrowers(vfork) => borrowers(scribe, memory, entry, truth, vfork),
        Role::Calls { many, .. } => {
            let mut hand = Hand::new(scribe, memory, entry, 0);
            for _ in 0..many {
                hand.act();
                // It continues for a while after the log is full; in the end, there would be nothing left to compare.
                if entry.refused() > ROWS as u64 / 2 {
                    break;
                }
            }
            entry.set_state(State::Done);
            sys::wait_for_the_end()
        }
    }
}

fn churn(scribe: Scribe, memory: Memory, entry: Entry) -> ! {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut hand = Hand::new(scribe, memory, entry, thread);
                loop {
                    hand.act();
                }
            });
        }
    });
    unreachable!("threads that go on")
}

fn threads(scribe: Scribe, memory: Memory, entry: Entry) -> ! {
    let mut hands: [Hand; THREADS] =
        std::array::from_fn(|thread| Hand::new(scribe, memory, entry, thread));
    loop {
        std::thread::scope(|scope| {
            for hand in &mut hands {
                scope.spawn(|| {
                    for _ in 0..200 {
                        hand.act();
                    }
                });
            }
        });
    }
}

/// One thread forks; another one announces at the same time, except that no thread is in the middle of a slot.
fn forks(
    scribe: Scribe,
    memory: Memory,
    entry: Entry,
    truth: Truth,
    (how, waits): (Fork, bool),
) -> ! {
    let quiet = RwLock::new(());
    let mut hand = Hand::new(scribe, memory, entry, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = Hand::new(scribe, memory, entry, 1);
            loop {
                let _in_the_middle = quiet.read().expect("no panic");
                for _ in 0..20 {
                    other.act();
                }
            }
        });
        loop {
            for _ in 0..50 {
                hand.act();
            }
            // The number that is checked at the same time.
            let mine = truth.entries().filter(|entry| entry.state() != State::Free).count();
            if mine > 16 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            }
            let child = truth.claim();
            // Otherwise the child would record a slot as alive that the other thread is just recording as dead.
            let alone = quiet.write().expect("no panic");
            if !waits {
                child.set_goes_on();
            }
            if sys::fork(how).is_none() {
                let mut heir = hand.heir(child);
                for _ in 0..40 {
                    heir.act();
                }
                child.set_state(State::Done);
                sys::wait_for_the_end();
            }
            truth.forks().fetch_add(1, SeqCst);
            // It may have been looked at and killed by now.
            while waits && child.taken() == 0 && child.state() == State::AtWork {
                std::thread::yield_now();
            }
            drop(alone);
        }
    })
}

/// What a child that borrows our memory announces: it is no process of its own to anybody, and must not harm ours.
extern "C" fn borrow(scribe: *mut libc::c_void) -> i32 {
    // SAFETY: the scribe of the parent, which waits.
    let scribe = unsafe { *scribe.cast::<Scribe>() };
    static CODE: [u8; 64] = [0xc3; 64];
    for _ in 0..10 {
        drop(scribe.load(&Code::new(&CODE).named("borrowed")));
    }
    0
}

fn borrowers(scribe: Scribe, memory: Memory, entry: Entry, truth: Truth, vfork: bool) -> ! {
    let mut hand = Hand::new(scribe, memory, entry, 0);
    let mut given = scribe;
    loop {
        for _ in 0..50 {
            hand.act();
        }
        sys::in_clone_with_our_memory(vfork, borrow, (&raw mut given).cast());
        truth.forks().fetch_add(1, SeqCst);
    }
}

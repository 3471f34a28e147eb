//! Windows walks through code that was made at run time, in frames without a frame pointer.
#![cfg(all(windows, target_arch = "x86_64"))]
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use publish_unwind::{Code, Row, Unwind, Unwinders};
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, RtlCaptureStackBackTrace, RtlLookupFunctionEntry, RtlVirtualUnwind,
};
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_EXECUTE_READWRITE, VirtualAlloc, VirtualFree,
};

type Callback = extern "C-unwind" fn(usize, usize);
type Caller = extern "C-unwind" fn(Callback, usize);

/// Calls its first argument with both arguments, in a frame without a frame pointer in which rbp is 0.
const CALLER: [u8; 17] = [
    0x55, // push rbp
    0x53, // push rbx
    0x48, 0x83, 0xec, 0x28, // sub rsp, 40: the callee's 32 bytes, and 8
    0x31, 0xed, // xor ebp, ebp
    0xff, 0xd1, // call rcx
    0x48, 0x83, 0xc4, 0x28, // add rsp, 40
    0x5b, // pop rbx
    0x5d, // pop rbp
    0xc3, // ret
];
/// The return address of the call.
const RETURNS_TO: u64 = 10;
const SIZE: u64 = CALLER.len() as u64;
const ROWS: [Row<'static>; 6] = {
    const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
        Row::new(offset, 7, cfa_offset).saved(saved)
    }
    [
        row(1, 16, &[(6, -16)]),
        row(2, 24, &[(6, -16), (3, -24)]),
        row(6, 64, &[(6, -16), (3, -24)]),
        row(14, 24, &[(6, -16), (3, -24)]),
        row(15, 16, &[(6, -16)]),
        row(16, 8, &[]),
    ]
};

/// Memory full of callers.
struct Memory {
    base: *mut u8,
}

impl Memory {
    const ROOM: usize = 32;

    fn new(size: usize) -> Self {
        // SAFETY: new memory.
        let base = unsafe {
            let how = MEM_RESERVE | MEM_COMMIT;
            VirtualAlloc(ptr::null(), size, how, PAGE_EXECUTE_READWRITE).cast::<u8>()
        };
        assert!(!base.is_null());
        for at in (0..size).step_by(Self::ROOM) {
            // SAFETY: within the memory from above.
            unsafe { ptr::copy_nonoverlapping(CALLER.as_ptr(), base.add(at), CALLER.len()) };
        }
        Self { base }
    }

    fn start(&self) -> u64 {
        self.base.addr() as u64
    }

    fn address(&self, number: usize) -> u64 {
        (self.base.addr() + number * Self::ROOM) as u64
    }

    fn load(&self, unwinders: &Unwinders, number: usize) -> Caller {
        load(unwinders, self.address(number), SIZE, &Unwind::Rows(&ROWS));
        self.caller(number)
    }

    fn unload(&self, unwinders: &Unwinders, number: usize) {
        unwinders.unload(self.address(number), SIZE);
    }

    fn caller(&self, number: usize) -> Caller {
        // SAFETY: the code above, which has this type.
        unsafe { std::mem::transmute::<*mut u8, Caller>(self.base.add(number * Self::ROOM)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { VirtualFree(self.base.cast::<c_void>(), 0, MEM_RELEASE) };
    }
}

// SAFETY: memory that any thread may run.
unsafe impl Sync for Memory {}

fn load(unwinders: &Unwinders, start: u64, size: u64, unwind: &Unwind<'_>) {
    unwinders.load(&Code::at(start, size).unwind(*unwind));
}

/// Both kinds of tables.
fn each_kind(test: impl Fn(&'static Unwinders)) {
    test(Box::leak(Box::new(Unwinders::find().expect("Windows has one"))));
    test(Box::leak(Box::new(Unwinders::with_plain_tables())));
}

/// The range of the function at an address, according to the system.
fn lookup(address: u64) -> Option<(u64, u64)> {
    let mut base = 0;
    // SAFETY: this only looks up an address.
    let found = unsafe { RtlLookupFunctionEntry(address, &raw mut base, ptr::null_mut()) };
    // SAFETY: what the system returns stays for a second.
    let found = unsafe { found.as_ref() }?;
    Some((base + u64::from(found.BeginAddress), base + u64::from(found.EndAddress)))
}

extern "C-unwind" fn throw(_: usize, number: usize) {
    std::panic::resume_unwind(Box::new(number));
}

fn passes(call: Caller, number: usize) {
    let caught = catch_unwind(|| call(throw, number)).expect_err("a panic");
    assert_eq!(caught.downcast_ref(), Some(&number));
}

#[test]
fn code_is_found_as_long_as_it_is_loaded() {
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        let start = memory.address(3);
        assert_eq!(lookup(start), None);
        memory.load(unwinders, 3);
        assert_eq!(lookup(start - 1), None);
        assert_eq!(lookup(start), Some((start, start + SIZE)));
        assert_eq!(lookup(start + SIZE - 1), Some((start, start + SIZE)));
        assert_eq!(lookup(start + SIZE), None);
        memory.unload(unwinders, 3);
        assert_eq!(lookup(start), None);
    });
}

#[test]
fn the_caller_is_found_from_each_instruction() {
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        memory.load(unwinders, 1);
        let start = memory.address(1);
        let mut stack = vec![0_u64; 64];
        // The caller's registers, and its return address.
        let (rbx, rbp, returns_to) = (0xb0b0, 0xb1b1, 0x4711);
        let top = stack.as_mut_ptr().wrapping_add(40).addr() as u64;
        let at = |rsp: u64| ((rsp - stack.as_ptr().addr() as u64) / 8) as usize;
        let cfa = at(top);
        (stack[cfa - 1], stack[cfa - 2], stack[cfa - 3]) = (returns_to, rbp, rbx);
        // Offset, how far below the CFA rsp is, and the registers.
        let states = [
            (0, 8, rbx, rbp),
            (1, 16, rbx, rbp),
            (2, 24, rbx, rbp),
            (6, 64, rbx, rbp),
            (8, 64, rbx, 0),
            (10, 64, 5, 0),
            (14, 24, 5, 0),
            (15, 16, rbx, 0),
            (16, 8, rbx, rbp),
        ];
        for (offset, depth, rbx_now, rbp_now) in states {
            let mut base = 0;
            let rip = start + offset;
            // SAFETY: this only looks up an address; the context's stack is the one above.
            unsafe {
                let function = RtlLookupFunctionEntry(rip, &raw mut base, ptr::null_mut());
                assert!(!function.is_null());
                let mut context = CONTEXT {
                    Rip: rip,
                    Rsp: top - depth,
                    Rbx: rbx_now,
                    Rbp: rbp_now,
                    R12: 12,
                    R15: 15,
                    Rsi: 6,
                    Rdi: 7,
                    ..CONTEXT::default()
                };
                let (mut data, mut frame) = (ptr::null_mut(), 0);
                RtlVirtualUnwind(
                    0,
                    base,
                    rip,
                    function,
                    &raw mut context,
                    &raw mut data,
                    &raw mut frame,
                    ptr::null_mut(),
                );
                let found = (context.Rip, context.Rsp, context.Rbx, context.Rbp);
                assert_eq!(found, (returns_to, top, rbx, rbp), "at {offset}");
                let found = (context.R12, context.R15, context.Rsi, context.Rdi);
                assert_eq!(found, (12, 15, 6, 7), "at {offset}");
            }
        }
        memory.unload(unwinders, 1);
    });
}

#[test]
fn a_panic_passes_through_each_of_many() {
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        // In an order in which each is between others.
        for number in (0..1500).map(|number| number * 77 % 1500) {
            memory.load(unwinders, number);
        }
        for number in 0..1500 {
            passes(memory.caller(number), number);
        }
        for number in (0..1500).step_by(2) {
            memory.unload(unwinders, number);
        }
        for number in (1..1500).step_by(2) {
            passes(memory.caller(number), number);
            memory.unload(unwinders, number);
        }
    });
}

static CALL: AtomicUsize = AtomicUsize::new(0);

/// Calls itself through the code at `CALL`, and finally its last argument.
extern "C-unwind" fn deeper(_: usize, depth: usize) {
    match depth {
        0 => throw(0, 5),
        1_000_000 => capture(),
        _ => {
            // SAFETY: code that the test has put there.
            let call = unsafe { std::mem::transmute::<usize, Caller>(CALL.load(Relaxed)) };
            call(deeper, depth - 1);
            // Prevents a tail call.
            std::hint::black_box(());
        }
    }
}

/// The last backtrace: number of frames, and how many of them returned to each address of interest.
static FRAMES: AtomicUsize = AtomicUsize::new(0);
static JITTED: AtomicUsize = AtomicUsize::new(0);
static BEHIND: AtomicUsize = AtomicUsize::new(0);

fn capture() {
    let mut frames = vec![ptr::null_mut(); 6000];
    // SAFETY: there is space for as many.
    let count = unsafe { RtlCaptureStackBackTrace(0, 6000, frames.as_mut_ptr(), ptr::null_mut()) };
    frames.truncate(count.into());
    let is_ours = |frame: &*mut c_void| frame.addr() == CALL.load(Relaxed) + RETURNS_TO as usize;
    FRAMES.store(frames.len(), Relaxed);
    JITTED.store(frames.iter().filter(|frame| is_ours(frame)).count(), Relaxed);
    BEHIND.store(frames.iter().rev().take_while(|frame| !is_ours(frame)).count(), Relaxed);
}

/// One test, because all of it uses the same caller.
#[test]
fn backtraces_and_panics_pass_through_one_frame_and_a_thousand() {
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        CALL.store(memory.address(7) as usize, Relaxed);
        let call = memory.load(unwinders, 7);
        for depth in [1, 1000] {
            call(deeper, 1_000_000 + depth - 1);
            assert_eq!(JITTED.load(Relaxed), depth);
            assert!(FRAMES.load(Relaxed) >= 2 * depth + 2, "{FRAMES:?}");
            assert!(BEHIND.load(Relaxed) >= 3, "{BEHIND:?}");
            let caught = catch_unwind(|| call(deeper, depth - 1)).expect_err("a panic");
            assert_eq!(caught.downcast_ref(), Some(&5_usize));
        }
        memory.unload(unwinders, 7);
    });
}

/// Pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// For any order and size of loads and unloads, the system knows what a model knows.
#[test]
fn the_system_finds_exactly_the_loaded_code() {
    each_kind(|unwinders| {
        for (seed, room) in [(1, 1 << 16), (2, 1 << 20), (3, 1 << 14)] {
            let memory = Memory::new(room as usize);
            let mut numbers = Numbers(seed);
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            for round in 0..3000_u64 {
                let start = memory.start()
                    // In ascending order for a while, as most memory is allocated.
                    + if round % 1000 < 400 { round % 1000 * 30 % (room - 600) } else { numbers.below(room - 600) };
                let size =
                    1 + if numbers.below(9) == 0 { numbers.below(500) } else { numbers.below(40) };
                let lies_there = |(&begin, &end): (&u64, &u64)| {
                    (begin < start + size && end > start).then_some(begin)
                };
                let gone: Vec<u64> = model.iter().filter_map(lies_there).collect();
                for begin in gone {
                    model.remove(&begin);
                }
                if numbers.below(3) == 0 {
                    unwinders.unload(start, size);
                } else {
                    load(unwinders, start, size, &Unwind::FRAME_POINTER);
                    model.insert(start, start + size);
                }
                if round % 100 == 99 {
                    let last = memory.start() + room;
                    for address in (memory.start()..last).step_by(13) {
                        let known = model.range(..=address).next_back();
                        let known = known.map(|(begin, end)| (*begin, *end));
                        let known = known.filter(|(_, end)| address < *end);
                        assert_eq!(lookup(address), known, "{address:x} in round {round}");
                    }
                }
            }
            let all: Vec<(u64, u64)> = model.into_iter().collect();
            for (begin, end) in all {
                assert_eq!(lookup(begin), Some((begin, end)));
                unwinders.unload(begin, end - begin);
                assert_eq!(lookup(begin), None);
            }
        }
    });
}

#[test]
fn moved_code_keeps_its_frames() {
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        let other = Memory::new(1 << 16);
        memory.load(unwinders, 4);
        for to in [memory.address(900), other.address(2)] {
            let from = memory.address(4);
            unwinders.moved(from, to, SIZE);
            assert_eq!((lookup(from), lookup(to)), (None, Some((to, to + SIZE))));
            unwinders.moved(to, from, SIZE);
        }
        unwinders.moved(memory.address(4), other.address(3), SIZE);
        passes(other.caller(3), 8);
        other.unload(unwinders, 3);
        assert_eq!(lookup(other.address(3)), None);
    });
}

/// Pieces: a frame that grows far from the beginning of the code.
#[test]
fn a_code_may_have_several_functions() {
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        let saved = [(3, -16)];
        let row = |offset, cfa_offset| Row::new(offset, 7, cfa_offset).saved(&saved);
        let start = memory.start() + 64;
        load(unwinders, start, 1000, &Unwind::Rows(&[row(1, 16), row(600, 64)]));
        assert_eq!(lookup(start), Some((start, start + 600)));
        assert_eq!(lookup(start + 999), Some((start + 600, start + 1000)));
        unwinders.unload(start, 1000);
        assert_eq!((lookup(start), lookup(start + 999)), (None, None));
    });
}

/// Eight threads, each with its own code between that of the others: loaded, thrown through, unloaded.
#[test]
fn threads_load_walk_and_unload() {
    const THREADS: usize = 8;
    each_kind(|unwinders| {
        let memory = Memory::new(1 << 16);
        let done = AtomicBool::new(false);
        // Codes that stay, through which others throw.
        for number in (0..1000).step_by(10) {
            memory.load(unwinders, number);
        }
        let memory = &memory;
        let done = &done;
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..THREADS)
                .map(|thread| {
                    scope.spawn(move || {
                        for round in 0..150 {
                            let number = (round * 37 % 100) * 10 + thread;
                            let call = memory.load(unwinders, number);
                            if round % 5 == 0 {
                                passes(call, number);
                            }
                            let start = memory.address(number);
                            assert_eq!(lookup(start), Some((start, start + SIZE)));
                            memory.unload(unwinders, number);
                            assert_eq!(lookup(start), None);
                        }
                    })
                })
                .collect();
            scope.spawn(move || {
                let mut number = 0;
                while !done.load(Relaxed) {
                    let start = memory.address(number);
                    assert_eq!(lookup(start), Some((start, start + SIZE)));
                    if number % 250 == 0 {
                        passes(memory.caller(number), number);
                    }
                    number = (number + 10) % 1000;
                }
            });
            let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            done.store(true, Relaxed);
            assert!(results.iter().all(Result::is_ok));
        });
        for number in (0..1000).step_by(10) {
            memory.unload(unwinders, number);
        }
    });
}

//! What an announcement costs. `cargo bench -p benches --bench announce`
//!
//! A function of 512 bytes with a name of 32, and 12 lines where lines are told. What users have today does
//! the same beside it: wasmtime's jitdump writer, which knows no lines.
//!
//! Behind that, what threads take together: `cargo bench -p benches --bench announce -- together` is that alone.

use std::hint::black_box;
use std::sync::Mutex;

use divan::Bencher;
use jitscribe::{Builder, Code, Inlined, Line, Mode, Row, Scribe, Unwind, arena};
use wasmtime_internal_jit_debug::perf_jitdump::JitDumpFile;

const NAME: &str = "a_function_name_of_32_bytes_long";
const FILE: &str = "/home/user/project/src/module.lang";
/// Divan's iterations come in samples of this many.
const SIZE: u32 = 10_000;
const SAMPLES: u32 = 20;

static CODE: [u8; 512] = [0x90; 512];

fn main() {
    divan::main();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.is_empty() || words == ["together"] {
        together();
    }
}

/// Processor time of one announcement and unloading, by one thread and by 16 that do as many in all, by turns. The
/// time by the clock would tell of how many processors there are.
#[allow(clippy::print_stdout, reason = "a table, as divan prints its own")]
fn together() {
    const ALL: u32 = 1_600_000;
    const ROUNDS: usize = 5;
    let lines = lines();
    let without_bytes = Code::new(&CODE).named(NAME).frame_pointer();
    let in_full = Code::new(&CODE).named(NAME).lines(&lines);
    let scribes = [
        ("without bytes", builder().limit(8 << 20).build(), without_bytes),
        ("bytes, lines", builder().limit(64 << 20).bytes().build(), in_full),
    ];
    println!("\nprocessor time, ns: announced and unloaded, {ALL} in all, {ROUNDS} times by turns");
    for (what, scribe, code) in scribes {
        let mut took = [1, 16].map(|threads| (threads, Vec::new()));
        for _ in 0..ROUNDS {
            for (threads, took) in &mut took {
                let before = processor_time();
                std::thread::scope(|scope| {
                    for _ in 0..*threads {
                        scope.spawn(|| {
                            (0..ALL / *threads).for_each(|_| drop(scribe.load(black_box(&code))));
                        });
                    }
                });
                took.push((processor_time() - before) / f64::from(ALL));
            }
        }
        for (threads, mut took) in took {
            took.sort_by(f64::total_cmp);
            let (fastest, median) = (took[0], took[ROUNDS / 2]);
            println!("  {what:12} {threads:2} threads: fastest {fastest:.0}, median {median:.0}");
        }
    }
}

/// Nanoseconds that all threads of this process had a processor.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn lines() -> Vec<Line<'static>> {
    (0..12).map(|n| Line::new(n * 40, FILE, 10 + n).column(3)).collect()
}

/// Valgrind, by which the instructions of an announcement can be counted, is shown nothing: that would cost more than they do.
fn builder() -> Builder {
    Scribe::builder().valgrind(Mode::Off)
}

/// Room for all that is announced, so that none is used anew.
fn growing(with_bytes: bool) -> Scribe {
    let builder = builder().limit(2 << 30);
    if with_bytes { builder.bytes() } else { builder }.build()
}

fn announce(bencher: Bencher<'_, '_>, scribe: Scribe, code: Code<'_>) {
    bencher.bench(|| scribe.load(black_box(&code)).leak());
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn off(bencher: Bencher<'_, '_>) {
    announce(bencher, builder().off().build(), Code::new(&CODE).named(NAME));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn without_bytes(bencher: Bencher<'_, '_>) {
    announce(bencher, growing(false), Code::new(&CODE).named(NAME).frame_pointer());
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn without_bytes_with_lines(bencher: Bencher<'_, '_>) {
    announce(bencher, growing(false), Code::new(&CODE).named(NAME).lines(&lines()));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn bytes(bencher: Bencher<'_, '_>) {
    announce(bencher, growing(true), Code::new(&CODE).named(NAME));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn bytes_with_lines(bencher: Bencher<'_, '_>) {
    announce(bencher, growing(true), Code::new(&CODE).named(NAME).lines(&lines()));
}

/// Announced into space that was used before, so that it has memory: the cost for a runtime once its log is full. Codes are
/// unloaded between samples, of which there are enough that the log has no other space.
fn into_used_space(bencher: Bencher<'_, '_>, mib: usize, with_bytes: bool, code: Code<'_>) {
    let builder = builder().limit(mib << 20);
    let scribe = if with_bytes { builder.bytes() } else { builder }.build();
    (0..100_000).for_each(|_| drop(scribe.load(&code)));
    bencher.bench(|| scribe.load(black_box(&code)));
}

/// Announced and unloaded, in space that is reused: the lasting cost of a log at its limit.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn without_bytes_and_unload(bencher: Bencher<'_, '_>) {
    let scribe = builder().limit(8 << 20).build();
    let code = Code::new(&CODE).named(NAME).frame_pointer();
    bencher.bench(|| drop(scribe.load(black_box(&code))));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn bytes_with_lines_and_unload(bencher: Bencher<'_, '_>) {
    let scribe = builder().limit(64 << 20).bytes().build();
    let lines = lines();
    let code = Code::new(&CODE).named(NAME).lines(&lines);
    bencher.bench(|| drop(scribe.load(black_box(&code))));
}

#[divan::bench(sample_count = 10 * SAMPLES, sample_size = SIZE / 10)]
fn without_bytes_in_used_space(bencher: Bencher<'_, '_>) {
    into_used_space(bencher, 8, false, Code::new(&CODE).named(NAME).frame_pointer());
}

#[divan::bench(sample_count = 10 * SAMPLES, sample_size = SIZE / 10)]
fn without_bytes_with_lines_in_used_space(bencher: Bencher<'_, '_>) {
    into_used_space(bencher, 8, false, Code::new(&CODE).named(NAME).lines(&lines()));
}

/// In a log that is in the processor's cache, and in one of the usual size, which is not.
#[divan::bench(sample_count = 10 * SAMPLES, sample_size = SIZE / 10, args = [2, 64])]
fn bytes_in_used_space(bencher: Bencher<'_, '_>, mib: usize) {
    into_used_space(bencher, mib, true, Code::new(&CODE).named(NAME));
}

#[divan::bench(sample_count = 10 * SAMPLES, sample_size = SIZE / 10, args = [2, 64])]
fn bytes_with_lines_in_used_space(bencher: Bencher<'_, '_>, mib: usize) {
    into_used_space(bencher, mib, true, Code::new(&CODE).named(NAME).lines(&lines()));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn moved(bencher: Bencher<'_, '_>) {
    let scribe = builder().limit(64 << 20).build();
    let code = Mutex::new(Some(scribe.load(&Code::new(&CODE).named(NAME))));
    let mut address = 0x1000;
    bencher.bench_local(|| {
        address += 0x1000;
        if let Some(code) = code.lock().unwrap().as_mut() {
            code.moved_to_address(black_box(address));
        }
    });
    if let Some(code) = code.into_inner().unwrap() {
        code.leak();
    }
}

/// As an optimizing compiler has it: 30 lines of methods in six files, 20 inlined calls, a frame with four epilogues.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn without_bytes_with_inlined(bencher: Bencher<'_, '_>) {
    let files: Vec<String> =
        (0..6).map(|n| format!("org/example/project/Module{n}.java")).collect();
    let names: Vec<String> =
        (0..20).map(|n| format!("org.example.project.Module{}.method{n}", n % 6)).collect();
    let file = |n: usize| &*files[n * 5 % files.len()];
    let place = |n: usize| Line::new(40 * n as u32, file(n / 2), 10 + n as u32);
    let lines: Vec<Line<'_>> = (0..30).map(place).collect();
    // Each in two places.
    let ranges: Vec<_> = (0..20).map(|n| [60 * n..60 * n + 20, 60 * n + 30..60 * n + 50]).collect();
    let call = |n: usize| {
        let call = Inlined::new(&names[n], &ranges[n]).called_from(file(n / 2), 10 + n as u32);
        if n.is_multiple_of(3) { call } else { call.within(n as u32 - 1) }
    };
    let inlined: Vec<Inlined<'_>> = (0..20).map(call).collect();
    let saved = &[(6, -16)];
    let row = |offset, cfa_offset, saved| Row::new(offset, 7, cfa_offset).saved(saved);
    let mut rows = vec![row(1, 16, &saved[..]), row(8, 64, saved)];
    for exit in (200..1000).step_by(200) {
        rows.extend([row(exit, 16, &saved[..]), row(exit + 1, 8, &[]), row(exit + 15, 64, saved)]);
    }
    let code = Code::at(0x7000_0000, 1300).named(NAME).tier("C2").lines(&lines).inlined(&inlined);
    announce(bencher, growing(false), code.unwind(Unwind::Rows(&rows)));
}

/// Announced of code in a `CodeArena`, into its file's tables and the log.
fn into_an_arena(bencher: Bencher<'_, '_>, code: Code<'_>) {
    let folder = tempfile::tempdir().unwrap();
    let scribe = builder().limit(2 << 30).dir(folder.path()).build();
    let arena =
        arena::open_with(&scribe, |options| options.segment(64 << 20).removed()).expect("an arena");
    let memory = || {
        let mut draft = arena.allocate(CODE.len(), 16).expect("space");
        draft.bytes_mut().copy_from_slice(&CODE);
        draft.finish()
    };
    bencher.with_inputs(memory).bench_values(|memory| {
        scribe.load(&black_box(&code).runs_at(memory.address())).leak();
        memory
    });
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE / 10)]
fn in_arena(bencher: Bencher<'_, '_>) {
    into_an_arena(bencher, Code::new(&CODE).named(NAME).frame_pointer());
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE / 10)]
fn in_arena_with_lines(bencher: Bencher<'_, '_>) {
    into_an_arena(bencher, Code::new(&CODE).named(NAME).frame_pointer().lines(&lines()));
}

/// [`without_bytes_and_unload`] in a process that has an arena, of code that is elsewhere.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn beside_an_arena(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let scribe = builder().limit(8 << 20).dir(folder.path()).build();
    let _arena = arena::open_with(&scribe, |options| options.removed()).expect("an arena");
    let code = Code::new(&CODE).named(NAME).frame_pointer();
    bencher.bench(|| drop(scribe.load(black_box(&code))));
}

/// Room in an arena, written to and finished: what comes before an announcement there.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE / 10)]
fn arena_allocation(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let scribe = builder().dir(folder.path()).build();
    let arena =
        arena::open_with(&scribe, |options| options.segment(64 << 20).removed()).expect("an arena");
    bencher.bench(|| {
        let mut draft = arena.allocate(CODE.len(), 16).expect("space");
        draft.bytes_mut().copy_from_slice(&CODE);
        draft.finish()
    });
}

/// The copying that cannot be spared: of the code, into memory that was not touched before, and once more.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn two_copies_of_the_code(bencher: Bencher<'_, '_>) {
    let mut memory = vec![0_u8; 2 * CODE.len()];
    bencher.bench_local(|| {
        let (first, second) = memory.split_at_mut(CODE.len());
        first.copy_from_slice(black_box(&CODE));
        second.copy_from_slice(black_box(&CODE));
        black_box(&mut memory);
    });
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn clock(bencher: Bencher<'_, '_>) {
    bencher.bench(|| rustix::time::clock_gettime(rustix::time::ClockId::Monotonic));
}

/// What the clock costs where the kernel gives processes no page to read it from (a hidden vDSO).
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn clock_by_system_call(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes to the one place that it is given.
        #[allow(unsafe_code)]
        unsafe {
            libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut time)
        };
        black_box(time);
    });
}

/// wasmtime's writer: no lines, no unwind tables.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE / 10)]
fn wasmtime_jitdump(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let file = JitDumpFile::new(folder.path().join("jit-1.dump"), 62).unwrap();
    let file = Mutex::new(file);
    let pid = std::process::id();
    bencher.bench(|| {
        let mut file = file.lock().unwrap();
        let time = file.get_time_stamp();
        file.dump_code_load_record(NAME, black_box(&CODE), time, pid, pid).unwrap();
    });
}

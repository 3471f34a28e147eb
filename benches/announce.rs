//! What an announcement costs. `cargo bench -p benches --bench announce`
//!
//! A function of 512 bytes with a name of 32, and 12 lines where lines are told. What users have today does
//! the same beside it: wasmtime's jitdump writer, which knows no lines.

use std::hint::black_box;
use std::sync::Mutex;

use divan::Bencher;
use jitscribe::{Code, Line, Scribe};
use wasmtime_internal_jit_debug::perf_jitdump::JitDumpFile;

const NAME: &str = "a_function_name_of_32_bytes_long";
const FILE: &str = "/home/user/project/src/module.lang";
/// Divan's iterations come in samples of this many.
const SIZE: u32 = 10_000;
const SAMPLES: u32 = 20;

static CODE: [u8; 512] = [0x90; 512];

fn main() {
    divan::main();
}

fn lines() -> Vec<Line<'static>> {
    (0..12).map(|n| Line { offset: n * 40, file: FILE, line: 10 + n, column: 3 }).collect()
}

/// Room for all that is announced, so that none is used anew.
fn growing(with_bytes: bool) -> Scribe {
    let builder = Scribe::builder().limit(2 << 30);
    if with_bytes { builder.with_bytes() } else { builder }.build()
}

fn announce(bencher: Bencher<'_, '_>, scribe: Scribe, code: Code<'_>) {
    bencher.bench(|| scribe.load(black_box(&code)).keep());
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn off(bencher: Bencher<'_, '_>) {
    announce(bencher, Scribe::builder().off().build(), Code::new(&CODE).named(NAME));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn lean(bencher: Bencher<'_, '_>) {
    announce(bencher, growing(false), Code::new(&CODE).named(NAME).frame_pointer());
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn lean_with_lines(bencher: Bencher<'_, '_>) {
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

/// Announced and gone, in room that is used anew: what a log in its limit costs for ever.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, threads = [1, 16])]
fn lean_and_unload(bencher: Bencher<'_, '_>) {
    let scribe = Scribe::builder().limit(8 << 20).build();
    let code = Code::new(&CODE).named(NAME).frame_pointer();
    bencher.bench(|| drop(scribe.load(black_box(&code))));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE, threads = [1, 16])]
fn bytes_with_lines_and_unload(bencher: Bencher<'_, '_>) {
    let scribe = Scribe::builder().limit(64 << 20).with_bytes().build();
    let lines = lines();
    let code = Code::new(&CODE).named(NAME).lines(&lines);
    bencher.bench(|| drop(scribe.load(black_box(&code))));
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn moved(bencher: Bencher<'_, '_>) {
    let scribe = Scribe::builder().limit(64 << 20).build();
    let code = Mutex::new(Some(scribe.load(&Code::new(&CODE).named(NAME))));
    let mut address = 0x1000;
    bencher.bench_local(|| {
        address += 0x1000;
        if let Some(code) = code.lock().unwrap().as_mut() {
            code.moved_to_address(black_box(address));
        }
    });
    if let Some(code) = code.into_inner().unwrap() {
        code.keep();
    }
}

/// The copying that cannot be spared: of the code, into memory that was not touched before, and once more.
#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn two_copies_of_the_code(bencher: Bencher<'_, '_>) {
    let mut room = vec![0_u8; 2 * CODE.len()];
    bencher.bench_local(|| {
        let (first, second) = room.split_at_mut(CODE.len());
        first.copy_from_slice(black_box(&CODE));
        second.copy_from_slice(black_box(&CODE));
        black_box(&mut room);
    });
}

#[divan::bench(sample_count = SAMPLES, sample_size = SIZE)]
fn clock(bencher: Bencher<'_, '_>) {
    bencher.bench(|| rustix::time::clock_gettime(rustix::time::ClockId::Monotonic));
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

//! The cost of events: time per event, and for batches per code.

use std::sync::atomic::{AtomicU64, Ordering};

use divan::Bencher;
use divan::counter::ItemsCount;
use publish_perf_map::{Options, PerfMap};
use tempfile::TempDir;

const NAME: &[u8] = b"wasm[0]::function[1234]::core::fmt::Formatter::pad_integral";

fn main() {
    divan::main();
}

/// The map must not be given up, or nothing would be measured.
fn map() -> (TempDir, PerfMap) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new().directory(folder.path()).reporter(|why| panic!("{why}"));
    let map = PerfMap::create(options).expect("a map");
    (folder, map)
}

/// New code at new addresses.
#[divan::bench(sample_count = 50, sample_size = 2000)]
fn load(bencher: Bencher<'_, '_>) {
    let (_folder, map) = map();
    let next = AtomicU64::new(0x7f00_0000_0000);
    bencher.bench_local(|| map.load(next.fetch_add(0x100, Ordering::Relaxed), 0xf0, NAME));
}

/// The same from two threads at once.
#[divan::bench(sample_count = 50, sample_size = 2000, threads = 2)]
fn load_contended(bencher: Bencher<'_, '_>) {
    let (_folder, map) = map();
    let next = AtomicU64::new(0x7f00_0000_0000);
    bencher.bench(|| map.load(next.fetch_add(0x100, Ordering::Relaxed), 0xf0, NAME));
}

/// New code over old code, whose line is resized and later removed.
#[divan::bench(sample_count = 50, sample_size = 2000)]
fn reload(bencher: Bencher<'_, '_>) {
    let (_folder, map) = map();
    let next = AtomicU64::new(0);
    bencher.bench_local(|| {
        let n = next.fetch_add(1, Ordering::Relaxed) % 1000;
        map.load(0x7f00_0000_0000 + n * 0x100, 0xf0, NAME);
    });
}

/// 100,000 codes in one batch.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn load_many(bencher: Bencher<'_, '_>) {
    const CODES: u64 = 100_000;
    let codes = || (0..CODES).map(|n| (0x7f00_0000_0000 + n * 0x100, 0xf0, NAME));
    bencher
        .counter(ItemsCount::new(CODES))
        .with_inputs(map)
        .bench_local_refs(|(_folder, map)| map.load_many(codes()));
}

/// The minimal cost of a line: only `write`.
#[divan::bench(sample_count = 50, sample_size = 2000)]
fn bare_write(bencher: Bencher<'_, '_>) {
    use std::io::Write;
    let mut file = tempfile::tempfile().expect("a file");
    let line = [b"7f0000000000 f0 ", NAME, b"\n"].concat();
    bencher.bench_local(|| file.write_all(&line).expect("room"));
}

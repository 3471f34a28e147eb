//! The cost of an announcement through C, compared with Rust: a name of 32 bytes, 12 lines or none, a frame
//! pointer, no bytes.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::sync::OnceLock;

use divan::Bencher;
use jitscribe::{Code, Line, Scribe};
use jitscribe_capi as c;

const NAME: &str = "wasm[0]::function[1234]::add_all";
const FILE: &str = "/home/someone/project/src/module.rs";
const LINES: u32 = 12;

fn main() {
    divan::main();
}

#[derive(Clone, Copy)]
struct Opened(*const c::OpaqueScribe);
// SAFETY: a scribe may be used from any thread.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

fn opened(flags: u32) -> *const c::OpaqueScribe {
    static ON: OnceLock<Opened> = OnceLock::new();
    static OFF: OnceLock<Opened> = OnceLock::new();
    let place = if flags == 0 { &ON } else { &OFF };
    place
        .get_or_init(|| {
            // SAFETY: all zeros are valid settings.
            let mut settings: c::Settings = unsafe { std::mem::zeroed() };
            settings.struct_size = size_of::<c::Settings>();
            settings.flags = flags;
            let mut scribe = std::ptr::null();
            // SAFETY: both are locals.
            let outcome = unsafe { c::jitscribe_open(&settings, &mut scribe) };
            assert_eq!(outcome, c::Outcome::Ok);
            Opened(scribe)
        })
        .0
}

/// Loads and unloads, so that the log does not fill up.
fn through_c(bencher: Bencher<'_, '_>, flags: u32, count: u32) {
    let scribe = opened(flags);
    let text = |text: &str| c::Str { data: text.as_ptr().cast::<c_char>(), size: text.len() };
    let file = text(FILE);
    let lines: Vec<_> =
        (0..count).map(|n| c::Line { offset: 16 * n, line: 100 + n, column: 5, file: 0 }).collect();
    // SAFETY: all zeros are a valid code.
    let mut code: c::Code = unsafe { std::mem::zeroed() };
    code.struct_size = size_of::<c::Code>();
    code.address = 0x7000;
    code.size = 512;
    code.name = text(NAME);
    code.files = &raw const file;
    code.file_count = 1;
    code.lines = lines.as_ptr();
    code.line_count = lines.len();
    code.unwind.kind = c::UnwindKind::FramePointer as u32;
    bencher.bench_local(|| {
        let mut handle = 0;
        // SAFETY: the code refers to data that lives as long as this function.
        unsafe {
            c::jitscribe_load(scribe, divan::black_box(&raw const code), &raw mut handle);
            c::jitscribe_unload(scribe, handle)
        }
    });
}

fn in_rust(bencher: Bencher<'_, '_>, scribe: Scribe, count: u32) {
    let lines: Vec<_> = (0..count).map(|n| Line::new(16 * n, FILE, 100 + n).column(5)).collect();
    let code = Code::at(0x7000, 512).named(NAME).lines(&lines).frame_pointer();
    bencher.bench_local(|| drop(scribe.load(divan::black_box(&code))));
}

#[divan::bench(sample_count = 200, sample_size = 5000)]
fn on_through_c(bencher: Bencher<'_, '_>) {
    through_c(bencher, 0, LINES);
}

#[divan::bench(sample_count = 200, sample_size = 5000)]
fn on_in_rust(bencher: Bencher<'_, '_>) {
    in_rust(bencher, Scribe::builder().build(), LINES);
}

#[divan::bench(sample_count = 200, sample_size = 5000)]
fn off_through_c(bencher: Bencher<'_, '_>) {
    through_c(bencher, c::Flag::Off as u32, LINES);
}

#[divan::bench(sample_count = 200, sample_size = 5000)]
fn off_in_rust(bencher: Bencher<'_, '_>) {
    in_rust(bencher, Scribe::builder().off().build(), LINES);
}

#[divan::bench(sample_count = 200, sample_size = 5000)]
fn on_without_lines_through_c(bencher: Bencher<'_, '_>) {
    through_c(bencher, 0, 0);
}

#[divan::bench(sample_count = 200, sample_size = 5000)]
fn on_without_lines_in_rust(bencher: Bencher<'_, '_>) {
    in_rust(bencher, Scribe::builder().build(), 0);
}

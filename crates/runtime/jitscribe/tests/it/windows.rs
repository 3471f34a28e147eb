//! What there is of the library on Windows: the log in the process's own memory, GDB's interface, unwinders.
#![cfg(all(windows, target_arch = "x86_64"))]
#![allow(unsafe_code)]

use std::panic::catch_unwind;
use std::ptr;
use std::sync::{Arc, Mutex};

use jitscribe::{Code, LoadedCode, Mode, Row, Scribe, Unwind};
use windows_sys::Win32::System::Diagnostics::Debug::RtlLookupFunctionEntry;
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RESERVE, PAGE_EXECUTE_READWRITE, VirtualAlloc,
};

type Callback = extern "C-unwind" fn(usize, usize);
type Caller = extern "C-unwind" fn(Callback, usize);

/// push rbp; sub rsp, 32; xor ebp, ebp; call rcx; add rsp, 32; pop rbp; ret
const CALLER: [u8; 15] =
    [0x55, 0x48, 0x83, 0xec, 0x20, 0x31, 0xed, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3];
const SAVED: [(u16, i32); 1] = [(6, -16)];
const ROWS: [Row<'static>; 4] = {
    const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
        Row::new(offset, 7, cfa_offset).saved(saved)
    }
    [row(1, 16, &SAVED), row(5, 48, &SAVED), row(13, 16, &SAVED), row(14, 8, &[])]
};

/// A page with two places for the caller, which stays.
fn page() -> &'static [u8] {
    // SAFETY: new memory of this size.
    unsafe {
        let how = MEM_COMMIT | MEM_RESERVE;
        let base = VirtualAlloc(ptr::null(), 4096, how, PAGE_EXECUTE_READWRITE).cast::<u8>();
        assert!(!base.is_null());
        for place in [0, 64] {
            ptr::copy_nonoverlapping(CALLER.as_ptr(), base.add(place), CALLER.len());
        }
        std::slice::from_raw_parts(base, 4096)
    }
}

fn announce(scribe: Scribe, bytes: &[u8]) -> LoadedCode {
    scribe.load(&Code::new(bytes).named("caller").unwind(Unwind::Rows(&ROWS)))
}

fn is_known(bytes: &[u8]) -> bool {
    let mut base = 0;
    let address = bytes.as_ptr().addr() as u64;
    // SAFETY: this only looks up an address.
    !unsafe { RtlLookupFunctionEntry(address, &raw mut base, ptr::null_mut()) }.is_null()
}

extern "C-unwind" fn throw(_: usize, number: usize) {
    std::panic::resume_unwind(Box::new(number));
}

fn passes(bytes: &[u8]) {
    // SAFETY: the code of a page, which has this type.
    let call = unsafe { std::mem::transmute::<*const u8, Caller>(bytes.as_ptr()) };
    let caught = catch_unwind(|| call(throw, 7)).expect_err("a panic");
    assert_eq!(caught.downcast_ref(), Some(&7_usize));
}

#[test]
fn unwinders_find_announced_code() {
    let scribe = Scribe::builder().unwinders(Mode::On).build();
    let page = page();
    let (one, other) = (&page[..15], &page[64..79]);
    let mut code = announce(scribe, one);
    assert!(is_known(one) && !is_known(other));
    passes(one);
    code.moved_to(other);
    assert!(!is_known(one) && is_known(other));
    passes(other);
    drop(code);
    assert!(!is_known(other));
}

#[test]
fn unwinders_find_nothing_without_the_setting() {
    let page = page();
    let code = announce(Scribe::builder().build(), &page[..15]);
    assert!(!is_known(&page[..15]));
    drop(code);
}

/// Handles are places in the log, which has more in it than it began with.
#[test]
fn handles_distinguish_live_code_from_dead_code() {
    let scribe = Scribe::builder().bytes().limit(4 << 20).build();
    let memory = vec![0xcc_u8; 4096];
    let name = |number: usize| format!("function number {number}");
    let mut codes: Vec<LoadedCode> = Vec::new();
    for number in 0..5000 {
        let bytes = &memory[number % 100..][..100];
        codes.push(scribe.load(&Code::new(bytes).named(&name(number))));
        if number % 3 == 0 {
            let _ = codes.swap_remove(number / 7 % codes.len());
        }
    }
    assert!(codes.iter().all(|code| !code.is_stale()));
    let raws: Vec<u64> = codes.into_iter().map(LoadedCode::into_raw).collect();
    for raw in raws {
        assert_ne!(raw, 0);
        drop(LoadedCode::from_raw(scribe, raw));
        let stale = LoadedCode::from_raw(scribe, raw);
        assert!(stale.is_stale());
    }
}

#[test]
fn threads_announce_concurrently() {
    let scribe = Scribe::builder().limit(8 << 20).build();
    let memory = vec![0xcc_u8; 64];
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    drop(scribe.load(&Code::new(&memory).named("one")));
                    scribe.load(&Code::new(&memory).named("another")).leak();
                }
            });
        }
    });
}

/// `struct jit_descriptor` and `struct jit_code_entry`, up to what is looked at.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *const Entry,
    first: *const Entry,
}

#[repr(C)]
struct Entry {
    next: *const Entry,
    previous: *const Entry,
    file: *const u8,
    size: u64,
}

unsafe extern "C" {
    static __jit_debug_descriptor: Descriptor;
}

/// How many symbol files hold this name.
fn files_with(name: &[u8]) -> usize {
    // SAFETY: the list as gdb reads it; nothing else in this test changes it.
    unsafe {
        let descriptor = (&raw const __jit_debug_descriptor).read_volatile();
        assert_eq!(descriptor.version, 1);
        let mut count = 0;
        let mut at = descriptor.first;
        while let Some(entry) = at.as_ref() {
            let file = std::slice::from_raw_parts(entry.file, entry.size as usize);
            count += usize::from(file.windows(name.len()).any(|part| part == name));
            at = entry.next;
        }
        count
    }
}

#[test]
fn debuggers_are_shown_live_code() {
    let scribe = Scribe::builder().gdb(Mode::On).gdb_synchronous().build();
    let page = page();
    let load = |name| scribe.load(&Code::new(&page[..15]).named(name).unwind(Unwind::Rows(&ROWS)));
    let code = load("shown_to_gdb");
    assert_eq!(files_with(b"shown_to_gdb"), 1);
    drop(code);
    assert_eq!(files_with(b"shown_to_gdb"), 0);
}

/// A setting for what only Linux has is reported: see `system/mod.rs`.
#[test]
fn unavailable_features_are_reported() {
    // SAFETY: no other test looks at the environment.
    unsafe { std::env::set_var("JITSCRIBE", "perf-map,unwinders") };
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    let listener = move |notice: &jitscribe::Notice| heard.lock().unwrap().push(notice.to_string());
    let scribe = Scribe::builder().notice(listener).environment().build();
    assert!(scribe.is_on() && scribe.dump_path().is_none());
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("`perf-map` has no effect: "), "{said:?}");
}

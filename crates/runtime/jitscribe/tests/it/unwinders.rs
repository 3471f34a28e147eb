//! A panic passes through announced code, wherever it is, if it is registered with the unwinders.
#![cfg(target_os = "linux")]
#![cfg(all(target_arch = "x86_64", feature = "unwinders", feature = "arena"))]
#![allow(unsafe_code)]

use crate::caller::{CALLER, Caller, ROWS};
use crate::common::listening;
use crate::memory::Memory;
use jitscribe::{Code, LoadedCode, Mode, Scribe, Unwind, arena};

extern "C-unwind" fn throw(_: usize, number: usize) {
    std::panic::resume_unwind(Box::new(number));
}

fn passes(address: u64) {
    let address = std::ptr::with_exposed_provenance::<()>(address as usize);
    // SAFETY: the code above, which has this type.
    let call = unsafe { std::mem::transmute::<*const (), Caller>(address) };
    let caught = std::panic::catch_unwind(|| call(throw, 6)).expect_err("a panic");
    assert_eq!(caught.downcast_ref(), Some(&6_usize));
}

fn load(scribe: &Scribe, address: u64) -> LoadedCode {
    let code = Code::new(&CALLER).runs_at(address).named("caller").unwind(Unwind::Rows(&ROWS));
    scribe.load(&code)
}

#[test]
fn code_in_private_memory() {
    let scribe = Scribe::builder().unwinders(Mode::On).build();
    let mut memory = Memory::new();
    for place in [0, 24, 1000] {
        memory.used = place;
        memory.place(&CALLER);
    }
    let at = |place: u64| memory.base.expose_provenance() as u64 + place;
    let mut first = load(&scribe, at(0));
    passes(at(0));
    // With other code next to it that is unloaded, and moved.
    drop(load(&scribe, at(24)));
    passes(at(0));
    first.moved_to_address(at(1000));
    passes(at(1000));
    let again = load(&scribe, at(0));
    passes(at(0));
    drop((first, again));
}

#[test]
fn code_in_an_arena_without_the_setting() {
    let folder = tempfile::tempdir().expect("a folder");
    let scribe = Scribe::builder().dir(folder.path()).build();
    let arena = arena::open_with(&scribe, |options| options.segment(1 << 20)).expect("an arena");
    assert!(arena.is_linked());
    let place = || {
        let mut draft = arena.allocate(CALLER.len(), 16).expect("room");
        draft.bytes_mut().copy_from_slice(&CALLER);
        draft.finish()
    };
    let (one, other) = (place(), place());
    let mut loaded = load(&scribe, one.address());
    passes(one.address());
    loaded.moved_to_address(other.address());
    passes(other.address());
    drop(loaded);
    drop(one);
}

/// If it cannot be created, this is reported, and the program continues.
#[test]
fn an_unavailable_arena_is_reported() {
    let (builder, heard) = listening(Scribe::builder().dir("/nowhere/at/all"));
    assert!(arena::open(&builder.build()).is_none());
    let heard = heard.lock().unwrap();
    assert!(heard.iter().any(|(_, text)| text.contains("/nowhere/at/all")), "{heard:?}");
}

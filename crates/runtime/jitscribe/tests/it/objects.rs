//! What was written as an object is loaded by the process's own loader, and does what the code did.
#![cfg(all(target_arch = "x86_64", unix))]
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};

use crate::caller::{CALLER, Caller, ROWS};
use crate::memory::{Memory, SIZE};
use jitscribe::objects::{self, FinishedObject, ObjectError, ObjectFormat};
use jitscribe::{Code, Line, LoadedCode, Scribe, Unwind};
use tempfile::TempDir;

/// With tools of the second tier (`scripts/test.sh --live`).
mod live;

type Function = extern "C" fn(u32) -> u32;

fn call(function: *const c_void, argument: u32) -> u32 {
    // SAFETY: what is called in these tests has this type.
    let function = unsafe { std::mem::transmute::<*const c_void, Function>(function) };
    function(argument)
}

/// An object that was loaded.
struct Loaded(*mut c_void);

impl Loaded {
    fn new(path: &Path) -> Self {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the file has no code that runs when it is loaded.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        // SAFETY: right behind the call, which is no other thread's to disturb.
        let error = || unsafe { CStr::from_ptr(libc::dlerror()) };
        assert!(!handle.is_null(), "{:?}", error());
        Self(handle)
    }

    fn find(&self, name: &str) -> Option<*const c_void> {
        let name = CString::new(name).unwrap();
        // SAFETY: a handle of the loader's.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found.cast_const())
    }
}

/// `f(x)`: x if there is no `callee`, else three times what it makes of x, and the number.
fn function(at: usize, number: u32, callee: Option<usize>) -> Vec<u8> {
    let Some(callee) = callee else { return vec![0x89, 0xf8, 0xc3] };
    let mut code = vec![0x55, 0x48, 0x89, 0xe5, 0xe8];
    let distance = callee.wrapping_sub(at + 9) as i32;
    code.extend(distance.to_le_bytes());
    code.extend([0x6b, 0xc0, 3, 0x05]);
    code.extend(number.to_le_bytes());
    code.extend([0x5d, 0xc3]);
    code
}

fn name(number: u32) -> String {
    format!("größe<{number}> [opt] @ a+b.js")
}

/// Announces functions that call one another; what they make of 7.
fn announce(scribe: Scribe) -> (Memory, Vec<LoadedCode>, Vec<u32>) {
    let mut memory = Memory::new();
    let mut codes = Vec::new();
    let mut announced: Vec<LoadedCode> = Vec::new();
    let mut before = None;
    for number in 0..1000 {
        let at = memory.base as usize + memory.used;
        // Every tenth one begins a new chain, so that stacks stay small.
        let callee = before.filter(|_| number % 10 != 0);
        let code = memory.place(&function(at, number, callee));
        before = Some(at);
        let name = name(number);
        let described = Code::new(code).named(&name).frame_pointer();
        announced.push(scribe.load(&described));
        codes.push(code);
    }
    let expected: Vec<u32> = codes.iter().map(|code| call(code.as_ptr().cast(), 7)).collect();
    assert_eq!(expected[2], 3 * (3 * 7 + 1) + 2);
    (memory, announced, expected)
}

/// Writes an object of all that a scribe knows. The folder is where it stays.
fn write(scribe: &Scribe) -> (TempDir, PathBuf, FinishedObject) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.so");
    let written = objects::write(scribe, ObjectFormat::Elf, &path).unwrap();
    (folder, path, written)
}

#[test]
fn loaded_functions_call_each_other() {
    let scribe = Scribe::builder().build();
    let (memory, announced, expected) = announce(scribe);
    let (_folder, path, written) = write(&scribe);
    assert_eq!((written.symbols, written.exported), (1000, 1000));
    assert_eq!((written.unwind.fdes, written.unwind.malformed), (1000, 0));
    // What it was made of is gone.
    drop(announced);
    // SAFETY: nothing of it is used any more.
    unsafe { libc::munmap(memory.base.cast(), SIZE) };

    let object = Loaded::new(&path);
    for (number, expected) in (0..).zip(expected) {
        let found = object.find(&name(number)).expect("a function");
        assert_eq!(call(found, 7), expected, "{number}");
    }
    assert_eq!(object.find("größe"), None);
}

#[test]
fn dlsym_finds_the_newest_live_code_of_a_name() {
    let scribe = Scribe::builder().build();
    let mut memory = Memory::new();
    // `mov eax, number; ret`
    let number = |number: u8| [0xb8, number, 0, 0, 0, 0xc3];
    let mut load = |code: &[u8], name| scribe.load(&Code::new(memory.place(code)).named(name));
    let gone = load(&number(1), "gone");
    let new = load(&number(3), "f");
    let kept = [load(&number(2), "g"), load(&number(4), "g")];
    drop(gone);
    drop(new);
    // In the space of the first, and so before the others by address.
    memory.used = 0;
    let newest = scribe.load(&Code::new(memory.place(&number(5))).named("g"));
    let (_folder, path, written) = write(&scribe);
    assert_eq!((written.symbols, written.exported), (3, 1));
    let object = Loaded::new(&path);
    assert_eq!(call(object.find("g").unwrap(), 0), 5);
    assert_eq!((object.find("f"), object.find("gone")), (None, None));
    drop((kept, newest));
}

#[test]
fn existing_files_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let scribe = Scribe::builder().build();
    let write = |name: &str| objects::write(&scribe, ObjectFormat::Elf, folder.path().join(name));
    assert!(matches!(write("nothing.so"), Err(ObjectError::Nothing)));
    assert!(matches!(
        objects::write(&Scribe::off(), ObjectFormat::Elf, "/nowhere"),
        Err(ObjectError::Nothing)
    ));
    let code = scribe.load(&Code::new(Memory::new().place(&[0xc3])).named("f"));
    std::fs::write(folder.path().join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
    for name in ["mine", "link"] {
        let Err(ObjectError::File(error)) = write(name) else { panic!("{name} was written") };
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    }
    assert_eq!(std::fs::read(folder.path().join("mine")).unwrap(), b"mine");
    // Further apart than any code reaches: the file goes again.
    let far = scribe.load(&Code::at(0x1000, 16).named("far"));
    assert!(matches!(write("far.so"), Err(ObjectError::Format(_))));
    let mut names: Vec<_> =
        folder.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["link", "mine"]);
    drop((code, far));
}

#[test]
fn unmapped_code_is_left_out() {
    let scribe = Scribe::builder().build();
    let memory = Memory::new();
    // SAFETY: there is nothing in it.
    unsafe { libc::munmap(memory.base.cast(), SIZE) };
    let code = scribe.load(&Code::at(memory.base as u64, 16).named("f"));
    let (_folder, path, written) = write(&scribe);
    assert_eq!((written.symbols, written.exported), (1, 0));
    Loaded::new(&path);
    drop(code);
}

extern "C-unwind" fn throw(_: usize, number: usize) {
    let stack = std::backtrace::Backtrace::force_capture().to_string();
    std::panic::resume_unwind(Box::new((number, stack)));
}

#[test]
fn a_panic_and_a_backtrace_pass_through_loaded_code() {
    let scribe = Scribe::builder().build();
    let lines = [Line::new(0, "/src/caller.lang", 17).column(3)];
    let code = Memory::new().place(&CALLER);
    let code = scribe
        .load(&Code::new(code).named("jitted_caller").lines(&lines).unwind(Unwind::Rows(&ROWS)));
    let (_folder, path, _) = write(&scribe);
    drop(code);

    let found = Loaded::new(&path).find("jitted_caller").unwrap();
    // SAFETY: the code above, which has this type.
    let call = unsafe { std::mem::transmute::<*const c_void, Caller>(found) };
    let caught = std::panic::catch_unwind(|| call(throw, 6)).expect_err("a panic");
    let (number, stack) = caught.downcast_ref::<(usize, String)>().unwrap();
    assert_eq!(*number, 6);
    let rest = stack.split("jitted_caller").nth(1).expect("a frame");
    assert!(rest.contains("at /src/caller.lang:17"), "{stack}");
    assert!(rest.contains("a_panic_and_a_backtrace_pass_through_loaded_code"), "{stack}");
}

//! The programs that the tools inspect.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::jit;

pub fn play(role: &str) {
    match role {
        "spin" => spin(),
        "stack" => in_jitted_code(spin_a_while, 700),
        "wait" => in_jitted_code(wait_for_input, 0),
        "backtrace" => in_jitted_code(print_backtrace, 0),
        "panic" => panic(),
        "dladdr" => dladdr(),
        "libunwind" => in_jitted_code(walk_by_libunwind, 0),
        "allocate" => allocate(),
        "churn" => churn(),
        "fork" => fork(),
        "full" => full(),
        other => panic!("no role {other}"),
    }
}

/// Four functions in turns, for a second in all.
fn spin() {
    let arena = jit::arena();
    let codes: Vec<_> =
        (0..4).map(|number| jit::counter(&arena, &format!("jit::count{number}"))).collect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(700) {
        for (_, call) in &codes {
            call(2_000_000);
        }
    }
}

extern "C-unwind" fn spin_a_while(_: usize, milliseconds: usize) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(milliseconds as u64) {
        std::hint::black_box((0..1000).sum::<u64>());
    }
}

#[inline(never)]
fn native_bottom(call: jit::Caller, callback: jit::Callback, argument: usize) {
    call(callback, argument);
    std::hint::black_box(());
}

/// Calls something by jitted code, below which is native code.
fn in_jitted_code(callback: jit::Callback, argument: usize) {
    let arena = jit::arena();
    let (_code, call) = jit::caller(&arena, "jit::caller");
    native_bottom(call, callback, argument);
}

extern "C-unwind" fn wait_for_input(_: usize, _: usize) {
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

extern "C-unwind" fn print_backtrace(_: usize, _: usize) {
    println!("{}", std::backtrace::Backtrace::force_capture());
}

#[inline(never)]
extern "C-unwind" fn leak(_: usize, size: usize) {
    std::mem::forget(std::hint::black_box(vec![1_u8; size]));
}

/// Ten times 100,000 bytes that are never freed, for each of two codes.
fn allocate() {
    let arena = jit::arena();
    for name in ["jit::generous", "jit::wasteful"] {
        let (code, call) = jit::caller(&arena, name);
        for _ in 0..10 {
            native_bottom(call, leak, 100_000);
        }
        code.keep();
    }
}

extern "C-unwind" fn throw(_: usize, number: usize) {
    std::panic::resume_unwind(Box::new(number));
}

/// A panic thrown through a hundred jitted frames, while other codes come and go.
fn panic() {
    let arena = jit::arena();
    let (code, call) = jit::caller(&arena, "jit::caller");
    extern "C-unwind" fn deeper(_: usize, depth: usize) {
        // SAFETY: the address of the jitted code, put there below.
        let call = unsafe { std::mem::transmute::<usize, jit::Caller>(CALL.load(Relaxed)) };
        if depth == 0 {
            throw(0, 7);
        }
        call(deeper, depth - 1);
    }
    static CALL: AtomicUsize = AtomicUsize::new(0);
    CALL.store(code.address() as usize, Relaxed);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10_000 {
                drop(jit::caller(&arena, "jit::passing"));
            }
            done.store(true, Relaxed);
        });
        let mut caught = 0;
        while !done.load(Relaxed) {
            let result = std::panic::catch_unwind(|| call(deeper, 100));
            assert_eq!(result.unwrap_err().downcast_ref(), Some(&7_usize));
            caught += 1;
        }
        assert!(caught > 10, "{caught}");
    });
    println!("caught");
}

fn dladdr() {
    let arena = jit::arena();
    let (code, _) = jit::caller(&arena, "jit::caller");
    // SAFETY: all zeros are a value of it.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    let address = std::ptr::without_provenance(code.address() as usize + 5);
    // SAFETY: any address will do.
    assert_ne!(unsafe { libc::dladdr(address, &raw mut info) }, 0);
    // SAFETY: the loader's answer: strings, or null.
    let [name, file] =
        unsafe { [info.dli_sname, info.dli_fname].map(|text| std::ffi::CStr::from_ptr(text)) };
    println!("{} in {}", name.to_string_lossy(), file.to_string_lossy());
    assert_eq!(info.dli_saddr.addr() as u64, code.address());
}

/// A function of a library.
fn symbol(library: *mut std::ffi::c_void, name: &std::ffi::CStr) -> usize {
    // SAFETY: an open library, and a string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "{name:?}");
    found.addr()
}

/// As large as the C library's on AArch64.
#[repr(align(16))]
struct Context([u64; 640]);

/// Walks the stack by libunwind, and prints the functions' names.
extern "C-unwind" fn walk_by_libunwind(_: usize, _: usize) {
    type One = extern "C" fn(*mut u64) -> i32;
    type Two = extern "C" fn(*mut u64, *mut u64) -> i32;
    type Name = extern "C" fn(*mut u64, *mut u8, usize, *mut u64) -> i32;
    #[cfg(target_arch = "x86_64")]
    let names = [
        c"_Ux86_64_getcontext",
        c"_ULx86_64_init_local",
        c"_ULx86_64_step",
        c"_ULx86_64_get_proc_name",
    ];
    // The context is the C library's there, as `unw_getcontext` is a macro.
    #[cfg(target_arch = "aarch64")]
    let names =
        [c"getcontext", c"_ULaarch64_init_local", c"_ULaarch64_step", c"_ULaarch64_get_proc_name"];
    // SAFETY: a library without effects.
    let library = unsafe { libc::dlopen(c"libunwind.so.8".as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "libunwind.so.8; see scripts/setup.sh");
    // SAFETY: their types are those of libunwind.h.
    let (context, begin, step, name) = unsafe {
        (
            std::mem::transmute::<usize, One>(symbol(library, names[0])),
            std::mem::transmute::<usize, Two>(symbol(library, names[1])),
            std::mem::transmute::<usize, One>(symbol(library, names[2])),
            std::mem::transmute::<usize, Name>(symbol(library, names[3])),
        )
    };
    let (mut registers, mut cursor) = (Context([0_u64; 640]), [0_u64; 256]);
    assert_eq!(context(registers.0.as_mut_ptr()), 0);
    assert_eq!(begin(cursor.as_mut_ptr(), registers.0.as_mut_ptr()), 0);
    loop {
        let (mut text, mut offset) = ([0_u8; 300], 0);
        name(cursor.as_mut_ptr(), text.as_mut_ptr(), text.len(), &raw mut offset);
        let text = std::ffi::CStr::from_bytes_until_nul(&text).unwrap();
        println!("{}", text.to_string_lossy());
        if step(cursor.as_mut_ptr()) <= 0 {
            break;
        }
    }
}

/// Twenty times as much code as there is space for; the file describes the last of it.
fn churn() {
    let arena = jit::arena_with(|options| options.segment(64 << 10).limit(64 << 10));
    let mut alive = std::collections::VecDeque::new();
    for number in 0..40_000_u64 {
        let size = 12 + (number * 36 % 300) as usize;
        let code = jit::place(&arena, &vec![0xc3; size]);
        let name = format!("jit::churn{number}");
        jit::announce(&code, &name, Some(code_arena::Unwind::FRAME_POINTER));
        alive.push_back((number, code));
        if alive.len() > 100 {
            alive.pop_front();
        }
    }
    for (number, code) in &alive {
        println!("{:x} {} jit::churn{number}", code.address() - base(&arena), code.size());
    }
    assert_eq!((arena.paths().len(), arena.left_out()), (1, 0));
    wait_for_input(0, 0);
}

/// The file's header is one page.
pub fn page_size() -> u64 {
    // SAFETY: a question.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// The address of the file's first byte.
fn base(arena: &code_arena::CodeArena) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path = arena.paths().remove(0);
    let line = maps
        .lines()
        .find(|line| line.contains("r-xp") && line.ends_with(path.to_str().unwrap()))
        .unwrap();
    u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap() - page_size()
}

/// The child of a fork has what its parent had, and from then on neither sees changes of the other.
fn fork() {
    let arena = jit::arena();
    let (old, call) = jit::counter(&arena, "jit::before");
    let (freed, _) = jit::counter(&arena, "jit::freed");
    let address = freed.address();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        call(10);
        assert!(old.edit().is_err());
        let (own, call) = jit::counter(&arena, "jit::child");
        call(10);
        assert_ne!(own.address(), address);
        assert!(arena.paths()[0].to_str().unwrap().contains(&std::process::id().to_string()));
        drop((own, freed));
        // SAFETY: ends the child, which has nothing to finish.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child from above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    drop(freed);
    // Its space belongs to the child, too, so it is not reused: the rest of the segment is used, but none of this.
    let mut rooms = Vec::new();
    while let Some(draft) = arena.allocate(4096, 32) {
        assert!(!(draft.address()..draft.address() + 4096).contains(&address));
        if rooms.len() == 250 {
            break;
        }
        rooms.push(draft);
    }
    call(10);
    let old = old.edit().unwrap_err();
    assert!(old.size() > 7);
    println!("forked");
}

/// Uses all of the disk space.
fn full() {
    let arena = jit::arena_with(|options| options.limit(3 << 20));
    let mut all = Vec::new();
    let code = jit::RETURN.repeat(1000 / jit::RETURN.len());
    while let Some(mut draft) = arena.allocate(code.len(), 16) {
        draft.bytes_mut().copy_from_slice(&code);
        let code = draft.finish();
        jit::announce(&code, "jit::full", Some(code_arena::Unwind::FRAME_POINTER));
        all.push(code);
    }
    println!("{} left out {}", all.len(), arena.left_out());
    for code in &all {
        // SAFETY: all of them just return.
        let call =
            unsafe { std::mem::transmute::<usize, extern "C" fn()>(code.address() as usize) };
        call();
    }
}

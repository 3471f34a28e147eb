//! A small JIT whose code crashes: in a code without frame pointer, below other such code and native code.
//!
//! Its SIGSEGV handler writes to standard output: the number of the log's descriptor (4 bytes), a `CrashContext`, the size of a
//! crash stream (8 bytes) and the stream. Then it waits until standard input ends.
#![allow(unsafe_code)]
#![cfg_attr(all(target_arch = "x86_64", target_os = "linux"), no_main)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod jit {
    use std::ffi::{c_char, c_int, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use jitscribe::{Code, Inlined, Line, Row, Scribe, Unwind, crash};

    /// Calls its first argument with both, in a frame that has no frame pointer and in which rbp is 0:
    /// push rbx; push rbp; sub rsp, 8; xor ebp, ebp; call rdi; add rsp, 8; pop rbp; pop rbx; ret
    const CALLER: [u8; 17] = [
        0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x31, 0xed, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0x5d,
        0x5b, 0xc3,
    ];
    const CALLER_ROWS: [Row<'static>; 6] = {
        const fn row(offset: u32, cfa_offset: i32, saved: &'static [(u16, i32)]) -> Row<'static> {
            Row::new(offset, 7, cfa_offset).saved(saved)
        }
        [
            row(1, 16, &[(3, -16)]),
            row(2, 24, &[(3, -16), (6, -24)]),
            row(6, 32, &[(3, -16), (6, -24)]),
            row(14, 24, &[(3, -16), (6, -24)]),
            row(15, 16, &[(3, -16)]),
            row(16, 8, &[]),
        ]
    };
    /// sub rsp, 40; mov ebp, 9; xor eax, eax; mov dword ptr [rax + 16], 1; add rsp, 40; ret
    const CRASH: [u8; 23] = [
        0x48, 0x83, 0xec, 40, 0xbd, 9, 0, 0, 0, 0x31, 0xc0, 0xc7, 0x40, 16, 1, 0, 0, 0, 0x48, 0x83,
        0xc4, 40, 0xc3,
    ];
    const CRASH_ROWS: [Row<'static>; 2] = [Row::new(4, 7, 48), Row::new(22, 7, 8)];

    type Callback = extern "C" fn(usize, usize);
    type Caller = extern "C" fn(Callback, usize);

    /// The addresses of `jit::second` and `jit::crash`.
    static SECOND: AtomicUsize = AtomicUsize::new(0);
    static CRASHES: AtomicUsize = AtomicUsize::new(0);

    fn caller(address: usize) -> Caller {
        // SAFETY: code that takes two arguments, of which the first is called.
        unsafe { std::mem::transmute::<usize, Caller>(address) }
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn native_top(_: usize, argument: usize) {
        // SAFETY: code without arguments, which crashes.
        let crash = unsafe { std::mem::transmute::<usize, extern "C" fn()>(CRASHES.load(Relaxed)) };
        crash();
        std::hint::black_box(argument);
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn native_middle(_: usize, argument: usize) {
        caller(SECOND.load(Relaxed))(native_top, argument);
        std::hint::black_box(argument);
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn native_bottom(first: Caller, argument: usize) {
        first(native_middle, argument);
        std::hint::black_box(argument);
    }

    /// Memory for code, at offset 0 of which `jit::first` is, and the others behind it.
    fn compile(scribe: Scribe) -> Caller {
        // SAFETY: new memory, of the size that is used.
        let memory = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            std::slice::from_raw_parts_mut(base.cast::<u8>(), 4096)
        };
        memory[..17].copy_from_slice(&CALLER);
        memory[32..49].copy_from_slice(&CALLER);
        memory[64..87].copy_from_slice(&CRASH);
        // SAFETY: our memory, which is not written to any more.
        let done = unsafe {
            libc::mprotect(memory.as_mut_ptr().cast(), 4096, libc::PROT_READ | libc::PROT_EXEC)
        };
        assert_eq!(done, 0);
        let memory: &[u8] = memory;
        let lines = [Line::new(0, "/src/crash.jit", 10), Line::new(8, "/src/crash.jit", 11)];
        for (name, at) in [("jit::first", 0), ("jit::second", 32)] {
            let code = Code::new(&memory[at..at + 17]).named(name).lines(&lines);
            scribe.load(&code.unwind(Unwind::Rows(&CALLER_ROWS))).leak();
        }
        let lines = [Line::new(0, "/src/crash.jit", 20), Line::new(11, "/src/helper.jit", 3)];
        #[allow(clippy::single_range_in_vec_init)]
        let ranges = [9..18];
        let inlined = [Inlined::new("jit::helper", &ranges).called_from("/src/crash.jit", 21)];
        let code = Code::new(&memory[64..87]).named("jit::crash").lines(&lines);
        scribe.load(&code.inlined(&inlined).unwind(Unwind::Rows(&CRASH_ROWS))).leak();
        // Other code. In another thread, so that its addresses are not left on this stack.
        let others = std::thread::spawn(move || {
            for n in 0..1000 {
                scribe.load(&Code::at(0x10_0000_0000 + 64 * n, 64).named("jit::other")).leak();
            }
        });
        others.join().unwrap();
        SECOND.store(memory[32..].as_ptr().addr(), Relaxed);
        CRASHES.store(memory[64..].as_ptr().addr(), Relaxed);
        caller(memory.as_ptr().addr())
    }

    /// In the handler, all of this is async-signal-safe.
    fn write(bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            // SAFETY: the bytes are there.
            let count = unsafe { libc::write(1, rest.as_ptr().cast(), rest.len()) };
            rest = usize::try_from(count).ok().and_then(|count| rest.get(count..)).unwrap_or(&[]);
        }
    }

    extern "C" fn crashed(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        static mut STREAM: [u8; 64 << 10] = [0; 64 << 10];
        let scribe = Scribe::global();
        write(&jitscribe::binding::log_fd_number(&scribe).unwrap_or(-1).to_ne_bytes());
        // SAFETY: the kernel passes both. All zeros are values of the structs, whose fields are integers and pointers. The handler runs
        // once, so that it has the buffer for itself.
        unsafe {
            let machine = &*context.cast::<crash_context::ucontext_t>();
            let mut crash: crash_context::CrashContext = std::mem::zeroed();
            crash.context = machine.clone();
            crash.float_state = (*machine.uc_mcontext.fpregs).clone();
            crash.siginfo.ssi_signo = (*info).si_signo as u32;
            crash.siginfo.ssi_code = (*info).si_code;
            crash.siginfo.ssi_addr = (*info).si_addr().addr() as u64;
            crash.pid = libc::getpid();
            crash.tid = libc::gettid();
            write(crash.as_bytes());

            let registers = machine.uc_mcontext.gregs.map(|register| register as u64);
            let stack = registers[libc::REG_RSP as usize];
            // More than there is: what is not readable is skipped.
            let stacks = std::iter::once(stack..stack + (64 << 10));
            let buffer = &raw mut STREAM;
            let buffer = &mut *buffer;
            let size = crash::write_stream(&scribe, stacks, &registers, buffer).unwrap_or(0);
            write(&(size as u64).to_ne_bytes());
            write(&buffer[..size]);
            let mut byte = 0_u8;
            libc::read(0, (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }

    #[unsafe(no_mangle)]
    extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
        let first = compile(Scribe::global());
        // SAFETY: all zeros are a struct without flags. The handler does what a handler may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = crashed as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()), 0);
        }
        native_bottom(first, 7);
        1
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() {}

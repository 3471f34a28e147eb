//! Code that the roles create and run, and the unsafe parts.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io::Error;
use std::ops::Range;

use publish_valgrind::{Code, Inlined, Line, Row, Unwind, Valgrind};

/// A function that the roles put somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub bytes: &'static [u8],
    pub rows: &'static [Row<'static>],
    /// Offset and line.
    pub lines: &'static [(u32, u32)],
    pub inlined: &'static [Call],
}

/// An inlined call: its name, ranges, file, line and parent.
type Call = (&'static str, &'static [Range<u32>], &'static str, u32, Option<u32>);

/// The source file that the functions claim to come from.
pub const SOURCE: &str = "/src/jitted.lang";

const RSP: u16 = 7;

/// `fn(f, x)`: calls `f(x)` from a frame without a frame pointer, on line 21.
pub const CALL: Function = Function {
    name: "jit::call",
    // sub rsp, 24; mov rax, rdi; mov rdi, rsi; call rax; add rsp, 24; ret
    bytes: &[
        0x48, 0x83, 0xec, 24, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 24,
        0xc3,
    ],
    rows: &[Row::new(4, RSP, 32), Row::new(16, RSP, 8)],
    lines: &[(0, 20), (10, 21), (12, 22)],
    inlined: &[],
};

/// `fn(pointer) -> u64`: reads what it points to, on line 11.
pub const READ: Function = Function {
    name: "jit::read",
    // mov rax, [rdi]; ret
    bytes: &[0x48, 0x8b, 0x07, 0xc3],
    rows: &[],
    lines: &[(0, 11), (3, 12)],
    inlined: &[],
};

/// The same, by a function that was inlined into an inlined function.
pub const INLINED: Function = Function {
    name: "jit::outer",
    // nop; mov rax, [rdi]; ret
    bytes: &[0x90, 0x48, 0x8b, 0x07, 0xc3],
    rows: &[],
    lines: &[(0, 40), (1, 11), (4, 42)],
    inlined: &[
        ("jit::middle", &[1..2, 2..4], SOURCE, 41, None),
        ("jit::inner", &[0..1, 1..4], "/src/other.lang", 51, Some(0)),
    ],
};

/// `fn(n)`: counts down, on line 31: 2n + 2 instructions.
pub const COUNT: Function = Function {
    name: "jit::count",
    // mov ecx, edi; 1: dec ecx; jnz 1b; ret
    bytes: &[0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3],
    rows: &[],
    lines: &[(0, 30), (2, 31), (6, 32)],
    inlined: &[],
};

/// The memory of a role's code.
#[derive(Debug)]
pub struct Memory {
    pub address: usize,
    /// The address for writing.
    pub writable: usize,
    pub length: usize,
}

pub const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
pub const READ_EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;

fn map(at: usize, length: usize, protection: i32, flags: i32, fd: i32) -> usize {
    let fixed = if at == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    // SAFETY: MAP_FIXED_NOREPLACE never takes memory that is in use.
    let mapped = unsafe { libc::mmap(at as *mut c_void, length, protection, flags | fixed, fd, 0) };
    assert!(mapped != libc::MAP_FAILED, "{}", Error::last_os_error());
    assert!(at == 0 || at == mapped as usize);
    mapped as usize
}

impl Memory {
    /// Writable and executable, at the requested address, or anywhere for 0.
    pub fn private(at: usize, length: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let address = map(at, length, READ_WRITE | libc::PROT_EXEC, flags, -1);
        Self { address, writable: address, length }
    }

    /// Mapped twice: to write it, and to execute it.
    pub fn twice(length: usize) -> Self {
        // SAFETY: a constant name that ends with a zero.
        let fd = unsafe { libc::memfd_create(c"code".as_ptr(), 0) };
        // SAFETY: nothing but a number goes in.
        assert_eq!(unsafe { libc::ftruncate(fd, length as i64) }, 0);
        let writable = map(0, length, READ_WRITE, libc::MAP_SHARED, fd);
        let address = map(0, length, READ_EXECUTE, libc::MAP_SHARED, fd);
        Self { address, writable, length }
    }

    /// A block of the `brk` heap, with other data in its pages.
    pub fn on_the_heap(length: usize) -> Self {
        // SAFETY: a block of its own, which is never given back; nothing but a number goes in.
        let (address, end) = unsafe { (libc::malloc(length) as usize, libc::sbrk(0) as usize) };
        assert!((end - (64 << 20)..end).contains(&address), "{address:x} is not below {end:x}");
        let first = address & !4095;
        let pages = (address + length - first).next_multiple_of(4096);
        let all = READ_WRITE | libc::PROT_EXEC;
        // SAFETY: the rest of these pages stays usable for its owner.
        assert_eq!(unsafe { libc::mprotect(first as *mut c_void, pages, all) }, 0);
        Self { address, writable: address, length }
    }

    /// Unmaps it.
    pub fn unmap(self) {
        // SAFETY: no code of it runs any more, and no reference to it is kept.
        unsafe { libc::munmap(self.address as *mut c_void, self.length) };
    }

    pub fn protect(&self, page: usize, protection: i32) {
        let page = (self.address + page * 4096) as *mut c_void;
        // SAFETY: pages that are this role's own; what is done with them suits the protection.
        assert_eq!(unsafe { libc::mprotect(page, 4096, protection) }, 0);
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.length);
        // SAFETY: within the mapping, of which no reference exists, and where no code runs.
        unsafe {
            ((self.writable + offset) as *mut u8)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// Writes a function, and announces it under another name.
    pub fn put_named(&self, valgrind: &Valgrind, offset: usize, name: &str, function: &Function) {
        self.write(offset, function.bytes);
        self.announce(valgrind, offset, name, function);
    }

    pub fn announce(&self, valgrind: &Valgrind, offset: usize, name: &str, function: &Function) {
        let lines = function.lines.iter();
        let lines: Vec<Line<'_>> =
            lines.map(|&(offset, line)| Line::new(offset, SOURCE, line)).collect();
        let calls = function.inlined.iter();
        let calls: Vec<Inlined<'_>> = calls
            .map(|&(name, ranges, file, line, parent)| {
                Inlined::new(name, ranges).called_from(file, line).within(parent)
            })
            .collect();
        let code = Code::at((self.address + offset) as u64, function.bytes.len() as u64);
        let code = code.named(name).lines(&lines).inlined(&calls);
        valgrind.load(&code.unwind(Unwind::Rows(function.rows)));
    }

    /// Writes a function, and announces it.
    pub fn put(&self, valgrind: &Valgrind, offset: usize, function: &Function) {
        self.put_named(valgrind, offset, function.name, function);
    }

    /// Calls the function that was put there.
    #[inline(never)]
    pub fn run(&self, offset: usize, first: usize, second: usize) -> u64 {
        // SAFETY: one of the functions above was put there. They take and give what this type says,
        // keep to the calling convention, and go where the role lets them.
        let function: extern "C" fn(usize, usize) -> u64 =
            unsafe { std::mem::transmute(self.address + offset) };
        function(first, second)
    }
}

/// Calls something, under a name that is easy to type as an option of callgrind.
#[unsafe(no_mangle)]
#[inline(never)]
pub fn chosen_part(part: &dyn Fn()) {
    part();
    // Not a jump to it.
    std::hint::black_box(());
}

/// Allocates 432,100 bytes and forgets them.
pub extern "C" fn leak(_: usize) {
    // SAFETY: nothing is done with it.
    std::hint::black_box(unsafe { libc::malloc(432_100) });
}

/// A block that was freed already.
pub fn freed_block() -> usize {
    // SAFETY: a block of its own.
    unsafe {
        let block = libc::malloc(64);
        libc::free(block);
        block as usize
    }
}

/// Forks, and waits for the child, in which `child` runs.
pub fn in_a_fork(child: impl FnOnce()) {
    // SAFETY: the process has one thread.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        child();
        // SAFETY: ends the process; what was to be written was written by the kernel or by valgrind.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place for the answer.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0);
}

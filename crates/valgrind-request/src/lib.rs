//! Client requests: what a program can ask the valgrind that runs it.
//!
//! A request is a sequence of instructions that does nothing on a processor and that valgrind
//! knows when it translates it (`valgrind.h`, `VALGRIND_DO_CLIENT_REQUEST`). Elsewhere than under
//! valgrind, the answer is the default that went in.
#![no_std]
#![allow(unsafe_code)]

/// `RUNNING_ON_VALGRIND`: how many valgrinds run each other.
const RUNNING_ON_VALGRIND: usize = 0x1001;
/// `VALGRIND_DISCARD_TRANSLATIONS`: valgrind looks for code that has changed in memory that is no file's, and nowhere else.
const DISCARD_TRANSLATIONS: usize = 0x1002;
/// `VALGRIND_MAP_IP_TO_SRCLOC`: writes `file:line` of an address into 64 bytes.
const MAP_IP_TO_SRCLOC: usize = 0x1701;

/// Whether valgrind runs this process.
#[must_use]
pub fn is_under_valgrind() -> bool {
    request([RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0]) != 0
}

/// Whether valgrind knows a source line of the instruction at this address.
#[must_use]
pub fn has_line(address: u64) -> bool {
    // Zeroed, since valgrind leaves alone what it has nothing to write into.
    let mut answer = [0_u8; 64];
    let address = usize::try_from(address).unwrap_or(0);
    request([MAP_IP_TO_SRCLOC, address, (&raw mut answer).expose_provenance(), 0, 0, 0]);
    // What valgrind has written is not known to the compiler.
    core::hint::black_box(&mut answer)[0] != 0
}

/// Has the valgrind that runs this process, if one does, translate anew what lies in these bytes when it runs next.
pub fn discard_translations(address: u64, size: usize) {
    if let Ok(address) = usize::try_from(address) {
        request([DISCARD_TRANSLATIONS, address, size, 0, 0, 0]);
    }
}

/// Asks; 0 where no valgrind answers.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
fn request(question: [usize; 6]) -> usize {
    let answer: usize;
    // SAFETY: four rotations by 64 x 2 bits in all leave rdi as it was, and exchanging rbx with
    // itself does nothing; the flags that change are not declared to be kept. Under valgrind, rdx
    // is written, and what the request says: memory of `has_line`'s buffer at most, whose
    // address was exposed; nothing here says that memory is left alone.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") question.as_ptr(),
            inout("rdx") 0_usize => answer,
            options(nostack),
        );
    }
    answer
}

/// Asks; 0 where no valgrind answers.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little"))]
fn request(question: [usize; 6]) -> usize {
    let answer: usize;
    // SAFETY: rotations by 128 in all leave x12 as it was, and x10 or x10 is x10. Under valgrind,
    // x3 is written, and what the request says: memory of `has_line`'s buffer at most, whose
    // address was exposed; nothing here says that memory is left alone.
    unsafe {
        core::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") question.as_ptr(),
            inout("x3") 0_usize => answer,
            options(nostack),
        );
    }
    answer
}

/// No request is known for this machine: no valgrind is ever found.
#[cfg(not(any(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little")
)))]
fn request(_question: [usize; 6]) -> usize {
    0
}

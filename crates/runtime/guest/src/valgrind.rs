//! Client requests: requests of a program to the Valgrind that runs it.
//!
//! A request is a sequence of instructions that does nothing on a processor, and that Valgrind recognises when it
//! translates it (`valgrind.h`, `VALGRIND_DO_CLIENT_REQUEST`). Without Valgrind, the answer is the default that was passed
//! in.
#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// `RUNNING_ON_VALGRIND`: the number of nested Valgrinds.
const RUNNING_ON_VALGRIND: usize = 0x1001;
/// `VALGRIND_DISCARD_TRANSLATIONS`: Valgrind detects changed code only in anonymous memory, and nowhere else.
const DISCARD_TRANSLATIONS: usize = 0x1002;
/// `VALGRIND_MAP_IP_TO_SRCLOC`: writes `file:line` of an address into 64 bytes.
const MAP_IP_TO_SRCLOC: usize = 0x1701;

/// `VALGRIND_PRINTF` (`VG_USERREQ__PRINTF_VALIST_BY_REF`): a format, and its arguments.
const PRINTF: usize = 0x1403;

/// `CALLGRIND_TOGGLE_COLLECT` of callgrind: inverts whether what the thread does is counted. Other tools ignore it.
const TOGGLE_COLLECT: usize = 0x4354_0002;

/// `VALGRIND_MAKE_MEM_NOACCESS` of memcheck: accesses to the memory are reported, and the leak search skips it.
const MAKE_MEM_NOACCESS: usize = 0x4d43_0000;
/// `VALGRIND_MAKE_MEM_DEFINED` of memcheck.
const MAKE_MEM_DEFINED: usize = 0x4d43_0002;
/// Memcheck warns about larger ranges.
const MOST: usize = 128 << 20;

/// Whether Valgrind runs this process.
#[must_use]
pub fn is_under_valgrind() -> bool {
    request(&[RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0]) != 0
}

/// Whether the tool that Valgrind runs the process with has a name that begins so. Valgrind answers for `/proc/self/exe` with the program,
/// and not for this name.
#[cfg(target_os = "linux")]
pub(crate) fn is_tool(begin: &[u8]) -> bool {
    let mut target = [0_u8; 512];
    let path = c"/proc/thread-self/exe";
    // SAFETY: a string, and a buffer of this size, into which it writes.
    let length = unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    let length = usize::try_from(length).unwrap_or(0);
    let target = target.get(..length).unwrap_or_default();
    target.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(begin))
}

/// Whether the tool logs each request that is memcheck's (`dh_handle_client_request` in `dhat/dh_main.c`); the others ignore it.
fn warns_of_requests() -> bool {
    const UNKNOWN: u8 = 0;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    match ANSWER.load(Relaxed) {
        UNKNOWN => {
            #[cfg(target_os = "linux")]
            let warns = is_tool(b"dhat-");
            #[cfg(not(target_os = "linux"))]
            let warns = false;
            ANSWER.store(1 + u8::from(warns), Relaxed);
            warns
        }
        answer => answer == 2,
    }
}

/// Whether Valgrind knows a source line for the instruction at this address.
#[must_use]
pub fn has_line(address: u64) -> bool {
    // Zeroed, because Valgrind writes nothing if it knows no line.
    let mut answer = [0_u8; 64];
    let address = usize::try_from(address).unwrap_or(0);
    request(&[MAP_IP_TO_SRCLOC, address, (&raw mut answer).expose_provenance(), 0, 0, 0]);
    // The compiler does not know what Valgrind has written.
    core::hint::black_box(&mut answer)[0] != 0
}

/// Makes the Valgrind that runs this process, if any, retranslate this code when it runs next.
pub fn discard_translations(address: u64, size: usize) {
    if let Ok(address) = usize::try_from(address) {
        request(&[DISCARD_TRANSLATIONS, address, size, 0, 0, 0]);
    }
}

/// Writes a line to the log of the Valgrind that runs the process, if any. Of texts that are too long, the rest is left out.
pub fn log(texts: [&str; 2]) {
    const MOST: usize = 1000;
    let mut format = [0_u8; MOST + 8];
    let mut end = 0;
    for byte in texts.into_iter().flat_map(str::bytes) {
        // There are no arguments.
        let bytes: &[u8] = if byte == b'%' { b"%%" } else { core::slice::from_ref(&byte) };
        match format.get_mut(end..end + bytes.len()).filter(|_| end < MOST) {
            Some(place) => place.copy_from_slice(bytes),
            None => break,
        }
        end += bytes.len();
    }
    if let Some(place) = format.get_mut(end) {
        *place = b'\n';
    }
    // A `va_list`, of which nothing is used.
    let arguments = [0_usize; 8];
    let places =
        [(&raw const format).expose_provenance(), (&raw const arguments).expose_provenance()];
    request(&[PRINTF, places[0], places[1], 0, 0, 0]);
}

/// Inverts whether callgrind counts what this thread does.
pub(crate) fn toggle_collection() {
    request(&[TOGGLE_COLLECT, 0, 0, 0, 0, 0]);
}

/// Tells memcheck, if it runs this process, to ignore this memory until [`make_defined`]: its leak search does not read it,
/// which would otherwise make the kernel allocate each page.
pub fn make_no_access(address: usize, size: usize) {
    in_parts(MAKE_MEM_NOACCESS, address, size);
}

/// Tells memcheck, if it runs this process, that this memory is accessible and initialised.
pub fn make_defined(address: usize, size: usize) {
    in_parts(MAKE_MEM_DEFINED, address, size);
}

fn in_parts(what: usize, mut address: usize, mut size: usize) {
    if !is_under_valgrind() || warns_of_requests() {
        return;
    }
    while size > 0 {
        let part = size.min(MOST);
        request(&[what, address, part, 0, 0, 0]);
        address = address.wrapping_add(part);
        size = size.saturating_sub(part);
    }
}

/// Makes a request; the answer is 0 without Valgrind.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
fn request(question: &[usize; 6]) -> usize {
    let answer: usize;
    // SAFETY: four rotations by 64 x 2 bits in all leave rdi unchanged, and exchanging rbx with itself does nothing. The
    // flags change, and are not declared to be preserved. Under Valgrind, rdx is written, and what the request defines: at
    // most the memory of `has_line`'s buffer, whose address was exposed; the declaration does not exclude writes to memory.
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

/// Makes a request; the answer is 0 without Valgrind.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little"))]
fn request(question: &[usize; 6]) -> usize {
    let answer: usize;
    // SAFETY: rotations by 128 in all leave x12 unchanged, and x10 or x10 is x10. Under Valgrind, x3 is written, and what
    // the request defines: at most the memory of `has_line`'s buffer, whose address was exposed; the declaration does not
    // exclude writes to memory.
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

/// Requests are not known for this machine: Valgrind is never found.
#[cfg(not(any(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little")
)))]
fn request(_question: &[usize; 6]) -> usize {
    0
}

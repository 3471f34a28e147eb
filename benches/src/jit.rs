//! A process whose code is made at run time: it writes [functions](crate::shape) to an arena,
//! announces them in a jitdump, and calls one after the other.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use jitdump::{DebugEntry, Endian, EntryName, IoSink, Load, Writer, WriterConfig};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use rustix::time::{ClockId, clock_gettime};

use crate::shape::{ARENA, Function};

/// ELF `e_machine` of x86-64.
const EM_X86_64: u32 = 62;
/// Calls between two looks at the clock.
const CALLS: usize = 256;

/// Where code begins under valgrind, which keeps the higher addresses for itself.
const ARENA_UNDER_VALGRIND: u64 = 0x60_0000_0000;

/// Code of this process that can be called.
type Entry = unsafe extern "C" fn();

/// Makes `functions` functions `epochs` times over at the same addresses, and each time runs them
/// for its share of `time` (of the processor, not of the wall). Writes `jit-PID.dump` into `folder`.
///
/// # Errors
/// When the dump cannot be written, or the arena's addresses are taken.
pub fn run(folder: &Path, functions: u32, epochs: u32, time: Duration) -> std::io::Result<()> {
    let pid = std::process::id();
    let path = folder.join(format!("jit-{pid}.dump"));
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    let config = WriterConfig {
        endian: Endian::NATIVE,
        machine: EM_X86_64,
        pid,
        timestamp: now(),
        flags: 0,
    };
    let mut dump = Writer::new(IoSink(BufWriter::new(file)), &config).map_err(io)?;
    dump.sink_mut().0.flush()?;
    // SAFETY: a new mapping of a file, at an address that the kernel chooses; nobody reads it.
    unsafe {
        let file = dump.sink().0.get_ref().as_fd();
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        mmap(ptr::null_mut(), 4096, protection, MapFlags::PRIVATE, file, 0)?;
    }

    let size: u64 = (0..functions).map(|number| Function::new(number, 0).stride()).sum();
    let map = |address: u64| {
        let all = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: the kernel refuses addresses that are taken.
        unsafe { mmap_anonymous(address as *mut _, size as usize, all, flags) }
    };
    let arena = map(ARENA).or_else(|_| map(ARENA_UNDER_VALGRIND))?;
    let base = arena.expose_provenance() as u64;
    let mut entries: Vec<Entry> = Vec::with_capacity(functions as usize);
    for epoch in 0..epochs {
        entries.clear();
        let mut offset = 0;
        for number in 0..functions {
            let function = Function::new(number, epoch);
            // SAFETY: the arena has room for all functions one behind the other, and nobody else
            // knows it. What is written is a whole x86-64 function without arguments.
            unsafe {
                let place = arena.cast::<u8>().add(offset as usize);
                ptr::copy_nonoverlapping(function.code.as_ptr(), place, function.code.len());
                entries.push(std::mem::transmute::<*mut u8, Entry>(place));
            }
            let index = u64::from(epoch) * u64::from(functions) + u64::from(number);
            announce(&mut dump, &function, base + offset, index, pid)?;
            offset += function.stride();
        }
        dump.sink_mut().0.flush()?;
        let end = processor_time() + time / epochs;
        let mut next = entries.iter().cycle();
        while processor_time() < end {
            for entry in next.by_ref().take(CALLS) {
                // SAFETY: see where it was written.
                unsafe { entry() };
            }
        }
    }
    dump.close(now()).map_err(io)?;
    dump.sink_mut().0.flush()
}

fn announce<W: Write>(
    dump: &mut Writer<IoSink<W>>,
    function: &Function,
    address: u64,
    index: u64,
    pid: u32,
) -> std::io::Result<()> {
    let lines = (0..).zip(function.line_offsets).map(|(line, offset)| DebugEntry {
        addr: address + offset,
        line: function.line + line,
        discrim: 0,
        name: EntryName::Path(function.file.as_bytes()),
    });
    dump.debug_info(now(), address, lines).map_err(io)?;
    let load = Load {
        pid,
        tid: pid,
        vma: address,
        code_addr: address,
        code_index: index,
        name: function.name.as_bytes(),
        code: &function.code,
        padding: &[],
        missing: 0,
    };
    dump.load(now(), &load).map_err(io)
}

fn io(error: jitdump::WriteError<std::io::Error>) -> std::io::Error {
    std::io::Error::other(error.to_string())
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

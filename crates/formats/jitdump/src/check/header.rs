//! Checks of the file header, and of the file's name.

use alloc::format;
use alloc::string::String;

use super::findings::Findings;
use super::rules;
use crate::header::{FLAG_ARCH_TIMESTAMP, HEADER_SIZE, Header};
use crate::quirks::{HeaderClock, Quirks, RecordClock};
use crate::reader::Dump;

/// Offsets of the header's fields.
mod at {
    pub(super) const VERSION: u64 = 4;
    pub(super) const TOTAL_SIZE: u64 = 8;
    pub(super) const ELF_MACH: u64 = 12;
    pub(super) const PAD1: u64 = 16;
    pub(super) const PID: u64 = 20;
    pub(super) const TIMESTAMP: u64 = 24;
    pub(super) const FLAGS: u64 = 32;
}

pub(super) fn check(findings: &mut Findings, dump: &Dump<'_>, file_name: Option<&[u8]>) {
    let header = dump.header();
    if header.version == 0 {
        findings.add(&rules::VERSION_ZERO, at::VERSION, || String::from("version 0"));
    }
    if header.total_size != HEADER_SIZE {
        findings.add(&rules::HEADER_SIZE, at::TOTAL_SIZE, || {
            format!("header of {} bytes", header.total_size)
        });
    }
    if header.elf_mach == 0 {
        findings.add(&rules::NO_MACHINE, at::ELF_MACH, || String::from("elf_mach 0"));
    }
    if header.pad1 != 0 {
        findings.add(&rules::HEADER_PADDING, at::PAD1, || format!("pad1 is {:#010x}", header.pad1));
    }
    if header.pid == 0 {
        findings.add(&rules::NO_PID, at::PID, || String::from("pid 0"));
    }
    let unknown = header.flags & !FLAG_ARCH_TIMESTAMP;
    if unknown != 0 {
        findings.add(&rules::UNKNOWN_FLAGS, at::FLAGS, || format!("unknown flags {unknown:#x}"));
    }
    quirks(findings, header, &Quirks::detect(dump));
    if let Some(file_name) = file_name {
        name(findings, header, file_name);
    }
}

fn quirks(findings: &mut Findings, header: &Header, quirks: &Quirks) {
    let timestamp = header.timestamp;
    let clock = match quirks.header_clock {
        HeaderClock::Records | HeaderClock::NoRecords => None,
        HeaderClock::WallMicroseconds => Some("microseconds of the wall clock"),
        HeaderClock::WallNanoseconds => Some("nanoseconds of the wall clock"),
        HeaderClock::Unknown => Some("not near the records' timestamps"),
    };
    if let Some(clock) = clock {
        findings.add(&rules::HEADER_CLOCK, at::TIMESTAMP, || format!("{timestamp} is {clock}"));
    }
    if quirks.record_clock == RecordClock::Realtime {
        findings.add(&rules::RECORD_CLOCK, u64::from(header.total_size), || {
            String::from("the records' timestamps are nanoseconds since 1970")
        });
    }
    if quirks.machine != header.elf_mach {
        findings.add(&rules::WRONG_MACHINE, at::ELF_MACH, || {
            format!("elf_mach {}, but the code is for {}", header.elf_mach, quirks.machine)
        });
    }
}

fn name(findings: &mut Findings, header: &Header, file_name: &[u8]) {
    let shown = || String::from_utf8_lossy(file_name);
    let pid = file_name
        .strip_prefix(b"jit-")
        .and_then(|rest| rest.strip_suffix(b".dump"))
        .filter(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
        .and_then(|pid| core::str::from_utf8(pid).ok());
    match pid {
        None => findings.add(&rules::FILE_NAME, 0, || format!("the file is named {}", shown())),
        Some(pid) if pid.parse() != Ok(header.pid) => {
            findings.add(&rules::FILE_NAME_PID, at::PID, || {
                format!("the file is named {}, but the header has pid {}", shown(), header.pid)
            });
        }
        Some(_) => {}
    }
}

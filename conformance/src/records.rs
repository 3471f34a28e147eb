//! The records of the format, as they are specified.

use serde_json::{Value, json};

use crate::bytes::{Bytes, id};
use crate::reading::{Code, Line, PID, TIME, Unwind};

#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub is_big: bool,
    pub version: u32,
    /// The size that it claims.
    pub total_size: u32,
    pub machine: u32,
    pub pad1: u32,
    pub time: u64,
    pub flags: u64,
}

impl Default for Header {
    fn default() -> Self {
        let (version, total_size, machine) = (1, 40, 62);
        Self { is_big: false, version, total_size, machine, pad1: 0, time: TIME, flags: 0 }
    }
}

impl Header {
    /// A file with this header alone.
    pub fn file(&self) -> Bytes {
        let mut file = Bytes { out: Vec::new(), is_big: self.is_big };
        file.u32(0x4a69_5444).u32(self.version).u32(self.total_size).u32(self.machine);
        file.u32(self.pad1).u32(PID).u64(self.time).u64(self.flags);
        file
    }

    pub fn json(&self) -> Value {
        json!({
            "endian": if self.is_big { "big" } else { "little" },
            "version": self.version,
            "machine": self.machine,
            "pid": PID,
            "time": self.time,
            "flags": self.flags,
        })
    }
}

impl Bytes {
    pub fn load(&mut self, code: &Code) -> &mut Self {
        self.any_load(code, [code.address; 2], b"")
    }

    pub fn padded_load(&mut self, code: &Code, padding: &[u8]) -> &mut Self {
        self.any_load(code, [code.address; 2], padding)
    }

    /// Writes a LOAD with these values of `vma` and `code_addr`.
    pub fn load_at(&mut self, code: &Code, vma: u64, code_addr: u64) -> &mut Self {
        self.any_load(code, [vma, code_addr], b"")
    }

    fn any_load(&mut self, code: &Code, at: [u64; 2], padding: &[u8]) -> &mut Self {
        self.record(id::LOAD, code.time, |file| {
            file.u32(code.pid).u32(code.tid).u64(at[0]).u64(at[1]);
            file.u64(code.size).u64(code.index).text(&code.name);
            file.raw(code.bytes.as_deref().unwrap_or_default()).raw(padding)
        })
    }

    /// Writes the lines of a code, with this added to their addresses.
    pub fn debug_info(&mut self, code: &Code, bias: u64) -> &mut Self {
        self.entries(code, &code.lines, bias)
    }

    /// Writes a DEBUG_INFO for a code with these entries.
    pub fn entries(&mut self, code: &Code, lines: &[Line], bias: u64) -> &mut Self {
        self.any_debug_info(code, lines, bias, b"")
    }

    pub fn padded_debug_info(&mut self, code: &Code, padding: &[u8]) -> &mut Self {
        self.any_debug_info(code, &code.lines, 0, padding)
    }

    fn any_debug_info(
        &mut self,
        code: &Code,
        lines: &[Line],
        bias: u64,
        padding: &[u8],
    ) -> &mut Self {
        self.record(id::DEBUG_INFO, code.time, |file| {
            file.u64(code.address).u64(lines.len() as u64);
            lines.iter().fold(file, |file, line| file.entry(line, bias)).raw(padding)
        })
    }

    pub fn entry(&mut self, line: &Line, bias: u64) -> &mut Self {
        self.u64(line.address + bias).u32(line.line).u32(line.column).text(&line.file)
    }

    /// Writes the unwind tables of a code: `.eh_frame` first.
    pub fn unwinding(&mut self, code: &Code) -> &mut Self {
        let unwind = code.unwind.clone().unwrap_or_default();
        let Unwind { eh_frame, eh_frame_hdr, mapped_size } = &unwind;
        let all = [eh_frame.as_slice(), eh_frame_hdr].concat();
        self.unwinding_with(code.time, &all, eh_frame_hdr.len() as u64, *mapped_size)
    }

    pub fn unwinding_with(
        &mut self,
        time: u64,
        data: &[u8],
        eh_frame_hdr_size: u64,
        mapped_size: u64,
    ) -> &mut Self {
        self.record(id::UNWINDING_INFO, time, |file| {
            file.u64(data.len() as u64).u64(eh_frame_hdr_size).u64(mapped_size).raw(data)
        })
    }

    pub fn close(&mut self, time: u64) -> &mut Self {
        self.record(id::CLOSE, time, |file| file)
    }
}

/// Tables for code that keeps a frame pointer: a CIE and an FDE, and a header with a table of one entry. Positions
/// are computed as if `.eh_frame` followed the code at the next multiple of 8.
pub fn unwind_tables(code: &Code, is_big: bool) -> Unwind {
    let code_end = code.size.next_multiple_of(8);
    let mut frame = Bytes { out: Vec::new(), is_big };
    // CIE: version 1, "zR", code factor 1, data factor -8, return address in 16, pc-relative pointers of 4 bytes;
    // CFA = rsp + 8, return address at CFA - 8.
    frame.u32(20).u32(0).raw(b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0");
    // FDE.
    let begin = i64::try_from(code_end + 32).expect("small");
    frame.u32(20).u32(28).u32((-begin) as u32).u32(code.size as u32);
    // No augmentation data; advance 1, CFA + 16, rbp at CFA - 16, advance 3, CFA by rbp.
    frame.raw(b"\0\x41\x0e\x10\x86\x02\x43\x0d").u32(0);
    let eh_frame = frame.out;
    let mut header = Bytes { out: Vec::new(), is_big };
    let at = code_end + eh_frame.len() as u64;
    header.raw(b"\x01\x1b\x03\x3b").u32((eh_frame.len() as u32 + 4).wrapping_neg()).u32(1);
    header.u32((at as u32).wrapping_neg()).u32((eh_frame.len() as u32 - 24).wrapping_neg());
    let mapped_size = (eh_frame.len() + header.out.len()).next_multiple_of(16) as u64;
    Unwind { eh_frame, eh_frame_hdr: header.out, mapped_size }
}

//! A jitdump, read without the project's readers, and a recording with a sample in each of its codes.

use std::path::Path;

use crate::synthetic::Recording;

/// A LOAD of a jitdump.
#[derive(Clone, Debug)]
pub struct Load {
    /// Nanoseconds of its clock.
    pub time: u64,
    /// Where it is.
    pub address: u64,
    /// Its bytes.
    pub code: Vec<u8>,
    /// Its name.
    pub name: String,
}

/// A jitdump of a little-endian machine.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The machine, as in ELF.
    pub machine: u32,
    /// The process.
    pub pid: u32,
    /// In the order of the file.
    pub loads: Vec<Load>,
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

impl Dump {
    /// Reads it.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the dump");
        let (machine, pid) = (word(&bytes, 12), word(&bytes, 20));
        let (mut at, mut loads) = (word(&bytes, 8) as usize, Vec::new());
        while at + 16 <= bytes.len() {
            let (kind, size) = (word(&bytes, at), word(&bytes, at + 4) as usize);
            let body = &bytes[at + 16..at + size];
            if kind == 0 {
                let end = 40 + body[40..].iter().position(|byte| *byte == 0).expect("a NUL");
                let name = String::from_utf8(body[40..end].to_vec()).expect("UTF-8");
                let code = body[end + 1..][..number(body, 24) as usize].to_vec();
                let (time, address) = (number(&bytes, at + 8), number(body, 8));
                loads.push(Load { time, address, code, name });
            }
            at += size;
        }
        Self { machine, pid, loads }
    }

    /// A recording of node on a machine of this name (`uname -m`), whose dump this is: a sample at the end of each code, just after it
    /// was loaded.
    #[must_use]
    pub fn recording(&self, path: &Path, machine: &'static str) -> Recording {
        let mut recording = Recording::made_on(machine);
        // The header's time is not used: node takes it from another clock.
        let began = self.loads[0].time - 1;
        recording.comm(self.pid, "node", began, true);
        recording.map(self.pid, 0x40_0000, 4096, path.to_str().expect("UTF-8"), began);
        for load in &self.loads {
            let ip = load.address + (load.code.len() as u64 - 1) / 4 * 4;
            recording.sample(self.pid, ip, load.time + 1);
        }
        recording
    }
}

//! Logs of runtimes that are neither jitdumps nor perf maps: a file for each format, and a line in [`LOG_FORMATS`].
//!
//! Such a log is translated to a jitdump when it is opened. So everything that reads jitdumps reads it: recordings, debuggers,
//! listings, the agent. The jitdump has no bytes of code; where these are needed, they come from the process's memory.

mod format;
mod pypy;

use jitdump::extension::code::LARGEST_WITHOUT_BYTES;
use jitdump::{Endian, ExtendedCode, Writer, WriterConfig};

pub use self::format::LogFormat;
use self::format::ReadLog;

/// Every format.
pub const LOG_FORMATS: [LogFormat; 1] = [pypy::FORMAT];

/// Translates a log to a jitdump, in parts of any size.
#[derive(Debug)]
pub struct LogTranslator {
    format: LogFormat,
    reader: Box<dyn ReadLog>,
    pid: u32,
    codes: u64,
}

impl LogFormat {
    /// The format of a log that begins with these bytes; as many as a jitdump's header has are enough.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<Self> {
        LOG_FORMATS.into_iter().find(|format| (format.recognizes)(beginning))
    }
}

impl LogTranslator {
    /// A translator for a log of process `pid` that begins with these bytes; `None` if it has none of the [formats](LOG_FORMATS).
    #[must_use]
    pub fn of(beginning: &[u8], pid: u32) -> Option<Self> {
        let format = LogFormat::of(beginning)?;
        Some(Self { format, reader: (format.reader)(), pid, codes: 0 })
    }

    /// The log's format.
    #[must_use]
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// The header of the jitdump. No log names its machine: this one is taken.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let (endian, pid, flags) = (Endian::NATIVE, self.pid, self.format.flags);
        let config = WriterConfig { endian, machine: HOST, pid, timestamp: 0, flags };
        Writer::new(Vec::new(), &config).map(Writer::into_sink).unwrap_or_default()
    }

    /// About how many bytes it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.reader.held()
    }

    /// Takes the next bytes of the log, and appends the records of the codes that they complete.
    pub fn take(&mut self, bytes: &[u8], records: &mut Vec<u8>) {
        let Self { reader, pid, codes, .. } = self;
        reader.take(bytes, &mut |code| append(records, *pid, codes, code));
    }

    /// Appends the records of what more bytes could complete. More bytes may be taken afterwards.
    pub fn finish(&mut self, records: &mut Vec<u8>) {
        let Self { reader, pid, codes, .. } = self;
        reader.finish(&mut |code| append(records, *pid, codes, code));
    }
}

/// The jitdump that says what a log of process `pid` says; `None` if the content is no log, but a jitdump or a perf map.
#[must_use]
pub fn translate_log(content: &[u8], pid: u32) -> Option<Vec<u8>> {
    let mut translator = LogTranslator::of(content, pid)?;
    let mut dump = translator.header();
    translator.take(content, &mut dump);
    translator.finish(&mut dump);
    Some(dump)
}

fn append(records: &mut Vec<u8>, pid: u32, codes: &mut u64, code: &ExtendedCode<'_>) {
    if code.size > LARGEST_WITHOUT_BYTES {
        return;
    }
    let before = records.len();
    let mut writer = Writer::append(std::mem::take(records), Endian::NATIVE);
    let written = writer.extended(&ExtendedCode { pid, tid: pid, index: *codes, ..*code });
    *records = writer.into_sink();
    match written {
        Ok(()) => *codes = codes.saturating_add(1),
        // It is too large for a record.
        Err(_) => records.truncate(before),
    }
}

/// `e_machine` of ELF for the machine that runs this.
const HOST: u32 = if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else if cfg!(target_arch = "x86") {
    3
} else {
    62
};

//! What a log tells, as a jitdump for others: standard records, with the bytes that are still in memory.

use std::ops::Range;

use code_log::{Head, Source};
use jitdump::extension::LeftOut;
use jitdump::{CodeEvent, CodeLoad, Dump, Writer, WriterConfig};

use super::Memory;

/// Code larger than this is not copied from memory: no compiler makes it, a damaged log tells of it.
const LARGEST: usize = 64 << 20;

/// A jitdump that was made of a log.
#[derive(Debug)]
pub struct Told {
    /// The jitdump.
    pub bytes: Vec<u8>,
    /// Number of codes in it.
    pub codes: u64,
    /// How many of them were alive.
    pub alive: u64,
    /// How many lack their machine code: dead before anyone asked for it.
    pub without_bytes: u64,
    /// Chunks of the log that could not be read.
    pub torn: u64,
    /// The log's control words.
    pub head: Head,
}

/// Where the bytes of code that is alive come from.
pub trait CodeBytes {
    /// The bytes at these addresses, if they are all there.
    fn code_bytes(&self, range: Range<u64>) -> Option<Vec<u8>>;
}

impl CodeBytes for Memory {
    fn code_bytes(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let mut bytes = room(&range)?;
        self.read_exact(range.start, &mut bytes).ok()?;
        Some(bytes)
    }
}

/// Room for the code at these addresses, unless no compiler makes such code.
pub fn room(range: &Range<u64>) -> Option<Vec<u8>> {
    let size = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
    (size <= LARGEST).then(|| vec![0; size])
}

/// Makes a jitdump of the log of a running process.
///
/// `memory` is where the process's code lies; without it code of a lean log has no bytes. `until` is for a log
/// that was another process's first: what came later is not this one's.
pub fn dump_of(
    source: &impl Source,
    memory: Option<&dyn CodeBytes>,
    until: Option<u64>,
) -> Result<Told, code_log::Error> {
    let snapshot = code_log::snapshot(source)?;
    let mut told = Told {
        bytes: Vec::new(),
        codes: 0,
        alive: 0,
        without_bytes: 0,
        torn: snapshot.torn,
        head: snapshot.head,
    };
    let damaged = |_| code_log::Error::NotALog("its records make no sense");
    let dump = Dump::parse(&snapshot.bytes).map_err(damaged)?;
    let config = WriterConfig::from(dump.header());
    let failed = |_| code_log::Error::NotALog("it cannot be written as a dump");
    let mut writer = Writer::new(Vec::new(), &config).map_err(failed)?;
    let head = &snapshot.head;
    if head.left_out > 0 {
        let left_out =
            LeftOut { count: head.left_out, first: head.left_out_first, last: head.left_out_last };
        writer.left_out(head.left_out_first, &left_out).map_err(failed)?;
    }
    for event in dump.codes() {
        let Ok(CodeEvent::Load(code)) = event else { continue };
        if until.is_some_and(|until| code.timestamp > until) {
            continue;
        }
        let is_alive = code.died().is_none();
        let fetched = fetch(&code, memory.filter(|_| is_alive));
        told.codes += 1;
        told.alive += u64::from(is_alive);
        told.without_bytes += u64::from(fetched.is_none() && code.is_lean());
        // A name or a file that the format cannot hold costs its code, not the others.
        let _ = writer.code(&code, fetched.as_deref());
    }
    told.bytes = writer.into_sink();
    Ok(told)
}

fn fetch(code: &CodeLoad<'_>, memory: Option<&dyn CodeBytes>) -> Option<Vec<u8>> {
    if !code.is_lean() {
        return None;
    }
    memory?.code_bytes(code.address..code.address.checked_add(code.size)?)
}

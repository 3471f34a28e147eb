//! What a log tells, as a jitdump for others: standard records, with the bytes that are still in memory.

use std::collections::HashMap;
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

/// Where to take what the log itself does not have.
#[derive(Clone, Copy, Default)]
pub struct Beside<'a> {
    /// The process's memory, for the bytes of a lean log's codes.
    pub memory: Option<&'a dyn CodeBytes>,
    /// For a log that was another process's first: what came later is not this one's.
    pub until: Option<u64>,
    /// What the log had told before: codes that are gone from it since, and bytes of those that are dead now.
    pub earlier: Option<&'a Told>,
}

/// Makes a jitdump of the log of a running process.
pub fn dump_of(source: &impl Source, beside: Beside<'_>) -> Result<Told, code_log::Error> {
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
    let earlier = beside.earlier.and_then(|earlier| Dump::parse(&earlier.bytes).ok());
    let mut before: HashMap<Identity, CodeLoad<'_>> = HashMap::new();
    for event in earlier.iter().flat_map(Dump::codes).flatten() {
        if let CodeEvent::Load(code) = event {
            before.insert(identity(&code), code);
        }
    }
    // A name or a file that the format cannot hold costs its code, not the others.
    let mut write = |code: &CodeLoad<'_>, bytes: Option<&[u8]>| {
        told.codes += 1;
        told.alive += u64::from(code.died().is_none());
        told.without_bytes += u64::from(bytes.is_none() && code.is_lean());
        let _ = writer.code(code, bytes);
    };
    for event in dump.codes() {
        let Ok(CodeEvent::Load(code)) = event else { continue };
        if beside.until.is_some_and(|until| code.timestamp > until) {
            continue;
        }
        let known = before.remove(&identity(&code));
        if !code.is_lean() {
            write(&code, None);
            continue;
        }
        let memory = beside.memory.filter(|_| code.died().is_none());
        let fetched = memory.and_then(|memory| fetch(&code, memory));
        let known = known.as_ref().filter(|known| !known.is_lean()).map(|known| known.bytes);
        write(&code, fetched.as_deref().or(known));
    }
    let mut gone: Vec<_> = before.into_values().collect();
    gone.sort_by_key(|code| (code.timestamp, code.index));
    for code in &gone {
        write(code, None);
    }
    told.bytes = writer.into_sink();
    Ok(told)
}

/// What tells a code from all others of its process: an index is given once, but for forks.
type Identity = (u64, u64);

fn identity(code: &CodeLoad<'_>) -> Identity {
    (code.index, code.timestamp)
}

fn fetch(code: &CodeLoad<'_>, memory: &dyn CodeBytes) -> Option<Vec<u8>> {
    memory.code_bytes(code.address..code.address.checked_add(code.size)?)
}

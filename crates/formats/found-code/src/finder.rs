//! Finds code, poll by poll.

use std::ops::Range;

use gdb_jit_list::ReadAt;
use memchr::memmem;

use crate::code::Change;
use crate::compilers::Compilers;
use crate::luajit::{States, Table};
use crate::mapped::Mapped;
use crate::pcre2::{Expressions, MAGIC};
use crate::registry::{Codes, Context, Registry};
use crate::scan::{PART, Scan};

/// What is read at one poll.
#[derive(Debug)]
pub struct Poll<'p, M: ?Sized> {
    /// The memory of the process.
    pub memory: &'p M,
    /// What it has mapped.
    pub mapped: &'p Mapped,
    /// The compilers that its programs and libraries have.
    pub compilers: Compilers,
    /// The most bytes that are scanned for structures that are not known.
    pub bytes: u64,
    /// The time of this poll. The unit is the caller's.
    pub now: u64,
    /// The time of the last poll, or when the process began.
    pub last: u64,
}

/// Finds code in the memory of one process.
///
/// What is known is read again at each poll. The rest of the memory is scanned a part at a time, again and again, at longer and longer intervals while nothing new
/// is found.
#[derive(Debug, Default)]
pub struct Finder {
    scan: Scan,
    states: States,
    expressions: Expressions,
    codes: Codes,
    room: Vec<u8>,
    /// Where there was executable memory at the last poll.
    code: Vec<Range<u64>>,
    /// Since when nothing has been looked for: when the process began, as far as this is known.
    first: Option<u64>,
}

impl Finder {
    /// Reads what is known again, and scans further. Calls `each` with what has changed.
    ///
    /// `present` tells which parts of a range have ever been written, if this is known: others are not read, as that would allocate them.
    ///
    /// Returns whether all of the memory has been scanned since the last time that this was so.
    pub fn poll(
        &mut self,
        poll: &Poll<'_, impl ReadAt + ?Sized>,
        present: impl Fn(&Range<u64>) -> Option<Vec<Range<u64>>>,
        mut each: impl FnMut(Change),
    ) -> bool {
        let Self { scan, states, expressions, codes, room, code, first } = self;
        let first = *first.get_or_insert(poll.last);
        let mut codes = Registry::new(codes, &mut each);
        let context = Context::new(poll.memory, poll.mapped, poll.last);
        states.poll(&context, &mut codes);
        expressions.poll(&context, &mut codes);
        if poll.compilers.is_empty() || poll.mapped.code.is_empty() {
            return true;
        }
        // An expression that is new may be compiled into new memory.
        if !poll.compilers.pcre2.is_empty() && *code != poll.mapped.code {
            code.clone_from(&poll.mapped.code);
            scan.hurry();
        }
        let mut has_new = false;
        let is_end = scan.advance(&poll.mapped.data, poll.bytes, poll.now, |part, since| {
            let since = since.unwrap_or(first).min(poll.last);
            let mut count = 0;
            for range in present(&part).unwrap_or_else(|| vec![part]) {
                each_part(poll.memory, &range, room, |at, bytes, next| {
                    if poll.compilers.luajit {
                        each_pair(at, bytes, next, |at, first, second| {
                            if let Some(table) = Table::parse(first, second)
                                && context.examine(1)
                            {
                                has_new |= states.examine(at, table, &context, &mut codes, since);
                            }
                        });
                    }
                    let versions = poll.compilers.pcre2;
                    if !versions.is_empty() {
                        each_magic(at, bytes, |at| {
                            has_new |= context.examine(1)
                                && expressions.examine(at, versions, &context, &mut codes, since);
                        });
                    }
                });
                count = range.end.saturating_sub(range.start).saturating_add(count);
            }
            count
        });
        if has_new {
            scan.hurry();
        }
        is_end
    }

    /// Whether there is code that is not reported, as there is too much.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.codes.is_full()
    }
}

/// Calls `each` with the parts of a range that begins at a multiple of 8: with the address of each, its bytes, and the word behind it; 0 if that is not there.
fn each_part(
    memory: &(impl ReadAt + ?Sized),
    range: &Range<u64>,
    room: &mut Vec<u8>,
    mut each: impl FnMut(u64, &[u8], [u8; 8]),
) {
    let mut at = range.start.next_multiple_of(8);
    while at < range.end {
        let size = range.end.saturating_sub(at).min(PART);
        let Ok(size) = usize::try_from(size) else { return };
        room.resize(size, 0);
        let count = memory.read_at(at, room);
        // Whole words.
        let bytes = room.get(..count & !7).unwrap_or_default();
        let end = at.saturating_add(u64::try_from(bytes.len()).unwrap_or_default());
        // A read that goes on to where nothing is mapped may have no bytes at all.
        each(at, bytes, memory.array(end).unwrap_or_default());
        if count < size || count < 8 {
            return;
        }
        at = end;
    }
}

/// Calls `each` with each word of a part, its address, and the word behind it.
fn each_pair(mut at: u64, bytes: &[u8], next: [u8; 8], mut each: impl FnMut(u64, u64, u64)) {
    let words = bytes.as_chunks::<8>().0;
    let seconds = words.iter().skip(1).chain(std::iter::once(&next));
    for (first, second) in words.iter().zip(seconds) {
        each(at, u64::from_le_bytes(*first), u64::from_le_bytes(*second));
        at = at.saturating_add(8);
    }
}

/// Calls `each` with the addresses in a part at which PCRE2's magic number is.
fn each_magic(at: u64, bytes: &[u8], mut each: impl FnMut(u64)) {
    for offset in memmem::find_iter(bytes, &MAGIC.to_le_bytes()) {
        let address = at.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX));
        if address.is_multiple_of(8) {
            each(address);
        }
    }
}

//! The memory of code logs.

use serde_json::Value;

use super::extensions::{full, without_bytes};
use crate::bytes::Bytes;
use crate::case::{Case, Reading};
use crate::extended::tag;
use crate::reading::{Code, TIME, damage};
use crate::records::Header;

const CHUNK: usize = 8192;
const FIRST: usize = 4096;

/// A log with its chunks.
struct Log {
    bytes: Bytes,
}

impl Log {
    /// The head of a log with this many chunks.
    fn new(chunks: u32) -> Self {
        Self::with(1, chunks, [0; 3], true)
    }

    fn with(version: u32, chunks: u32, left_out: [u64; 3], has_breakpoints: bool) -> Self {
        let mut bytes = Header::default().file();
        bytes.tail(TIME, 0, |file| {
            file.item(tag::LOG, 0, |file| {
                file.u32(version).u32(CHUNK as u32).u32(chunks).u32(1).u64(1 << 26);
                for word in left_out {
                    file.u64(word);
                }
                // Paused, resumed, forked; parent, inherited.
                file.u64(0).u64(0).u64(0).u32(0).u32(0);
            });
            if has_breakpoints {
                file.item(tag::BREAKPOINTS, 0, |file| {
                    let rest = FIRST - file.out.len();
                    file.raw(&vec![0; rest]);
                });
            }
        });
        bytes.out.resize(FIRST, 0);
        bytes.set_u32(44, (FIRST - 40) as u32);
        Self { bytes }
    }

    /// Adds a chunk, or several that belong together: what `write` writes, and a filler up to the end.
    fn chunk(&mut self, epoch: u64, span: u32, write: impl FnOnce(&mut Bytes)) -> usize {
        let start = self.bytes.out.len();
        self.bytes.tail(TIME, 0, |file| {
            file.item(tag::CHUNK, 0, |file| {
                file.u64(epoch).u32(span).u32(0);
            });
        });
        write(&mut self.bytes);
        self.fill(start + CHUNK * span as usize);
        start
    }

    fn fill(&mut self, end: usize) {
        let left = end - self.bytes.out.len();
        if left > 0 {
            self.bytes.filler(TIME, left, &[0xab; 16][..left.saturating_sub(32).min(16)]);
        }
    }

    fn case(self, name: &str, rule: &'static str, events: Vec<Value>) -> Case {
        self.case_with(name, rule, &["name"], Reading::of(&Header::default(), events))
    }

    fn case_with(
        self,
        name: &str,
        rule: &'static str,
        needs: &'static [&'static str],
        reading: Reading,
    ) -> Case {
        let Self { bytes } = self;
        Case { name: format!("{name}.log"), rule, needs, bytes: bytes.out, reading }
    }
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c, d] = [1, 2, 3, 4].map(Code::number);
    let mut cases = Vec::new();

    let mut log = Log::new(1);
    log.chunk(0, 1, |file| {
        file.group(&full(1)).group(&without_bytes(full(2)));
    });
    cases.push(log.case_with(
        "log",
        "A chunk has a head, groups, and a filler up to its end.",
        &["name", "lines", "inlined", "tier"],
        Reading::of(&Header::default(), vec![full(1).event(), without_bytes(full(2)).event()]),
    ));

    let mut log = Log::with(1, 1, [0; 3], false);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    cases.push(log.case(
        "log-without-breakpoints",
        "The first record of an older log has the item LOG alone.",
        vec![a.event()],
    ));

    let mut log = Log::new(3);
    log.chunk(0, 1, |file| {
        file.group(&d).group(&b);
    });
    log.chunk(4, 1, |file| {
        file.group(&a);
    });
    log.chunk(0, 1, |file| {
        file.group(&c);
    });
    // What follows the chunks in use is zeros.
    log.bytes.out.extend([0; CHUNK]);
    cases.push(log.case_with(
        "log-chunks",
        "Codes of several chunks are in no order of time; behind the chunks in use are zeros.",
        &["name"],
        Reading::of(&Header::default(), [&a, &b, &c, &d].map(Code::event).to_vec()),
    ));

    let large = Code { size: 12_000, bytes: Some(vec![0x90; 12_000]), ..b.clone() };
    let mut log = Log::new(3);
    log.chunk(2, 2, |file| {
        file.group(&large);
    });
    log.chunk(0, 1, |file| {
        file.group(&c);
    });
    cases.push(log.case(
        "log-large-code",
        "A group larger than a chunk takes several, which have one head.",
        vec![large.event(), c.event()],
    ));

    let mut log = Log::new(1);
    log.chunk(0, 1, |file| {
        file.group(&a).filler(TIME, 40, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let mut old = Bytes::default();
        old.u64(7).group(&d);
        file.filler(TIME, 1024, &old.out).filler(TIME, 32, b"").group(&b);
    });
    cases.push(log.case(
        "log-fillers",
        "Between groups may be fillers, with arbitrary content.",
        vec![a.event(), b.event()],
    ));

    let mut log = Log::new(2);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    let end = log.bytes.out.len() + CHUNK;
    // While chunks are joined, the filler of one extends over the next, whose head is inside.
    let filler = log.bytes.out.len() - CHUNK + 64;
    let first = filler + size_of_group(&a);
    log.bytes.set_u32(first + 4, (end - first) as u32);
    log.chunk(0, 1, |file| {
        file.group(&c);
    });
    cases.push(log.case_with(
        "log-filler-over-chunks",
        "While chunks are joined or split, a filler may extend over several; their heads count.",
        &["log"],
        Reading::of(&Header::default(), vec![a.event(), c.event()]),
    ));

    let mut log = Log::new(1);
    log.chunk(0, 1, |file| {
        file.group(&a);
        let start = file.out.len();
        file.group(&full(3));
        // The first word of the tail is not stored yet, nor the address.
        file.set_u64(start + 32, 0);
        file.set_u64(start + 16, 0);
        file.group(&b);
    });
    cases.push(log.case_with(
        "log-group-not-complete",
        "A group whose tail has no first word yet is no code: its records are skipped one by one.",
        &["log"],
        Reading::of(&Header::default(), vec![a.event(), b.event()]),
    ));

    let mut log = Log::new(1);
    log.chunk(3, 1, |file| {
        file.group(&a);
        let start = file.out.len();
        file.group(&c).group(&d);
        // Its space is being cleared, together with the group behind it.
        let size = (file.out.len() - start) as u32;
        file.set_u32(start + 4, size);
        file.group(&b);
    });
    cases.push(log.case(
        "log-clearing",
        "A first record larger than its group is space that is being cleared; a killed process leaves the epoch odd.",
        vec![a.event(), b.event()],
    ));

    let mut log = Log::new(1);
    log.chunk(0, 1, |file| {
        file.group(&Code { died: Some(a.time + 5), ..a.clone() }).group(&b);
    });
    cases.push(log.case_with(
        "log-unload",
        "A code that was unloaded stays in the log, with its time, until its space is reused.",
        &["died"],
        Reading::of(
            &Header::default(),
            vec![Code { died: Some(a.time + 5), ..a.clone() }.event(), b.event()],
        ),
    ));

    let mut log = Log::new(2);
    let start = log.chunk(0, 1, |file| {
        file.group(&a).group(&b).group(&d);
    });
    let torn = start + 64 + size_of_group(&a) + size_of_group(&b);
    for byte in &mut log.bytes.out[torn..torn + 8] {
        *byte = 0;
    }
    log.chunk(0, 1, |file| {
        file.group(&c);
    });
    cases.push(log.case_with(
        "log-chunk-damaged",
        "Of a chunk with bytes that are no record, what is before them is kept; other chunks are read.",
        &["log"],
        Reading::of(&Header::default(), vec![a.event(), b.event(), c.event(), damage()]),
    ));

    let mut log = Log::new(3);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    // A chunk without a head.
    let end = log.bytes.out.len() + CHUNK;
    log.bytes.out.resize(end, 0x11);
    log.chunk(0, 1, |file| {
        file.group(&c);
    });
    cases.push(log.case_with(
        "log-chunk-without-head",
        "A chunk without a head is damage; other chunks are read.",
        &["log"],
        Reading::of(&Header::default(), vec![a.event(), c.event(), damage()]),
    ));

    let mut log = Log::new(2);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    cases.push(log.case_with(
        "log-chunks-missing",
        "A log may have fewer chunks than it claims.",
        &["log"],
        Reading::of(&Header::default(), vec![a.event()]),
    ));

    let mut log = Log::with(1, 1, [9, TIME + 4, TIME + 8], true);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    let mut reading = Reading::of(&Header::default(), vec![a.event()]);
    reading.left_out = Some([9, TIME + 4, TIME + 8]);
    cases.push(log.case_with(
        "log-left-out",
        "LOG counts the codes that were not written for lack of space.",
        &["left_out"],
        reading,
    ));

    let mut log = Log::with(2, 1, [0; 3], true);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    cases.push(log.case_with(
        "log-version-2",
        "A log of an unknown version is refused.",
        &["log"],
        Reading::refused(),
    ));

    let mut log = Log::new(u32::MAX);
    log.chunk(0, 1, |file| {
        file.group(&a);
    });
    cases.push(log.case_with(
        "log-chunk-count-lies",
        "A log that claims more than 32 GiB of chunks is refused.",
        &["log"],
        Reading::refused(),
    ));
    cases
}

fn size_of_group(code: &Code) -> usize {
    let mut bytes = Bytes::default();
    bytes.group(code);
    bytes.out.len()
}

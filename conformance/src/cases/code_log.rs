//! The memory of code logs.

use super::extensions::{full, without_bytes};
use crate::bytes::Bytes;
use crate::case::{Case, case};
use crate::extended::tag;
use crate::reading::{Code, TIME, damage};
use crate::records::Header;

const CHUNK: usize = 8192;
const FIRST: usize = 4096;
/// The size of a chunk's head.
const HEAD: usize = 64;

/// The head of a log.
struct Head {
    version: u32,
    chunks: u32,
    left_out: [u64; 3],
    has_breakpoints: bool,
}

const USUAL: Head = Head { version: 1, chunks: 1, left_out: [0; 3], has_breakpoints: true };

impl Head {
    fn file(&self) -> Bytes {
        let mut bytes = Header::default().file();
        bytes.tail(TIME, 0, |file| {
            file.item(tag::LOG, 0, |file| {
                file.u32(self.version).u32(CHUNK as u32).u32(self.chunks).u32(1).u64(1 << 26);
                for word in self.left_out {
                    file.u64(word);
                }
                // Paused, resumed, forked; parent, inherited.
                file.u64(0).u64(0).u64(0).u32(0).u32(0)
            });
            if self.has_breakpoints {
                file.item(tag::BREAKPOINTS, 0, |file| {
                    let rest = FIRST - file.out.len();
                    file.raw(&vec![0; rest])
                });
            }
            file
        });
        bytes.out.resize(FIRST, 0);
        bytes.set_u32(44, (FIRST - 40) as u32);
        bytes
    }

    /// A log that begins with this head.
    fn case(&self, name: &str, rule: &'static str) -> Case {
        case(name, rule).log(self.file())
    }
}

/// A log with this many chunks.
fn log(name: &str, rule: &'static str, chunks: u32) -> Case {
    Head { chunks, ..USUAL }.case(name, rule)
}

impl Case {
    /// Adds a chunk, or several that belong together: what `write` writes, and a filler up to the end.
    fn chunk(
        self,
        epoch: u64,
        span: u32,
        write: impl FnOnce(&mut Bytes) -> &mut Bytes,
        found: &[&Code],
    ) -> Self {
        let mut case = self.write(|file| {
            let end = file.out.len() + CHUNK * span as usize;
            file.tail(TIME, 0, |file| {
                file.item(tag::CHUNK, 0, |file| file.u64(epoch).u32(span).u32(0))
            });
            write(file);
            match end - file.out.len() {
                0 => file,
                left => file.filler(TIME, left, &[0xab; 16][..left.saturating_sub(32).min(16)]),
            }
        });
        case = found.iter().fold(case, |case, code| case.finds(code.event()));
        case.sort_by_time();
        case
    }

    /// Adds a chunk of the groups of these codes.
    fn codes(self, codes: &[&Code]) -> Self {
        self.chunk(0, 1, |file| codes.iter().fold(file, |file, code| file.group(code)), codes)
    }
}

fn size_of_group(code: &Code) -> usize {
    Bytes::default().group(code).out.len()
}

pub(super) fn cases() -> Vec<Case> {
    let [a, b, c, d] = [1, 2, 3, 4].map(Code::number);
    let second = without_bytes(full(2));
    let large = Code { size: 12_000, bytes: Some(vec![0x90; 12_000]), ..b.clone() };
    let unloaded = Code { died: Some(a.time + 5), ..a.clone() };
    let left_out = [9, TIME + 4, TIME + 8];
    vec![
        log("log", "A chunk has a head, groups, and a filler up to its end.", 1)
            .needs(&["name", "lines", "inlined", "tier"])
            .codes(&[&full(1), &second]),
        Head { has_breakpoints: false, ..USUAL }
            .case(
                "log-without-breakpoints",
                "The first record of an older log has the item LOG alone.",
            )
            .codes(&[&a]),
        log(
            "log-chunks",
            "Codes of several chunks are in no order of time; behind the chunks in use are zeros.",
            3,
        )
        .codes(&[&d, &b])
        .chunk(4, 1, |file| file.group(&a), &[&a])
        .codes(&[&c])
        .write(|file| file.raw(&[0; CHUNK])),
        log(
            "log-large-code",
            "A group larger than a chunk takes several, which have one head.",
            3,
        )
        .chunk(2, 2, |file| file.group(&large), &[&large])
        .codes(&[&c]),
        log("log-fillers", "Between groups may be fillers, with arbitrary content.", 1).chunk(
            0,
            1,
            |file| {
                file.group(&a).filler(TIME, 40, &[1, 2, 3, 4, 5, 6, 7, 8]);
                let mut old = Bytes::default();
                old.u64(7).group(&d);
                file.filler(TIME, 1024, &old.out).filler(TIME, 32, b"").group(&b)
            },
            &[&a, &b],
        ),
        log(
            "log-filler-over-chunks",
            "While chunks are joined or split, a filler may extend over several; their heads count.",
            2,
        )
        .needs(&["log"])
        .codes(&[&a])
        // While chunks are joined, the filler of one extends over the next, whose head is inside.
        .write(|file| {
            let filler = file.out.len() - CHUNK + HEAD + size_of_group(&a);
            let end = file.out.len() + CHUNK;
            file.set_u32(filler + 4, (end - filler) as u32)
        })
        .codes(&[&c]),
        log(
            "log-group-not-complete",
            "A group whose tail has no first word yet is no code: its records are skipped one by \
             one.",
            1,
        )
        .needs(&["log"])
        .chunk(
            0,
            1,
            |file| {
                let start = file.group(&a).out.len();
                file.group(&full(3));
                // The first word of the tail is not stored yet, nor the address.
                file.set_u64(start + 32, 0).set_u64(start + 16, 0).group(&b)
            },
            &[&a, &b],
        ),
        log(
            "log-clearing",
            "A first record larger than its group is space that is being cleared; a killed process \
             leaves the epoch odd.",
            1,
        )
        .chunk(
            3,
            1,
            |file| {
                let start = file.group(&a).out.len();
                let size = file.group(&c).group(&d).out.len() - start;
                // Its space is being cleared, together with the group behind it.
                file.set_u32(start + 4, size as u32).group(&b)
            },
            &[&a, &b],
        ),
        log(
            "log-unload",
            "A code that was unloaded stays in the log, with its time, until its space is reused.",
            1,
        )
        .needs(&["died"])
        .codes(&[&unloaded, &b]),
        log(
            "log-chunk-damaged",
            "Of a chunk with bytes that are no record, what is before them is kept; other chunks \
             are read.",
            2,
        )
        .needs(&["log"])
        .chunk(
            0,
            1,
            |file| {
                let torn = file.group(&a).group(&b).out.len();
                file.group(&d).set_u64(torn, 0)
            },
            &[&a, &b],
        )
        .codes(&[&c])
        .finds(damage()),
        log(
            "log-chunk-without-head",
            "A chunk without a head is damage; other chunks are read.",
            3,
        )
        .needs(&["log"])
        .codes(&[&a])
        .write(|file| file.raw(&[0x11; CHUNK]))
        .codes(&[&c])
        .finds(damage()),
        log("log-chunks-missing", "A log may have fewer chunks than it claims.", 2)
            .needs(&["log"])
            .codes(&[&a]),
        Head { left_out, ..USUAL }
            .case("log-left-out", "LOG counts the codes that were not written for lack of space.")
            .needs(&["left_out"])
            .codes(&[&a])
            .left_out(left_out),
        Head { version: 2, ..USUAL }
            .case("log-version-2", "A log of an unknown version is refused.")
            .needs(&["log"])
            .codes(&[&a])
            .refused(),
        log(
            "log-chunk-count-lies",
            "A log that claims more than 32 GiB of chunks is refused.",
            u32::MAX,
        )
        .needs(&["log"])
        .codes(&[&a])
        .refused(),
    ]
}

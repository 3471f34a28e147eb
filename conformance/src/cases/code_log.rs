//! The memory of code logs.

use super::extensions::{full, without_bytes};
use crate::bytes::Bytes;
use crate::case::{Case, Reading};
use crate::extended::tag;
use crate::reading::{Code, TIME, damage};
use crate::records::Header;

const CHUNK: usize = 8192;
const FIRST: usize = 4096;
/// The size of a chunk's head.
const HEAD: usize = 64;

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
                file.u64(0).u64(0).u64(0).u32(0).u32(0)
            });
            if has_breakpoints {
                file.item(tag::BREAKPOINTS, 0, |file| {
                    let rest = FIRST - file.out.len();
                    file.raw(&vec![0; rest])
                });
            }
            file
        });
        bytes.out.resize(FIRST, 0);
        bytes.set_u32(44, (FIRST - 40) as u32);
        Self { bytes }
    }

    /// Adds a chunk, or several that belong together: what `write` writes, and a filler up to the end.
    fn chunk(
        mut self,
        epoch: u64,
        span: u32,
        write: impl FnOnce(&mut Bytes) -> &mut Bytes,
    ) -> Self {
        let end = self.bytes.out.len() + CHUNK * span as usize;
        self.bytes.tail(TIME, 0, |file| {
            file.item(tag::CHUNK, 0, |file| file.u64(epoch).u32(span).u32(0))
        });
        write(&mut self.bytes);
        let left = end - self.bytes.out.len();
        if left > 0 {
            self.bytes.filler(TIME, left, &[0xab; 16][..left.saturating_sub(32).min(16)]);
        }
        self
    }

    /// Adds a chunk of the groups of these codes.
    fn codes(self, codes: &[&Code]) -> Self {
        self.chunk(0, 1, |file| codes.iter().fold(file, |file, code| file.group(code)))
    }

    /// Changes what is written so far.
    fn change(mut self, write: impl FnOnce(&mut Bytes)) -> Self {
        write(&mut self.bytes);
        self
    }

    /// The file, of which a correct reader reads these codes.
    fn case(
        self,
        name: &str,
        rule: &'static str,
        needs: &'static [&'static str],
        codes: &[&Code],
    ) -> Case {
        let events = codes.iter().map(|code| code.event()).collect();
        let reading = Reading::of(&Header::default(), events);
        Case { name: format!("{name}.log"), rule, needs, bytes: self.bytes.out, reading }
    }

    /// The same, which a correct reader refuses.
    fn refused(self, name: &str, rule: &'static str) -> Case {
        Case { reading: Reading::refused(), ..self.case(name, rule, &["log"], &[]) }
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
        Log::new(1).codes(&[&full(1), &second]).case(
            "log",
            "A chunk has a head, groups, and a filler up to its end.",
            &["name", "lines", "inlined", "tier"],
            &[&full(1), &second],
        ),
        Log::with(1, 1, [0; 3], false).codes(&[&a]).case(
            "log-without-breakpoints",
            "The first record of an older log has the item LOG alone.",
            &["name"],
            &[&a],
        ),
        Log::new(3)
            .codes(&[&d, &b])
            .chunk(4, 1, |file| file.group(&a))
            .codes(&[&c])
            // What follows the chunks in use is zeros.
            .change(|file| file.out.extend([0; CHUNK]))
            .case(
                "log-chunks",
                "Codes of several chunks are in no order of time; behind the chunks in use are zeros.",
                &["name"],
                &[&a, &b, &c, &d],
            ),
        Log::new(3).chunk(2, 2, |file| file.group(&large)).codes(&[&c]).case(
            "log-large-code",
            "A group larger than a chunk takes several, which have one head.",
            &["name"],
            &[&large, &c],
        ),
        Log::new(1)
            .chunk(0, 1, |file| {
                file.group(&a).filler(TIME, 40, &[1, 2, 3, 4, 5, 6, 7, 8]);
                let mut old = Bytes::default();
                old.u64(7).group(&d);
                file.filler(TIME, 1024, &old.out).filler(TIME, 32, b"").group(&b)
            })
            .case(
                "log-fillers",
                "Between groups may be fillers, with arbitrary content.",
                &["name"],
                &[&a, &b],
            ),
        Log::new(2)
            .codes(&[&a])
            // While chunks are joined, the filler of one extends over the next, whose head is inside.
            .change(|file| {
                let filler = file.out.len() - CHUNK + HEAD + size_of_group(&a);
                let end = file.out.len() + CHUNK;
                file.set_u32(filler + 4, (end - filler) as u32);
            })
            .codes(&[&c])
            .case(
                "log-filler-over-chunks",
                "While chunks are joined or split, a filler may extend over several; their heads count.",
                &["log"],
                &[&a, &c],
            ),
        Log::new(1)
            .chunk(0, 1, |file| {
                let start = file.group(&a).out.len();
                file.group(&full(3));
                // The first word of the tail is not stored yet, nor the address.
                file.set_u64(start + 32, 0).set_u64(start + 16, 0).group(&b)
            })
            .case(
                "log-group-not-complete",
                "A group whose tail has no first word yet is no code: its records are skipped one by one.",
                &["log"],
                &[&a, &b],
            ),
        Log::new(1)
            .chunk(3, 1, |file| {
                let start = file.group(&a).out.len();
                let size = file.group(&c).group(&d).out.len() - start;
                // Its space is being cleared, together with the group behind it.
                file.set_u32(start + 4, size as u32).group(&b)
            })
            .case(
                "log-clearing",
                "A first record larger than its group is space that is being cleared; a killed process leaves the epoch odd.",
                &["name"],
                &[&a, &b],
            ),
        Log::new(1).codes(&[&unloaded, &b]).case(
            "log-unload",
            "A code that was unloaded stays in the log, with its time, until its space is reused.",
            &["died"],
            &[&unloaded, &b],
        ),
            Log::new(2)
                .codes(&[&a, &b, &d])
                .change(|file| {
                    let torn = FIRST + HEAD + size_of_group(&a) + size_of_group(&b);
                    file.set_u64(torn, 0);
                })
                .codes(&[&c])
                .case(
                    "log-chunk-damaged",
                    "Of a chunk with bytes that are no record, what is before them is kept; other chunks are read.",
                    &["log"],
                    &[&a, &b, &c],
                )
                .then(damage()),
            Log::new(3)
                .codes(&[&a])
                // A chunk without a head.
                .change(|file| file.out.extend([0x11; CHUNK]))
                .codes(&[&c])
                .case(
                    "log-chunk-without-head",
                    "A chunk without a head is damage; other chunks are read.",
                    &["log"],
                    &[&a, &c],
                )
                .then(damage()),
        Log::new(2).codes(&[&a]).case(
            "log-chunks-missing",
            "A log may have fewer chunks than it claims.",
            &["log"],
            &[&a],
        ),
        Log::with(1, 1, left_out, true)
            .codes(&[&a])
            .case(
                "log-left-out",
                "LOG counts the codes that were not written for lack of space.",
                &["left_out"],
                &[&a],
            )
            .left_out(left_out),
        Log::with(2, 1, [0; 3], true)
            .codes(&[&a])
            .refused("log-version-2", "A log of an unknown version is refused."),
        Log::new(u32::MAX).codes(&[&a]).refused(
            "log-chunk-count-lies",
            "A log that claims more than 32 GiB of chunks is refused.",
        ),
    ]
}

//! What the answer to one request may cost.

use crate::body::Body;
use crate::protocol::Frame;

/// How many pairs of a code and an address one request may take: a fraction of a second of work.
const WORK: u64 = 50_000_000;
/// The most bytes of JSON of an answer's names.
const BYTES: usize = 16 << 20;
/// Bytes of a frame in JSON beside its names.
const FRAME: usize = 64;

/// What is left for the rest of a request.
#[derive(Debug)]
pub(crate) struct RequestBudget {
    /// Pairs of a code and an address.
    pub(crate) work: u64,
    bytes: usize,
}

impl RequestBudget {
    pub(crate) fn new() -> Self {
        Self { work: WORK, bytes: BYTES }
    }

    /// Takes out what one process may use: it must not use up what the others in this request need.
    pub(crate) fn take_for_process(&mut self, work: u64) -> Self {
        let own = Self { work: work.min(self.work), bytes: self.bytes / 2 };
        self.work -= own.work;
        self.bytes -= own.bytes;
        own
    }

    /// Returns what a process did not use.
    pub(crate) fn give_back(&mut self, rest: &Self) {
        self.work += rest.work;
        self.bytes += rest.bytes;
    }

    /// The functions at an address of a code, and the code's symbol; `None` if they are too large for what is left.
    pub(crate) fn names(&mut self, body: &Body, address: u64) -> Option<(Vec<Frame>, String)> {
        if self.bytes == 0 {
            return None;
        }
        let (frames, symbol) = (body.frames(address), body.symbol());
        let size = |frame: &Frame| FRAME + json_size(&frame.function) + json_size(&frame.file);
        let needed = frames.iter().map(size).sum::<usize>() + json_size(&symbol);
        // What was too large has taken its time: it counts, too.
        let left = self.bytes.checked_sub(needed);
        self.bytes = left.unwrap_or(0);
        left.map(|_| (frames, symbol))
    }
}

/// How many bytes a text takes in JSON.
fn json_size(text: &str) -> usize {
    let size = |byte| match byte {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.bytes().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_json() {
        for text in ["", "a\"b\\c", "\n\u{1}\u{7f}ä", "…"] {
            assert!(serde_json::to_string(text).unwrap().len() <= json_size(text) + 2, "{text:?}");
        }
    }
}

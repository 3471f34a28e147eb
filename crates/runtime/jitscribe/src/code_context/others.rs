//! Contexts of other parts of the process.

use process_context::Mapping;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use crate::log::retry;

/// Small, as this may run on the stack of a signal handler. The name of a mapping begins within the first 80 bytes of its line.
const BUFFER: usize = 1024;

/// Whether the process has a context that does not begin at `own`.
pub(super) fn are_there(own: Option<u64>) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = open(c"/proc/self/maps", flags, Mode::empty())?;
    let mut lines = Lines::default();
    loop {
        let mut buffer = [0; BUFFER];
        let count = retry(|| read(&maps, &mut buffer))?;
        if count == 0 {
            return Ok(lines.is_other(own));
        }
        if lines.take(buffer.get(..count).unwrap_or_default(), own) {
            return Ok(true);
        }
    }
}

/// The begin of the current line, which may come in parts.
struct Lines {
    begin: [u8; Self::LONGEST],
    length: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self { begin: [0; Self::LONGEST], length: 0 }
    }
}

impl Lines {
    /// Longer than everything that precedes a name, and the names in question.
    const LONGEST: usize = 160;

    /// Takes the next bytes. True if a line in them is another context.
    fn take(&mut self, bytes: &[u8], own: Option<u64>) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let space = self.begin.get_mut(self.length..).unwrap_or_default();
            let fits = piece.len().min(space.len());
            if let (Some(space), Some(piece)) = (space.get_mut(..fits), piece.get(..fits)) {
                space.copy_from_slice(piece);
            }
            self.length += fits;
            if piece.ends_with(b"\n") {
                if self.is_other(own) {
                    return true;
                }
                self.length = 0;
            }
        }
        false
    }

    fn is_other(&self, own: Option<u64>) -> bool {
        let mapping = self.begin.get(..self.length).and_then(Mapping::parse);
        mapping.is_some_and(|mapping| mapping.may_be_context() && Some(mapping.start) != own)
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn a_context_is_found_wherever_the_text_is_cut() {
        let path = "/long".repeat(100);
        let text = format!(
            "10000-20000 r-xp 00000000 08:01 99                         {path}\n\
             7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 00:01 12345                      /memfd:OTEL_CTX (deleted)\n\
             7f3c1a2b6000-7f3c1a2b7000 rw-p 00000000 00:01 12345                      [stack]\n"
        );
        for size in 1..text.len() {
            let found = |own| {
                let mut lines = Lines::default();
                text.as_bytes().chunks(size).any(|part| lines.take(part, own))
            };
            assert!(found(None) && found(Some(0x1_0000)), "parts of {size}");
            assert!(!found(Some(0x7f3c_1a2b_4000)), "parts of {size}");
        }
    }
}

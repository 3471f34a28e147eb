//! Which compilers a program or library has.

use gdb_jit_list::{ReadAt, Segment};
use memchr::memmem::Finder;

use crate::limits;

/// What LuaJIT says of its version.
const LUAJIT: &[u8] = b"LuaJIT 2.";
/// Bytes that are read at a time.
const PART: usize = 1 << 18;

/// Which compilers a program or library has, or the programs and libraries that a process has mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Compilers {
    /// LuaJIT.
    pub luajit: bool,
}

impl Compilers {
    /// Searches a file for what compilers say of themselves: it is there in libraries without symbols, too.
    #[must_use]
    pub fn find(file: &(impl ReadAt + ?Sized)) -> Self {
        let mut found = Self::default();
        let mut left = limits::FILE;
        for segment in Segment::constants(file) {
            let size = segment.size.min(left);
            left = left.saturating_sub(size);
            found.search(file, segment.offset, size);
        }
        found
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { luajit: self.luajit || other.luajit }
    }

    fn search(&mut self, file: &(impl ReadAt + ?Sized), offset: u64, size: u64) {
        let luajit = Finder::new(LUAJIT);
        let kept = LUAJIT.len();
        let mut room = vec![0; PART];
        let mut at = 0;
        while at < size {
            let part = usize::try_from(size.saturating_sub(at)).unwrap_or(PART).min(PART);
            let Some(room) = room.get_mut(..part) else { break };
            let count = file.read_at(offset.saturating_add(at), room);
            let bytes = room.get(..count).unwrap_or_default();
            self.luajit |= luajit.find(bytes).is_some();
            if count < part || part <= kept {
                break;
            }
            // What may be the beginning is read again.
            let step = part.saturating_sub(kept);
            at = at.saturating_add(u64::try_from(step).unwrap_or(u64::MAX));
        }
    }
}

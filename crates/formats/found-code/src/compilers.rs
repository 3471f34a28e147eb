//! Which compilers a program or library has.

use gdb_jit_list::{ReadAt, Segment};
use memchr::memmem::Finder;

use crate::limits;
use crate::pcre2::{LONGEST, Versions};

/// What LuaJIT says of its version.
const LUAJIT: &[u8] = b"LuaJIT 2.";
/// Verbs of PCRE2's patterns, as its compiler has them. PCRE's own has them in another order.
const PCRE2: &[u8] = b"ACCEPT\0F\0FAIL\0COMMIT\0";
/// Bytes that are read at a time.
const PART: usize = 1 << 18;

/// Which compilers a program or library has, or the programs and libraries that a process has mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Compilers {
    /// LuaJIT.
    pub luajit: bool,
    /// PCRE2's, of these versions.
    pub pcre2: Versions,
}

impl Compilers {
    /// All of all versions.
    pub const ALL: Self = Self { luajit: true, pcre2: Versions::ALL };

    /// Searches a file for what compilers say of themselves: it is there in libraries without symbols, too.
    #[must_use]
    pub fn find(file: &(impl ReadAt + ?Sized)) -> Self {
        let mut found = Self::default();
        let mut has_pcre2 = false;
        let mut left = limits::FILE;
        for segment in Segment::constants(file) {
            let size = segment.size.min(left);
            left = left.saturating_sub(size);
            found.search(file, segment.offset, size, &mut has_pcre2);
        }
        if !has_pcre2 {
            // Versions of other libraries.
            found.pcre2 = Versions::default();
        } else if found.pcre2.is_empty() {
            // In a program that includes only what it needs of PCRE2.
            found.pcre2 = Versions::ALL;
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
        Self { luajit: self.luajit || other.luajit, pcre2: self.pcre2.and(other.pcre2) }
    }

    fn search(
        &mut self,
        file: &(impl ReadAt + ?Sized),
        offset: u64,
        size: u64,
        has_pcre2: &mut bool,
    ) {
        let (luajit, pcre2) = (Finder::new(LUAJIT), Finder::new(PCRE2));
        let kept = LONGEST;
        let mut room = vec![0; PART];
        let mut at = 0;
        while at < size {
            let part = usize::try_from(size.saturating_sub(at)).unwrap_or(PART).min(PART);
            let Some(room) = room.get_mut(..part) else { break };
            let count = file.read_at(offset.saturating_add(at), room);
            let bytes = room.get(..count).unwrap_or_default();
            self.luajit |= luajit.find(bytes).is_some();
            *has_pcre2 |= pcre2.find(bytes).is_some();
            self.pcre2 = self.pcre2.and(Versions::find(bytes));
            if count < part || part <= kept {
                break;
            }
            // What may be the beginning is read again.
            let step = part.saturating_sub(kept);
            at = at.saturating_add(u64::try_from(step).unwrap_or(u64::MAX));
        }
    }
}

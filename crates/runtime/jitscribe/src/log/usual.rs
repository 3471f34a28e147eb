//! The groups of most codes: address and name, and bytes if wanted. Their sizes need only an addition or two, and
//! they are written in one go.

use jitdump::extension::tail::ITEM_HEADER_SIZE;
use jitdump::extension::{code as code_item, tag};

use super::group::{code_words, flags, write_load};
use super::layout::{FIRST_ITEM, code as at, item_word, load};
use super::put::Put;
use super::{Log, LogEntry};
use jit_code::Code;

/// Size of a group up to the end of its first item.
const CODE: usize = at::END;
/// Larger ones are measured more carefully.
const LONGEST_NAME: usize = 1 << 20;
const LARGEST_CODE: usize = 1 << 28;

/// Whether only address, name, bytes and the flags of `code` have to be written.
#[inline]
fn is_usual(code: &Code<'_>, bytes: Option<&[u8]>, flags: u8) -> bool {
    let lists = code.lines.len() | code.ir_lines.len() | code.inlined.len() | code.tier.len();
    // A flag is enough where only our readers read the log: see `unwind_tables`.
    let told = code.unwind.is_none() || (bytes.is_none() && flags & !code_item::WITHOUT_BYTES != 0);
    let size = bytes.map_or(0, <[u8]>::len);
    lists == 0 && told && code.name.len() <= LONGEST_NAME && size <= LARGEST_CODE
}

impl Log {
    /// Writes a code to the log. `None` if there was no space.
    #[inline]
    pub(crate) fn load(&self, code: &Code<'_>, with_bytes: bool, tid: u32) -> Option<LogEntry> {
        let bytes = code.bytes.filter(|_| with_bytes);
        let flags = flags(code, bytes.is_none());
        if !is_usual(code, bytes, flags) {
            return self.load_in_full(code, with_bytes, tid);
        }
        match bytes {
            None => self.load_usual_without_bytes(code, flags, tid),
            Some(bytes) => self.load_usual(code, bytes, flags, tid),
        }
    }

    /// Writes a code without its bytes, [if there is nothing else to write](is_usual).
    #[inline]
    fn load_usual_without_bytes(&self, code: &Code<'_>, flags: u8, tid: u32) -> Option<LogEntry> {
        let items = CODE - FIRST_ITEM + ITEM_HEADER_SIZE + code.name.len().next_multiple_of(8);
        self.write_group(FIRST_ITEM + items, 0, items, code.address, tid, |buffer, stamp| {
            let [code_item, died, size, index, group, kind] =
                code_words(code, flags, buffer.len(), stamp);
            let name = item_word(tag::NAME, 0, code.name.len());
            let mut put = Put(buffer);
            put.words([code_item, died, size, index, group, kind, name]);
            put.padded_name(code.name);
        })
    }

    /// Writes a code with its bytes, [if there is nothing else to write](is_usual).
    #[inline(never)]
    fn load_usual(&self, code: &Code<'_>, bytes: &[u8], flags: u8, tid: u32) -> Option<LogEntry> {
        let record = load::NAME + code.name.len() + 1 + bytes.len();
        let size = (CODE + record).next_multiple_of(8);
        let items = ITEM_HEADER_SIZE + code_item::SIZE;
        self.write_group(size, record, items, code.address, tid, |buffer, stamp| {
            let words = code_words(code, flags, buffer.len(), stamp);
            let padding = buffer.len().saturating_sub(record);
            if let Some((head, buffer)) = buffer.split_at_mut_checked(padding) {
                Put(head).words(words);
                write_load(buffer, code, bytes, stamp);
            }
        })
    }
}

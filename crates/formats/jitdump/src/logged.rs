//! A code of a code log, read by itself.

use crate::code_load::{CodeLoad, RecordsBefore};
use crate::extension::{CodeItem, code::LARGEST_WITHOUT_BYTES};
use crate::lines::Addressing;
use crate::quirks::Quirks;
use crate::reader::Dump;
use crate::record::Body;

impl<'a> Dump<'a> {
    /// The first code of the dump, which this project's library wrote: its records follow one another, and are as the format says.
    ///
    /// Returns what [`codes`](Self::codes) returns first for such a dump. It does not detect the quirks of other writers, and looks for
    /// none of their records.
    #[must_use]
    pub fn logged_code(&self) -> Option<CodeLoad<'a>> {
        let addressing = Addressing::of(&Quirks::none(self));
        let mut before = RecordsBefore::default();
        let mut next = self.first_record();
        loop {
            let record = self.record_at(next)?;
            match &record.body {
                Body::Load(load) => {
                    let mut code = addressing.load(&record, load);
                    code.attach(self, before);
                    return Some(code);
                }
                Body::DebugInfo(info) if info.nr_entry == 0 => {
                    let tail = info.tail()?;
                    if let Some(item) = tail.code().filter(CodeItem::is_without_bytes) {
                        if item.code_size > LARGEST_WITHOUT_BYTES {
                            return None;
                        }
                        let (address, pid) = (info.code_addr, self.header().pid);
                        return Some(
                            addressing.load_without_bytes(&record, address, pid, tail, &item),
                        );
                    }
                    before.group = Some(record.offset);
                }
                Body::DebugInfo(_) => before.debug_info = Some(record.offset),
                Body::UnwindingInfo(_) => before.unwinding_info = Some(record.offset),
                Body::Move(_) | Body::Close | Body::Unknown { .. } => {}
            }
            // A header is at least as large.
            next = next.saturating_add(u64::from(record.total_size.max(1)));
        }
    }
}

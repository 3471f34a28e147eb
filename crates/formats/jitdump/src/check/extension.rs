//! Checks of tails, and of the groups they begin.

use alloc::format;
use alloc::string::String;

use super::findings::Findings;
use super::rules;
use crate::debug_info::DebugInfo;
use crate::extension::{CodeItem, ItemBody, LeftOut, Tail, code};
use crate::load::Load;
use crate::record::Record;

/// A group whose LOAD has not come yet.
#[derive(Clone, Copy, Debug)]
struct Group {
    offset: u64,
    end: u64,
    code_addr: u64,
    item: CodeItem,
}

#[derive(Debug, Default)]
pub(super) struct ExtensionChecks {
    group: Option<Group>,
    /// Where the last group that has begun ends.
    end: u64,
}

impl ExtensionChecks {
    pub(super) fn forget(&mut self) {
        self.group = None;
        self.end = 0;
    }

    /// Whether the record at `offset` belongs to the group that began before it.
    pub(super) fn is_within_group(&self, offset: u64) -> bool {
        offset < self.end
    }

    /// Checks a LOAD against its group, and returns the CODE item of the group.
    pub(super) fn load(
        &mut self,
        findings: &mut Findings,
        record: &Record<'_>,
        load: &Load<'_>,
    ) -> Option<CodeItem> {
        let group = self.group.take()?;
        let mut malformed = |what: fn() -> String| {
            findings.add(&rules::EXTENSION_MALFORMED, group.offset, what);
        };
        if load.code_addr != group.code_addr {
            malformed(|| String::from("its address differs from that of the group's LOAD"));
            return None;
        }
        if (load.code_size(), load.code_index) != (group.item.code_size, group.item.code_index) {
            malformed(|| String::from("its size or index differs from that of the group's LOAD"));
        }
        if record.offset.saturating_add(record.total_size.into()) != group.end {
            malformed(|| String::from("the group does not end with its LOAD"));
        }
        Some(group.item)
    }

    /// Handles a record that is not a LOAD: it ends a group that it does not belong to.
    pub(super) fn record(&mut self, findings: &mut Findings, offset: u64) {
        if let Some(group) = self.group.take_if(|group| group.end <= offset) {
            findings.add(&rules::GROUP_WITHOUT_LOAD, group.offset, || {
                format!("no LOAD for the code at {:#x}", group.code_addr)
            });
        }
    }

    pub(super) fn finish(&mut self, findings: &mut Findings) {
        self.record(findings, u64::MAX);
    }

    /// Checks the tail of a DEBUG_INFO record, and returns its CODE item.
    pub(super) fn tail(
        &mut self,
        findings: &mut Findings,
        record: &Record<'_>,
        info: &DebugInfo<'_>,
        tail: &Tail<'_>,
    ) -> Option<CodeItem> {
        let offset = record.offset;
        items(findings, offset, tail);
        let item = tail.code()?;
        if info.nr_entry != 0 {
            findings.add(&rules::EXTENSION_MALFORMED, offset, || {
                String::from("a CODE item in a record with entries")
            });
            return None;
        }
        let total_size = record.total_size;
        if item.group_size < total_size
            || (item.is_without_bytes() && item.group_size != total_size)
        {
            findings.add(&rules::EXTENSION_MALFORMED, offset, || {
                format!("group_size {} in a record of {total_size}", item.group_size)
            });
        }
        if item.is_without_bytes() && item.code_size > code::LARGEST_WITHOUT_BYTES {
            findings.add(&rules::EXTENSION_MALFORMED, offset, || {
                format!("a code without bytes has size {:#x}", item.code_size)
            });
            return None;
        }
        self.end = offset.saturating_add(item.group_size.into());
        // A group that is not without bytes but has a single record is space that was being cleared.
        if !item.is_without_bytes() && item.group_size != total_size {
            self.group = Some(Group { offset, end: self.end, code_addr: info.code_addr, item });
        }
        Some(item)
    }
}

fn items(findings: &mut Findings, offset: u64, tail: &Tail<'_>) {
    let mut malformed = |what: &dyn Fn() -> String| {
        findings.add(&rules::EXTENSION_MALFORMED, offset, what);
    };
    let mut left_out = LeftOut::default();
    let mut items = tail.items();
    for (number, item) in items.by_ref().enumerate() {
        let fits = match item.body() {
            None => false,
            Some(ItemBody::Code(_)) => number == 0,
            Some(ItemBody::Lines { table, .. }) => table.is_well_formed(),
            Some(ItemBody::Inlined(mut calls)) => {
                calls.by_ref().for_each(drop);
                calls.is_whole()
            }
            Some(ItemBody::Name(name)) => !name.contains(&0),
            Some(ItemBody::LeftOut(more)) => {
                left_out.add(more);
                true
            }
            Some(ItemBody::Log(log)) => {
                left_out.add(log.left_out);
                true
            }
            Some(_) => true,
        };
        if !fits {
            malformed(&|| format!("item {number}, of tag {}", item.tag));
        }
    }
    if !items.is_whole() {
        malformed(&|| String::from("sizes that are inconsistent"));
    }
    if left_out.count != 0 {
        let LeftOut { count, first, last } = left_out;
        findings.add(&rules::LEFT_OUT, offset, || {
            format!("{count} codes were not written, loaded from {first} to {last}")
        });
    }
}

//! Checks of DEBUG_INFO: its entries, and its place before the LOAD.

use alloc::format;
use alloc::string::String;

use super::findings::Findings;
use super::rules;
use crate::debug_info::{DebugInfo, EntryName};
use crate::endian::to_u64;
use crate::garbled::NearEntries;
use crate::load::Load;
use crate::quirks::Quirks;

/// The maximum padding of a record to a multiple of 8.
const MAX_PADDING: usize = 7;

#[derive(Debug)]
pub(super) struct DebugChecks<'a> {
    quirks: Quirks,
    /// The record that `perf` would assign to the next LOAD.
    pending: Option<Pending<'a>>,
    /// Address of the last LOAD.
    last_load: Option<u64>,
}

#[derive(Debug)]
struct Pending<'a> {
    offset: u64,
    info: DebugInfo<'a>,
    /// Whether the LOAD before it is that of its code.
    after_load: bool,
}

impl<'a> DebugChecks<'a> {
    pub(super) fn new(quirks: Quirks) -> Self {
        Self { quirks, pending: None, last_load: None }
    }

    pub(super) fn forget(&mut self) {
        self.pending = None;
        self.last_load = None;
    }

    pub(super) fn debug_info(
        &mut self,
        findings: &mut Findings,
        offset: u64,
        info: &DebugInfo<'a>,
    ) {
        self.misplaced(findings);
        if info.nr_entry == 0 && (info.is_filler() || info.tail().is_some()) {
            return;
        }
        entries(findings, offset, info);
        if self.quirks.debug_addr_bias != 0 {
            let bias = self.quirks.debug_addr_bias;
            findings.add(&rules::DEBUG_ADDRESS_BIAS, offset, || {
                format!("addresses are {bias:#x} too high")
            });
        }
        // Its position does not matter: there is nothing to lose.
        if info.nr_entry == 0 {
            return;
        }
        let after_load = self.last_load == Some(info.code_addr);
        self.pending = Some(Pending { offset, info: *info, after_load });
    }

    pub(super) fn load(&mut self, findings: &mut Findings, load: &Load<'a>) {
        self.last_load = Some(load.code_addr);
        let mask = if self.quirks.thumb { !1 } else { !0 };
        let same = |pending: &Pending<'_>| (pending.info.code_addr ^ load.code_addr) & mask == 0;
        match &self.pending {
            Some(pending) if same(pending) => self.within(findings, pending, load, mask),
            _ => self.misplaced(findings),
        }
        self.pending = None;
    }

    pub(super) fn finish(&mut self, findings: &mut Findings) {
        let Some(pending) = self.pending.take() else { return };
        let rule =
            if pending.after_load { &rules::DEBUG_AFTER_LOAD } else { &rules::DEBUG_WITHOUT_LOAD };
        findings.add(rule, pending.offset, || placed(&pending));
    }

    /// Reports that the record waiting for its LOAD is followed by something else.
    fn misplaced(&mut self, findings: &mut Findings) {
        let Some(pending) = self.pending.take() else { return };
        let rule =
            if pending.after_load { &rules::DEBUG_AFTER_LOAD } else { &rules::DEBUG_NOT_ADJACENT };
        findings.add(rule, pending.offset, || placed(&pending));
    }

    fn within(&self, findings: &mut Findings, pending: &Pending<'_>, load: &Load<'_>, mask: u64) {
        let range = load.code_addr & mask..(load.code_addr & mask).saturating_add(load.code_size());
        let bias = self.quirks.debug_addr_bias;
        let within = range.start.saturating_add(bias)..range.end.saturating_add(bias);
        let mut entries = NearEntries::new(pending.info.entries(), within, load.name);
        entries.by_ref().for_each(drop);
        if entries.is_garbled() {
            findings.add(&rules::DEBUG_GARBLED, pending.offset, || {
                String::from("file names contain NULs")
            });
            return;
        }
        decoded(findings, pending);
        for entry in pending.info.entries().map_while(Result::ok) {
            let address = entry.addr.wrapping_sub(self.quirks.debug_addr_bias);
            // An entry at the end of the code ends the line before it.
            if !range.contains(&address) && address != range.end {
                findings.add(&rules::DEBUG_OUTSIDE, pending.offset, || {
                    format!("entry at {:#x}, code at {:#x}..{:#x}", address, range.start, range.end)
                });
            }
        }
    }
}

fn placed(pending: &Pending<'_>) -> String {
    format!("DEBUG_INFO of {:#x}", pending.info.code_addr)
}

fn entries(findings: &mut Findings, offset: u64, info: &DebugInfo<'_>) {
    if info.nr_entry == 0 {
        findings.add(&rules::DEBUG_EMPTY, offset, || String::from("nr_entry 0"));
    }
    let mut has_file = false;
    let mut entries = info.entries();
    for entry in &mut entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let at = offset.saturating_add(error.offset);
                findings.add(&rules::DEBUG_COUNT, at, || format!("{}", error.kind));
                return;
            }
        };
        match entry.name {
            EntryName::Same if has_file => {
                findings.add(&rules::SAME_FILE, offset, || String::from("a file named by 0xff"));
            }
            EntryName::Same => findings.add(&rules::SAME_FILE_FIRST, offset, || {
                String::from("the first entry names its file by 0xff")
            }),
            EntryName::Path(_) => {}
        }
        has_file = true;
    }
}

/// Checks that are valid only if the entries could be read at their correct positions.
fn decoded(findings: &mut Findings, pending: &Pending<'_>) {
    let Pending { offset, info, .. } = pending;
    let mut previous: Option<u64> = None;
    for entry in info.entries().map_while(Result::ok) {
        if let Some(previous) = previous.filter(|previous| entry.addr < *previous) {
            findings.add(&rules::DEBUG_ORDER, *offset, || {
                format!("{:#x} after {previous:#x}", entry.addr)
            });
        }
        previous = Some(entry.addr);
        match (entry.name, entry.line) {
            (EntryName::Path([]), 0) => {
                findings.add(&rules::DEBUG_BLANK, *offset, || {
                    String::from("an entry without line and file")
                });
            }
            (EntryName::Path([]), line) => {
                findings.add(&rules::DEBUG_NO_FILE, *offset, || format!("line {}, no file", line))
            }
            _ => {}
        }
    }
    let tail = info.behind_entries();
    if tail.len() > MAX_PADDING && info.tail().is_none() {
        findings.add(&rules::DEBUG_TAIL, *offset, || {
            format!("{} bytes behind the last entry", to_u64(tail.len()))
        });
    }
}

//! Checks of LOAD and MOVE.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::String;

use super::findings::Findings;
use super::rules;
use crate::extension::{CodeItem, Tail, tag};
use crate::header::Header;
use crate::load::{Load, Move};
use crate::quirks::{HeaderClock, Quirks};

/// The position of a code.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: u64,
    size: u64,
}

#[derive(Debug)]
pub(super) struct CodeChecks<'a> {
    header: Header,
    quirks: Quirks,
    /// Where the code of each index is.
    by_index: BTreeMap<u64, Place>,
    /// Live codes: their end, keyed by their start. They do not overlap.
    live: BTreeMap<u64, u64>,
    previous: Option<Load<'a>>,
}

impl<'a> CodeChecks<'a> {
    pub(super) fn new(header: &Header, quirks: Quirks) -> Self {
        Self {
            header: *header,
            quirks,
            by_index: BTreeMap::new(),
            live: BTreeMap::new(),
            previous: None,
        }
    }

    pub(super) fn load(
        &mut self,
        findings: &mut Findings,
        offset: u64,
        timestamp: u64,
        load: &Load<'a>,
        item: Option<&CodeItem>,
    ) {
        self.address(findings, offset, load.code_addr, load.code_size());
        self.fields(findings, offset, load);
        name(findings, offset, load.name);
        if self.quirks.header_clock == HeaderClock::Records && timestamp < self.header.timestamp {
            let header = self.header.timestamp;
            findings.add(&rules::OLDER_THAN_HEADER, offset, || {
                format!("LOAD has timestamp {timestamp}, the header {header}")
            });
        }
        self.bytes(findings, offset, load);

        let place = Place { address: load.code_addr, size: load.code_size() };
        self.number(findings, offset, load.code_index, place);
        if item.is_none_or(|item| item.died == 0) {
            self.occupy(findings, offset, place);
        }
        self.previous = Some(*load);
    }

    /// Checks a code without bytes, of which there is only the record that announces it.
    pub(super) fn load_without_bytes(
        &mut self,
        findings: &mut Findings,
        offset: u64,
        address: u64,
        tail: &Tail<'_>,
        item: &CodeItem,
    ) {
        let place = Place { address, size: item.code_size };
        self.address(findings, offset, address, item.code_size);
        name(findings, offset, tail.find(tag::NAME, None).map_or(&[], |item| item.payload));
        self.number(findings, offset, item.code_index, place);
        if item.died == 0 {
            self.occupy(findings, offset, place);
        }
    }

    /// Records that the code with this index is at `place`.
    fn number(&mut self, findings: &mut Findings, offset: u64, index: u64, place: Place) {
        match self.by_index.entry(index) {
            Entry::Occupied(mut entry) => {
                findings
                    .add(&rules::DUPLICATE_INDEX, offset, || format!("code_index {index} again"));
                entry.insert(place);
            }
            Entry::Vacant(entry) => {
                entry.insert(place);
            }
        }
    }

    pub(super) fn moved(&mut self, findings: &mut Findings, offset: u64, moved: &Move) {
        let index = moved.code_index;
        let to = Place { address: moved.new_code_addr, size: moved.code_size };
        match self.by_index.insert(index, to) {
            None => findings.add(&rules::MOVE_OF_UNKNOWN, offset, || {
                format!("no LOAD of code_index {index} before")
            }),
            Some(from) => {
                if from.address != moved.old_code_addr || from.size != moved.code_size {
                    findings.add(&rules::MOVE_MISMATCH, offset, || {
                        format!(
                            "moved from {:#x} with {:#x} bytes, but was at {:#x} with {:#x} bytes",
                            moved.old_code_addr, moved.code_size, from.address, from.size
                        )
                    });
                }
                self.live.remove(&from.address);
            }
        }
        self.occupy(findings, offset, to);
    }

    fn address(&self, findings: &mut Findings, offset: u64, address: u64, size: u64) {
        if address == 0 {
            findings.add(&rules::ADDRESS_ZERO, offset, || String::from("code_addr 0"));
        }
        if address.checked_add(size).is_none() {
            findings
                .add(&rules::ADDRESS_WRAPS, offset, || format!("{size:#x} bytes at {address:#x}"));
        }
        if self.quirks.thumb && address & 1 != 0 {
            findings.add(&rules::THUMB_BIT, offset, || format!("code_addr {address:#x}"));
        }
        if size == 0 {
            findings.add(&rules::CODE_EMPTY, offset, || String::from("code_size 0"));
        }
    }

    fn fields(&self, findings: &mut Findings, offset: u64, load: &Load<'_>) {
        let address = load.code_addr;
        if load.vma != address {
            findings.add(&rules::VMA_DIFFERS, offset, || {
                format!("vma {:#x}, code_addr {address:#x}", load.vma)
            });
        }
        if !load.padding.is_empty() {
            findings.add(&rules::LOAD_PADDING, offset, || {
                format!("{} bytes behind the code", load.padding.len())
            });
        }
        if load.pid != self.header.pid {
            findings.add(&rules::PID_DIFFERS, offset, || {
                format!("pid {}, header {}", load.pid, self.header.pid)
            });
        }
    }

    fn bytes(&self, findings: &mut Findings, offset: u64, load: &Load<'_>) {
        if load.missing > 0 {
            findings.add(&rules::CODE_MISSING, offset, || {
                format!("{} bytes of code claimed, but none present", load.missing)
            });
            return;
        }
        if !load.code.is_empty() && load.code.iter().all(|byte| *byte == 0) {
            findings.add(&rules::CODE_ZEROED, offset, || {
                format!("all {} bytes of the code are zero", load.code.len())
            });
            return;
        }
        // CPython replaces the last eight bytes by a salt. The salts of two codes differ only by the code_index in
        // the upper half.
        let Some(previous) = &self.previous else { return };
        let halves = load.code.split_last_chunk::<8>().zip(previous.code.split_last_chunk::<8>());
        let Some(((body, tail), (previous_body, previous_tail))) = halves else { return };
        let endian = self.header.endian;
        let salt = endian.u64(*tail) ^ endian.u64(*previous_tail);
        let indices = (load.code_index ^ previous.code_index).wrapping_shl(32);
        if body == previous_body && salt != 0 && salt == indices {
            findings.add(&rules::CODE_ALTERED, offset, || {
                String::from("the last 8 bytes contain code_index and not code")
            });
        }
    }

    /// Records that `place` is live, and removes the codes that it overwrites.
    fn occupy(&mut self, findings: &mut Findings, offset: u64, place: Place) {
        if place.size == 0 {
            return;
        }
        let Place { address, size } = place;
        let end = address.saturating_add(size);
        while let Some((&start, &old_end)) = self.live.range(..end).next_back() {
            if old_end <= address {
                break;
            }
            if start < address || old_end > end {
                findings.add(&rules::PARTIAL_OVERLAP, offset, || {
                    format!("{address:#x}..{end:#x} covers part of {start:#x}..{old_end:#x}")
                });
            }
            self.live.remove(&start);
        }
        self.live.insert(address, end);
    }
}

fn name(findings: &mut Findings, offset: u64, name: &[u8]) {
    let shown = || format!("named {:?}", String::from_utf8_lossy(name));
    if name.is_empty() {
        findings.add(&rules::NAME_EMPTY, offset, || String::from("no name"));
    }
    if name.iter().any(u8::is_ascii_control) {
        findings.add(&rules::NAME_CONTROL, offset, shown);
    }
    if core::str::from_utf8(name).is_err() {
        findings.add(&rules::NAME_NOT_UTF8, offset, shown);
    }
}

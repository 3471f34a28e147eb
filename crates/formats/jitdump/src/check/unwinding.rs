//! Checks of UNWINDING_INFO.

use alloc::format;
use alloc::string::String;

use super::findings::Findings;
use super::rules;
use crate::endian::Endian;
use crate::unwinding::{UnwindOrder, UnwindingInfo};

#[derive(Debug)]
pub(super) struct UnwindingChecks {
    endian: Endian,
    /// Offset of the record whose LOAD has not come yet.
    pending: Option<u64>,
}

impl UnwindingChecks {
    pub(super) fn new(endian: Endian) -> Self {
        Self { endian, pending: None }
    }

    pub(super) fn forget(&mut self) {
        self.pending = None;
    }

    pub(super) fn unwinding_info(
        &mut self,
        findings: &mut Findings,
        offset: u64,
        info: &UnwindingInfo<'_>,
    ) {
        self.finish(findings);
        self.pending = Some(offset);
        let size = info.unwinding_size();
        if info.eh_frame_hdr.is_empty() {
            findings
                .add(&rules::UNWINDING_NO_HEADER, offset, || String::from("eh_frame_hdr_size 0"));
        }
        if info.order == UnwindOrder::HeaderFirst {
            findings.add(&rules::UNWINDING_ORDER, offset, || {
                String::from(".eh_frame_hdr precedes .eh_frame")
            });
        }
        if !info.is_well_formed(self.endian) {
            findings.add(&rules::UNWINDING_MALFORMED, offset, || {
                format!("{size} bytes that do not begin like .eh_frame and .eh_frame_hdr")
            });
        }
        if !info.eh_frame.is_empty() && info.mapped_size == 0 {
            findings.add(&rules::UNWINDING_NOT_MAPPED, offset, || {
                format!("mapped_size 0 for {size} bytes of tables")
            });
        }
        if info.mapped_size != 0 && info.mapped_size < size {
            findings.add(&rules::UNWINDING_MAPPED_SIZE, offset, || {
                format!("mapped_size {}, tables of {size} bytes", info.mapped_size)
            });
        }
    }

    pub(super) fn load(&mut self) {
        self.pending = None;
    }

    /// Reports that the record waiting for its LOAD is not followed by one.
    pub(super) fn finish(&mut self, findings: &mut Findings) {
        if let Some(offset) = self.pending.take() {
            findings.add(&rules::UNWINDING_WITHOUT_LOAD, offset, || {
                String::from("no LOAD after UNWINDING_INFO")
            });
        }
    }
}

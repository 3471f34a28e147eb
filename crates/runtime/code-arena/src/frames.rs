//! The unwind info of codes: `.eh_frame`, and its search table.
//!
//! The table has a row for each granule of text. It refers to the FDE of the code that begins last in the granule, or
//! else to the FDE of the code that reaches into it. So rows are in order, whichever FDEs are added or removed, and
//! none moves.

use code_image::VisibleCode;
use fallible::{Map, Vec};
use jit_code::Code;
use unwind_info::{Error, Machine, Unwind};

use crate::area::{Area, DiskSpace};
use crate::file::File;
use crate::head::{GrowingSection, TARGET, size_at};
use crate::layout::{GRANULE, Layout, ROW, ROWS_HEADER};
use crate::slots::Slot;
use crate::view::View;

/// Offset in an FDE of its code's size.
const SIZE_AT: usize = 12;

#[derive(Debug)]
pub(crate) struct Frames {
    area: Area,
    rows: DiskSpace,
    layout: Layout,
    /// Place of the CIE for FDEs that are made from unwind info.
    common: usize,
    /// Place of an FDE for no code.
    nothing: usize,
    /// The FDEs, by the first byte of their code: the end of the code, and the place of the FDE.
    known: Map<usize, (usize, usize)>,
    /// Number of rows.
    count: usize,
}

impl Frames {
    /// Creates the tables; `None` without disk space, or on a machine that is not supported.
    pub(crate) fn begin(layout: &Layout, file: &File, view: &mut View) -> Option<Self> {
        let mut area = Area::new(&layout.frames, 8);
        let mut rows = DiskSpace { to: layout.rows_header(), end: layout.rows.end, step: 64 << 10 };
        if !rows.reserve_to(file, layout.rows.start) {
            return None;
        }
        let header = layout.rows_header();
        let to_frames = (layout.frames.start - header - 4) as u32;
        // Version 1; 32-bit offsets, from their own place and from the header.
        view.write(header, &[1, 0x1b, 0x03, 0x3b]);
        view.write(header + 4, &to_frames.to_le_bytes());

        let cie = Machine::host()?.cie();
        let common = area.take(file, cie.len())?;
        view.write(common.at, cie);
        let slack = common.size.saturating_sub(cie.len());
        view.store_u32(common.at, (cie.len() + slack - 4) as u32);
        let nothing = area.take(file, 24)?;
        let mut entry = [0; 24];
        let to_text = layout.text.start as i64 - (nothing.at as i64 + 8);
        for (field, value) in
            entry.chunks_exact_mut(4).zip([20, (nothing.at + 4 - common.at) as u32, to_text as u32])
        {
            field.copy_from_slice(&value.to_le_bytes());
        }
        view.write(nothing.at, &entry);
        let mut frames = Self {
            area,
            rows,
            layout: layout.clone(),
            common: common.at,
            nothing: nothing.at,
            known: Map::new(),
            count: 0,
        };
        frames.publish_size(view);
        Some(frames)
    }

    /// Ensures that text up to `end` has rows. False without disk space.
    pub(crate) fn reserve_to(&mut self, file: &File, view: &mut View, end: usize) -> bool {
        let wanted = end.saturating_sub(self.layout.text.start).div_ceil(GRANULE);
        if wanted <= self.count {
            return true;
        }
        if !self.rows.reserve_to(file, self.layout.rows.start.saturating_add(wanted * ROW)) {
            return false;
        }
        for row in self.count..wanted {
            let start = self.layout.text.start.saturating_add(row * GRANULE);
            self.set_row(view, row, start, self.nothing);
        }
        self.count = wanted;
        view.store_u32(self.layout.rows_header() + 8, wanted as u32);
        view.store_u64(size_at(GrowingSection::Rows), (ROWS_HEADER + wanted * ROW) as u64);
        true
    }

    /// Adds the FDEs for code at `code` in the file. `ready` are entries for an address at the end of all that is used,
    /// which the caller creates for each new place. `None` if there is no space, or no unwind info.
    pub(crate) fn add(
        &mut self,
        file: &File,
        view: &mut View,
        base: u64,
        code: &Code<'_>,
    ) -> Option<Slot> {
        let size = fallible::attempt(|| {
            let mut bytes = Vec::with_capacity(64);
            self.encode(base, 0, code, &mut bytes);
            bytes.len()
        });
        let Ok(size) = size else {
            fallible::refuse();
            return None;
        };
        if size == 0 {
            return None;
        }
        let slot = self.area.take(file, size)?;
        let encoded = fallible::attempt(|| {
            let mut bytes = Vec::with_capacity(slot.size);
            self.encode(base, slot.at, code, &mut bytes);
            let at = base.wrapping_add(slot.at as u64);
            let entries = code_image::frame_entries(TARGET, &bytes, at);
            bytes.reserve(slot.size.saturating_sub(bytes.len()));
            (bytes, entries)
        });
        let Ok((mut bytes, entries)) = encoded else {
            self.area.release(slot);
            fallible::refuse();
            return None;
        };
        let (Some(last), true) = (entries.last(), bytes.len() <= slot.size) else {
            self.area.release(slot);
            return None;
        };
        // Zeros behind the last instruction are no-ops.
        let length = (slot.size.saturating_sub(last.at).saturating_sub(4)) as u32;
        bytes.resize(slot.size, 0);
        if let Some(field) = bytes.get_mut(last.at..).and_then(|rest| rest.first_chunk_mut()) {
            *field = length.to_le_bytes();
        }
        // The length makes the entry visible, so it is written last.
        let (first, rest) = bytes.split_first_chunk::<4>()?;
        view.write(slot.at + 4, rest);
        view.store_u32(slot.at, u32::from_le_bytes(*first));
        self.publish_size(view);
        for entry in entries {
            let start = entry.code.start.wrapping_sub(base) as usize;
            let end = entry.code.end.wrapping_sub(base) as usize;
            if self.known.try_insert(start, (end, slot.at + entry.at)).is_err() {
                // It could not be found when its code is removed.
                view.store_u32(slot.at + entry.at + SIZE_AT, 0);
                fallible::refuse();
                continue;
            }
            self.set_rows(view, start, end);
        }
        Some(slot)
    }

    /// Appends entries for the place `at` in the file.
    fn encode(&self, base: u64, at: usize, code: &Code<'_>, out: &mut Vec<u8>) {
        let address = base.wrapping_add(at as u64);
        match (&code.unwind, Machine::host()) {
            (None | Some(Unwind::EhFrame(_)), _) => {
                let code = VisibleCode::whole(*code);
                code_image::ready_frames(TARGET, &code, address, out);
            }
            (Some(unwind), Some(machine)) => {
                let to_common = at.saturating_sub(self.common) as u32;
                let to_code = code.address.wrapping_sub(address).cast_signed();
                // Without a place, only the size matters.
                let to_code = if at == 0 { 0 } else { to_code };
                let (size, out) = (code.size, out.inner_mut());
                let made = unwind_info::fde(machine, to_common, to_code, size, unwind, out);
                if made == Err(Error::Memory) {
                    fallible::refuse();
                }
            }
            (Some(_), None) => {}
        }
    }

    /// Removes the entries in `slot`, whose code was at `start..end`.
    pub(crate) fn remove(&mut self, view: &mut View, slot: Slot, start: usize, end: usize) {
        let next = |frames: &Self, from: usize| {
            let mut here = frames.known.range(from..end);
            let found = here.find(|(_, (_, at))| (slot.at..slot.end()).contains(at));
            found.map(|(&start, _)| start)
        };
        let mut from = start;
        while let Some(start) = next(self, from) {
            from = start.saturating_add(1);
            if let Some((end, at)) = self.known.remove(&start) {
                self.set_rows(view, start, end);
                // For readers that read the section sequentially: the FDE covers no code.
                view.store_u32(at + SIZE_AT, 0);
            }
        }
        self.area.release(slot);
    }

    /// Sets the rows of text that changed.
    fn set_rows(&mut self, view: &mut View, start: usize, end: usize) {
        let text = self.layout.text.start;
        let first = start.saturating_sub(text) / GRANULE;
        let last = end.saturating_sub(text).div_ceil(GRANULE).min(self.count);
        for row in first..last {
            let begin = text.saturating_add(row * GRANULE);
            let found = self.known.last_below(&begin.saturating_add(GRANULE));
            match found.filter(|(_, (end, _))| *end > begin) {
                Some((&start, &(_, at))) => self.set_row(view, row, start, at),
                None => self.set_row(view, row, begin, self.nothing),
            }
        }
    }

    /// Makes the row refer to the FDE at `frame`, from `start` up to the next row's start.
    fn set_row(&self, view: &mut View, row: usize, start: usize, frame: usize) {
        let from = self.layout.rows_header() as i64;
        let distance = |to: usize| u64::from((to as i64).wrapping_sub(from) as u32);
        let place = self.layout.rows.start.saturating_add(row * ROW);
        let new = distance(start) | distance(frame) << 32;
        if view.load_u64(place) != new {
            view.store_u64(place, new);
        }
    }

    fn publish_size(&mut self, view: &mut View) {
        // Including the zeros that end it.
        let size = self.area.end().saturating_sub(self.layout.frames.start) + 4;
        view.store_u64(size_at(GrowingSection::Frames), size as u64);
    }
}

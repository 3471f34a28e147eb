//! Unwind info of codes: what stands in `.eh_frame`, and the search table.
//!
//! The table has a row for each granule of text: of the description of whatever begins last in it, else of what reaches
//! into it. So rows are in order, whoever comes or goes, and none moves.

use std::collections::BTreeMap;

use unwind_info::{Machine, Unwind};

use crate::area::{Area, Backed};
use crate::file::File;
use crate::head::{Growing, TARGET, size_at};
use crate::layout::{GRANULE, Layout, ROW, ROWS_HEADER};
use crate::slots::Slot;
use crate::view::View;

/// Where in a description the size of its code stands.
const SIZE_AT: usize = 12;

#[derive(Debug)]
pub(crate) struct Frames {
    area: Area,
    rows: Backed,
    layout: Layout,
    /// Where the common part stands that described frames have.
    common: usize,
    /// The description of nothing.
    nothing: usize,
    /// The descriptions, by the first byte of their code: where it ends, and where they stand.
    known: BTreeMap<usize, (usize, usize)>,
    /// How many rows there are.
    count: usize,
}

impl Frames {
    /// Begins the tables; `None` without disk space, or on a machine without frames.
    pub(crate) fn begin(layout: &Layout, file: &File, view: &mut View) -> Option<Self> {
        let mut area = Area::new(&layout.frames, 8);
        let mut rows = Backed { to: layout.rows_header(), end: layout.rows.end, step: 64 << 10 };
        if !rows.reach(file, layout.rows.start) {
            return None;
        }
        let header = layout.rows_header();
        let to_frames = (layout.frames.start - header - 4) as u32;
        // Version 1; distances of 32 bits, from their own place and from this one.
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
            known: BTreeMap::new(),
            count: 0,
        };
        frames.tell_size(view);
        Some(frames)
    }

    /// Sees to it that text up to `end` has rows. False without disk space.
    pub(crate) fn reach(&mut self, file: &File, view: &mut View, end: usize) -> bool {
        let wanted = end.saturating_sub(self.layout.text.start).div_ceil(GRANULE);
        if wanted <= self.count {
            return true;
        }
        if !self.rows.reach(file, self.layout.rows.start.saturating_add(wanted * ROW)) {
            return false;
        }
        for row in self.count..wanted {
            let start = self.layout.text.start.saturating_add(row * GRANULE);
            self.set_row(view, row, start, self.nothing);
        }
        self.count = wanted;
        view.store_u32(self.layout.rows_header() + 8, wanted as u32);
        view.store_u64(size_at(Growing::Rows), (ROWS_HEADER + wanted * ROW) as u64);
        true
    }

    /// Describes how to unwind code at `code` in the file; `ready` are entries for an address at the end of all
    /// that was used, made by the caller for each new place. `None` if there is no room, or nothing to say.
    pub(crate) fn add(
        &mut self,
        file: &File,
        view: &mut View,
        base: u64,
        code: &code_image::Code<'_>,
        unwind: Option<&Unwind<'_>>,
    ) -> Option<Slot> {
        let mut bytes = Vec::with_capacity(64);
        self.encode(base, 0, code, unwind, &mut bytes);
        if bytes.is_empty() {
            return None;
        }
        let slot = self.area.take(file, bytes.len())?;
        bytes.clear();
        self.encode(base, slot.at, code, unwind, &mut bytes);
        let entries = code_image::frame_entries(TARGET, &bytes, base.wrapping_add(slot.at as u64));
        let (Some(last), true) = (entries.last(), bytes.len() <= slot.size) else {
            self.area.give_back(slot);
            return None;
        };
        // Behind the last instruction, zeros are ones that do nothing.
        let length = (slot.size.saturating_sub(last.at).saturating_sub(4)) as u32;
        bytes.resize(slot.size, 0);
        if let Some(field) = bytes.get_mut(last.at..).and_then(|rest| rest.first_chunk_mut()) {
            *field = length.to_le_bytes();
        }
        // The length first leads to the entry, so it comes last.
        let (first, rest) = bytes.split_first_chunk::<4>()?;
        view.write(slot.at + 4, rest);
        view.store_u32(slot.at, u32::from_le_bytes(*first));
        self.tell_size(view);
        for entry in entries {
            let start = entry.code.start.wrapping_sub(base) as usize;
            let end = entry.code.end.wrapping_sub(base) as usize;
            self.known.insert(start, (end, slot.at + entry.at));
            self.set_rows(view, start, end);
        }
        Some(slot)
    }

    /// Appends entries for the place `at` in the file.
    fn encode(
        &self,
        base: u64,
        at: usize,
        code: &code_image::Code<'_>,
        unwind: Option<&Unwind<'_>>,
        out: &mut Vec<u8>,
    ) {
        let address = base.wrapping_add(at as u64);
        match (unwind, Machine::host()) {
            (None | Some(Unwind::EhFrame(_)), _) => {
                code_image::ready_frames(TARGET, code, address, out);
            }
            (Some(unwind), Some(machine)) => {
                let to_common = at.saturating_sub(self.common) as u32;
                let to_code = code.start.wrapping_sub(address).cast_signed();
                // At no place yet, what counts is the size.
                let to_code = if at == 0 { 0 } else { to_code };
                let _ = unwind_info::fde(machine, to_common, to_code, code.size, unwind, out);
            }
            (Some(_), None) => {}
        }
    }

    /// Forgets what was described by the entries in `slot`, whose code was at `start..end`.
    pub(crate) fn remove(&mut self, view: &mut View, slot: Slot, start: usize, end: usize) {
        let gone: Vec<usize> = self
            .known
            .range(start..end)
            .filter(|(_, (_, at))| (slot.at..slot.end()).contains(at))
            .map(|(&start, _)| start)
            .collect();
        for start in gone {
            if let Some((end, at)) = self.known.remove(&start) {
                self.set_rows(view, start, end);
                // For those who read the section from its beginning to its end: it is of no code.
                view.store_u32(at + SIZE_AT, 0);
            }
        }
        self.area.give_back(slot);
    }

    /// Sets the rows of text that changed.
    fn set_rows(&mut self, view: &mut View, start: usize, end: usize) {
        let text = self.layout.text.start;
        let first = start.saturating_sub(text) / GRANULE;
        let last = end.saturating_sub(text).div_ceil(GRANULE).min(self.count);
        for row in first..last {
            let begin = text.saturating_add(row * GRANULE);
            let found = self.known.range(..begin.saturating_add(GRANULE)).next_back();
            match found.filter(|(_, (end, _))| *end > begin) {
                Some((&start, &(_, at))) => self.set_row(view, row, start, at),
                None => self.set_row(view, row, begin, self.nothing),
            }
        }
    }

    /// Says that from `start` on, up to the next row's, the description at `frame` holds.
    fn set_row(&self, view: &mut View, row: usize, start: usize, frame: usize) {
        let from = self.layout.rows_header() as i64;
        let distance = |to: usize| u64::from((to as i64).wrapping_sub(from) as u32);
        let place = self.layout.rows.start.saturating_add(row * ROW);
        let new = distance(start) | distance(frame) << 32;
        if view.load_u64(place) != new {
            view.store_u64(place, new);
        }
    }

    fn tell_size(&mut self, view: &mut View) {
        // With the zeros behind it that end it.
        let size = self.area.end().saturating_sub(self.layout.frames.start) + 4;
        view.store_u64(size_at(Growing::Frames), size as u64);
    }
}

//! The tables that describe the codes of a file.

use code_image::{DebugEntry, VisibleCode};
use fallible::{Map, Vec};
use jit_code::Code;

use crate::area::Area;
use crate::file::File;
use crate::frames::Frames;
use crate::head::{GrowingSection, TARGET, TEXT, place_at, size_at};
use crate::layout::{HASH, Layout, SYMBOL};
use crate::slots::Slot;
use crate::view::View;

/// `STB_GLOBAL << 4 | STT_FUNC`. Tools take local symbols with certain names for markers.
const FUNCTION: u64 = 0x12;

/// The tables of a segment.
#[derive(Debug)]
pub(crate) struct Tables {
    layout: Layout,
    symbols: Area,
    names: Area,
    pub(crate) frames: Frames,
    info: Area,
    line: Area,
    ranges: Area,
    /// By the first byte; no two overlap.
    codes: Map<usize, CodeEntries>,
    /// Whether any code had lines: then codes without lines are described for perf, too.
    has_lines: bool,
}

/// A code in the tables: its end, and its entries.
#[derive(Debug, Default)]
struct CodeEntries {
    end: usize,
    symbol: Slot,
    name: Slot,
    frame: Slot,
    info: Slot,
    line: Slot,
    ranges: Slot,
}

impl Tables {
    /// Creates the tables; `None` without disk space.
    pub(crate) fn begin(layout: &Layout, file: &File, view: &mut View) -> Option<Self> {
        let frames = Frames::begin(layout, file, view)?;
        let mut tables = Self {
            symbols: Area::new(&layout.symbols, SYMBOL),
            names: Area::new(&layout.names, 8),
            frames,
            info: Area::new(&layout.info, 16),
            line: Area::new(&layout.line, 16),
            ranges: Area::new(&layout.ranges, 16),
            codes: Map::new(),
            has_lines: false,
            layout: layout.clone(),
        };
        // The null symbol, and the empty name.
        tables.symbols.take(file, SYMBOL)?;
        tables.names.take(file, 1)?;
        // Valgrind reads the file as soon as it is mapped, and reports empty debug info.
        let unit = DebugEntry::empty_unit();
        let info = tables.info.take(file, unit.len())?;
        view.write(info.at, &unit);
        // One empty bucket, and the number of symbols.
        view.store_u32(layout.hash, 1);
        tables.publish_sizes(view);
        Some(tables)
    }

    /// Adds a code in the text. False if there is no space for its name.
    pub(crate) fn add(&mut self, file: &File, view: &mut View, base: u64, code: &Code<'_>) -> bool {
        let place = |address: u64| address.wrapping_sub(base);
        let start = place(code.address) as usize;
        let end = place(code.address.saturating_add(code.size)) as usize;
        self.forget(view, start, end);

        // The entry first: code that is published must have one.
        if self.codes.try_insert(start, CodeEntries::default()).is_err() {
            return false;
        }
        let name = fallible::attempt(|| {
            let mut name = Vec::with_capacity(code.name.len().saturating_add(1));
            code_image::push_name(code.name, &mut name);
            name.push(0);
            name
        });
        let Ok(name) = name else {
            self.codes.remove(&start);
            return false;
        };
        let Some(named) = self.names.take(file, name.len()) else {
            self.codes.remove(&start);
            return false;
        };
        let Some(symbol) = self.symbols.take(file, SYMBOL) else {
            self.names.release(named);
            self.codes.remove(&start);
            return false;
        };
        view.write(named.at, &name);
        // Before the symbol refers to it.
        view.store_u64(
            size_at(GrowingSection::Names),
            self.names.end().saturating_sub(self.layout.names.start) as u64,
        );
        view.store_u64(symbol.at + 8, start as u64);
        view.store_u64(symbol.at + 16, end.saturating_sub(start) as u64);
        let name_at = named.at.saturating_sub(self.layout.names.start) as u64;
        view.store_u64(symbol.at, name_at | FUNCTION << 32 | u64::from(TEXT) << 48);

        let frame = self.frames.add(file, view, base, code).unwrap_or_default();
        let mut entries = CodeEntries { end, symbol, name: named, frame, ..CodeEntries::default() };
        self.has_lines |= !code.lines.is_empty() || !code.inlined.is_empty();
        if self.has_lines {
            self.add_debug(file, view, base, code, &mut entries);
        }
        if let Some(place) = self.codes.get_mut(&start) {
            *place = entries;
        }
        self.publish_sizes(view);
        true
    }

    /// Adds lines and inlined calls, if there is space.
    fn add_debug(
        &mut self,
        file: &File,
        view: &mut View,
        base: u64,
        code: &Code<'_>,
        entries: &mut CodeEntries,
    ) {
        let entry = fallible::attempt(|| {
            let code = VisibleCode::whole(*code);
            DebugEntry::new(TARGET, &code, |address| address.wrapping_sub(base))
        });
        let Ok(mut entry) = entry else { return fallible::refuse() };
        if entry.info.is_empty() {
            return;
        }
        let slots = (
            self.info.take(file, entry.info.len()),
            self.line.take(file, entry.line.len()),
            self.ranges.take(file, entry.ranges.len()),
        );
        let is_padded = match slots {
            (Some(info), Some(line), Some(_)) => {
                fallible::attempt(|| entry.pad(info.size, line.size)).is_ok()
            }
            _ => true,
        };
        if !is_padded {
            fallible::refuse();
        }
        let (Some(info), Some(line), Some(ranges), true) = (slots.0, slots.1, slots.2, is_padded)
        else {
            for (area, slot) in
                [(&mut self.info, slots.0), (&mut self.line, slots.1), (&mut self.ranges, slots.2)]
            {
                area.release(slot.unwrap_or_default());
            }
            return;
        };
        let within = |slot: Slot, start: usize| slot.at.saturating_sub(start) as u32;
        entry.place(within(line, self.layout.line.start), within(ranges, self.layout.ranges.start));
        view.write(line.at, &entry.line);
        view.write(ranges.at, &entry.ranges);
        view.write(info.at, &entry.info);
        (entries.info, entries.line, entries.ranges) = (info, line, ranges);
    }

    /// Removes the codes that overlap with this part of the text.
    pub(crate) fn forget(&mut self, view: &mut View, start: usize, end: usize) {
        while let Some((&first, entries)) = self.codes.last_below(&end)
            && entries.end > start
        {
            let Some(entries) = self.codes.remove(&first) else { return };
            for word in 0..SYMBOL / 8 {
                view.store_u64(entries.symbol.at + 8 * word, 0);
            }
            if entries.frame.size > 0 {
                self.frames.remove(view, entries.frame, first, entries.end);
            }
            if entries.info.size > 0 {
                let (at, nothing) = DebugEntry::nothing(entries.info.size);
                view.write(entries.info.at + at, &nothing);
            }
            for (area, slot) in [
                (&mut self.symbols, entries.symbol),
                (&mut self.names, entries.name),
                (&mut self.info, entries.info),
                (&mut self.line, entries.line),
                (&mut self.ranges, entries.ranges),
            ] {
                area.release(slot);
            }
        }
    }

    fn publish_sizes(&self, view: &mut View) {
        let layout = &self.layout;
        for (section, area, start) in [
            (GrowingSection::Symbols, &self.symbols, layout.symbols.start),
            (GrowingSection::Names, &self.names, layout.names.start),
            (GrowingSection::Line, &self.line, layout.line.start),
            (GrowingSection::Ranges, &self.ranges, layout.ranges.start),
            (GrowingSection::Info, &self.info, layout.info.start),
        ] {
            let size = area.end().saturating_sub(start) as u64;
            if view.load_u64(size_at(section)) != size {
                view.store_u64(place_at(section), start as u64);
                view.store_u64(size_at(section), size);
            }
        }
        let symbols = self.symbols.end().saturating_sub(layout.symbols.start) / SYMBOL;
        view.store_u32(layout.hash + 4, symbols as u32);
        debug_assert!(layout.hash + HASH <= layout.symbols.start);
    }
}

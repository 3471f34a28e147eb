//! Assembles a symfile from the parts of its codes.

use std::ops::Range;
use std::sync::OnceLock;

use fallible::Vec;

use super::super::headers::{self, Section};
use super::fragment::Fragment;
use super::runs::{Run, names, runs};
use super::{Ends, Layout, Symfile, SymfileEntry, TAG, TAG_AT};
use crate::dwarf::{UNIT_LINES_AT, single_abbreviations};
use crate::encode::Encoder;
use crate::error::Error;
use crate::target::Target;

/// Names of the sections before those of the codes.
const SECTION_NAMES: &[u8] =
    b"\0.shstrtab\0.symtab\0.strtab\0.debug_abbrev\0.debug_info\0.debug_line\0.debug_ranges\0.eh_frame\0";

/// Number of these sections.
const FIXED: usize = 9;
/// Index of `.strtab` among them.
const STRTAB: u32 = 3;

/// `STB_GLOBAL << 4 | STT_FUNC`.
const GLOBAL_FUNCTION: u8 = 0x12;

/// Assembles the file of these codes, which must be sorted by address. For `is_free`, see [`runs`].
pub(super) fn assemble(
    target: Target,
    tag: [u8; TAG],
    fragments: &[Fragment<'_>],
    is_free: &dyn Fn(Range<u64>) -> bool,
) -> Result<Symfile, Error> {
    let abbreviations = abbreviations(target);
    let runs = runs(fragments, is_free);
    let run_names = names(runs.len());
    let sizes = Sizes::of(target, fragments, &runs, &run_names)?;
    let place = sizes.place(target, fragments.len(), abbreviations.len());

    let mut out = Encoder::new(target);
    out.bytes.reserve_exact(place.end);
    // Indices from SHN_LORESERVE on are reserved.
    let section_count = FIXED.saturating_add(runs.len());
    let count = u16::try_from(section_count).ok().filter(|count| *count < 0xff00);
    let count = count.ok_or(Error::TooLarge { what: "symbol file", size: section_count as u64 })?;
    let header_size = headers::file_header_size(target);
    headers::file_header(&mut out, target, &[], header_size as u64, count);
    // The section names precede the codes' own sections, whose headers are last.
    let names_index = if target.is_64 { 62 } else { 50 };
    let names_index_bytes = match target.endian {
        crate::target::Endian::Little => 1_u16.to_le_bytes(),
        crate::target::Endian::Big => 1_u16.to_be_bytes(),
    };
    set(&mut out.bytes, names_index, &names_index_bytes);
    set(&mut out.bytes, TAG_AT, &tag);

    section_headers(&mut out, target, &place, &sizes, abbreviations.len(), &runs, &run_names);
    symbols(&mut out, target, fragments, &runs);
    out.raw(SECTION_NAMES);
    out.raw(&run_names);
    out.raw(abbreviations);
    out.u8(0);
    for fragment in fragments {
        out.raw(fragment.name);
    }
    let mut shown = Vec::with_capacity(fragments.len());
    let mut lists = Vec::with_capacity(sizes.lists);
    infos(&mut out, place.layout.info, fragments, &runs, &mut lists, &mut shown);
    for fragment in fragments {
        out.raw(fragment.line);
    }
    for fragment in fragments {
        out.raw(fragment.ranges);
    }
    out.bytes.resize(place.layout.frames, 0);
    for fragment in fragments {
        out.raw(fragment.frames);
    }
    fallible::so_far()?;
    debug_assert_eq!(out.bytes.len(), place.end);
    let live = fragments.len();
    Ok(Symfile { target, tag, bytes: out.bytes, codes: shown, live, layout: place.layout, lists })
}

/// Total sizes of all parts.
#[derive(Debug, Default)]
struct Sizes {
    runs: usize,
    run_names: usize,
    names: usize,
    info: usize,
    line: usize,
    ranges: usize,
    frames: usize,
    lists: usize,
}

impl Sizes {
    fn of(
        target: Target,
        fragments: &[Fragment<'_>],
        runs: &[Run],
        run_names: &[u8],
    ) -> Result<Self, Error> {
        let mut sizes = Sizes { runs: runs.len(), run_names: run_names.len(), ..Sizes::default() };
        for fragment in fragments {
            sizes.names = sizes.names.saturating_add(fragment.name.len());
            sizes.info = sizes.info.saturating_add(fragment.info.len());
            sizes.line = sizes.line.saturating_add(fragment.line.len());
            sizes.ranges = sizes.ranges.saturating_add(fragment.ranges.len());
            sizes.frames = sizes.frames.saturating_add(fragment.frames.len());
            sizes.lists = sizes.lists.saturating_add(fragment.lists.len());
        }
        let size = sizes.place(target, fragments.len(), 0).end as u64;
        // Offsets in sections are 32-bit, and so are the offsets used here.
        if size > u64::from(u32::MAX) {
            return Err(Error::TooLarge { what: "symbol file", size });
        }
        Ok(sizes)
    }

    /// Computes the positions of everything.
    fn place(&self, target: Target, count: usize, abbreviations: usize) -> Places {
        let symbol_size = headers::symbol_size(target) as usize;
        let section_size = headers::section_header_size(target);
        let headers = headers::file_header_size(target);
        let text_headers = headers.saturating_add(section_size.saturating_mul(FIXED));
        let symbols = text_headers.saturating_add(section_size.saturating_mul(self.runs));
        let symbols_end =
            symbols.saturating_add(symbol_size.saturating_mul(count.saturating_add(1)));
        let abbreviations_at =
            symbols_end.saturating_add(SECTION_NAMES.len()).saturating_add(self.run_names);
        let strings = abbreviations_at.saturating_add(abbreviations);
        let names = strings.saturating_add(1); // the empty name
        let info = names.saturating_add(self.names);
        let line = info.saturating_add(self.info);
        let ranges = line.saturating_add(self.line);
        let ranges_end = ranges.saturating_add(self.ranges);
        let frames = ranges_end.next_multiple_of(8);
        Places {
            section_names: symbols_end,
            abbreviations: abbreviations_at,
            strings,
            end: frames.saturating_add(self.frames),
            layout: Layout { text_headers, symbols, names, info, line, ranges, frames },
        }
    }
}

#[derive(Debug)]
struct Places {
    section_names: usize,
    abbreviations: usize,
    strings: usize,
    end: usize,
    layout: Layout,
}

fn section_headers(
    out: &mut Encoder,
    target: Target,
    place: &Places,
    sizes: &Sizes,
    abbreviations: usize,
    runs: &[Run],
    run_names: &[u8],
) {
    let Layout { symbols, info, line, ranges, frames, .. } = place.layout;
    let (progbits, strings) = (headers::SHT_PROGBITS, headers::SHT_STRTAB);
    let usual = |kind: u32, offset: usize, size: usize, align: u64| Section {
        kind,
        offset: offset as u64,
        size: size as u64,
        align,
        ..Section::default()
    };
    let symbols_size = place.section_names.saturating_sub(symbols);
    let symtab = Section {
        link: STRTAB,
        info: 1, // the first global symbol: all but the null symbol are
        entry_size: headers::symbol_size(target),
        ..usual(headers::SHT_SYMTAB, symbols, symbols_size, 8)
    };
    let sections = [
        Section::default(),
        usual(strings, place.section_names, SECTION_NAMES.len().saturating_add(run_names.len()), 1),
        symtab,
        usual(strings, place.strings, sizes.names.saturating_add(1), 1),
        usual(progbits, place.abbreviations, abbreviations, 1),
        usual(progbits, info, sizes.info, 1),
        usual(progbits, line, sizes.line, 1),
        usual(progbits, ranges, sizes.ranges, 1),
        usual(progbits, frames, sizes.frames, 8),
    ];
    let mut name = 0_u32;
    for (section, text) in sections.iter().zip(SECTION_NAMES.split(|byte| *byte == 0)) {
        headers::section_header(out, section, name);
        name = name.saturating_add(text.len() as u32).saturating_add(1);
    }
    for (run, text) in runs.iter().zip(run_names.split(|byte| *byte == 0)) {
        let section = Section {
            kind: headers::SHT_NOBITS,
            flags: headers::SHF_ALLOC | headers::SHF_EXECINSTR,
            address: run.addresses.start,
            // It has no bytes, so any offset is valid.
            offset: headers::file_header_size(target) as u64,
            size: run.addresses.end.saturating_sub(run.addresses.start),
            align: 1,
            ..Section::default()
        };
        headers::section_header(out, &section, name);
        name = name.saturating_add(text.len() as u32).saturating_add(1);
    }
}

/// The number of each code's run, from 0.
fn runs_of_codes(runs: &[Run]) -> impl Iterator<Item = usize> {
    runs.iter().enumerate().flat_map(|(number, run)| std::iter::repeat_n(number, run.count))
}

fn symbols(out: &mut Encoder, target: Target, fragments: &[Fragment<'_>], runs: &[Run]) {
    out.bytes.resize(
        out.bytes.len().saturating_add(headers::symbol_size(target) as usize),
        0, // the null symbol
    );
    let mut name = 1_u32;
    for (fragment, run) in fragments.iter().zip(runs_of_codes(runs)) {
        let section = FIXED.saturating_add(run) as u16;
        let value = fragment.code.start | u64::from(fragment.thumb);
        if target.is_64 && target.endian == crate::target::Endian::Little {
            let first =
                u64::from(name) | u64::from(GLOBAL_FUNCTION) << 32 | u64::from(section) << 48;
            let words = [first, value, fragment.code.size];
            out.raw(words.map(u64::to_le_bytes).as_flattened());
            name = name.saturating_add(fragment.name.len() as u32);
            continue;
        }
        out.u32(name);
        if target.is_64 {
            out.u8(GLOBAL_FUNCTION);
            out.u8(0);
            out.u16(section);
            out.u64(value);
            out.u64(fragment.code.size);
        } else {
            out.word(value);
            out.word(fragment.code.size);
            out.u8(GLOBAL_FUNCTION);
            out.u8(0);
            out.u16(section);
        }
        name = name.saturating_add(fragment.name.len() as u32);
    }
}

/// Writes the units, with the offsets of their line tables and range lists.
fn infos(
    out: &mut Encoder,
    section: usize,
    fragments: &[Fragment<'_>],
    runs: &[Run],
    lists: &mut Vec<u32>,
    shown: &mut Vec<SymfileEntry>,
) {
    let mut ends = Ends::default();
    for (fragment, run) in fragments.iter().zip(runs_of_codes(runs)) {
        let at = section.saturating_add(ends.info as usize);
        out.raw(fragment.info);
        if !fragment.info.is_empty() {
            out.set_u32(at.saturating_add(UNIT_LINES_AT), ends.line);
        }
        for &list in fragment.lists {
            let within = list.saturating_sub(fragment.lists_from);
            let room = at.saturating_add(within as usize);
            let old = out.get_u32(room).saturating_sub(fragment.ranges_from);
            out.set_u32(room, old.saturating_add(ends.ranges));
            lists.push(ends.info.saturating_add(within));
        }
        ends = Ends {
            name: ends.name.saturating_add(fragment.name.len() as u32),
            info: ends.info.saturating_add(fragment.info.len() as u32),
            line: ends.line.saturating_add(fragment.line.len() as u32),
            ranges: ends.ranges.saturating_add(fragment.ranges.len() as u32),
            frames: ends.frames.saturating_add(fragment.frames.len() as u32),
            lists: lists.len() as u32,
        };
        shown.push(SymfileEntry {
            code: fragment.code,
            thumb: fragment.thumb,
            run: run as u16,
            ends,
        });
    }
}

/// The abbreviations, which are the same in all files, encoded once.
fn abbreviations(target: Target) -> &'static [u8] {
    // No number in it depends on the byte order.
    static WRITTEN: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(written) = WRITTEN.get() {
        return written;
    }
    let written = fallible::attempt(|| {
        let mut out = Encoder::new(target);
        single_abbreviations(&mut out);
        out.bytes
    });
    // A partial result must not be kept.
    match written {
        Ok(written) => WRITTEN.get_or_init(|| written),
        Err(fallible::Refused) => {
            fallible::refuse();
            &[]
        }
    }
}

fn set(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(new.len())) {
        place.copy_from_slice(new);
    }
}

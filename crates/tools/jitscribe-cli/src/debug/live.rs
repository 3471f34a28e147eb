//! The code that is live according to all sources, as symbol files.

use std::hash::Hasher;
use std::ops::Range;

use code_image::jitdump::{Converter, LineTable, Reader, frame_pointer};
use code_image::{Endian, Symfile, Target, VisibleCode};
use code_timeline::ranges::Canvas;
use jit_code::{Code, Line};
use jitdump::Dump;
use rustc_hash::FxHasher;

use super::shown::{Change, LiveCode, Occupied, Shown};
use super::sources::Sources;
use crate::Result;
use crate::dump::live::{Live, Piece};
use crate::files::Kind;
use crate::symbols::source_resolver;

/// Marks symbol files in memory; in files on disk it has no meaning.
const TAG: [u8; 7] = [0; 7];

/// Where a live code is described.
#[derive(Clone, Copy)]
enum Described<'l, 'd> {
    /// In the dump with this number.
    Dump(usize, Piece<'l, 'd>),
    Map(perf_map::Piece<'d>),
}

/// Codes without unwind info, by address.
#[derive(Debug, Default)]
pub struct Plain(Vec<PlainCode>);

#[derive(Debug)]
struct PlainCode {
    visible: Range<u64>,
    start: u64,
}

impl Plain {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The beginning of the code at `address`, if it is one without unwind info.
    pub fn start(&self, address: u64) -> Option<u64> {
        let at = self.0.partition_point(|code| code.visible.end <= address);
        let code = self.0.get(at).filter(|code| code.visible.contains(&address))?;
        Some(code.start)
    }
}

/// Shows what is live according to `sources`, except for code in `registered`, which the debugger knows from the process
/// itself. Returns what the debugger must do, and which of the codes have no unwind info.
///
/// # Errors
/// If a symbol file cannot be written.
pub fn show(
    sources: &Sources,
    registered: &[Range<u64>],
    shown: &mut Shown,
) -> Result<(Change, Plain)> {
    let dumps = sources.contents().filter(|(kind, _)| *kind == Kind::Jitdump);
    let dumps: Vec<Dump<'_>> = dumps.filter_map(|(_, bytes)| Dump::parse(bytes).ok()).collect();
    let lives: Vec<Live<'_>> = dumps.iter().map(|dump| Live::at(dump, u64::MAX, |_| {})).collect();
    let maps = sources.contents().filter(|(kind, _)| *kind == Kind::PerfMap);
    let mut all: Vec<(Range<u64>, Described<'_, '_>)> = Vec::new();
    for (_, map) in maps {
        let pieces = perf_map::resolve(perf_map::entries(map).flatten());
        all.extend(
            pieces.into_iter().map(|piece| (piece.address..piece.end(), Described::Map(piece))),
        );
    }
    for (number, live) in lives.iter().enumerate() {
        all.extend(
            live.pieces().map(|piece| (piece.address..piece.end, Described::Dump(number, piece))),
        );
    }
    if sources.contents().count() > 1 {
        all = on_top(&all);
    }
    let occupied = Occupied::new(all.iter().map(|(range, _)| range.clone()), registered);
    let registered = merged(registered);
    all.retain(|(range, _)| {
        let behind = registered.partition_point(|known| known.end <= range.start);
        registered.get(behind).is_none_or(|known| known.start > range.start)
    });

    let live: Vec<LiveCode> = all.iter().map(|(range, code)| identity(range, code)).collect();
    let targets: Vec<Target> = dumps.iter().map(target_of).collect();
    let converter =
        |target: &Target| Converter::new(target.machine.into()).for_reader(Reader::Debugger);
    let mut converters: Vec<Converter<'_>> = targets.iter().map(converter).collect();
    let plain = all.iter().filter_map(|(range, code)| {
        Some(PlainCode { visible: range.clone(), start: code.plain_start()? })
    });
    let plain = Plain(plain.collect());
    // Code without lines is where its function is defined.
    let resolver = source_resolver(&[]);
    let places = resolver.cached();
    let change = shown.update(&live, &occupied, |at| {
        let ((range, code), LiveCode { key, .. }) = (all.get(at)?, live.get(at)?);
        match *code {
            Described::Dump(number, piece) => {
                let (target, converter) = (*targets.get(number)?, converters.get_mut(number)?);
                let (load, visible) = (piece.load, range.clone());
                let whole = places.whole(load.name, Some(load));
                let (table, place) = (LineTable::Source, |position| position);
                converter.convert_with(load, piece.start, visible, table, whole, place, |code| {
                    Symfile::new(target, TAG, *key, code).ok()
                })
            }
            Described::Map(piece) => {
                let entry = piece.entry;
                let size = entry.end().saturating_sub(entry.address);
                let whole = places.whole(entry.name, None);
                let line = whole.map(|whole| Line::new_bytes(0, whole.file, whole.line));
                let code = Code::at(entry.address, size).named_bytes(entry.name);
                let code = VisibleCode::whole(code.lines(line.as_slice())).visible(range.clone());
                Symfile::new(host(), TAG, *key, &code).ok()
            }
        }
    })?;
    Ok((change, plain))
}

impl Described<'_, '_> {
    /// Where it begins, if it has no unwind info.
    fn plain_start(&self) -> Option<u64> {
        match self {
            Self::Map(piece) => Some(piece.entry.address),
            Self::Dump(_, piece) => {
                let has_frames = piece.load.unwind().is_some_and(|it| !it.eh_frame.is_empty());
                let has_any = has_frames || frame_pointer(piece.load).is_some();
                (!has_any).then_some(piece.start)
            }
        }
    }
}

/// What is visible where later codes cover earlier ones.
fn on_top<'l, 'd>(all: &[(Range<u64>, Described<'l, 'd>)]) -> Vec<(Range<u64>, Described<'l, 'd>)> {
    let mut canvas: Canvas<usize> = Canvas::new();
    for (number, (range, _)) in all.iter().enumerate() {
        canvas.paint(range.clone(), number);
    }
    canvas.visible().filter_map(|(range, number)| Some((range, all.get(number)?.1))).collect()
}

fn merged(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges = ranges.to_vec();
    ranges.sort_unstable_by_key(|range| range.start);
    code_timeline::ranges::merge(ranges, |_| false)
}

fn identity(range: &Range<u64>, code: &Described<'_, '_>) -> LiveCode {
    let mut hasher = FxHasher::default();
    let (first, name) = match code {
        Described::Dump(_, piece) => {
            hasher.write_u64(piece.load.timestamp);
            (piece.start..piece.start.saturating_add(piece.load.size), piece.load.name)
        }
        Described::Map(piece) => (piece.entry.address..piece.entry.end(), piece.entry.name),
    };
    for number in [range.start, range.end, first.start, first.end] {
        hasher.write_u64(number);
    }
    hasher.write(name);
    LiveCode { key: hasher.finish(), start: range.start }
}

/// The machine that the code of a dump is for.
pub fn target_of(dump: &Dump<'_>) -> Target {
    let machine = u16::try_from(dump.codes().quirks().machine).unwrap_or(0);
    Target::new(machine, dump.header().endian)
}

/// This machine: perf maps do not name theirs.
fn host() -> Target {
    let machine = match std::env::consts::ARCH {
        "aarch64" => 183,
        "riscv64" => 243,
        _ => 62,
    };
    Target::new(machine, Endian::Little)
}

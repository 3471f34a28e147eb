//! The code that is live at a given time, by address.

use code_index::DumpEvents;
use code_timeline::{AddressSpaceId, CodeId, History, HistoryBuilder, Processes};
use jitdump::{CodeLoad, Dump};

use jitscribe_inject::output_limits::{PartFilter, parts_fit};

/// The code of a dump that is live at a given time.
#[derive(Debug)]
pub struct Live<'a> {
    loads: Vec<CodeLoad<'a>>,
    /// For each code, its index in `loads`.
    history: History<usize>,
    pieces: Vec<code_timeline::Piece>,
}

/// A range of addresses and the code that occupies it. Ranges do not overlap.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'l, 'a> {
    /// First address.
    pub address: u64,
    /// Address after the last byte.
    pub end: u64,
    /// The code load. Its own address is where the code was first loaded.
    pub load: &'l CodeLoad<'a>,
    /// Current start address of the code.
    pub start: u64,
}

impl<'a> Live<'a> {
    /// Applies the events up to the time `until` in the order of their timestamps; events with equal timestamps keep
    /// the order of the file. Unreadable records are passed to `damaged` and skipped.
    pub fn at(dump: &Dump<'a>, until: u64, mut damaged: impl FnMut(jitdump::Error)) -> Self {
        let mut loads: Vec<CodeLoad<'a>> = Vec::new();
        let mut builder = HistoryBuilder::new();
        let mut events = DumpEvents::new(&mut builder).until(until);
        for event in dump.codes().filter_map(|event| event.map_err(&mut damaged).ok()) {
            events.take(event, |load| {
                loads.push(load);
                loads.len() - 1
            });
        }
        events.finish();
        let history = builder.finish(&Processes::new(), 0);
        let timeline = history.timeline(AddressSpaceId::ONLY);
        let alive = timeline.into_iter().flat_map(|timeline| timeline.alive());
        let mut pieces: Vec<code_timeline::Piece> = alive.cloned().collect();
        let weight = |id: CodeId| loads[history.code(id).origin].weight() as u64;
        let parts = pieces.iter().map(|piece| weight(piece.code)).fold(0, u64::saturating_add);
        if !parts_fit(parts, dump.data().len() as u64) {
            let mut filter = PartFilter::default();
            pieces.retain(|piece| filter.is_shown(weight(piece.code), piece.code.0));
        }
        Self { loads, history, pieces }
    }

    /// The live code, sorted by address.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_, 'a>> {
        self.pieces.iter().map(|piece| {
            let code = self.history.code(piece.code);
            Piece {
                address: piece.range.start,
                end: piece.range.end,
                load: &self.loads[code.origin],
                start: code.address,
            }
        })
    }
}

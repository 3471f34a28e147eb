//! The code that is live at a given time, by address.

use code_timeline::{AddressSpaceId, Code, CodeId, History, HistoryBuilder, MoveId, Processes};
use jitdump::{CodeEvent, CodeLoad, Dump};

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
        let events = dump.codes().filter_map(|event| event.map_err(&mut damaged).ok());
        let (history, _) = history_of(events, until, |load| {
            loads.push(load);
            loads.len() - 1
        });
        let pieces = history.timeline(AddressSpaceId::ONLY).map(|timeline| timeline.pieces());
        let pieces = pieces.unwrap_or_default().iter().filter(|piece| piece.until == u64::MAX);
        let mut pieces: Vec<code_timeline::Piece> = pieces.cloned().collect();
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

/// The history that results from the events of a dump up to the time `until`, and the ids of its moves in file order.
/// `origin` computes the value that the history keeps for each load.
///
/// A dump alone has no record of forks, so all events are attributed to one process.
pub fn history_of<'a, Origin: Clone>(
    events: impl Iterator<Item = CodeEvent<'a>>,
    until: u64,
    mut origin: impl FnMut(CodeLoad<'a>) -> Origin,
) -> (History<Origin>, Vec<MoveId>) {
    const ONE: AddressSpaceId = AddressSpaceId::ONLY;
    let processes = Processes::new();
    let mut builder = HistoryBuilder::new();
    let mut source = builder.source();
    let mut moves = Vec::new();
    for event in events {
        match event {
            CodeEvent::Load(load) if load.timestamp <= until => {
                let (time, index, died) = (load.timestamp, load.index, load.died());
                let (address, size) = (load.address, load.size);
                let id =
                    source.load(ONE, time, index, Code { address, size, origin: origin(load) });
                if let Some(died) = died.filter(|&died| died <= until) {
                    source.unload(ONE, died, id);
                }
            }
            CodeEvent::Move(moved) if moved.timestamp <= until => {
                let (time, index) = (moved.timestamp, moved.index);
                moves.push(source.moved(ONE, time, index, moved.old_address, moved.new_address));
            }
            _ => {}
        }
    }
    source.finish(&processes);
    (builder.finish(&processes, 0), moves)
}

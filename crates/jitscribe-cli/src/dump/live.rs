//! Which code is where at one moment.

use std::collections::HashMap;

use code_timeline::{CodeId, TimelineBuilder};
use jitdump::{CodeEvent, CodeLoad, CodeMove, Dump};

/// The code that is live at a moment of a dump.
#[derive(Debug)]
pub struct Live<'a> {
    codes: Vec<Placed<'a>>,
    pieces: Vec<code_timeline::Piece>,
}

/// A code where it last was.
#[derive(Debug)]
struct Placed<'a> {
    load: CodeLoad<'a>,
    /// Address of its first byte after all moves.
    start: u64,
}

/// A stretch of addresses and the code that has it. Stretches do not overlap.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'l, 'a> {
    /// First address.
    pub address: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// The code. Its own address is where it was made.
    pub load: &'l CodeLoad<'a>,
    /// Where the code is now.
    pub start: u64,
}

impl<'a> Live<'a> {
    /// Follows the events up to the time `until`, in the order of their times; equal times keep
    /// the order of the file. What cannot be read is told to `damaged`, and left out.
    pub fn at(dump: &Dump<'a>, until: u64, mut damaged: impl FnMut(jitdump::Error)) -> Self {
        let mut events: Vec<CodeEvent<'a>> = Vec::new();
        for event in dump.codes() {
            match event {
                Ok(event) => events.push(event),
                Err(error) => damaged(error),
            }
        }
        let mut events: Vec<(u64, What<'a>)> = events.into_iter().flat_map(what).collect();
        events.retain(|(time, _)| *time <= until);
        events.sort_by_key(|(time, _)| *time);

        let mut codes: Vec<Placed<'a>> = Vec::new();
        let mut by_index: HashMap<u64, CodeId> = HashMap::new();
        let mut by_start: HashMap<u64, CodeId> = HashMap::new();
        let mut builder = TimelineBuilder::new();
        let mut by_offset: HashMap<u64, CodeId> = HashMap::new();
        for (time, what) in events {
            match what {
                What::Event(CodeEvent::Load(load)) => {
                    let Ok(id) = u32::try_from(codes.len()).map(CodeId) else { break };
                    builder.load(load.timestamp, load.address..load.end(), id);
                    by_index.insert(load.index, id);
                    by_start.insert(load.address, id);
                    if load.died().is_some() {
                        by_offset.insert(load.offset, id);
                    }
                    codes.push(Placed { start: load.address, load });
                }
                What::Event(CodeEvent::Move(moved)) => {
                    // Indices are meant to be unique, and are not always.
                    let at = |id: &&CodeId| codes[id.index()].start == moved.old_address;
                    let named = by_index.get(&moved.index).filter(at);
                    let found = named.or_else(|| by_start.get(&moved.old_address).filter(at));
                    let Some(&id) = found else { continue };
                    let code = &mut codes[id.index()];
                    move_code(&mut builder, code, id, &moved);
                    by_start.insert(moved.new_address, id);
                }
                What::Event(CodeEvent::Close { .. }) => {}
                What::Died { offset } => {
                    let Some(&id) = by_offset.get(&offset) else { continue };
                    let code = &codes[id.index()];
                    let end = code.start.saturating_add(code.load.size);
                    builder.unload(time, code.start..end, id);
                }
            }
        }
        let timeline = builder.finish();
        let pieces = timeline.pieces().iter().filter(|piece| piece.until == u64::MAX);
        let pieces = pieces.cloned().collect();
        Self { codes, pieces }
    }

    /// What is live, in the order of the addresses.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_, 'a>> {
        self.pieces.iter().map(|piece| {
            let code = &self.codes[piece.code.index()];
            Piece {
                address: piece.range.start,
                end: piece.range.end,
                load: &code.load,
                start: code.start,
            }
        })
    }
}

fn move_code(builder: &mut TimelineBuilder, code: &mut Placed<'_>, id: CodeId, moved: &CodeMove) {
    let size = code.load.size;
    builder.unload(moved.timestamp, code.start..code.start.saturating_add(size), id);
    code.start = moved.new_address;
    builder.load(moved.timestamp, code.start..code.start.saturating_add(size), id);
}

/// What happens at a time.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the larger one")]
enum What<'a> {
    Event(CodeEvent<'a>),
    /// The code that was loaded at this offset of the file dies.
    Died {
        offset: u64,
    },
}

/// What an event says: of a load, also when the code died.
fn what(event: CodeEvent<'_>) -> impl Iterator<Item = (u64, What<'_>)> {
    let died = match &event {
        CodeEvent::Load(load) => load.died().map(|died| (died, What::Died { offset: load.offset })),
        _ => None,
    };
    [(time(&event), What::Event(event))].into_iter().chain(died)
}

fn time(event: &CodeEvent<'_>) -> u64 {
    match event {
        CodeEvent::Load(load) => load.timestamp,
        CodeEvent::Move(moved) => moved.timestamp,
        CodeEvent::Close { timestamp } => *timestamp,
    }
}

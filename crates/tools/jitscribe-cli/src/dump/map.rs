//! Conversion to a perf map that every reader accepts and whose lines do not overlap.

use std::io::Write;

use code_timeline::{Code, CodeId, HistoryBuilder, LifeId, Piece, Processes, Timeline};
use perf_map::Entry;

use super::input::Input;
use super::live::Live;
use crate::{Error, Result, note};
use jitscribe_inject::heavy::{self, Heavy};

/// Prints the live code of a jitdump as a perf map.
pub fn from_jitdump(live: &Live<'_>, out: &mut impl Write) -> Result<()> {
    let mut line = Vec::new();
    for piece in live.pieces() {
        line.clear();
        perf_map::push_line(&mut line, piece.address, piece.end - piece.address, piece.load.name);
        out.write_all(&line).map_err(Error::Stdout)?;
    }
    Ok(())
}

/// Prints a perf map again without overlaps: where lines overlap, the later line wins.
pub fn from_perf_map(input: &Input, out: &mut impl Write) -> Result<()> {
    let mut told = HistoryBuilder::new();
    for entry in perf_map::entries(input.bytes()) {
        match entry {
            // Lines have no timestamps: a later line covers earlier ones.
            Ok(Entry { address, size, name, .. }) => {
                told.load(LifeId::ONLY, 0, Code { address, size, origin: name });
            }
            Err(error) => note::warning(input.describe(error)),
        }
    }
    let history = told.finish(&Processes::new(), 0);
    let timeline = history.timeline(LifeId::ONLY).map(Timeline::pieces);
    let pieces = timeline.unwrap_or_default().iter();
    let name = |code: CodeId| history.code(code).origin;
    let weight = |code: CodeId| name(code).len() as u64;
    let parts = pieces.clone().map(|piece| weight(piece.code)).fold(0, u64::saturating_add);
    let mut heavy = (!heavy::fits(parts, input.bytes().len() as u64)).then(Heavy::default);
    let mut line = Vec::new();
    for Piece { range, code, .. } in pieces {
        if heavy.as_mut().is_some_and(|heavy| !heavy.is_shown(weight(*code), code.0)) {
            continue;
        }
        line.clear();
        perf_map::push_line(&mut line, range.start, range.end - range.start, name(*code));
        out.write_all(&line).map_err(Error::Stdout)?;
    }
    Ok(())
}

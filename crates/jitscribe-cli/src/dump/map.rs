//! Conversion to a perf map that every reader takes, and whose lines do not overlap.

use std::io::Write;

use super::input::Input;
use super::live::Live;
use crate::{Error, Result, note};

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

/// Prints a perf map anew: of overlapping lines the latest has the address.
pub fn from_perf_map(input: &Input, out: &mut impl Write) -> Result<()> {
    let entries = perf_map::entries(input.bytes())
        .filter_map(|entry| entry.map_err(|error| note::warning(input.told(error))).ok());
    let mut line = Vec::new();
    for piece in perf_map::resolve(entries) {
        line.clear();
        perf_map::push_line(&mut line, piece.address, piece.size, piece.entry.name);
        out.write_all(&line).map_err(Error::Stdout)?;
    }
    Ok(())
}

//! A copy of a dump with source positions, for readers that know no other form of inlined calls.

use alloc::vec::Vec;

use super::{Inlined, WriteError, Writer};
use crate::codes::CodeEvent;
use crate::endian::to_usize;
use crate::reader::Dump;
use crate::source_positions::SourcePositionsBuilder;

/// Returns a copy of `dump` with a record of [source positions](crate::SourcePositions) before each code that has bytes
/// and inlined calls. Everything else is copied unchanged.
///
/// # Errors
/// If a record gets too large.
pub fn with_source_positions(
    dump: &Dump<'_>,
) -> Result<Vec<u8>, WriteError<core::convert::Infallible>> {
    let data = dump.data();
    let mut positions = SourcePositionsBuilder::default();
    let mut writer = Writer::append(Vec::with_capacity(data.len()), dump.header().endian);
    let mut copied = 0;
    for event in dump.codes() {
        let Ok(CodeEvent::Load(load)) = event else { continue };
        if load.is_without_bytes() || load.source_positions().is_some() {
            continue;
        }
        let calls: Vec<Inlined<'_>> = load.inlined().map(Inlined::from).collect();
        if calls.is_empty() {
            continue;
        }
        let lines: Vec<_> = load.lines().collect();
        positions.clear();
        positions.code(load.name, load.address, load.size, &lines, &calls);
        // The records of a code stay together. Those of several may be mixed.
        let first = to_usize(load.place().first()).max(copied);
        writer.sink.extend_from_slice(data.get(copied..first).unwrap_or_default());
        copied = first;
        writer.source_positions(load.timestamp, load.address, &positions)?;
    }
    writer.sink.extend_from_slice(data.get(copied..).unwrap_or_default());
    Ok(writer.into_sink())
}

//! The third reading of a recording: copies it, with the images mapped.

use std::ops::Range;

use perf_data::{Event, Input, Mmap, Record, Writer, kind};

use crate::attribution::interpreted::InterpretedFrames;
use crate::plan::{Place, Plan};
use crate::recording::recording_index::{MapEvent, Ordinal, RecordingIndex};

/// Copies `input` to `writer`, inserts the mapping events at their places, and cuts what the images show out of the
/// other mappings. Frames of the interpreter are given the addresses of the methods that it executes.
pub fn rewrite(
    input: &mut Input,
    writer: &mut Writer<'_>,
    index: &RecordingIndex,
    plan: &Plan,
    events: &[(Place, Vec<u8>)],
    mut interpreted: Option<InterpretedFrames<'_>>,
    tick: impl Fn(u64),
) -> Result<(), perf_data::Error> {
    let behind = events.partition_point(|(place, _)| *place == Place::First);
    let (first, rest) = events.split_at(behind);
    let by_ordinal = rest.partition_point(|(place, _)| matches!(place, Place::After(..)));
    let (mut anchored, mut timed) = rest.split_at(by_ordinal);

    // The mappings that are cut, or of files that are kept elsewhere.
    let is_changed = |map: &&MapEvent| map.renamed || plan.uncovered.parts(map.ordinal).is_some();
    let mut changed: Vec<&MapEvent> = index.maps.iter().filter(is_changed).collect();
    changed.sort_by_key(|map| map.ordinal);
    let mut changed = changed.into_iter().peekable();

    // If records have no times, readers process all events in the order of the file.
    let ordered = input.attrs().list().iter().all(|attr| attr.sample_id_all());
    let mut ordinal: Ordinal = 0;
    let mut latest = 0;
    let mut begun = false;
    while let Some(event) = input.next_event()? {
        // The events that form the header of a pipe come before everything else.
        if !begun && event.kind() < kind::USER_TYPE_START {
            begun = true;
            insert(writer, first)?;
        }
        if !timed.is_empty()
            && let Some(time) = event.timestamp()
        {
            latest = latest.max(time);
        }
        if event.kind() == kind::FINISHED_ROUND || !ordered {
            // After this event, readers accept no event that is older than those from before the previous round.
            let due = timed.partition_point(|(place, _)| place.time() <= latest);
            insert(writer, &timed[..due])?;
            timed = &timed[due..];
        }
        match changed.next_if(|map| map.ordinal == ordinal) {
            Some(map) => {
                let name = map.renamed.then(|| index.name(map));
                let parts = plan.uncovered.parts(map.ordinal);
                let parts = parts.unwrap_or(std::slice::from_ref(&map.range));
                copy_parts(writer, &event, parts, map.time, name)?;
            }
            None => match interpreted.as_mut().and_then(|frames| frames.rewrite(&event)) {
                Some(changed) => writer.insert(changed)?,
                None => writer.write_event(&event)?,
            },
        }
        let here = anchored
            .partition_point(|(place, _)| matches!(place, Place::After(at, _) if *at <= ordinal));
        insert(writer, &anchored[..here])?;
        anchored = &anchored[here..];
        ordinal += 1;
        if ordinal.is_multiple_of(4096) {
            tick(event.offset());
        }
        let is_done = interpreted.is_none() && begun && anchored.is_empty() && timed.is_empty();
        if is_done && changed.peek().is_none() && writer.write_rest(input, &tick)? {
            break;
        }
    }
    if !begun {
        insert(writer, first)?;
    }
    insert(writer, timed)
}

fn insert(writer: &mut Writer<'_>, events: &[(Place, Vec<u8>)]) -> Result<(), perf_data::Error> {
    events.iter().try_for_each(|(_, event)| writer.insert(event))
}

/// Writes the parts of a mapping that no image covers, under another name if the file has one.
fn copy_parts(
    writer: &mut Writer<'_>,
    event: &Event<'_>,
    parts: &[Range<u64>],
    time: u64,
    name: Option<&[u8]>,
) -> Result<(), perf_data::Error> {
    let Ok(Record::Mmap(whole)) = event.record() else { return writer.write_event(event) };
    let mut whole = Mmap { filename: name.unwrap_or(whole.filename), ..whole };
    if let Some(detail) = whole.detail.as_mut().filter(|_| name.is_some()) {
        detail.file = detail.file.of_copy();
    }
    let trailer = event.attrs().trailer(whole.pid, whole.tid, time);
    for part in parts {
        let page_offset = whole.page_offset.wrapping_add(part.start - whole.address);
        let piece = Mmap { address: part.start, len: part.end - part.start, page_offset, ..whole };
        if let Some(piece) = piece.encode(event.endian(), &trailer) {
            writer.insert(&piece)?;
        }
    }
    Ok(())
}

//! Makes a long recording of a short one.

use std::fs::File;
use std::path::Path;

use perf_data::{Attr, Error, Input, Writer, kind, sample_type};

/// Bytes of an event's header.
const EVENT_HEADER: usize = 8;

/// Writes the events of `input` to `output`, and then its samples again and again, each time
/// later, until there are `bytes` of them. The process goes on: EXIT is left out.
///
/// # Errors
/// When the recording cannot be read or written, or has no sample with a time.
pub fn grow(input: &Path, output: &Path, bytes: u64) -> Result<(), Error> {
    let mut input = Input::open(input)?;
    let time_at = input.attrs().list().first().and_then(time_offset);
    let time_at =
        time_at.ok_or_else(|| Error::Read(std::io::Error::other("samples without time")))?;
    let (mut first, mut last, mut size) = (u64::MAX, 0, 0);
    while let Some(event) = input.next_event()? {
        if event.kind() == kind::SAMPLE {
            let time = event.timestamp().unwrap_or(0);
            (first, last) = (first.min(time), last.max(time));
            size += event.bytes().len() as u64;
        }
    }
    let rounds = bytes.div_ceil(size.max(1));
    let length = last.saturating_sub(first) + 1;

    let file = File::create(output).map_err(Error::Write)?;
    let mut writer = Writer::file(file, &input)?;
    let mut moved = Vec::new();
    for round in 0..rounds {
        input.restart();
        while let Some(event) = input.next_event()? {
            match event.kind() {
                kind::EXIT => {}
                kind::SAMPLE => {
                    let time = event.timestamp().unwrap_or(0) + round * length;
                    moved.clear();
                    moved.extend_from_slice(event.bytes());
                    moved[time_at..time_at + 8].copy_from_slice(&time.to_le_bytes());
                    writer.insert(&moved)?;
                }
                kind::FINISHED_ROUND => writer.write_event(&event)?,
                _ if round == 0 => writer.write_event(&event)?,
                _ => {}
            }
        }
    }
    writer.finish()?;
    Ok(())
}

/// Where in a sample its time is.
fn time_offset(attr: &Attr) -> Option<usize> {
    let before = [sample_type::IDENTIFIER, sample_type::IP, sample_type::TID];
    let count = before.iter().filter(|&&field| attr.has(field)).count();
    attr.has(sample_type::TIME).then_some(EVENT_HEADER + 8 * count)
}

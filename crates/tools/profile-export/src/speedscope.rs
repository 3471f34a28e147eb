//! Speedscope's own format: one profile for each thread.
//!
//! speedscope puts samples one behind the other, whatever the time between them was, so idle time is an empty stack. It
//! tells frames apart by nothing but their name and file: see [`Options`] for tiers and lines.

use std::io::{self, Write};

use profile::{Profile, StackId};

use crate::json::{Object, Text, object};
use crate::keys::Keys;
use crate::options::{Label, Options, short};
use crate::rows::Rows;
use crate::timeline::{ThreadSamples, busiest, by_thread, period};

/// Writes a profile for speedscope.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let threads = by_thread(profile, &options.selection);
    let period = period(profile, &options.selection, &threads);
    let keys = Keys::of(profile);
    let mut frames = Frames::default();
    // The file has the frames first.
    for frame in profile.frames() {
        let label = Label { is_inlined: false, ..options.label(profile, frame) };
        frames.of_frame.push(frames.labels.number(label));
    }
    let recording = String::from_utf8_lossy(&profile.about.recording);
    let name = recording.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("profile");
    object(out, |file| {
        file.field("$schema", "https://www.speedscope.app/file-format-schema.json")?;
        file.field("name", name)?;
        file.field("exporter", concat!("jitscribe ", env!("CARGO_PKG_VERSION")))?;
        file.field("activeProfileIndex", busiest(&threads).unwrap_or(0))?;
        file.object("shared", |shared| {
            shared.objects("frames", frames.labels.rows(), |frame, label| {
                write_frame((profile, &keys), label, frame)
            })
        })?;
        file.objects("profiles", &threads, |object, thread| {
            write_thread(profile, &frames, thread, period, object)
        })?;
        Ok(())
    })?;
    out.write_all(b"\n")
}

#[derive(Default)]
struct Frames {
    labels: Rows<Label>,
    of_frame: Vec<u32>,
}

fn write_frame(
    (profile, keys): (&Profile, &Keys),
    label: &Label,
    frame: &mut Object<'_>,
) -> io::Result<()> {
    let function = profile.function(label.function);
    frame.field("name", label.name(profile))?;
    let file = profile.file_of(label.function);
    if !file.is_empty() {
        frame.field("file", Text(profile.text(file)))?;
        for (name, number) in [("line", function.line), ("col", function.column)] {
            if number > 0 {
                frame.field(name, number)?;
            }
        }
    }
    // Not speedscope's, which leaves it out. Its own `key` would merge frames.
    frame.field("functionKey", keys.text(label.function))
}

fn write_thread(
    profile: &Profile,
    frames: &Frames,
    thread: &ThreadSamples,
    period: u64,
    object: &mut Object<'_>,
) -> io::Result<()> {
    let row = profile.thread(thread.thread);
    let process = profile.process(row.process);
    let (name, command) = (short(profile.text(row.name)), short(profile.text(process.name)));
    object.field("type", "sampled")?;
    object.field("name", format!("{command} {} / {name} {}", process.pid, row.tid))?;
    object.field("unit", "nanoseconds")?;
    // Counted from the first sample of all, so that threads can be compared.
    let origin = profile.samples().times().first().map_or(0, |time| time.saturating_sub(period));
    object.field("startValue", thread.start(period).saturating_sub(origin))?;
    object.field("endValue", thread.end().saturating_sub(origin))?;
    let mut stack = Vec::new();
    object.items("samples", thread.spans(period), |out, span| {
        stack.clear();
        if let Some(id) = span.stack {
            stack.extend(numbers(profile, frames, id));
        }
        stack.reverse();
        Ok(serde_json::to_writer(out, &stack)?)
    })?;
    object.list("weights", thread.spans(period).map(|span| span.duration))
}

/// The numbers of the frames of a stack, the innermost first.
fn numbers(profile: &Profile, frames: &Frames, stack: StackId) -> impl Iterator<Item = u32> {
    let stacks = profile.stacks_of(stack);
    stacks.filter_map(|stack| frames.of_frame.get(stack.frame.index()).copied())
}

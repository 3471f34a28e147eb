//! Speedscope's own format: one profile for each thread.
//!
//! speedscope puts samples one behind the other, whatever the time between them was, so idle time is an empty stack. It
//! tells frames apart by nothing but their name and file: see [`Options`] for tiers and lines.

use std::io::{self, Write};

use profile::{Profile, StackId};
use rustc_hash::FxHashMap;

use crate::json::{Object, Text, object};
use crate::options::{Label, Options, short};
use crate::timeline::{ThreadSamples, busiest, by_thread, period};

/// Writes a profile for speedscope.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let threads = by_thread(profile, &options.selection);
    let period = period(profile, &options.selection, &threads);
    let mut frames = Frames::default();
    // The file has the frames first.
    for frame in profile.frames() {
        frames.add(Label { is_inlined: false, ..options.label(profile, frame) });
    }
    let recording = String::from_utf8_lossy(&profile.about.recording);
    let name = recording.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("profile");
    object(out, |file| {
        file.field("$schema", "https://www.speedscope.app/file-format-schema.json")?;
        file.field("name", name)?;
        file.field("exporter", concat!("jitscribe ", env!("CARGO_PKG_VERSION")))?;
        file.field("activeProfileIndex", busiest(&threads).unwrap_or(0))?;
        file.object("shared", |shared| {
            shared.objects("frames", &frames.labels, |frame, label| {
                write_frame(profile, label, frame)
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
    labels: Vec<Label>,
    numbers: FxHashMap<Label, u32>,
    of_frame: Vec<u32>,
}

impl Frames {
    fn add(&mut self, label: Label) {
        let next = u32::try_from(self.labels.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(label).or_insert(next);
        if number == next {
            self.labels.push(label);
        }
        self.of_frame.push(number);
    }
}

fn write_frame(profile: &Profile, label: &Label, frame: &mut Object<'_>) -> io::Result<()> {
    let function = profile.function(label.function);
    frame.field("name", label.name(profile))?;
    if !function.file.is_empty() {
        frame.field("file", Text(profile.text(function.file)))?;
        for (name, number) in [("line", function.line), ("col", function.column)] {
            if number > 0 {
                frame.field(name, number)?;
            }
        }
    }
    Ok(())
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
    let mut next = Some(stack);
    std::iter::from_fn(move || {
        let stack = profile.stack(next?);
        next = stack.parent;
        frames.of_frame.get(stack.frame.index()).copied()
    })
}

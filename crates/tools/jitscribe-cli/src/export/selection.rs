//! Which samples of a recording are exported.

use profile::{EventId, Profile, Selection, ThreadId};
use profile_export::{Format, events};

use crate::{Error, Result, note, text};

/// What the options ask for or, if they do not, what the format can hold. Says what is left out then.
pub fn of(
    profile: &Profile,
    event: Option<&str>,
    tids: &[u32],
    format: Format,
) -> Result<Selection> {
    let mut selection = Selection::default();
    if !tids.is_empty() {
        let numbered = (0..).map(ThreadId).zip(profile.threads());
        let asked = numbered.filter(|(_, thread)| tids.contains(&thread.tid));
        selection.threads = Some(asked.map(|(id, _)| id).collect());
        for tid in tids {
            if !profile.threads().iter().any(|thread| thread.tid == *tid) {
                return Err(Error::Refused(format!(
                    "the recording has no thread {tid}; threads with samples: {}",
                    threads(profile)
                )));
            }
        }
    }
    let counts = events(profile, &selection);
    selection.event = match event {
        Some(name) => Some(named(profile, name, &counts)?),
        None if format.has_events() => None,
        None => counts.first().map(|&(event, _)| event),
    };
    if let (None, Some(&(first, _)), true) = (event, counts.first(), selection.event.is_some())
        && counts.len() > 1
    {
        note::warning(format_args!(
            "the format has one event: exported {}; choose another with --event: {}",
            event_name(profile, first),
            list(profile, counts.get(1..).unwrap_or_default())
        ));
    }
    if counts.is_empty() || selection.of(profile).next().is_none() {
        return Err(Error::Refused("no samples of these threads and this event".into()));
    }
    if format.has_one_thread() {
        warn_of_threads(profile, &selection);
    }
    Ok(selection)
}

fn event_name(profile: &Profile, event: EventId) -> String {
    text::name(profile.text(profile.event(event).name)).to_string()
}

fn list(profile: &Profile, events: &[(EventId, u64)]) -> String {
    let names: Vec<_> = events.iter().map(|&(event, _)| event_name(profile, event)).collect();
    names.join(", ")
}

fn named(profile: &Profile, name: &str, counts: &[(EventId, u64)]) -> Result<EventId> {
    // `cycles` is also `cycles:u`, if there is no other.
    let matches = |event: &EventId, exact: bool| {
        let full = profile.text(profile.event(*event).name);
        let end = full.iter().position(|byte| *byte == b':').filter(|_| !exact);
        full.get(..end.unwrap_or(full.len())) == Some(name.as_bytes())
    };
    let find = |exact| counts.iter().map(|&(event, _)| event).find(|it| matches(it, exact));
    find(true).or_else(|| find(false)).ok_or_else(|| {
        let all = list(profile, counts);
        Error::Refused(format!(
            "no samples of the event {}; there are: {all}",
            text::name(name.as_bytes())
        ))
    })
}

/// Threads with samples, those with the most first, and how many these are.
fn by_samples(profile: &Profile, selection: &Selection) -> Vec<(u32, usize)> {
    let mut counts: Vec<(u32, usize)> =
        profile.threads().iter().map(|thread| (thread.tid, 0)).collect();
    for sample in selection.of(profile) {
        if let Some((_, count)) = counts.get_mut(sample.thread.index()) {
            *count += 1;
        }
    }
    counts.retain(|(_, count)| *count > 0);
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn threads(profile: &Profile) -> String {
    let all = by_samples(profile, &Selection::default());
    let shown: Vec<_> = all.iter().take(10).map(|(tid, _)| tid.to_string()).collect();
    let more = if all.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

fn warn_of_threads(profile: &Profile, selection: &Selection) {
    let counts = by_samples(profile, selection);
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    if let [(tid, count), _, ..] = counts[..] {
        note::warning(format_args!(
            "the format has one thread: exported {tid}, {count} of {all} samples; choose another with --tid"
        ));
    }
}

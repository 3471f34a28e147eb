//! The options that select samples of a recording, and what they select: the same for all verbs that show recordings.

use std::ops::Range;

use profile::{EventId, Profile, Selection, Thread, ThreadId};

use crate::{Error, Result, note, text};

/// Which samples are shown.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectionArgs {
    /// Only samples of this event, for example `cycles` [default: that with the most samples; export --pprof and --otlp: all]
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Only samples of this process
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Only samples of processes with this name
    #[arg(long, value_name = "NAME")]
    comm: Vec<String>,
    /// Only samples of this thread, by its id or its name
    #[arg(long, visible_alias = "tid", value_name = "TID|NAME")]
    thread: Vec<String>,
    /// Only samples of a span of time: seconds since the first sample, or percentages (10%,20%). Either end may be left out
    #[arg(long, value_name = "FROM,TO")]
    time: Option<String>,
}

impl SelectionArgs {
    /// Whether samples are left out on purpose.
    pub fn is_part(&self) -> bool {
        let Self { event, pid, comm, thread, time } = self;
        event.is_some()
            || time.is_some()
            || !pid.is_empty()
            || !comm.is_empty()
            || !thread.is_empty()
    }

    /// What is selected of a recording: samples of one event, that with the most unless the user names another.
    pub fn of(&self, profile: &Profile) -> Result<Selection> {
        let (mut selection, events) = self.named(profile)?;
        if let (None, [(most, _), others @ ..]) = (selection.event, events.as_slice()) {
            selection.event = Some(*most);
            if !others.is_empty() {
                note::say(format_args!(
                    "event {}; choose another with --event: {}",
                    event_name(profile, *most),
                    list(profile, others)
                ));
            }
        }
        Ok(selection)
    }

    /// The same with the samples of all events, unless the user names one.
    pub fn of_all_events(&self, profile: &Profile) -> Result<Selection> {
        self.named(profile).map(|(selection, _)| selection)
    }

    /// What the user has named, and the events there.
    fn named(&self, profile: &Profile) -> Result<(Selection, Vec<(EventId, u64)>)> {
        let mut selection = Selection::default();
        let threads = self.threads(profile);
        if threads.len() < profile.threads().len() {
            selection.threads = Some(threads);
        }
        if let Some(time) = &self.time {
            selection.times = Some(span(time, profile.samples().times())?);
        }
        let events = selection.events(profile);
        if events.is_empty() {
            return Err(Error::Refused(format!(
                "no samples are selected; threads with samples: {}",
                with_samples(profile)
            )));
        }
        if let Some(name) = &self.event {
            selection.event = Some(named_event(profile, name, &events)?);
        }
        Ok((selection, events))
    }

    fn threads(&self, profile: &Profile) -> Vec<ThreadId> {
        let is_selected = |thread: &Thread| {
            let process = profile.process(thread.process);
            let is_named = |name, wanted: &String| profile.text(name) == wanted.as_bytes();
            let is_thread =
                |wanted: &String| wanted.parse() == Ok(thread.tid) || is_named(thread.name, wanted);
            (self.pid.is_empty() || self.pid.contains(&process.pid))
                && (self.comm.is_empty() || self.comm.iter().any(|it| is_named(process.name, it)))
                && (self.thread.is_empty() || self.thread.iter().any(is_thread))
        };
        let numbered = (0..).map(ThreadId).zip(profile.threads());
        numbered.filter(|(_, thread)| is_selected(thread)).map(|(id, _)| id).collect()
    }
}

fn named_event(profile: &Profile, name: &str, counts: &[(EventId, u64)]) -> Result<EventId> {
    // `cycles` is also `cycles:u`, if there is no other.
    let matches = |event: EventId, exact: bool| {
        let full = profile.text(profile.event(event).name);
        let end = full.iter().position(|byte| *byte == b':').filter(|_| !exact);
        full.get(..end.unwrap_or(full.len())) == Some(name.as_bytes())
    };
    let find = |exact| counts.iter().map(|&(event, _)| event).find(|it| matches(*it, exact));
    find(true).or_else(|| find(false)).ok_or_else(|| {
        Error::Refused(format!(
            "no samples of the event {}; there are: {}",
            text::name(name.as_bytes()),
            list(profile, counts)
        ))
    })
}

fn event_name(profile: &Profile, event: EventId) -> String {
    text::name(profile.text(profile.event(event).name)).to_string()
}

fn list(profile: &Profile, events: &[(EventId, u64)]) -> String {
    let names: Vec<_> = events.iter().map(|&(event, _)| event_name(profile, event)).collect();
    names.join(", ")
}

/// Most threads in a message.
const MOST_THREADS: usize = 10;

/// The threads that have samples, for a message.
fn with_samples(profile: &Profile) -> String {
    let threads = Selection::default().threads_with_samples(profile);
    let shown = threads.iter().take(MOST_THREADS).map(|&(id, _)| {
        let thread = profile.thread(id);
        format!("{} {}", thread.tid, text::name(profile.text(thread.name)))
    });
    let shown: Vec<_> = shown.collect();
    let more = if threads.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

/// A span of time in the recording's clock.
fn span(typed: &str, times: &[u64]) -> Result<Range<u64>> {
    let refused = || {
        Error::Usage(format!(
            "--time {}: seconds since the first sample or percentages, for example 1.5,2 or 10%,20%",
            text::name(typed.as_bytes())
        ))
    };
    let (from, to) = typed.split_once(',').ok_or_else(refused)?;
    let (first, last) = match (times.first(), times.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => (0, 0),
    };
    let at = |typed: &str, default: u64| {
        let typed = typed.trim();
        if typed.is_empty() {
            return Ok(default);
        }
        let (number, unit) = match typed.strip_suffix('%') {
            #[expect(clippy::cast_precision_loss, reason = "a percentage of a time is not exact")]
            Some(percentage) => (percentage, last.saturating_sub(first) as f64 / 100.0),
            None => (typed.strip_suffix('s').unwrap_or(typed), 1e9),
        };
        let number: f64 = number.trim().parse().map_err(|_| refused())?;
        if !number.is_finite() || number < 0.0 {
            return Err(refused());
        }
        // Rounded, so that 100 % is the last sample. What is too large for the type is the largest number.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let offset = (number * unit).round() as u64;
        Ok(first.saturating_add(offset))
    };
    let end = last.saturating_add(1);
    let (from, to) = (at(from, first)?, at(to, end)?);
    // Up to the last sample, it is included.
    let to = if to == last { end } else { to };
    if from >= to {
        return Err(refused());
    }
    Ok(from..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        let times = [1_000_000_000, 2_000_000_000, 5_000_000_000];
        let of = |typed| span(typed, &times).ok();
        assert_eq!(of("0.5,2"), Some(1_500_000_000..3_000_000_000));
        assert_eq!(of("1s,"), Some(2_000_000_000..5_000_000_001));
        assert_eq!(of(",25%"), Some(1_000_000_000..2_000_000_000));
        assert_eq!(of("50%,100%"), Some(3_000_000_000..5_000_000_001));
        for refused in ["1", "2,1", "a,b", "-1,2", "nan,1", "1,inf", ""] {
            assert_eq!(of(refused), None, "{refused}");
        }
    }
}

//! What samples stand for: time, or events.

use profile::{EventId, Profile, Selection};

/// What a value of a sample counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The sample's weight in nanoseconds: its event is a clock.
    Clock,
    /// Nanoseconds, the same for each sample.
    Nanoseconds(u64),
    /// Events of the processor or of the kernel, by the sample's weight.
    Events,
}

/// Whether the weights of an event's samples are nanoseconds.
fn is_clock(profile: &Profile, event: EventId) -> bool {
    let name = profile.text(profile.event(event).name);
    let end = name.iter().position(|byte| matches!(byte, b':' | b'/')).unwrap_or(name.len());
    matches!(name.get(..end), Some(b"cpu-clock" | b"task-clock"))
}

/// What samples of an event stand for.
pub fn unit(profile: &Profile, event: EventId) -> Unit {
    // A weight of 1 says that the recording has no periods.
    let samples = profile.samples().iter();
    let has_weights = || samples.take(64).any(|sample| sample.event == event && sample.weight > 1);
    match profile.about.frequency.filter(|&frequency| frequency > 0) {
        _ if is_clock(profile, event) && has_weights() => Unit::Clock,
        Some(frequency) => Unit::Nanoseconds(1_000_000_000_u64.checked_div(frequency).unwrap_or(0)),
        None => Unit::Events,
    }
}

/// How many nanoseconds a sample of an event stands for on average; `None` if that is not known.
pub fn nanoseconds_each(profile: &Profile, selection: &Selection, event: EventId) -> Option<u64> {
    match unit(profile, event) {
        Unit::Nanoseconds(each) => Some(each),
        Unit::Events => None,
        Unit::Clock => {
            let of_event = selection.of(profile).filter(|sample| sample.event == event);
            let (count, sum) = of_event.fold((0_u64, 0_u64), |(count, sum), sample| {
                (count.saturating_add(1), sum.saturating_add(sample.weight))
            });
            sum.checked_div(count)
        }
    }
}

impl Unit {
    /// The value of a sample with this weight.
    pub fn value(&self, weight: u64) -> u64 {
        match self {
            Self::Nanoseconds(each) => *each,
            Self::Clock | Self::Events => weight,
        }
    }
}

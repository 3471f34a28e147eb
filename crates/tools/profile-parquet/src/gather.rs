//! From the samples of a profile to rows, by service and day.

use std::collections::{BTreeMap, BTreeSet};

use profile::{CodeId, EventId, FunctionId, ProcessId, Profile, StackId, StringId};

use crate::calendar::Utc;
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::options::Options;

/// The rows of one service on one day.
#[derive(Debug, Default)]
pub struct Part {
    pub samples: BTreeMap<SampleKey, Samples>,
    /// By key.
    pub stacks: BTreeMap<i64, StackId>,
    pub functions: BTreeSet<FunctionId>,
    /// The codes, and whether each was compiled on this day.
    pub codes: BTreeMap<CodeId, bool>,
}

/// A row of the table of samples. Rows are sorted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleKey {
    /// In seconds since 1970.
    pub window: i64,
    pub code: i64,
    pub function: i64,
    pub generation: u32,
    pub stack: i64,
    pub tier: StringId,
    pub event: EventId,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Samples {
    pub count: i64,
    pub weight: i64,
}

/// The parts by service and day.
pub type Parts = BTreeMap<(String, Utc), Part>;

/// Gathers the selected samples.
pub fn parts(profile: &Profile, keys: &mut Keys<'_>, options: &Options) -> Result<Parts> {
    let mut parts = Parts::new();
    let window = i64::from(options.window.max(1));
    let mut samples = options.selection.of(profile).peekable();
    if samples.peek().is_none() {
        return Ok(parts);
    }
    let to_utc = profile.about.to_utc.or(options.to_utc).ok_or(Error::NoTime)?;
    let seconds = |time: u64| {
        let time = i128::from(time).saturating_add(to_utc.into()).div_euclid(1_000_000_000);
        i64::try_from(time).unwrap_or(i64::MAX)
    };
    for sample in samples {
        let Some(frame) = profile.frames_of(sample.stack).next() else { continue };
        let begin = seconds(sample.time).div_euclid(window).saturating_mul(window);
        let service = service(profile, profile.thread(sample.thread).process, options);
        let part = parts.entry((service, Utc::new(begin).day())).or_default();
        let code = frame.code.map(|id| (id, profile.code(id)));
        let stack = keys.stack(sample.stack);
        let key = SampleKey {
            window: begin,
            code: code.map_or(0, |(id, _)| keys.code(id)),
            function: keys.function(frame.function),
            generation: code.map_or(0, |(_, code)| code.generation),
            stack,
            tier: code.map_or(StringId::EMPTY, |(_, code)| code.tier),
            event: sample.event,
        };
        let row = part.samples.entry(key).or_default();
        row.count = row.count.saturating_add(1);
        row.weight = row.weight.saturating_add(i64::try_from(sample.weight).unwrap_or(i64::MAX));
        if part.stacks.insert(stack, sample.stack).is_none() {
            let frames = profile.frames_of(sample.stack);
            part.functions.extend(frames.map(|frame| frame.function));
        }
        if let Some((id, code)) = code {
            part.codes.entry(id).or_insert(false);
            part.functions.insert(code.function);
        }
    }
    add_compilations(profile, options, seconds, &mut parts);
    Ok(parts)
}

/// Adds the compilations of functions that were sampled, on the day of each or, if that has no samples, on the service's first day.
fn add_compilations(
    profile: &Profile,
    options: &Options,
    seconds: impl Fn(u64) -> i64,
    parts: &mut Parts,
) {
    let mut days: BTreeMap<String, Vec<Utc>> = BTreeMap::new();
    for (service, day) in parts.keys() {
        days.entry(service.clone()).or_default().push(*day);
    }
    for (id, code) in profile.numbered_codes() {
        let Some(process) = code.process else { continue };
        let service = service(profile, process, options);
        let Some(days) = days.get(&service) else { continue };
        let loaded = code.loaded.map(|loaded| Utc::new(seconds(loaded)).day());
        let day = loaded.filter(|day| days.contains(day)).or_else(|| days.first().copied());
        let part = day.and_then(|day| parts.get_mut(&(service, day)));
        if let Some(part) = part {
            part.codes.insert(id, true);
            part.functions.insert(code.function);
        }
    }
}

fn service(profile: &Profile, process: ProcessId, options: &Options) -> String {
    match &options.service {
        Some(service) => service.clone(),
        None => {
            let name = profile.text(profile.process(process).name);
            String::from_utf8_lossy(name).into_owned()
        }
    }
}

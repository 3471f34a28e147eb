//! What a recording has of jitted code by itself: addresses.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use jitscribe_inject::{Guess, Guesses, Recording, SampleEvent};
use profile_text::{Line, Style};

use crate::{Result, recorded, text};

/// The addresses in user code with the most samples, as lines of a table.
pub fn most_sampled(path: &Path, most: usize) -> Result<Vec<Line>> {
    let files = recorded::believed(path);
    let mut recording = Recording::open(path, &|_| {})?;
    let mut all = 0_u64;
    let mut counts: BTreeMap<u64, (u64, String)> = BTreeMap::new();
    recording.each_sample(&files, Guesses::One(Guess::AsPerf), &|_| {}, &mut |memory, event| {
        let SampleEvent::Sample(sample) = event else { return };
        all += 1;
        let (Some(&address), Some(space)) = (sample.user.first(), sample.space) else { return };
        let (count, _) = counts.entry(address).or_insert_with(|| {
            let at = memory.at(space, address, sample.time);
            let name =
                at.name.filter(|_| !at.is_anonymous).map(|name| text::name(name).to_string());
            (0, name.unwrap_or_else(|| "[anonymous memory]".into()))
        });
        *count += 1;
    })?;
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(address, (count, _))| (Reverse(count), address));
    let shown = counts.into_iter().take(most).map(|(address, (count, place))| {
        let share = text::percent(count, all);
        Line::of(Style::Plain, format!("{share:>9}  {count:>6}  {address:#018x}  {place}"))
    });
    Ok(shown.collect())
}

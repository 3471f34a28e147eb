//! Two profiles, function by function.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::count::Count;
use crate::function_key::FunctionKey;
use crate::id::FunctionId;
use crate::profile::Profile;
use crate::sample::SampleRow;
use crate::sampled_stack::SampledStack;
use crate::significance::{binomial_exact, fisher_exact, holm};

/// Functions of two profiles, and how many samples each has in both.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The functions that were sampled, those whose share changed most first.
    pub functions: Vec<ComparedFunction>,
    /// Number of samples in each profile.
    pub samples: [u64; 2],
    /// Of each function of each profile, the place of its row.
    places: [Vec<Option<usize>>; 2],
}

/// A function in two profiles.
#[derive(Clone, Debug)]
pub struct ComparedFunction {
    /// What it is recognized by.
    pub key: FunctionKey,
    /// One of its rows in each profile; `None` if it is not there.
    pub function: [Option<FunctionId>; 2],
    /// Its samples in each profile.
    pub count: [Count; 2],
    /// The probability of a difference like this by chance, if there is none in truth. It takes into account that many functions were compared.
    pub by_chance: f64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compared {
    /// Samples in the function itself.
    #[default]
    Own,
    /// Samples in the function or in what it called.
    Total,
}

/// What a number of samples is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Measure {
    /// All samples of the recording: whether the function's share changed. The recordings may have any length.
    #[default]
    Share,
    /// Time: whether the function took longer in all. Both recordings are of the same work; the number is what a sample of the first stands for in
    /// time, divided by what one of the second stands for.
    Time(f64),
}

impl Measure {
    /// The change from one number of samples to the other: in parts of all samples, or in samples of the second recording.
    #[must_use]
    pub fn change(self, samples: [u64; 2], all: [u64; 2]) -> f64 {
        let [before, after] = samples.map(real);
        match self {
            Self::Share => {
                let [all_before, all_after] = all.map(|all| real(all.max(1)));
                after / all_after - before / all_before
            }
            Self::Time(ratio) => after - before * ratio,
        }
    }

    /// The probability of a difference like this between two numbers of samples, if there is none in truth.
    #[must_use]
    pub fn by_chance(self, [before, after]: [u64; 2], [all_before, all_after]: [u64; 2]) -> f64 {
        match self {
            Self::Share => fisher_exact(before, all_before, after, all_after),
            // Events of two rates, in the ratio of the rates if nothing changed.
            Self::Time(ratio) => binomial_exact(before, after, 1.0 / (1.0 + ratio)),
        }
    }
}

impl ComparedFunction {
    /// Its numbers of samples.
    #[must_use]
    pub fn samples(&self, compared: Compared) -> [u64; 2] {
        self.count.map(|count| match compared {
            Compared::Own => count.own,
            Compared::Total => count.total,
        })
    }
}

impl Comparison {
    /// Compares the samples of two profiles.
    #[must_use]
    pub fn of(
        profiles: [&Profile; 2],
        samples: [&mut dyn Iterator<Item = SampleRow>; 2],
        compared: Compared,
        measure: Measure,
    ) -> Self {
        let matched = Matched::of(profiles);
        let mut rows: Vec<ComparedFunction> = matched
            .keys
            .into_iter()
            .map(|key| ComparedFunction {
                key,
                function: [None; 2],
                count: [Count::default(); 2],
                by_chance: 1.0,
            })
            .collect();
        let mut all = [0_u64; 2];
        let sides = profiles.into_iter().zip(samples).zip(&matched.groups).zip(&mut all);
        for (side, (((profile, samples), groups), all)) in sides.enumerate() {
            for (function, group) in (0..).map(FunctionId).zip(groups) {
                let row = rows.get_mut(*group).and_then(|row| row.function.get_mut(side));
                if let Some(row) = row {
                    row.get_or_insert(function);
                }
            }
            let mut seen = vec![0_u32; rows.len()];
            for (round, sampled) in (1..).zip(SampledStack::all(profile, samples)) {
                *all = all.saturating_add(sampled.samples);
                let (mut own, total) = (sampled.own(), sampled.total());
                for frame in profile.frames_of(sampled.stack) {
                    let group = groups.get(frame.function.index()).copied().unwrap_or(usize::MAX);
                    let row = rows.get_mut(group).and_then(|row| row.count.get_mut(side));
                    let (Some(count), Some(seen)) = (row, seen.get_mut(group)) else { continue };
                    count.add(own);
                    if std::mem::replace(seen, round) != round {
                        count.add(total);
                    }
                    own = Count::default();
                }
            }
        }
        let groups = rows.len();
        let mut rows: Vec<(usize, ComparedFunction)> = rows.into_iter().enumerate().collect();
        rows.retain(|(_, row)| row.samples(compared) != [0; 2]);
        let probabilities: Vec<f64> =
            rows.iter().map(|(_, row)| measure.by_chance(row.samples(compared), all)).collect();
        for ((_, row), corrected) in rows.iter_mut().zip(holm(&probabilities)) {
            row.by_chance = corrected;
        }
        let change = |row: &ComparedFunction| measure.change(row.samples(compared), all).abs();
        rows.sort_by(|(_, a), (_, b)| {
            change(b).total_cmp(&change(a)).then_with(|| a.key.cmp(&b.key))
        });
        let mut places = vec![None; groups];
        for (place, (group, _)) in rows.iter().enumerate() {
            if let Some(row) = places.get_mut(*group) {
                *row = Some(place);
            }
        }
        let place = |group: usize| places.get(group).copied().flatten();
        let places = matched.groups.map(|groups| groups.into_iter().map(place).collect());
        let functions = rows.into_iter().map(|(_, row)| row).collect();
        Self { functions, samples: all, places }
    }

    /// The place in [`Self::functions`] of a function of the first profile (`side` 0) or the second (1). `None` if it was not sampled.
    #[must_use]
    pub fn place_of(&self, side: usize, function: FunctionId) -> Option<usize> {
        self.places.get(side)?.get(function.index()).copied().flatten()
    }
}

/// Which functions of two profiles are the same.
struct Matched {
    keys: Vec<FunctionKey>,
    /// Of each function of each profile, the place of its key.
    groups: [Vec<usize>; 2],
}

impl Matched {
    fn of(profiles: [&Profile; 2]) -> Self {
        let mut places: HashMap<FunctionKey, usize, FxBuildHasher> = HashMap::default();
        let mut keys = Vec::new();
        let mut groups = profiles.map(|profile| {
            let functions = profile.functions().iter();
            let keyed = functions.map(|function| {
                let key = FunctionKey::of(profile, function).without_version();
                *places.entry(key).or_insert_with_key(|key| {
                    keys.push(key.clone());
                    keys.len().saturating_sub(1)
                })
            });
            keyed.collect::<Vec<usize>>()
        });
        // Functions of one profile only: the same under a less exact key, if that leaves no choice.
        for less in [FunctionKey::without_place, FunctionKey::without_file] {
            let mut sides = [vec![false; keys.len()], vec![false; keys.len()]];
            for (groups, has) in groups.iter().zip(&mut sides) {
                for group in groups {
                    if let Some(has) = has.get_mut(*group) {
                        *has = true;
                    }
                }
            }
            let [has_before, has_after] = &sides;
            let mut alone: HashMap<FunctionKey, [Vec<usize>; 2], FxBuildHasher> =
                HashMap::default();
            for (place, ((key, before), after)) in
                keys.iter().zip(has_before).zip(has_after).enumerate()
            {
                let [of_before, of_after] = match (before, after) {
                    (true, false) | (false, true) => alone.entry(less(key)).or_default(),
                    _ => continue,
                };
                if *before { of_before.push(place) } else { of_after.push(place) }
            }
            let mut joined: Vec<usize> = (0..keys.len()).collect();
            for candidates in alone.values() {
                if let [[before], [after]] = candidates.each_ref().map(Vec::as_slice)
                    && let Some(place) = joined.get_mut(*after)
                {
                    *place = *before;
                }
            }
            for group in groups.iter_mut().flatten() {
                *group = joined.get(*group).copied().unwrap_or(*group);
            }
        }
        Self { keys, groups }
    }
}

/// Counts of samples are far below 2^53, where this is exact.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Frame, Function, FunctionKind, ThreadId};

    /// A profile of functions (name, file, line) with numbers of samples.
    fn made(functions: &[(&str, &str, u32, u64)]) -> Profile {
        let mut builder = Builder::new();
        let event = builder.event(b"cycles");
        let process = builder.process(1, b"made");
        builder.thread(process, 1, b"made");
        let main = builder.string(b"main");
        let main = builder.function(Function::new(main, FunctionKind::Native));
        let main = builder.frame(Frame::new(main));
        let main = builder.stack(None, main);
        for (name, file, line, samples) in functions {
            let mut function = Function::new(builder.string(name.as_bytes()), FunctionKind::Jitted);
            function.file = builder.string(file.as_bytes());
            function.line = *line;
            let function = builder.function(function);
            let frame = builder.frame(Frame::new(function));
            let stack = builder.stack(Some(main), frame);
            for time in 0..*samples {
                builder.sample(SampleRow { time, thread: ThreadId(0), event, weight: 1, stack });
            }
        }
        builder.finish()
    }

    fn compared(before: &Profile, after: &Profile, compared: Compared) -> Comparison {
        let samples: [&mut dyn Iterator<Item = SampleRow>; 2] =
            [&mut before.samples().iter(), &mut after.samples().iter()];
        Comparison::of([before, after], samples, compared, Measure::Share)
    }

    #[test]
    fn functions_are_matched_by_what_they_are() {
        let before = made(&[
            ("run", "/srv/app-1.0.0/a.js", 10, 50),
            ("moved", "/srv/app-1.0.0/a.js", 20, 30),
            ("anonymous", "/srv/app-1.0.0/a.js", 30, 5),
            ("anonymous", "/srv/app-1.0.0/a.js", 40, 6),
            ("App$$Lambda$3/0x0000000800c03000.get", "", 0, 7),
            ("gone", "", 0, 2),
        ]);
        let after = made(&[
            ("run", "/srv/app-1.2.0/a.js", 10, 50),
            ("moved", "/srv/app-1.2.0/a.js", 21, 60),
            ("anonymous", "/srv/app-1.2.0/a.js", 31, 5),
            ("anonymous", "/srv/app-1.2.0/a.js", 41, 6),
            ("App$$Lambda$9/0x0000000800c99000.get", "", 0, 7),
            ("new", "", 0, 3),
        ]);
        let comparison = compared(&before, &after, Compared::Own);
        let mut rows: Vec<(String, [u64; 2])> = comparison
            .functions
            .iter()
            .map(|row| (String::from_utf8_lossy(&row.key.name).into(), row.samples(Compared::Own)))
            .collect();
        rows.sort();
        let expected = [
            ("App$$Lambda.get", [7, 7]),
            // Which is which is not known, so that they are not matched.
            ("anonymous", [0, 5]),
            ("anonymous", [0, 6]),
            ("anonymous", [5, 0]),
            ("anonymous", [6, 0]),
            ("gone", [2, 0]),
            ("moved", [30, 60]),
            ("new", [0, 3]),
            ("run", [50, 50]),
        ];
        assert_eq!(rows, expected.map(|(name, samples)| (name.to_owned(), samples)));
        assert_eq!(comparison.samples, [100, 131]);
    }

    #[test]
    fn chance_is_told_from_change() {
        let before = made(&[("a", "", 0, 500), ("b", "", 0, 300), ("c", "", 0, 200)]);
        let other_run = made(&[("a", "", 0, 520), ("b", "", 0, 290), ("c", "", 0, 190)]);
        let slower = made(&[("a", "", 0, 500), ("b", "", 0, 300), ("c", "", 0, 400)]);
        let lowest = |after: &Profile| {
            let comparison = compared(&before, after, Compared::Own);
            let first = &comparison.functions[0];
            (first.key.name.clone(), first.by_chance)
        };
        assert!(lowest(&other_run).1 > 0.5);
        let (name, by_chance) = lowest(&slower);
        assert_eq!(name, b"c");
        assert!(by_chance < 1e-10);
        // main is in all samples of both.
        let totals = compared(&before, &slower, Compared::Total);
        let main = totals.functions.iter().find(|row| row.key.name == b"main").expect("main");
        assert_eq!((main.count[1].total, main.by_chance), (1200, 1.0));
    }

    #[test]
    fn time_is_compared_where_the_work_is_the_same() {
        // The second recording has half as many samples in the same time.
        let before = made(&[("a", "", 0, 800), ("b", "", 0, 200)]);
        let after = made(&[("a", "", 0, 400), ("b", "", 0, 200)]);
        let samples: [&mut dyn Iterator<Item = SampleRow>; 2] =
            [&mut before.samples().iter(), &mut after.samples().iter()];
        let measure = Measure::Time(0.5);
        let comparison = Comparison::of([&before, &after], samples, Compared::Own, measure);
        let by_chance: Vec<f64> = comparison.functions.iter().map(|row| row.by_chance).collect();
        assert_eq!(comparison.functions[0].key.name, b"b");
        assert!(by_chance[0] < 1e-6 && by_chance[1] == 1.0, "{by_chance:?}");
    }

    /// Functions with these numbers of samples, drawn at random by their weights.
    fn drawn(random: &mut impl FnMut() -> u64, weights: &[u64], samples: u32) -> Profile {
        let all: u64 = weights.iter().sum();
        let mut counts = vec![0_u64; weights.len()];
        for _ in 0..samples {
            let mut rest = random() % all;
            for (weight, count) in weights.iter().zip(&mut counts) {
                if rest < *weight {
                    *count += 1;
                    break;
                }
                rest -= weight;
            }
        }
        let names: Vec<String> = (0..weights.len()).map(|place| format!("f{place}")).collect();
        let rows: Vec<_> =
            names.iter().zip(&counts).map(|(name, count)| (name.as_str(), "", 0, *count)).collect();
        made(&rows)
    }

    /// Of many pairs of recordings of one program, few have a function that is called changed; one that became slower is found in all.
    #[test]
    fn recordings_of_one_program_differ_by_chance_only() {
        let mut state = 20_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let weights: Vec<u64> = (1..=50).map(|rank| 100_000 / rank).collect();
        let mut slower = weights.clone();
        slower[3] *= 2;
        let (mut wrong, mut found) = (0, 0);
        for _ in 0..100 {
            let before = drawn(&mut random, &weights, 2_000);
            let same = compared(&before, &drawn(&mut random, &weights, 3_000), Compared::Own);
            wrong += u32::from(same.functions.iter().any(|row| row.by_chance < 0.05));
            let other = compared(&before, &drawn(&mut random, &slower, 3_000), Compared::Own);
            let row = other.functions.iter().find(|row| row.key.name == b"f3").expect("f3");
            found += u32::from(row.by_chance < 0.05 && row.count[1].own > row.count[0].own);
        }
        // Five are expected.
        assert!(wrong <= 10, "{wrong} of 100 pairs");
        assert_eq!(found, 100);
    }
}

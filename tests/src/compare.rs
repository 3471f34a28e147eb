//! Two readings of one recording, sample by sample.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use crate::chains::Chain;
use crate::sample::{Sample, escaped, is_perf_map};

/// How many differences a failure shows.
const SHOWN: usize = 12;

/// The samples of a recording as two programs resolved them, paired.
///
/// A sample is known again by its thread, time and address; where several agree in all three, by their order.
#[derive(Debug, Default)]
pub struct Comparison<'a> {
    /// Each sample of the reference with ours.
    pub pairs: Vec<(&'a Sample, &'a Sample)>,
    /// Samples that ours lost.
    pub missing: Vec<&'a Sample>,
    /// Samples that only ours has.
    pub extra: Vec<&'a Sample>,
}

/// The results for samples whose address is in jitted code in either reading.
#[derive(Debug, Default)]
pub struct Verdict<'a> {
    /// The same symbol, at the same offset if both have one.
    pub same: usize,
    /// Resolved by both, to another symbol or offset.
    pub different: Vec<(&'a Sample, &'a Sample)>,
    /// Resolved by the reference in jitted code and not by ours.
    pub lost: Vec<(&'a Sample, &'a Sample)>,
    /// Resolved by ours alone.
    pub gained: Vec<(&'a Sample, &'a Sample)>,
    /// In anonymous memory, resolved by neither.
    pub unknown: Vec<(&'a Sample, &'a Sample)>,
    /// In an object of the reference that no JIT made, and elsewhere or otherwise in ours.
    pub moved: Vec<(&'a Sample, &'a Sample)>,
}

impl<'a> Comparison<'a> {
    /// Pairs the samples of two readings.
    pub fn of(reference: &'a [Sample], ours: &'a [Sample]) -> Self {
        let key = |sample: &Sample| (sample.time, sample.tid, sample.ip);
        let mut waiting: BTreeMap<_, VecDeque<&Sample>> = BTreeMap::new();
        for sample in ours {
            waiting.entry(key(sample)).or_default().push_back(sample);
        }
        let mut comparison = Self::default();
        for sample in reference {
            match waiting.get_mut(&key(sample)).and_then(VecDeque::pop_front) {
                Some(found) => comparison.pairs.push((sample, found)),
                None => comparison.missing.push(sample),
            }
        }
        comparison.extra = waiting.into_values().flatten().collect();
        comparison
    }

    /// Sorts the pairs by what became of them. `natives` says how natively compiled code is compared: its
    /// symbols too where the objects are at hand, else only which object it is.
    pub fn verdict(&self, natives: Natives) -> Verdict<'a> {
        let mut verdict = Verdict::default();
        for &(reference, ours) in &self.pairs {
            let group = match (&reference.symbol, ours.announced()) {
                (Some(_), None) if reference.is_jitted() => &mut verdict.lost,
                (Some(a), Some(b)) if reference.is_jitted() => {
                    let offsets = a.offset.zip(b.offset);
                    if is_spelled(&a.name, &b.name) && offsets.is_none_or(|(a, b)| a == b) {
                        verdict.same += 1;
                        continue;
                    }
                    &mut verdict.different
                }
                (None, Some(_)) if reference.in_anonymous_memory() => &mut verdict.gained,
                (None, None) if reference.in_anonymous_memory() => &mut verdict.unknown,
                _ if reference.dso == ours.dso
                    && (natives == Natives::ByObject || reference.symbol == ours.symbol) =>
                {
                    continue;
                }
                (None, Some(_)) => &mut verdict.gained,
                _ => &mut verdict.moved,
            };
            group.push((reference, ours));
        }
        verdict
    }

    /// Checks that ours has every sample, resolves all that the reference resolves in jitted code to the same
    /// symbol and offset, and leaves native code alone.
    pub fn expect_nothing_lost(&self, natives: Natives) -> Verdict<'a> {
        let verdict = self.verdict(natives);
        let mut report = String::new();
        let mut say = |what: &str, pairs: &[(&Sample, &Sample)]| {
            if !pairs.is_empty() {
                _ = writeln!(report, "{} {what}:", pairs.len());
                for (reference, ours) in pairs.iter().take(SHOWN) {
                    _ = writeln!(report, "  reference {reference}\n  ours      {ours}");
                }
            }
        };
        say("resolved otherwise", &verdict.different);
        say("lost", &verdict.lost);
        say("native samples changed", &verdict.moved);
        for (what, samples) in [("missing", &self.missing), ("extra", &self.extra)] {
            if !samples.is_empty() {
                _ = writeln!(report, "{} samples {what}:", samples.len());
                samples.iter().take(SHOWN).for_each(|sample| _ = writeln!(report, "  {sample}"));
            }
        }
        assert!(
            report.is_empty(),
            "{report}({} the same, {} gained, {} unknown to both)",
            verdict.same,
            verdict.gained.len(),
            verdict.unknown.len()
        );
        verdict
    }
}

/// Checks call chains frame by frame: what the reference names in jitted code has the same symbol in ours, and
/// no chain ends earlier.
pub fn expect_chains_kept(reference: &[Chain], ours: &[Chain]) {
    assert_eq!(reference.len(), ours.len(), "chains");
    let mut report = String::new();
    let mut worse = 0;
    for (reference, ours) in reference.iter().zip(ours) {
        assert_eq!((reference.time, reference.tid), (ours.time, ours.tid));
        let kept = reference.frames.len() <= ours.frames.len()
            && reference.frames.iter().zip(&ours.frames).all(|(reference, ours)| {
                let jitted = reference
                    .dso
                    .rsplit('/')
                    .next()
                    .is_some_and(|name| name.starts_with("jitted-") || is_perf_map(name));
                !jitted || reference.symbol.is_none() || reference.symbol == ours.symbol
            });
        if !kept {
            worse += 1;
            if worse <= SHOWN {
                _ = writeln!(
                    report,
                    "  reference {}\n  ours      {}",
                    reference.line(),
                    ours.line()
                );
            }
        }
    }
    assert!(worse == 0, "{worse} of {} call chains are worse:\n{report}", ours.len());
}

/// How samples in natively compiled code are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Natives {
    /// By object alone: the objects are not on this machine, so symbols come out as they may.
    ByObject,
    /// By object, symbol and offset.
    BySymbol,
}

impl Sample {
    /// Whether the reference resolves it as jitted code: in an object of `perf inject`, or by a perf map.
    pub fn is_jitted(&self) -> bool {
        self.in_stock_image() || (self.symbol.is_some() && self.in_anonymous_memory())
    }
}

/// Whether `ours` is the reference's name as symbols spell it. JavaScriptCore encodes names in UTF-8 twice, which makes
/// control characters (C1) of them; perf prints these, and our symbols spell them out.
fn is_spelled(reference: &str, ours: &str) -> bool {
    escaped(reference, |c| matches!(c, '\u{80}'..='\u{9f}')) == ours
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::parse;

    const STOCK: &str = "\
jit 1/1 1.000000001: 10 f+0x4 (/d/jitted-1-0.so)
jit 1/1 1.000000002: 11 [unknown] (/tmp/perf-1.map)
jit 1/1 1.000000003: 12 main+0x1 (/bin/jit)
";

    fn against(ours: &str) -> [usize; 5] {
        let (stock, ours) = (parse(STOCK), parse(ours));
        let comparison = Comparison::of(&stock, &ours);
        let v = comparison.verdict(Natives::BySymbol);
        [v.same, v.different.len(), v.lost.len(), v.gained.len(), v.moved.len()]
    }

    #[test]
    fn each_kind_of_difference_is_recognised() {
        let stock = STOCK;
        assert_eq!(against(stock), [1, 0, 0, 0, 0]);
        assert_eq!(against(&stock.replace("f+0x4", "g+0x4")), [0, 1, 0, 0, 0]);
        assert_eq!(against(&stock.replace("f+0x4", "f+0x5")), [0, 1, 0, 0, 0]);
        assert_eq!(against(&stock.replace("f+0x4", "[unknown]")), [0, 0, 1, 0, 0]);
        assert_eq!(against(&stock.replace("[unknown]", "g+0x1")), [1, 0, 0, 1, 0]);
        assert_eq!(against(&stock.replace("main+0x1", "g+0x1")), [1, 0, 0, 0, 1]);
        assert_eq!(against(&stock.replace("/bin/jit", "/o/image")), [1, 0, 0, 0, 1]);
    }

    #[test]
    #[should_panic(expected = "1 samples missing")]
    fn a_lost_sample_is_a_failure() {
        let (stock, ours) = (parse(STOCK), parse(STOCK.split_once('\n').expect("lines").1));
        Comparison::of(&stock, &ours).expect_nothing_lost(Natives::BySymbol);
    }
}

//! Whether two numbers of samples differ by more than chance.
//!
//! A sample is taken in a function by chance, with the function's share of the time as the probability. Two recordings of one program
//! therefore have different counts. The tests here give the probability of a difference that is at least as unlikely as the one that was
//! seen, if there is none in truth. They are exact: a profile has many functions with few samples, for which approximations are wrong.
//!
//! Runs of one program also differ by themselves. How much is known only from several recordings, by Student's test of their shares or times.

use std::f64::consts::PI;
use std::ops::RangeInclusive;

/// Differences that are this likely by chance are not called changes.
pub const SIGNIFICANT: f64 = 0.05;

/// Probabilities of outcomes that are equally likely differ by rounding.
const TOLERANCE: f64 = 1e-7;

/// The probability, if `a` of `all_a` and `b` of `all_b` samples are taken with the same probability: Fisher's exact test, two-sided.
#[must_use]
pub fn fisher_exact(a: u64, all_a: u64, b: u64, all_b: u64) -> f64 {
    let (a, b) = (a.min(all_a), b.min(all_b));
    let both = a.saturating_add(b);
    let all = all_a.saturating_add(all_b);
    let fixed = ln_choose(all, both);
    let ln_probability =
        |x: u64| ln_choose(all_a, x) + ln_choose(all_b, both.saturating_sub(x)) - fixed;
    sum_of_unlikely(a, both.saturating_sub(all_b)..=both.min(all_a), ln_probability)
}

/// The probability, if each of `a + b` events falls to `a` with the probability `share`: the exact binomial test, two-sided.
#[must_use]
pub fn binomial_exact(a: u64, b: u64, share: f64) -> f64 {
    let all = a.saturating_add(b);
    let share = share.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    let (ln_a, ln_b) = (share.ln(), (-share).ln_1p());
    let ln_probability =
        |x: u64| ln_choose(all, x) + real(x) * ln_a + real(all.saturating_sub(x)) * ln_b;
    sum_of_unlikely(a, 0..=all, ln_probability)
}

/// The probability, if the numbers of both lists vary around the same mean and by the same amount: Student's t-test, two-sided. `None` if there are too
/// few numbers to tell how much they vary.
#[must_use]
pub fn students_t(a: &[f64], b: &[f64]) -> Option<f64> {
    let freedom = a.len().checked_add(b.len())?.checked_sub(2).filter(|&freedom| freedom > 0)?;
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let count = |values: &[f64]| real(values.len() as u64);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count(values);
    let squares = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>()
    };
    let difference = (mean(a) - mean(b)).abs();
    // Means of equal numbers differ by rounding.
    if difference <= f64::EPSILON * mean(a).abs().max(mean(b).abs()) {
        return Some(1.0);
    }
    let variance = (squares(a) + squares(b)) / real(freedom as u64);
    let error = (variance * (count(a).recip() + count(b).recip())).sqrt();
    Some(t_probability(difference / error, freedom))
}

/// The probability that Student's t is at least `t` or at most `−t`, by its finite series for whole degrees of freedom
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn t_probability(t: f64, freedom: usize) -> f64 {
    let angle = (t / real(freedom as u64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The factors n / (n + 1) of the terms: those of n = 1, 3, … or of n = 2, 4, …
    let is_odd = freedom % 2 == 1;
    let (mut term, first) = if is_odd { (cosine, 2) } else { (1.0, 1) };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    for factor in (first..freedom.saturating_sub(2)).step_by(2).map(|n| real(n as u64)) {
        term *= cosine * cosine * factor / (factor + 1.0);
        sum += term;
    }
    let within = match is_odd {
        true => 2.0 / PI * (angle + sine * sum),
        false => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

/// Corrects probabilities of many tests, so that the smallest is as likely as it says although the best of many was chosen: Holm's method.
#[must_use]
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    let probability = |place: usize| probabilities.get(place).copied().unwrap_or(1.0);
    order.sort_by(|&a, &b| probability(a).total_cmp(&probability(b)));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut largest = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        let tests = real(probabilities.len().saturating_sub(rank) as u64);
        largest = largest.max((probability(place) * tests).min(1.0));
        if let Some(corrected) = corrected.get_mut(place) {
            *corrected = largest;
        }
    }
    corrected
}

/// The probability of all outcomes that are not more likely than the one that was seen.
///
/// The outcomes have one most likely value, from which their probabilities decrease to both sides: so each side ends where they do not
/// matter any more.
fn sum_of_unlikely(
    seen: u64,
    outcomes: RangeInclusive<u64>,
    ln_probability: impl Fn(u64) -> f64,
) -> f64 {
    let limit = ln_probability(seen) + TOLERANCE;
    let (start, end) = (*outcomes.start(), *outcomes.end());
    let top = first(start, end, |x| ln_probability(x) >= ln_probability(x.saturating_add(1)));
    if ln_probability(top) <= limit {
        return 1.0;
    }
    let below = first(start, top, |x| ln_probability(x) > limit);
    let above = first(top, end.saturating_add(1), |x| x > end || ln_probability(x) <= limit);
    let tail = |values: &mut dyn Iterator<Item = u64>| {
        let mut sum = 0.0_f64;
        for value in values {
            let probability = ln_probability(value).exp();
            sum += probability;
            if probability < sum * f64::EPSILON {
                break;
            }
        }
        sum
    };
    let lower = tail(&mut (start..below).rev());
    let upper = tail(&mut (above..=end));
    (lower + upper).min(1.0)
}

/// The first number from `low` to `high` of which something is true, if it is true of all behind it as well; `high` if there is none.
fn first(mut low: u64, mut high: u64, is_true: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low.midpoint(high);
        if is_true(middle) {
            high = middle;
        } else {
            low = middle.saturating_add(1);
        }
    }
    low
}

fn ln_choose(all: u64, chosen: u64) -> f64 {
    ln_factorial(all) - ln_factorial(chosen) - ln_factorial(all.saturating_sub(chosen))
}

/// ln n!, by Stirling's series from 20 on.
fn ln_factorial(n: u64) -> f64 {
    if n < 20 {
        return (2..=n).map(|factor| real(factor).ln()).sum();
    }
    let n = real(n);
    let inverse = n.recip();
    let square = inverse * inverse;
    let series = inverse / 12.0 - inverse * square / 360.0 + inverse * square * square / 1260.0;
    n * n.ln() - n + 0.5 * (2.0 * PI * n).ln() + series
}

/// Counts of samples are far below 2^53, where this is exact.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What scipy 1.14.1 computes.
    #[test]
    fn fisher_s_test_is_scipy_s() {
        for (a, all_a, b, all_b, expected) in [
            (0, 10, 0, 10, 1.0),
            (3, 10, 7, 10, 1.788_954_079_976e-01),
            (1, 1000, 9, 1000, 2.117_752_939_684e-02),
            (500, 1000, 560, 1000, 8.193_461_025_460e-03),
            (120, 10_000, 180, 12_000, 6.161_490_184_900e-02),
            (5, 100_000, 30, 90_000, 3.723_681_530_623e-06),
            (250_000, 500_000, 251_000, 500_000, 4.571_617_289_269e-02),
            (0, 50, 5, 2000, 1.0),
            (1000, 1000, 999, 1000, 1.0),
            (40_000, 1_000_000, 41_000, 1_000_000, 3.390_427_099_170e-04),
        ] {
            let probability = fisher_exact(a, all_a, b, all_b);
            let error = (probability / expected - 1.0).abs();
            assert!(error < 1e-7, "{a} of {all_a}, {b} of {all_b}: {probability:e} {expected:e}");
        }
    }

    /// What scipy 1.14.1 computes.
    #[test]
    fn the_binomial_test_is_scipy_s() {
        for (a, b, share, expected) in [
            (3, 7, 0.5, 3.437_500_000_000e-01),
            (10, 30, 0.5, 2.221_433_773_229e-03),
            (10, 30, 0.25, 1.0),
            (500, 560, 0.5, 6.990_955_946_027e-02),
            (0, 20, 0.1, 2.545_299_780_249e-01),
            (100_000, 101_000, 0.5, 2.586_239_243_973e-02),
            (7, 2, 0.9, 2.251_590_220_000e-01),
        ] {
            let probability = binomial_exact(a, b, share);
            let error = (probability / expected - 1.0).abs();
            assert!(error < 1e-7, "{a}, {b}, {share}: {probability:e} {expected:e}");
        }
        assert_eq!(binomial_exact(0, 0, 0.5), 1.0);
    }

    /// What scipy 1.17.1 computes.
    #[test]
    fn student_s_test_is_scipy_s() {
        for (a, b, expected) in [
            (&[0.1, 0.12, 0.11][..], &[0.2, 0.19, 0.22][..], 8.983_863_022_143e-04),
            (&[0.1, 0.12], &[0.11], 1.0),
            (&[0.05, 0.051, 0.049, 0.05], &[0.052, 0.05, 0.051], 2.031_106_637_201e-01),
            (&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 3.0, 4.0, 5.0, 9.0], 2.861_445_588_099e-01),
            (&[0.3], &[0.1, 0.2, 0.15, 0.12], 4.788_936_606_407e-02),
            (&[10.0, 10.5], &[30.0, 31.0], 7.612_089_098_842e-04),
        ] {
            let probability = students_t(a, b).expect("enough numbers");
            assert!(
                (probability - expected).abs() < 1e-12,
                "{a:?} {b:?}: {probability:e} {expected:e}"
            );
        }
        assert_eq!(students_t(&[1.0], &[2.0]), None);
        assert_eq!(students_t(&[], &[2.0, 3.0, 4.0]), None);
        assert_eq!(students_t(&[0.1, 0.1], &[0.1]), Some(1.0));
        assert_eq!(students_t(&[0.1, 0.1], &[0.2]), Some(0.0));
    }

    /// The density, added up in small steps.
    #[test]
    fn the_distribution_of_t_is_the_integral_of_its_density() {
        for freedom in 1..=9_usize {
            let n = freedom as f64;
            let density = |t: f64| (1.0 + t * t / n).powf(-(n + 1.0) / 2.0);
            // With t = tan u, from 0 to π / 2.
            let area = |from: f64, to: f64| {
                let step = (to - from) / 20_000.0;
                let at = |place: f64| density(place.tan()) / place.cos().powi(2);
                (0..20_000).map(|k| at(from + (f64::from(k) + 0.5) * step) * step).sum::<f64>()
            };
            for t in [0.1_f64, 1.0, 2.5, 12.0] {
                let expected = area(t.atan(), PI / 2.0) / area(0.0, PI / 2.0);
                let probability = t_probability(t, freedom);
                assert!(
                    (probability - expected).abs() < 1e-6,
                    "{t} {freedom}: {probability} {expected}"
                );
            }
        }
    }

    #[test]
    fn corrected_probabilities_keep_their_order() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005, 1.0]);
        for (corrected, expected) in corrected.into_iter().zip([0.04, 0.09, 0.09, 0.025, 1.0]) {
            assert!((corrected - expected).abs() < 1e-12, "{corrected} {expected}");
        }
        assert_eq!(holm(&[]), [0.0; 0]);
    }
}

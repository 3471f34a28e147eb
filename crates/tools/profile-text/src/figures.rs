//! Numbers as text.

/// A percentage with two decimals and without the sign: `12.34`.
pub fn percent(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let rounded = part.saturating_mul(10_000).saturating_add(whole / 2);
    let hundredths = rounded.checked_div(whole).unwrap_or(0);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A percentage with one decimal and the sign: `12.3 %`, for text between tables.
#[must_use]
pub fn percent_in_text(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let rounded = part.saturating_mul(1000).saturating_add(whole / 2);
    let tenths = rounded.checked_div(whole).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Whether a part is at least this percentage of all.
pub fn is_at_least(part: u64, whole: u64, percent: f64) -> bool {
    // Numbers of samples are far below 2^53.
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let (part, whole) = (part as f64, whole as f64);
    part * 100.0 >= whole * percent
}

/// A percentage, or nothing for no samples, so that rows with samples stand out.
pub fn percent_or_blank(part: u64, whole: u64) -> String {
    if part == 0 { String::new() } else { percent(part, whole) }
}

/// A number, or nothing for 0.
pub fn count_or_blank(count: u64) -> String {
    if count == 0 { String::new() } else { grouped(count) }
}

/// A number with commas: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len().saturating_mul(2));
    for (place, digit) in digits.chars().enumerate() {
        let behind = digits.len().saturating_sub(place);
        if place > 0 && behind.is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number and a noun: `1 sample`, `2 samples`.
pub fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A time since the first sample: `+1.234 s`, `-0.010 s`.
pub fn since(time: u64, start: u64) -> String {
    let (sign, distance) = match time.checked_sub(start) {
        Some(after) => ('+', after),
        None => ('-', start.saturating_sub(time)),
    };
    let milliseconds = distance / 1_000_000;
    format!("{sign}{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled() {
        assert_eq!((percent(1, 3), percent(2, 3)), ("33.33".into(), "66.67".into()));
        assert_eq!(percent(5, 0), "0.00");
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!(
            (counted(1, "sample"), counted(0, "sample")),
            ("1 sample".into(), "0 samples".into())
        );
        assert_eq!(
            (since(1_500_000_000, 0), since(0, 10_000_000)),
            ("+1.500 s".into(), "-0.010 s".into())
        );
    }
}

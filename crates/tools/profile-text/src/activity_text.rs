//! What the runtimes did, as text.

use profile::Activities;

use crate::figures::percent_in_text;

/// What was done, most first; `None` if no process has jitted code. The percentages are parts of all samples, whose number is `all`, as those of
/// functions are.
#[must_use]
pub fn activity_text(of: &Activities, all: u64) -> Option<String> {
    let parts = of.parts(all);
    if parts.is_empty() {
        return None;
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(what, samples)| format!("{what} {}", percent_in_text(*samples, all)))
        .collect();
    Some(format!("time by activity: {}", parts.join(", ")))
}

/// The same of two sides that are compared; `None` if no process of either has jitted code.
#[must_use]
pub fn compared_activities_text(of: &[Activities; 2], all: [u64; 2]) -> Option<String> {
    let [all_before, all_after] = all;
    let parts = Activities::compared(of, all).into_iter().map(|(what, [before, after])| {
        let (before, after) =
            (percent_in_text(before, all_before), percent_in_text(after, all_after));
        format!("{what} {before} → {after}")
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("time by activity: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_most_comes_first() {
        let none = Activities::default();
        assert_eq!(activity_text(&none, 4), None);
        let mut some = none;
        (some.samples, some.jitted, some.compiler) = (4, 1, 3);
        let text = "time by activity: compiler 75.0 %, jitted code 25.0 %";
        assert_eq!(activity_text(&some, 4).as_deref(), Some(text));
        let text = "time by activity: processes without jitted code 60.0 %, compiler 30.0 %, jitted code 10.0 %";
        assert_eq!(activity_text(&some, 10).as_deref(), Some(text));
        let before = some;
        (some.jitted, some.compiler) = (2, 2);
        let text = "time by activity: jitted code 25.0 % → 50.0 %, compiler 75.0 % → 50.0 %";
        assert_eq!(compared_activities_text(&[before, some], [4, 4]).as_deref(), Some(text));
        assert_eq!(compared_activities_text(&[none, none], [4, 4]), None);
    }
}

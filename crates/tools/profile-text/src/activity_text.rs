//! What the runtimes did, as text.

use std::cmp::Reverse;

use profile::Activities;

use crate::figures::percent_in_text;

/// What was done, most first; `None` if no process has jitted code. The percentages are parts of all samples, whose number is `all`, as those of
/// functions are.
#[must_use]
pub fn activity_text(of: &Activities, all: u64) -> Option<String> {
    if of.samples == 0 {
        return None;
    }
    let mut parts = [
        ("jitted code", of.jitted),
        ("interpreter", of.interpreter),
        ("garbage collector", of.garbage_collector),
        ("compiler", of.compiler),
        ("kernel", of.kernel),
        ("other native code", of.native),
        ("processes without jitted code", all.saturating_sub(of.samples)),
    ];
    parts.sort_by_key(|&(_, samples)| Reverse(samples));
    let parts = parts.iter().filter(|&&(_, samples)| samples > 0);
    let parts: Vec<String> =
        parts.map(|(what, samples)| format!("{what} {}", percent_in_text(*samples, all))).collect();
    Some(format!("time by activity: {}", parts.join(", ")))
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
    }
}

//! Samples by what the runtimes did.

use profile::Activities;
use serde::Serialize;

use crate::figures::percent_in_text;

/// Samples by what was done: [`Activities`], for JSON and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ActivityCounts {
    /// All samples in processes with jitted code.
    pub samples: u64,
    /// In the kernel.
    pub kernel: u64,
    /// In the garbage collector, or in what it called.
    pub garbage_collector: u64,
    /// In the compiler, or in what it called.
    pub compiler: u64,
    /// In the interpreter itself.
    pub interpreter: u64,
    /// In compiled code.
    pub jitted: u64,
    /// In other native code.
    pub native: u64,
}

impl From<Activities> for ActivityCounts {
    fn from(of: Activities) -> Self {
        Self {
            samples: of.samples,
            kernel: of.kernel,
            garbage_collector: of.garbage_collector,
            compiler: of.compiler,
            interpreter: of.interpreter,
            jitted: of.jitted,
            native: of.native,
        }
    }
}

impl ActivityCounts {
    /// As a line of text, most first; `None` if no process has jitted code. The percentages are parts of all samples, whose number is `all`, as those
    /// of functions are.
    #[must_use]
    pub fn text(&self, all: u64) -> Option<String> {
        if self.samples == 0 {
            return None;
        }
        let mut parts = [
            ("jitted code", self.jitted),
            ("interpreter", self.interpreter),
            ("garbage collector", self.garbage_collector),
            ("compiler", self.compiler),
            ("kernel", self.kernel),
            ("other native code", self.native),
            ("processes without jitted code", all.saturating_sub(self.samples)),
        ];
        parts.sort_by_key(|&(_, samples)| std::cmp::Reverse(samples));
        let parts = parts.iter().filter(|&&(_, samples)| samples > 0);
        let parts: Vec<String> = parts
            .map(|(what, samples)| format!("{what} {}", percent_in_text(*samples, all)))
            .collect();
        Some(format!("time by activity: {}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_most_comes_first() {
        let none = ActivityCounts::from(Activities::default());
        assert_eq!(none.text(4), None);
        let some = ActivityCounts { samples: 4, jitted: 1, compiler: 3, ..none };
        let text = "time by activity: compiler 75.0 %, jitted code 25.0 %";
        assert_eq!(some.text(4).as_deref(), Some(text));
        let text = "time by activity: processes without jitted code 60.0 %, compiler 30.0 %, jitted code 10.0 %";
        assert_eq!(some.text(10).as_deref(), Some(text));
    }
}

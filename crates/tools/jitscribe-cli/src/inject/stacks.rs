//! What is said of the call stacks of a recording.

use jitscribe_inject::{StackCounts, Stacks};

use crate::note;
use crate::text::percent;

/// The largest copy of a stack that perf accepts, in bytes.
const LARGEST_COPY: u64 = 65528;
/// What the rest of a sample may take of it, in bytes: the kernel shortens a copy so that the whole event has at most 65,535. Registers take
/// 200, and a chain of callers 1,016 by default.
const REST_OF_SAMPLE: u64 = 2048;

/// Says how many stacks are whole, and what may be done for the others.
pub fn print(counts: &StackCounts) {
    if counts.stacks > 0 {
        note::say(text(counts));
    }
}

fn text(counts: &StackCounts) -> String {
    let StackCounts { stacks, whole, ends, copied, .. } = counts;
    let mut said =
        format!("stacks: {whole} of {stacks} ({}) reach the bottom", percent(*whole, *stacks));
    // A few stacks are cut in every recording.
    let is_much = |count: u64| count.saturating_mul(100) > *stacks;
    let mut causes = Vec::new();
    if counts.recorded == Stacks::Copied {
        if is_much(ends.deeper_than_copy) {
            let mut cause =
                format!("{} are deeper than the {copied} bytes copied", ends.deeper_than_copy);
            if let Some(more) = larger_copy(*copied) {
                cause.push_str(&format!(" (--call-graph dwarf,{more} copies more)"));
            }
            causes.push(cause);
        }
        if is_much(ends.no_tables) {
            let mut cause = format!("{} end in code without unwind info", ends.no_tables);
            // Programs that are stripped of it often keep frame pointers (deno, bun).
            if ends.no_tables.saturating_mul(2) > *stacks {
                cause.push_str(", where perf stops (--call-graph fp may go on)");
            }
            causes.push(cause);
        }
        if is_much(ends.other_memory) {
            causes.push(format!("{} continue on a stack of the runtime", ends.other_memory));
        }
    }
    // Of the frame pointers that the kernel followed, only the end is known.
    let cut = stacks.saturating_sub(*whole);
    if counts.recorded == Stacks::Walked && cut.saturating_mul(10) > *stacks {
        causes.push(format!(
            "{cut} end in code without frame pointers (--call-graph dwarf may go on)"
        ));
    }
    if !causes.is_empty() {
        said.push_str("; ");
        said.push_str(&causes.join(", "));
    }
    said
}

/// The size to ask for, in bytes, if so much was copied; `None` if the kernel copies no more.
fn larger_copy(copied: u64) -> Option<u64> {
    let is_largest = copied.saturating_add(REST_OF_SAMPLE) > LARGEST_COPY;
    (!is_largest).then(|| copied.saturating_mul(4).min(LARGEST_COPY))
}

#[cfg(test)]
mod tests {
    use super::larger_copy;

    #[test]
    fn copies_of_the_largest_size_are_not_advised_again() {
        let [default, python] = [8192, 65_280];
        assert_eq!(larger_copy(default), Some(32_768));
        assert_eq!(larger_copy(32_768), Some(65_528));
        // What `dwarf,65528` copies beside the registers and the callers.
        for largest in [64_000, python, 65_528] {
            assert_eq!(larger_copy(largest), None, "{largest}");
        }
    }
}

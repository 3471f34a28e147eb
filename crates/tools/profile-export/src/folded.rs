//! Folded stacks: one line for each stack, for flame graphs (FlameGraph, inferno, and all that read their input).
//!
//! A line is `process;outermost;…;innermost COUNT`. The suffixes `_[j]` (compiled at run time), `_[i]` (inlined), `_[k]` (kernel) and `_[0]`
//! (interpreted) are those of async-profiler and of FlameGraph's palettes. Frames of one function without a name, one behind the other, are one with their
//! number: `[unknown] ×127`. Functions of one name on one line of a file, as minified scripts have them, have their place in the name: `f a.js:1:2045`.

use std::io::{self, Write};

use printable::Escaped;
use profile::{FunctionKind, Profile};
use rustc_hash::FxHashMap;

use crate::nodes::Nodes;
use crate::options::{Label, Options, short};

/// Writes folded stacks. Values are numbers of samples.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let nodes = Nodes::with_runs_merged(profile, options);
    let mut counts: FxHashMap<_, u64> = FxHashMap::default();
    for sample in options.selection.of(profile) {
        let process = profile.thread(sample.thread).process;
        let name = profile.process(process).name;
        if let Some(node) = nodes.of_stack(sample.stack) {
            let count = counts.entry((name, node)).or_default();
            *count = count.saturating_add(1);
        }
    }
    let mut lines: Vec<_> = counts.into_iter().collect();
    lines.sort_unstable();
    let mut frames = Vec::new();
    for ((name, node), count) in lines {
        frames.clear();
        frames.extend(nodes.labels(node));
        write_name(out, &short(profile.text(name)))?;
        for (label, repeated) in frames.iter().rev() {
            out.write_all(b";")?;
            write_name(out, &label.distinct_name(profile))?;
            if *repeated > 1 {
                write!(out, " ×{repeated}")?;
            }
            out.write_all(suffix(profile, label).as_bytes())?;
        }
        writeln!(out, " {count}")?;
    }
    Ok(())
}

/// A name without what ends it, or the line.
fn write_name(out: &mut dyn Write, name: &str) -> io::Result<()> {
    if name.is_empty() {
        return out.write_all(b"[unknown]");
    }
    write!(out, "{}", Escaped(name.replace(';', ":").as_bytes()))
}

fn suffix(profile: &Profile, label: &Label) -> &'static str {
    match profile.function(label.function).kind {
        FunctionKind::Kernel => "_[k]",
        _ if label.is_inlined => "_[i]",
        FunctionKind::Jitted => "_[j]",
        FunctionKind::Interpreted => "_[0]",
        _ => "",
    }
}

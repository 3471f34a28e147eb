//! V8's `.cpuprofile`, for Chrome's DevTools, VS Code and speedscope.
//!
//! A file has one thread. Lines of functions count from 0, those of `positionTicks` from 1.

use std::io::{self, Write};

use profile::{Profile, Selection};
use rustc_hash::FxHashMap;

use crate::call_frame::write_call_frame;
use crate::json::object;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::timeline::{busiest, by_thread, period};

/// The nodes that are not the profile's. Those are numbered from [`FIRST`].
const ROOT: u64 = 1;
const IDLE: u64 = 2;
const FIRST: u64 = 3;

/// Writes the thread with the most samples.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut threads = by_thread(profile, &options.selection);
    let period = period(profile, &options.selection, &threads);
    let thread = busiest(&threads).map(|place| threads.swap_remove(place));
    drop(threads);
    let selection = Selection::clone(&options.selection);
    let mut options = Options { selection, ..*options };
    // Lines are in `positionTicks`.
    options.lines = false;
    options.selection.threads = thread.as_ref().map(|thread| vec![thread.thread]);
    let nodes = Nodes::of(profile, &options);
    let number = |node: u32| u64::from(node).saturating_add(FIRST);

    let mut hits = vec![0_u64; nodes.nodes().len()];
    let mut ticks: Vec<FxHashMap<u32, u64>> = vec![FxHashMap::default(); nodes.nodes().len()];
    for (_, stack) in thread.iter().flat_map(|thread| &thread.samples) {
        let line = profile.frame(profile.stack(*stack).frame).line;
        let Some(node) = nodes.of_stack(*stack).map(|node| node as usize) else { continue };
        if let (Some(hits), Some(ticks)) = (hits.get_mut(node), ticks.get_mut(node)) {
            *hits = hits.saturating_add(1);
            if line > 0 {
                let ticks = ticks.entry(line).or_default();
                *ticks = ticks.saturating_add(1);
            }
        }
    }
    let mut children = vec![Vec::new(); nodes.nodes().len()];
    let mut roots = vec![IDLE];
    for (node, row) in (0_u32..).zip(nodes.nodes()) {
        let above = row.parent.and_then(|parent| children.get_mut(parent as usize));
        above.unwrap_or(&mut roots).push(number(node));
    }

    object(out, |file| {
        let own = [(ROOT, "(root)", roots), (IDLE, "(idle)", Vec::new())];
        let own = own.into_iter().map(|(id, name, children)| (id, Err(name), 0, children, None));
        let others = nodes.nodes().iter().zip(hits).zip(children).zip(ticks).zip(FIRST..);
        let others = others.map(|((((node, hits), children), ticks), id)| {
            (id, Ok(node), hits, children, Some(ticks))
        });
        file.objects("nodes", own.chain(others), |object, (id, node, hits, children, ticks)| {
            object.field("id", id)?;
            object.object("callFrame", |frame| {
                write_call_frame(profile, node.map(|it| &it.label), frame)
            })?;
            object.field("hitCount", hits)?;
            object.list("children", children)?;
            let mut ticks: Vec<_> = ticks.into_iter().flatten().collect();
            ticks.sort_unstable();
            if !ticks.is_empty() {
                object.objects("positionTicks", ticks, |object, (line, ticks)| {
                    object.field("line", line)?;
                    object.field("ticks", ticks)
                })?;
            }
            Ok(())
        })?;
        let start = thread.as_ref().map_or(0, |thread| thread.start(period));
        let end = thread.as_ref().map_or(0, |thread| thread.end());
        file.field("startTime", start / 1000)?;
        file.field("endTime", end / 1000)?;
        let spans = || thread.iter().flat_map(|thread| thread.spans(period));
        let samples = spans().map(|span| match span.stack.and_then(|it| nodes.of_stack(it)) {
            Some(node) => number(node),
            None => IDLE,
        });
        // A sample lasts until the next one: one more ends the last.
        let end = thread.is_some().then_some(IDLE);
        file.list("samples", samples.chain(end))?;
        let durations = spans().map(|span| span.duration).chain(end.map(|_| 0));
        file.list("timeDeltas", time_deltas(start, durations))
    })?;
    out.write_all(b"\n")
}

/// In microseconds, the time from each span's begin to the next one's. The first is from the begin of the profile.
fn time_deltas(start: u64, durations: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    // Differences of rounded times, so that errors do not add up.
    let mut begin = start;
    let mut last = start / 1000;
    durations.map(move |duration| {
        let delta = (begin / 1000).saturating_sub(last);
        last = begin / 1000;
        begin = begin.saturating_add(duration);
        delta
    })
}

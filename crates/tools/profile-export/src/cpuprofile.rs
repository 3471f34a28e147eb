//! V8's `.cpuprofile`, for Chrome's DevTools, VS Code and speedscope.
//!
//! A file has one thread. Lines of functions count from 0, those of `positionTicks` from 1.

use std::io::{self, Write};

use profile::{Profile, Selection};
use rustc_hash::FxHashMap;

use crate::json::object;
use crate::keys::Keys;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::timeline::{busiest, by_thread, period};
use crate::v8::{IDLE, ROOT, TimeDeltas, number, write_call_frame};

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
    let mut options = Options { selection, ..options.clone() };
    // Lines are in `positionTicks`.
    options.lines = false;
    options.selection.threads = thread.as_ref().map(|thread| vec![thread.thread]);
    let nodes = Nodes::of(profile, &options);
    let keys = Keys::of(profile);

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

    // DevTools divides the time of the profile by the hits of all nodes: idle time needs the hits that V8's own profiler would have counted.
    let spans = || thread.iter().flat_map(|thread| thread.spans(period));
    let idle = spans().filter(|span| span.stack.is_none()).map(|span| span.duration);
    let idle = idle.fold(0, u64::saturating_add).checked_div(period).unwrap_or(0);

    object(out, |file| {
        let own = [(ROOT, "(root)", roots, 0), (IDLE, "(idle)", Vec::new(), idle)];
        let own =
            own.into_iter().map(|(id, name, children, hits)| (id, Err(name), hits, children, None));
        let others = (0..).zip(nodes.nodes()).zip(hits).zip(children).zip(ticks);
        let others = others.map(|((((place, node), hits), children), ticks)| {
            (number(place), Ok(node), hits, children, Some(ticks))
        });
        file.objects("nodes", own.chain(others), |object, (id, node, hits, children, ticks)| {
            object.field("id", id)?;
            object.object("callFrame", |frame| {
                write_call_frame((profile, &keys), node.map(|it| &it.label), frame)
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
        let samples = spans().map(|span| match span.stack.and_then(|it| nodes.of_stack(it)) {
            Some(node) => number(node),
            None => IDLE,
        });
        // A sample lasts until the next one: one more ends the last.
        let end = thread.is_some().then_some(IDLE);
        file.list("samples", samples.chain(end))?;
        let durations = spans().map(|span| span.duration).chain(end.map(|_| 0));
        let mut deltas = TimeDeltas::new(start);
        file.list("timeDeltas", durations.map(|duration| deltas.next(duration)))
    })?;
    out.write_all(b"\n")
}

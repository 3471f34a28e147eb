//! Chrome's trace events, with samples as V8's profiler writes them (`Profile` and `ProfileChunk`): all threads, and an event for each compilation.
//!
//! Chrome's DevTools (Performance), Perfetto and speedscope read them.

use std::io::{self, Write};

use profile::{ProcessId, Profile};

use crate::compilations::Compilations;
use crate::json::{Object, Text, object};
use crate::keys::Keys;
use crate::nodes::Nodes;
use crate::options::{Options, short};
use crate::timeline::{Span, ThreadSamples, by_thread, period};
use crate::v8::{IDLE, ROOT, TimeDeltas, number, write_call_frame};

const CATEGORY: &str = "disabled-by-default-v8.cpu_profiler";
/// How many samples are in one event.
const CHUNK: usize = 1000;

/// Writes trace events.
///
/// # Errors
/// Those of `out`.
pub fn write(profile: &Profile, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let threads = by_thread(profile, &options.selection);
    let period = period(profile, &options.selection, &threads);
    let mut tree = Options { selection: options.selection.clone(), ..options.clone() };
    tree.lines = false;
    let nodes = Nodes::of(profile, &tree);
    let keys = Keys::of(profile);
    let mut events = Events { out, is_first: true };
    events.out.write_all(b"{\"traceEvents\":[\n")?;
    for (id, thread) in (1_u32..).zip(&threads) {
        write_names(profile, thread, &mut events)?;
        write_thread((profile, &keys), &nodes, thread, period, id, &mut events)?;
    }
    let compilations = Compilations::of(profile);
    for process in (0..).map(ProcessId).take(profile.processes().len()) {
        write_compilations(profile, &compilations, process, &mut events)?;
    }
    events.out.write_all(b"\n]")?;
    let about = &profile.about;
    events.out.write_all(b",\"metadata\":")?;
    object(events.out, |metadata| {
        metadata.field("source", concat!("jitscribe ", env!("CARGO_PKG_VERSION")))?;
        metadata.field("recording", Text(&about.recording))?;
        metadata.field("host", Text(&about.host))
    })?;
    events.out.write_all(b"}\n")
}

struct Events<'o> {
    out: &'o mut dyn Write,
    is_first: bool,
}

impl Events<'_> {
    fn event(
        &mut self,
        (phase, name, category): (&str, &str, &str),
        (pid, tid): (u32, u32),
        nanoseconds: u64,
        fill: impl FnOnce(&mut Object<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.is_first {
            self.out.write_all(b",\n")?;
        }
        self.is_first = false;
        object(self.out, |event| {
            event.field("ph", phase)?;
            event.field("name", name)?;
            event.field("cat", category)?;
            event.field("pid", pid)?;
            event.field("tid", tid)?;
            event.field("ts", nanoseconds / 1000)?;
            fill(event)
        })
    }
}

fn ids(profile: &Profile, thread: &ThreadSamples) -> (u32, u32) {
    let row = profile.thread(thread.thread);
    (profile.process(row.process).pid, row.tid)
}

fn write_names(
    profile: &Profile,
    thread: &ThreadSamples,
    events: &mut Events<'_>,
) -> io::Result<()> {
    let row = profile.thread(thread.thread);
    let process = profile.process(row.process);
    for (what, name) in [("process_name", process.name), ("thread_name", row.name)] {
        let name = short(profile.text(name));
        events.event(("M", what, "__metadata"), (process.pid, row.tid), 0, |event| {
            event.object("args", |args| args.field("name", name))
        })?;
    }
    Ok(())
}

fn write_thread(
    (profile, keys): (&Profile, &Keys),
    nodes: &Nodes,
    thread: &ThreadSamples,
    period: u64,
    id: u32,
    events: &mut Events<'_>,
) -> io::Result<()> {
    let ids = ids(profile, thread);
    let id = format!("{id:#x}");
    let start = thread.start(period);
    events.event(("P", "Profile", CATEGORY), ids, start, |event| {
        event.field("id", &id)?;
        let data = |data: &mut Object<'_>| data.field("startTime", start / 1000);
        event.object("args", |args| args.object("data", data))
    })?;
    // A node goes into the chunk with its first sample, and its callers with it.
    let mut is_written = vec![false; nodes.nodes().len()];
    // A sample lasts until the next one: one more ends the last.
    let end = Span { stack: None, duration: 0 };
    let mut spans = thread.spans(period).chain([end]).peekable();
    let mut has_begun = false;
    let mut times = TimeDeltas::new(start);
    while spans.peek().is_some() {
        let mut new = Vec::new();
        let (mut samples, mut deltas) = (Vec::new(), Vec::new());
        let begin = times.begin();
        for span in spans.by_ref().take(CHUNK) {
            let node = span.stack.and_then(|stack| nodes.of_stack(stack));
            samples.push(node.map_or(IDLE, number));
            deltas.push(times.next(span.duration));
            let mut next = node;
            while let Some(node) = next {
                let Some(is_written) = is_written.get_mut(node as usize) else { break };
                if std::mem::replace(is_written, true) {
                    break;
                }
                new.push(node);
                next = nodes.nodes().get(node as usize).and_then(|row| row.parent);
            }
        }
        // Callers have smaller numbers.
        new.sort_unstable();
        let is_last = spans.peek().is_none();
        let is_first = !std::mem::replace(&mut has_begun, true);
        events.event(("P", "ProfileChunk", CATEGORY), ids, begin, |event| {
            event.field("id", &id)?;
            event.object("args", |args| {
                args.object("data", |data| {
                    data.object("cpuProfile", |chunk| {
                        let own = [(ROOT, None, "(root)"), (IDLE, Some(ROOT), "(idle)")];
                        let own = own.into_iter().filter(|_| is_first);
                        let own = own.map(|(id, parent, name)| (id, parent, Err(name)));
                        let others = new.iter().filter_map(|&node| {
                            let row = nodes.nodes().get(node as usize)?;
                            let parent = row.parent.map_or(ROOT, number);
                            Some((number(node), Some(parent), Ok(&row.label)))
                        });
                        chunk.objects(
                            "nodes",
                            own.chain(others),
                            |object, (id, parent, label)| {
                                object.field("id", id)?;
                                if let Some(parent) = parent {
                                    object.field("parent", parent)?;
                                }
                                object.object("callFrame", |frame| {
                                    write_call_frame((profile, keys), label, frame)
                                })
                            },
                        )?;
                        chunk.list("samples", &samples)
                    })?;
                    data.list("timeDeltas", &deltas)?;
                    if is_last {
                        data.field("endTime", thread.end() / 1000)?;
                    }
                    Ok(())
                })
            })
        })?;
    }
    Ok(())
}

fn write_compilations(
    profile: &Profile,
    compilations: &Compilations<'_>,
    process: ProcessId,
    events: &mut Events<'_>,
) -> io::Result<()> {
    let pid = profile.process(process).pid;
    for &(loaded, code) in compilations.of_process(process) {
        events.event(("i", "JitCode", "jit"), (pid, pid), loaded, |event| {
            event.field("s", "p")?;
            event.object("args", |args| {
                args.field("function", short(profile.function_name(code.function)))?;
                args.field("tier", short(profile.text(code.tier)))?;
                args.field("generation", code.generation)?;
                args.field("size", code.size)
            })
        })?;
    }
    Ok(())
}

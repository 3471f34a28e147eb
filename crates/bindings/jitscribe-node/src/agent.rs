//! Start and stop of the addon.
#![allow(unsafe_code, reason = "an isolate is named on another thread")]

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use guest::SessionPipe;
use jitscribe::{Code, Scribe, Unwind};

use crate::codes::Codes;
use crate::symbols;
use crate::v8::{Event, Isolate, Listener, V8};

/// The addon. There is only one, from its first start until the process ends.
struct Agent {
    v8: V8,
    scribe: Scribe,
    codes: Codes,
    /// Where code of node and its libraries is.
    segments: Vec<Range<u64>>,
    state: Mutex<State>,
}

/// For whom code is announced, and whose.
#[derive(Debug, Default)]
struct State {
    /// The number of recorders.
    recorders: u32,
    /// The isolates that report their code. Each exists while it is in the list.
    isolates: Vec<Isolate>,
}

static AGENT: OnceLock<Agent> = OnceLock::new();

/// Whether there is a recorder. Events are ignored otherwise.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Whether a recorder needs the code.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Has a function called before the isolate ends. Returns whether it will be.
pub(crate) type AtEnd<'f> = &'f dyn Fn(Isolate) -> bool;

/// Announces the code of this thread's isolate, until the recorder's pipe is closed. `at_end` has [`forget`] called, once for each isolate: node ends
/// the process if it is given a function twice.
///
/// # Errors
/// Why it does not.
pub(crate) fn start(pipe: &Path, at_end: AtEnd<'_>) -> Result<(), &'static str> {
    let agent = agent().ok_or("this node does not export the functions of V8 that report code")?;
    let pipe = SessionPipe::open(pipe).ok_or("the recorder is gone")?;
    agent.state().recorders += 1;
    agent.codes.open();
    IS_ON.store(true, Relaxed);
    let joined = join(at_end);
    if joined.is_err() {
        leave();
    } else if !pipe.watch(leave) {
        leave();
        return Err("there is no thread to wait for the end of the recording");
    }
    joined
}

/// Announces the code of this thread's isolate, too, as long as there is a recorder.
///
/// # Errors
/// Why it does not.
pub(crate) fn join(at_end: AtEnd<'_>) -> Result<(), &'static str> {
    let agent = AGENT.get().filter(|_| is_on()).ok_or("no recorder needs the code")?;
    let isolate = agent.v8.current().ok_or("this thread has no isolate")?;
    // Only this thread adds and removes its isolate.
    if !agent.state().isolates.contains(&isolate) {
        if !at_end(isolate) {
            return Err("node does not say when the thread ends");
        }
        agent.state().isolates.push(isolate);
    }
    // No lock is held: V8 calls back.
    agent.v8.listen(isolate);
    Ok(())
}

/// The isolate at this address is about to end.
pub(crate) fn forget(isolate: usize) {
    if let Some(agent) = AGENT.get() {
        agent.state().isolates.retain(|known| known.address() != isolate);
    }
}

/// A recorder is gone.
fn leave() {
    let Some(agent) = AGENT.get() else { return };
    let mut state = agent.state();
    state.recorders = state.recorders.saturating_sub(1);
    if state.recorders > 0 {
        return;
    }
    IS_ON.store(false, Relaxed);
    for isolate in &state.isolates {
        // SAFETY: it is removed from the list, under this lock, before it ends.
        unsafe { agent.v8.forget_soon(*isolate) };
    }
    drop(state);
    agent.codes.close();
}

fn agent() -> Option<&'static Agent> {
    if let Some(agent) = AGENT.get() {
        return Some(agent);
    }
    let v8 = V8::find(Listener { event: announce, is_on })?;
    let create = || Agent {
        v8,
        scribe: Scribe::builder().environment().build(),
        codes: Codes::default(),
        segments: symbols::segments(),
        state: Mutex::default(),
    };
    Some(AGENT.get_or_init(create))
}

impl Agent {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What V8's own code is called: it lies in node's program or library, whose symbols have names, unless V8 has copied it.
const BUILTINS: [&[u8]; 2] = [b"Builtin:", b"BytecodeHandler:"];

fn announce(event: Event<'_>) {
    let Some(agent) = AGENT.get().filter(|_| is_on()) else { return };
    match event {
        Event::Added { address, size, name, bytes } => {
            let is_builtin = BUILTINS.iter().any(|start| name.starts_with(start));
            if is_builtin && agent.segments.iter().any(|segment| segment.contains(&address)) {
                return;
            }
            let code = bytes.map_or(Code::at(address, size), Code::new).named_bytes(name);
            // All functions keep one, except at their first instructions.
            let code = code.unwind(Unwind::FramePointerAlways { signed: false });
            agent.codes.load(address, size, || agent.scribe.load(&code));
        }
        Event::Moved { from, to } => agent.codes.moved(from, to),
        Event::Removed { address } => agent.codes.unload(address),
    }
}

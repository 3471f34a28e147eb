//! Start and stop of the agent.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use jitscribe::Scribe;

use crate::codes::Codes;
use crate::env::{Env, Vm};
use crate::hold::Hold;
use crate::hotspot::CodeHeaps;
use crate::jvmti::{
    Callbacks, EVENT_COMPILED_METHOD_LOAD, EVENT_COMPILED_METHOD_UNLOAD,
    EVENT_DYNAMIC_CODE_GENERATED,
};
use crate::methods::{Methods, Style};
use crate::options::{Options, Order};
use crate::room::Spare;

/// When the agent is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Come {
    /// Before anything is compiled.
    First,
    /// While the JVM runs.
    Late,
}

/// The agent. There is only one, from its first start until the process ends.
pub(crate) struct Agent {
    pub(crate) vm: Vm,
    pub(crate) env: Env,
    pub(crate) scribe: Scribe,
    pub(crate) codes: Codes,
    pub(crate) methods: Methods,
    pub(crate) room: Spare,
    /// `None` if this JVM is not a known HotSpot.
    pub(crate) code_heaps: Option<CodeHeaps>,
    pub(crate) wanted: RwLock<Arc<Wanted>>,
    audience: Mutex<Audience>,
}

/// What to announce about a method.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) style: Style,
    pub(crate) no_lines: bool,
    pub(crate) no_inlined: bool,
}

/// Those for whom code is announced.
#[derive(Debug, Default)]
struct Audience {
    /// Whether the user started the agent.
    user: bool,
    /// Number of recorders.
    recorders: u32,
    /// How many times everyone was stopped.
    stops: u32,
}

/// A recorder, which is valid until the next stop.
#[derive(Clone, Copy)]
struct Recorder {
    stops: u32,
}

/// The events that the agent needs.
const EVENTS: [c_int; 3] =
    [EVENT_COMPILED_METHOD_LOAD, EVENT_COMPILED_METHOD_UNLOAD, EVENT_DYNAMIC_CODE_GENERATED];

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, if it was ever started.
pub(crate) fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Applies the options. `callbacks` receive the events. Returns whether that succeeded.
pub(crate) fn obey(vm: Vm, options: Options, when: Come, callbacks: &'static Callbacks) -> bool {
    options.wrong.iter().for_each(say);
    if options.order == Order::Stop {
        if let Some(agent) = agent() {
            agent.leave(None);
        }
        return true;
    }
    let hold = match options.hold.as_deref().map(Hold::open) {
        // The recorder has given up in the meantime.
        Some(None) => return false,
        hold => hold.flatten(),
    };
    let known = agent();
    let Some(agent) = known.or_else(|| Agent::make(vm, &options, callbacks)) else { return false };
    if known.is_some() && options.is_for_scribe() {
        say(
            "publishers and log settings are fixed when the agent is first loaded; use jitscribe ctl to change them",
        );
    }
    let Some(recorder) = agent.join(options, when) else { return false };
    let Some(hold) = hold else { return true };
    let leave = move || {
        let _ = agent.vm.attached(|| agent.leave(Some(recorder)));
    };
    let is_watched = hold.watch(leave);
    if !is_watched {
        leave();
    }
    is_watched
}

impl Agent {
    fn make(vm: Vm, options: &Options, callbacks: &Callbacks) -> Option<&'static Self> {
        let Some(env) = vm.jvmti() else {
            say("the JVM has no JVMTI 1.2: no code is announced");
            return None;
        };
        if let Err(error) = env.prepare(callbacks) {
            say(format_args!("the JVM does not report compiled code (JVMTI error {error})"));
            return None;
        }
        let builder = options.builder().on_notice(|notice| say(notice)).replay(|_| replay_soon());
        let scribe = builder.build();
        Some(AGENT.get_or_init(|| Self {
            vm,
            env,
            scribe,
            codes: Codes::default(),
            methods: Methods::default(),
            room: Spare::default(),
            code_heaps: CodeHeaps::of(vm.somewhere_inside()),
            wanted: RwLock::default(),
            audience: Mutex::default(),
        }))
    }

    /// Registers the user or a recorder.
    fn join(&self, options: Options, when: Come) -> Option<Recorder> {
        let mut audience = self.audience.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !audience.user && audience.recorders == 0;
        match options.order {
            Order::Hold => audience.recorders += 1,
            _ => audience.user = true,
        }
        let recorder = Recorder { stops: audience.stops };
        let before = self.wanted();
        let wanted = Wanted {
            style: Style {
                format: options.format.unwrap_or(before.style.format),
                sources: options.sources.unwrap_or_else(|| before.style.sources.clone()),
            },
            no_lines: options.no_lines,
            no_inlined: options.no_inlined,
        };
        // A recorder accepts the current settings.
        if is_new || options.order == Order::Start {
            *self.wanted.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(wanted);
            self.methods.forget();
        }
        self.codes.open();
        let delivered = EVENTS.into_iter().try_for_each(|event| self.env.deliver(event, true));
        if let Err(error) = delivered {
            say(format_args!("the JVM does not report compiled code (JVMTI error {error})"));
            return None;
        }
        // Do not hold a lock while calling the JVM: others may join or leave in between.
        drop(audience);
        if when == Come::Late && (is_new || options.order == Order::Start) {
            self.replay();
        }
        Some(recorder)
    }

    /// Unregisters a recorder, or everyone.
    fn leave(&self, who: Option<Recorder>) {
        let mut audience = self.audience.lock().unwrap_or_else(PoisonError::into_inner);
        match who {
            Some(recorder) if recorder.stops != audience.stops => return,
            Some(_) => audience.recorders = audience.recorders.saturating_sub(1),
            None => *audience = Audience { stops: audience.stops + 1, ..Audience::default() },
        }
        if audience.user || audience.recorders > 0 {
            return;
        }
        for event in EVENTS {
            // A failure does not matter: events that still arrive are ignored.
            let _ = self.env.deliver(event, false);
        }
        self.codes.close();
        self.methods.forget();
    }

    pub(crate) fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Announces all code that exists.
    fn replay(&self) {
        let before = REPLAYS.replace(true);
        for event in [EVENT_DYNAMIC_CODE_GENERATED, EVENT_COMPILED_METHOD_LOAD] {
            if let Err(error) = self.env.replay(event) {
                say(format_args!("code that was compiled before is missing (JVMTI error {error})"));
            }
        }
        REPLAYS.set(before);
    }
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Free) };
    static REPLAYS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is making the JVM report its code again.
pub(crate) fn is_replaying() -> bool {
    REPLAYS.get()
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not in a callback.
    Free,
    /// In a callback from the JVM, and may hold a lock.
    Called,
    /// Like `Called`, and a replay is due when the callback is done.
    Owes,
}

/// Runs a callback from the JVM, and then a replay that became due in it.
pub(crate) fn called(then: impl FnOnce(&'static Agent)) {
    let Some(agent) = agent() else { return };
    let before = STATE.replace(State::Called);
    then(agent);
    if STATE.replace(before) == State::Owes {
        agent.replay();
    }
}

/// Replays all code, because the log was turned on from outside.
fn replay_soon() {
    if STATE.get() != State::Free {
        STATE.set(State::Owes);
    } else if let Some(agent) = agent() {
        let _ = agent.vm.attached(|| agent.replay());
    }
}

/// Writes a line to standard error: only when something is wrong.
pub(crate) fn say(what: impl std::fmt::Display) {
    // If standard error cannot be written, there is nothing else to do.
    let _ = writeln!(std::io::stderr(), "jitscribe: {what}");
}

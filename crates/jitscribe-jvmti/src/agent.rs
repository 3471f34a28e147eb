//! Start and stop.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use jitscribe::Scribe;

use crate::codes::Codes;
use crate::env::{Env, Vm};
use crate::events;
use crate::hold::Hold;
use crate::hotspot::CodeHeaps;
use crate::jvmti::{
    EVENT_COMPILED_METHOD_LOAD, EVENT_COMPILED_METHOD_UNLOAD, EVENT_DYNAMIC_CODE_GENERATED,
};
use crate::methods::{Methods, Style};
use crate::options::{Options, Order};
use crate::room::Spare;

/// When the agent is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Come {
    /// Before anything was compiled.
    First,
    /// While the JVM runs.
    Late,
}

/// The agent. There is one, from its first start until the process ends.
pub(crate) struct Agent {
    pub(crate) vm: Vm,
    pub(crate) env: Env,
    pub(crate) scribe: Scribe,
    pub(crate) codes: Codes,
    pub(crate) methods: Methods,
    pub(crate) room: Spare,
    /// `None` if this JVM is no HotSpot that is known.
    pub(crate) code_heaps: Option<CodeHeaps>,
    pub(crate) wanted: RwLock<Arc<Wanted>>,
    audience: Mutex<Audience>,
}

/// What is told of a method.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) style: Style,
    pub(crate) no_lines: bool,
    pub(crate) no_inlined: bool,
}

/// For whom code is announced.
#[derive(Debug, Default)]
struct Audience {
    /// Whoever started it.
    user: bool,
    /// How many record.
    recorders: u32,
    /// How often all were sent away.
    stops: u32,
}

/// One who records, since the last stop of so many.
#[derive(Clone, Copy)]
struct Recorder {
    stops: u32,
}

/// What the JVM is to tell.
const EVENTS: [c_int; 3] =
    [EVENT_COMPILED_METHOD_LOAD, EVENT_COMPILED_METHOD_UNLOAD, EVENT_DYNAMIC_CODE_GENERATED];

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, if it was ever started.
pub(crate) fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Does what the options ask for. Returns whether it could be done.
pub(crate) fn obey(vm: Vm, options: Options, when: Come) -> bool {
    options.wrong.iter().for_each(say);
    if options.order == Order::Stop {
        if let Some(agent) = agent() {
            agent.leave(None);
        }
        return true;
    }
    let hold = match options.hold.as_deref().map(Hold::open) {
        // Who wanted to record has given up meanwhile.
        Some(None) => return false,
        hold => hold.flatten(),
    };
    let known = agent();
    let Some(agent) = known.or_else(|| Agent::make(vm, &options)) else { return false };
    if known.is_some() && options.is_for_scribe() {
        say(
            "what is announced to whom was settled when the agent came first: jitscribe ctl changes it",
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
    fn make(vm: Vm, options: &Options) -> Option<&'static Self> {
        let Some(env) = vm.jvmti() else {
            say("the JVM has no JVMTI 1.2: no code is announced");
            return None;
        };
        if let Err(error) = env.prepare(&events::CALLBACKS) {
            say(format_args!("the JVM tells nothing of compiled code (JVMTI error {error})"));
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

    /// Somebody wants code announced.
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
        // Who records takes what there is.
        if is_new || options.order == Order::Start {
            *self.wanted.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(wanted);
            self.methods.forget();
        }
        self.codes.open();
        let delivered = EVENTS.into_iter().try_for_each(|event| self.env.deliver(event, true));
        if let Err(error) = delivered {
            say(format_args!("the JVM tells nothing of compiled code (JVMTI error {error})"));
            return None;
        }
        // Others may come and go meanwhile: the JVM is not asked with a lock held.
        drop(audience);
        if when == Come::Late && (is_new || options.order == Order::Start) {
            self.replay();
        }
        Some(recorder)
    }

    /// One who records wants it no more; or nobody is to have it any more.
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
            // Of no consequence: what comes nevertheless is not taken.
            let _ = self.env.deliver(event, false);
        }
        self.codes.close();
        self.methods.forget();
    }

    pub(crate) fn wanted(&self) -> Arc<Wanted> {
        Arc::clone(&self.wanted.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Announces all that is there.
    fn replay(&self) {
        let before = REPLAYS.replace(true);
        for event in [EVENT_DYNAMIC_CODE_GENERATED, EVENT_COMPILED_METHOD_LOAD] {
            if let Err(error) = self.env.replay(event) {
                say(format_args!("what was compiled before is not told (JVMTI error {error})"));
            }
        }
        REPLAYS.set(before);
    }
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Free) };
    static REPLAYS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread has the JVM tell anew.
pub(crate) fn is_replaying() -> bool {
    REPLAYS.get()
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not here.
    Free,
    /// It was called by the JVM, and may have a lock.
    Called,
    /// The same, and all is to be announced anew when it is done.
    Owes,
}

/// Runs what the JVM called, and afterwards what came up meanwhile.
pub(crate) fn called(then: impl FnOnce(&'static Agent)) {
    let Some(agent) = agent() else { return };
    let before = STATE.replace(State::Called);
    then(agent);
    if STATE.replace(before) == State::Owes {
        agent.replay();
    }
}

/// The log was turned on from outside: all is to be announced anew.
fn replay_soon() {
    if STATE.get() != State::Free {
        STATE.set(State::Owes);
    } else if let Some(agent) = agent() {
        let _ = agent.vm.attached(|| agent.replay());
    }
}

/// A line on standard error: only where something is wrong.
pub(crate) fn say(what: impl std::fmt::Display) {
    // Where nobody listens, nothing is to be done.
    let _ = writeln!(std::io::stderr(), "jitscribe: {what}");
}

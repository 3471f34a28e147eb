//! Start and stop of the agent.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use guest::SessionPipe;
use jitscribe::Scribe;

use crate::codes::Codes;
use crate::env::{Env, Vm};
use crate::hotspot::HotSpot;
use crate::interpreted::InterpretedMethods;
use crate::jvmti::{
    Callbacks, EVENT_CLASS_PREPARE, EVENT_COMPILED_METHOD_LOAD, EVENT_COMPILED_METHOD_UNLOAD,
    EVENT_DYNAMIC_CODE_GENERATED, EVENT_VM_DEATH,
};
use crate::methods::{Methods, Style};
use crate::options::{Command, Options};
use crate::scratch::ScratchPool;

/// When the agent is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attach {
    /// Before anything is compiled.
    OnLoad,
    /// While the JVM runs.
    OnAttach,
}

/// The agent. There is only one, from its first start until the process ends.
pub(crate) struct Agent {
    pub(crate) vm: Vm,
    pub(crate) env: Env,
    pub(crate) scribe: Scribe,
    pub(crate) codes: Codes,
    pub(crate) methods: Methods,
    pub(crate) scratch: ScratchPool,
    pub(crate) interpreted: InterpretedMethods,
    pub(crate) hotspot: HotSpot,
    pub(crate) config: RwLock<Arc<Config>>,
    sessions: Mutex<Sessions>,
}

/// What to announce about a method.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) style: Style,
    pub(crate) no_lines: bool,
    pub(crate) no_inlined: bool,
}

/// For whom code is announced.
#[derive(Debug, Default)]
struct Sessions {
    /// Whether the user started the agent.
    user: bool,
    /// Whether the user wants interpreted methods, too.
    user_interpreted: bool,
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

/// The events that the agent needs for methods that are not compiled.
const EVENTS_OF_CLASSES: [c_int; 2] = [EVENT_CLASS_PREPARE, EVENT_VM_DEATH];

/// The events that the agent needs.
const EVENTS: [c_int; 3] =
    [EVENT_COMPILED_METHOD_LOAD, EVENT_COMPILED_METHOD_UNLOAD, EVENT_DYNAMIC_CODE_GENERATED];

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, if it was ever started.
pub(crate) fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Applies the options. `callbacks` receive the events. Returns whether that succeeded.
pub(crate) fn run_command(
    vm: Vm,
    options: Options,
    when: Attach,
    callbacks: &'static Callbacks,
) -> bool {
    options.invalid.iter().for_each(warn);
    if options.command == Command::Stop {
        if let Some(agent) = agent() {
            agent.leave(None);
        }
        return true;
    }
    let pipe = match options.session.as_deref().map(SessionPipe::open) {
        // The recorder has given up in the meantime.
        Some(None) => return false,
        pipe => pipe.flatten(),
    };
    let existing = agent();
    let Some(agent) = existing.or_else(|| Agent::create(vm, &options, callbacks)) else {
        return false;
    };
    if existing.is_some() && options.is_for_scribe() {
        warn(
            "publishers and log settings are fixed when the agent is first loaded; use jitscribe ctl to change them",
        );
    }
    let Some(recorder) = agent.join(options, when) else { return false };
    let Some(pipe) = pipe else { return true };
    let leave = move || {
        let _ = agent.vm.attached(|| agent.leave(Some(recorder)));
    };
    let is_watched = pipe.watch(leave);
    if !is_watched {
        leave();
    }
    is_watched
}

impl Agent {
    fn create(vm: Vm, options: &Options, callbacks: &Callbacks) -> Option<&'static Self> {
        let Some(env) = vm.jvmti() else {
            warn("the JVM has no JVMTI 1.2: no code is announced");
            return None;
        };
        if let Err(error) = env.prepare(callbacks) {
            warn(format_args!("the JVM does not report compiled code (JVMTI error {error})"));
            return None;
        }
        let builder = options.builder().notice(|notice| warn(notice)).replay(|_| request_replay());
        let scribe = builder.build();
        Some(AGENT.get_or_init(|| Self {
            vm,
            env,
            scribe,
            codes: Codes::default(),
            methods: Methods::default(),
            scratch: ScratchPool::default(),
            interpreted: InterpretedMethods::default(),
            hotspot: HotSpot::of(vm.library_address()),
            config: RwLock::default(),
            sessions: Mutex::default(),
        }))
    }

    /// Registers the user or a recorder.
    fn join(&'static self, options: Options, when: Attach) -> Option<Recorder> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let interpreted = options.interpreted;
        let is_new = !sessions.user && sessions.recorders == 0;
        match options.command {
            Command::Session => sessions.recorders += 1,
            _ => {
                sessions.user = true;
                sessions.user_interpreted |= interpreted;
            }
        }
        let recorder = Recorder { stops: sessions.stops };
        let before = self.config();
        let config = Config {
            style: Style {
                format: options.format.unwrap_or(before.style.format),
                sources: options.sources.unwrap_or_else(|| before.style.sources.clone()),
            },
            no_lines: options.no_lines,
            no_inlined: options.no_inlined,
        };
        // A recorder accepts the current settings.
        if is_new || options.command == Command::Start {
            *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
            self.methods.forget();
        }
        self.codes.open();
        let delivered = EVENTS.into_iter().try_for_each(|event| self.env.deliver(event, true));
        if let Err(error) = delivered {
            warn(format_args!("the JVM does not report compiled code (JVMTI error {error})"));
            return None;
        }
        if interpreted {
            self.open_interpreted();
        }
        // Do not hold a lock while calling the JVM: others may join or leave in between.
        drop(sessions);
        if when == Attach::OnAttach && (is_new || options.command == Command::Start) {
            self.replay();
        }
        Some(recorder)
    }

    /// Unregisters a recorder, or everyone.
    fn leave(&self, session: Option<Recorder>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        match session {
            Some(recorder) if recorder.stops != sessions.stops => return,
            Some(_) => sessions.recorders = sessions.recorders.saturating_sub(1),
            None => *sessions = Sessions { stops: sessions.stops + 1, ..Sessions::default() },
        }
        // A failure does not matter: events that still arrive are ignored.
        let ignore = |event| {
            let _ = self.env.deliver(event, false);
        };
        if !sessions.user_interpreted && sessions.recorders == 0 {
            EVENTS_OF_CLASSES.into_iter().for_each(ignore);
            self.interpreted.close();
        }
        if sessions.user || sessions.recorders > 0 {
            return;
        }
        EVENTS.into_iter().for_each(ignore);
        self.codes.close();
        self.methods.forget();
    }

    /// Announces methods that are not compiled, too.
    fn open_interpreted(&'static self) {
        if self.hotspot.classes.is_none() {
            warn("the frames of interpreted methods are not known in this JVM: they have no names");
            return;
        }
        // Without these events, there are still the classes that exist already.
        for event in EVENTS_OF_CLASSES {
            let _ = self.env.deliver(event, true);
        }
        if self.interpreted.open() {
            let watch = || self.interpreted.watch(|_| self.announce_interpreted());
            if let Err(error) = guest::spawn("jitscribe-java", watch) {
                warn(format_args!("interpreted methods have no names: no thread ({error})"));
            }
        }
    }

    /// Announces the methods of new classes.
    pub(crate) fn announce_interpreted(&self) {
        if let Some(classes) = &self.hotspot.classes {
            let config = self.config();
            self.interpreted.scan(classes, &self.scribe, &config.style, config.no_lines);
        }
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Announces all code that exists.
    fn replay(&self) {
        self.interpreted.again();
        let before = IS_REPLAYING.replace(true);
        for event in [EVENT_DYNAMIC_CODE_GENERATED, EVENT_COMPILED_METHOD_LOAD] {
            if let Err(error) = self.env.replay(event) {
                warn(format_args!(
                    "code that was compiled before is missing (JVMTI error {error})"
                ));
            }
        }
        IS_REPLAYING.set(before);
    }
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Outside) };
    static IS_REPLAYING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is making the JVM report its code again.
pub(crate) fn is_replaying() -> bool {
    IS_REPLAYING.get()
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not in a callback.
    Outside,
    /// In a callback from the JVM, and may hold a lock.
    InCallback,
    /// Like `InCallback`, and a replay is due when the callback is done.
    ReplayPending,
}

/// Runs a callback from the JVM, and then a replay that became due in it.
pub(crate) fn in_callback(then: impl FnOnce(&'static Agent)) {
    let Some(agent) = agent() else { return };
    let before = STATE.replace(State::InCallback);
    then(agent);
    if STATE.replace(before) == State::ReplayPending {
        agent.replay();
    }
}

/// Replays all code, because the log was turned on from outside.
fn request_replay() {
    if STATE.get() != State::Outside {
        STATE.set(State::ReplayPending);
    } else if let Some(agent) = agent() {
        let _ = agent.vm.attached(|| agent.replay());
    }
}

/// Writes a line to standard error: only when something is wrong.
pub(crate) fn warn(what: impl std::fmt::Display) {
    // If standard error cannot be written, there is nothing else to do.
    let _ = writeln!(std::io::stderr(), "jitscribe: {what}");
}

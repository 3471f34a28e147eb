//! V8's interface for C++ (`v8-callbacks.h`, `v8-isolate.h`), as far as it is the same in V8 10 to 14.
#![allow(unsafe_code, reason = "V8's functions, and what it passes by address")]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};

use crate::symbols::find;

/// An isolate: an instance of V8 with a heap and a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isolate(NonNull<c_void>);

// SAFETY: it is only a name here; what is called on other threads says so.
unsafe impl Send for Isolate {}

impl Isolate {
    /// Its address, by which it is known.
    pub(crate) fn address(self) -> usize {
        self.0.as_ptr().addr()
    }
}

/// What V8 says about code.
#[derive(Debug)]
pub(crate) enum Event<'e> {
    /// Code was created, or existed before.
    Added {
        /// Its address.
        address: u64,
        /// Its size in bytes.
        size: u64,
        /// Its name.
        name: &'e [u8],
        /// Its instructions; `None` if other threads may change them.
        bytes: Option<&'e [u8]>,
    },
    /// Code was moved.
    Moved {
        /// Where it was.
        from: u64,
        /// Where it is.
        to: u64,
    },
    /// Code is gone.
    Removed {
        /// Where it was.
        address: u64,
    },
}

/// Who listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    /// Is called for each event.
    pub(crate) event: fn(Event<'_>),
    /// Whether events are needed.
    pub(crate) is_on: fn() -> bool,
}

/// `JitCodeEvent::EventType`.
const CODE_ADDED: c_int = 0;
const CODE_MOVED: c_int = 1;
const CODE_REMOVED: c_int = 2;

/// `JitCodeEvent::CodeType`.
const JIT_CODE: c_int = 1;
const WASM_CODE: c_int = 2;

/// `kJitCodeEventDefault` and `kJitCodeEventEnumExisting`.
const NEW_ONLY: c_int = 0;
const ALSO_EXISTING: c_int = 1;

/// `JitCodeEvent`, without what follows the part that is read.
#[repr(C)]
struct RawEvent {
    kind: c_int,
    code_type: c_int,
    start: *const u8,
    size: usize,
    /// A handle of the script.
    _script: *const c_void,
    _user_data: *const c_void,
    _wasm_source: *const c_void,
    /// The name's address, or the address after a move.
    first: *const u8,
    /// The name's length.
    second: usize,
}

type GetCurrent = unsafe extern "C" fn() -> *mut c_void;
type SetHandler =
    unsafe extern "C" fn(*mut c_void, c_int, Option<unsafe extern "C" fn(*const RawEvent)>);
type Interrupt = unsafe extern "C" fn(*mut c_void, *mut c_void);
type RequestInterrupt = unsafe extern "C" fn(*mut c_void, Interrupt, *mut c_void);

/// The functions of V8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct V8 {
    get_current: GetCurrent,
    set_handler: SetHandler,
    request_interrupt: RequestInterrupt,
}

/// The functions, and who listens. A handler has no argument of its own.
static LISTENING: std::sync::OnceLock<(V8, Listener)> = std::sync::OnceLock::new();

impl V8 {
    /// The functions that this process exports, with a listener for all events.
    pub(crate) fn find(listener: Listener) -> Option<Self> {
        let get_current = find(c"_ZN2v87Isolate10GetCurrentEv")?;
        let set_handler = find(
            c"_ZN2v87Isolate22SetJitCodeEventHandlerENS_19JitCodeEventOptionsEPFvPKNS_12JitCodeEventEE",
        )?;
        let request_interrupt = find(c"_ZN2v87Isolate16RequestInterruptEPFvPS0_PvES2_")?;
        // SAFETY: the mangled names contain the types of the arguments. A method has its object as the first, and these return nothing, or a pointer.
        let v8 = unsafe {
            Self {
                get_current: std::mem::transmute::<*mut c_void, GetCurrent>(get_current.as_ptr()),
                set_handler: std::mem::transmute::<*mut c_void, SetHandler>(set_handler.as_ptr()),
                request_interrupt: std::mem::transmute::<*mut c_void, RequestInterrupt>(
                    request_interrupt.as_ptr(),
                ),
            }
        };
        Some(LISTENING.get_or_init(|| (v8, listener)).0)
    }

    /// The isolate that runs on this thread.
    pub(crate) fn current(self) -> Option<Isolate> {
        // SAFETY: it may be called on any thread.
        NonNull::new(unsafe { (self.get_current)() }).map(Isolate)
    }

    /// Has the isolate of this thread report the code that exists, before this returns, and all code that it creates later.
    pub(crate) fn listen(self, isolate: Isolate) {
        // SAFETY: the isolate is entered on this thread, as the caller is called by it. The handler is never unloaded.
        unsafe { (self.set_handler)(isolate.0.as_ptr(), ALSO_EXISTING, Some(on_event)) };
    }

    /// Has an isolate report nothing any more, as soon as it executes JavaScript.
    ///
    /// # Safety
    /// The isolate exists until this returns.
    pub(crate) unsafe fn forget_soon(self, isolate: Isolate) {
        // SAFETY: this may be called on any thread, while the isolate exists. The callback is never unloaded.
        unsafe { (self.request_interrupt)(isolate.0.as_ptr(), on_interrupt, null_mut()) };
    }
}

/// Called on the isolate's thread.
unsafe extern "C" fn on_interrupt(isolate: *mut c_void, _: *mut c_void) {
    let Some((v8, listener)) = LISTENING.get() else { return };
    // Another recorder may have come since.
    if !(listener.is_on)() {
        // SAFETY: the isolate, on its thread; V8 accepts that there is no handler.
        unsafe { (v8.set_handler)(isolate, NEW_ONLY, None) };
    }
}

/// Called by V8 on the isolate's thread, or while others wait for it.
unsafe extern "C" fn on_event(event: *const RawEvent) {
    let Some((_, listener)) = LISTENING.get() else { return };
    // SAFETY: V8 passes an event, which is not changed until this returns.
    let Some(event) = (unsafe { event.as_ref() }) else { return };
    // A panic costs one code its announcement.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as V8 passed it.
        if let Some(event) = unsafe { read(event) } {
            (listener.event)(event);
        }
    }));
}

/// What an event says; `None` if it is about something else.
///
/// # Safety
/// It describes a name and code that stay there as long as the result is used.
unsafe fn read(event: &RawEvent) -> Option<Event<'_>> {
    // Bytecode is not executed by the processor.
    if !matches!(event.code_type, JIT_CODE | WASM_CODE) {
        return None;
    }
    let address = event.start.addr() as u64;
    match event.kind {
        CODE_ADDED if event.size > 0 && !event.start.is_null() && !event.first.is_null() => {
            // SAFETY: as required.
            let name = unsafe { std::slice::from_raw_parts(event.first, event.second) };
            // SAFETY: as required. V8 changes code of JavaScript on the isolate's thread alone, but the jump tables of WebAssembly on any.
            let bytes = (event.code_type == JIT_CODE)
                .then(|| unsafe { std::slice::from_raw_parts(event.start, event.size) });
            Some(Event::Added { address, size: event.size as u64, name, bytes })
        }
        CODE_MOVED => Some(Event::Moved { from: address, to: event.first.addr() as u64 }),
        CODE_REMOVED => Some(Event::Removed { address }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::null;

    use super::*;

    #[test]
    fn events_are_read_by_their_type() {
        let code = [0xc3_u8; 8];
        let name = b"JS:*f";
        let mut event = RawEvent {
            kind: CODE_ADDED,
            code_type: JIT_CODE,
            start: code.as_ptr(),
            size: code.len(),
            _script: null(),
            _user_data: null(),
            _wasm_source: null(),
            first: name.as_ptr(),
            second: name.len(),
        };
        // SAFETY: what it describes is there.
        let read = |event: &RawEvent| format!("{:?}", unsafe { super::read(event) });
        let at = code.as_ptr().addr();
        let added = read(&event);
        assert!(added.starts_with(&format!("Some(Added {{ address: {at}, size: 8")), "{added}");
        assert!(added.contains("bytes: Some([195,"), "{added}");
        event.code_type = WASM_CODE;
        assert!(read(&event).contains("bytes: None"));
        for (kind, expected) in [(CODE_MOVED, "Some(Moved"), (CODE_REMOVED, "Some(Removed")] {
            assert!(read(&RawEvent { kind, ..event }).starts_with(expected));
        }
        // Positions of lines, and bytecode.
        for (kind, code_type) in [(3, JIT_CODE), (4, JIT_CODE), (CODE_ADDED, 0), (CODE_ADDED, 3)] {
            assert_eq!(read(&RawEvent { kind, code_type, ..event }), "None");
        }
        assert_eq!(read(&RawEvent { size: 0, ..event }), "None");
        assert_eq!(read(&RawEvent { first: null(), ..event }), "None");
    }

    #[test]
    fn a_process_without_v8_has_none() {
        assert!(V8::find(Listener { event: |_| (), is_on: || false }).is_none());
    }
}

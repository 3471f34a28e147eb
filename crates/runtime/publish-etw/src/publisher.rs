//! The publisher, which a runtime calls, and its settings.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

use fallible::{Map, Refused, Vec};
use jit_code::Code;

use crate::api::{
    CAPTURE_STATE, DATA, DISABLE, DataDescriptor, ENABLE, EVENT_METADATA, EventDescriptor,
    Functions, Guid, PROVIDER_METADATA, SET_TRAITS,
};
use crate::error::Error;
use crate::metadata::{
    KEYWORD, LEVEL, METHOD_LOAD, METHOD_LOAD_FIELDS, PROVIDER, SOURCE_LOAD, SOURCE_LOAD_FIELDS,
    TRAITS,
};
use crate::text::{hash, utf16};

/// Called when a recording begins.
type WhenEnabled = Box<dyn Fn(&Etw) + Send + Sync>;

/// Settings of the publisher.
#[derive(Default)]
pub struct Options {
    when_enabled: Option<WhenEnabled>,
    /// Whether an allocation for one of the settings failed.
    is_refused: bool,
}

impl Options {
    /// Nothing is called.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what is called when a recording begins, or asks for what is alive: it [loads](Etw::load) each live code. It is called on a
    /// thread of the system, with no lock held, while other threads may load code.
    #[must_use]
    pub fn when_enabled(mut self, called: impl Fn(&Etw) + Send + Sync + 'static) -> Self {
        match fallible::boxed(called) {
            Ok(called) => self.when_enabled = Some(called),
            Err(_) => self.is_refused = true,
        }
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// Reports code to the recordings of the system. See the [crate's documentation](crate).
///
/// Every method may be called from any thread at any time. None fails.
pub struct Etw {
    /// From a `Box`. The system has its address too: it does not move, and is freed when the provider is not registered any more.
    state: NonNull<State>,
}

// SAFETY: the state is only accessed by shared references, and is `Sync`; see below.
unsafe impl Send for Etw {}
// SAFETY: as above.
unsafe impl Sync for Etw {}
const _: () = {
    const fn is_sync<T: Send + Sync>() {}
    is_sync::<State>();
};

struct State {
    functions: Functions,
    /// Of the provider; 0 while it is not registered.
    handle: AtomicI64,
    /// Whether a recording wants the events.
    is_enabled: AtomicBool,
    /// Whether an allocation failed: nothing is reported any more.
    is_off: AtomicBool,
    /// Whether an allocation failed and this was not queried yet.
    is_refused: AtomicBool,
    /// The sources that the recordings of now know.
    sources: Mutex<Map<u64, ()>>,
    when_enabled: Option<WhenEnabled>,
}

impl Etw {
    /// Registers the provider.
    ///
    /// # Errors
    /// The system has no ETW, or does not register the provider; or an allocation failed.
    pub fn create(options: Options) -> Result<Self, Error> {
        let functions = Functions::of_system().ok_or(Error::NotWindows)?;
        // SAFETY: they are the system's.
        unsafe { Self::with_functions(functions, options) }
    }

    /// The same with other functions.
    ///
    /// # Errors
    /// As those of [`Self::create`].
    ///
    /// # Safety
    /// They do what the system's functions do.
    pub unsafe fn with_functions(functions: Functions, options: Options) -> Result<Self, Error> {
        if options.is_refused {
            return Err(Error::Memory);
        }
        let state = State {
            functions,
            handle: AtomicI64::new(0),
            is_enabled: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            sources: Mutex::default(),
            when_enabled: options.when_enabled,
        };
        let state = fallible::boxed(state).map_err(|_| Error::Memory)?;
        let etw = Self { state: NonNull::from(Box::leak(state)) };
        let context = etw.state.as_ptr().cast_const().cast();
        let mut handle = 0;
        // SAFETY: the callback gets the state, which stays where it is until `drop` unregisters the provider.
        let error = unsafe { (functions.register)(&PROVIDER, enabled, context, &raw mut handle) };
        if error != 0 {
            return Err(Error::NotRegistered(error));
        }
        // Old systems do not know this. Then readers know the provider by its GUID.
        // SAFETY: the traits are a static of this size.
        let _ = unsafe {
            (functions.set_information)(
                handle,
                SET_TRAITS,
                TRAITS.as_ptr().cast(),
                TRAITS.len() as u32,
            )
        };
        etw.state().handle.store(handle, Release);
        // A recording that was there before called back while the handle was not known: nothing is alive yet that it should get.
        Ok(etw)
    }

    fn state(&self) -> &State {
        // SAFETY: it exists until this value is dropped, and nobody has a mutable reference.
        unsafe { self.state.as_ref() }
    }

    /// Whether a recording wants the events.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.state().is_enabled.load(Relaxed) && !self.state().is_off.load(Relaxed)
    }

    /// Whether an allocation failed since the last call. In this case nothing is reported any more.
    pub fn take_refusal(&self) -> bool {
        self.state().is_refused.load(Relaxed) && self.state().is_refused.swap(false, Relaxed)
    }

    /// Reports nothing from now on, as if an allocation had failed.
    pub fn give_up(&self) {
        self.state().is_off.store(true, Relaxed);
        self.state().is_refused.store(true, Relaxed);
    }

    /// Reports a code, before it runs. For a code that has moved, call it with the new address.
    pub fn load(&self, code: &Code<'_>) {
        if self.is_enabled()
            && let Err(Refused) =
                fallible::attempt(|| self.state().report(code)).and_then(|reported| reported)
        {
            self.give_up();
        }
    }
}

impl State {
    fn report(&self, code: &Code<'_>) -> Result<(), Refused> {
        // Everything is allocated before anything is written.
        let name = utf16(code.name);
        let (mut source, mut line, mut column) = (0, 0, 0);
        if let Some(first) = code.lines.first() {
            (source, line, column) = (hash(first.file), first.line, first.column);
            if self.is_new(source)? {
                let path = utf16(first.file);
                let (context, flags) = (0_usize, 0_u32);
                self.write(
                    &SOURCE_LOAD,
                    &SOURCE_LOAD_FIELDS,
                    [field(&source), field(&context), field(&flags), units(&path)],
                );
            }
        }
        let (context, address) = (0_usize, code.address as usize);
        let (id, none) = (0_u32, 0_u16);
        self.write(
            &METHOD_LOAD,
            &METHOD_LOAD_FIELDS,
            [
                field(&context),
                field(&address),
                field(&code.size),
                field(&id),
                field(&none),
                field(&none),
                field(&source),
                field(&line),
                field(&column),
                units(&name),
            ],
        );
        Ok(())
    }

    /// Whether the recordings do not know the source yet. The lock is not held while an event is written, so another thread's method may
    /// come before the source: readers look it up by its number at the end.
    fn is_new(&self, source: u64) -> Result<bool, Refused> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sources.try_insert(source, ()).map_err(|(refused, ())| refused)?;
        Ok(before.is_none())
    }

    /// Writes an event. One that the system does not take (its buffers are full, or the event is too large) is lost, as any event is.
    fn write<const N: usize>(
        &self,
        event: &EventDescriptor,
        metadata: &[u8],
        fields: [DataDescriptor; N],
    ) {
        /// As many as the events above have.
        const MOST: usize = 12;
        let handle = self.handle.load(Acquire);
        if handle == 0 {
            return;
        }
        let mut all = [part(&[], DATA); MOST];
        let about = [part(&TRAITS, PROVIDER_METADATA), part(metadata, EVENT_METADATA)];
        let parts = about.into_iter().chain(fields);
        let mut count = 0;
        for (place, part) in all.iter_mut().zip(parts) {
            (*place, count) = (part, count + 1);
        }
        // SAFETY: each part is memory of its size, which its owner keeps during the call.
        unsafe { (self.functions.write)(handle, event, count, all.as_ptr()) };
    }
}

fn part(bytes: &[u8], kind: u32) -> DataDescriptor {
    DataDescriptor {
        address: bytes.as_ptr().expose_provenance() as u64,
        size: bytes.len() as u32,
        kind,
    }
}

/// The value of a field: a number.
fn field<T: Copy>(value: &T) -> DataDescriptor {
    let address = std::ptr::from_ref(value).expose_provenance() as u64;
    DataDescriptor { address, size: size_of::<T>() as u32, kind: DATA }
}

/// The value of a field: UTF-16 with NUL.
fn units(text: &Vec<u16>) -> DataDescriptor {
    DataDescriptor {
        address: text.as_ptr().expose_provenance() as u64,
        size: (text.len() * size_of::<u16>()) as u32,
        kind: DATA,
    }
}

/// The system's callback: a recording begins or ends, or wants to know what is alive.
unsafe extern "system" fn enabled(
    _: *const Guid,
    control: u32,
    level: u8,
    any: u64,
    all: u64,
    _: *const c_void,
    context: *mut c_void,
) {
    let Some(pointer) = NonNull::new(context.cast::<State>()) else { return };
    // SAFETY: it is the state of an `Etw`, which unregisters the provider, and so waits for the callback, before it frees the state.
    let state = unsafe { pointer.as_ref() };
    match control {
        DISABLE => {
            state.is_enabled.store(false, Relaxed);
            return;
        }
        ENABLE => {
            // As the system itself decides for each event. 0 means all levels, and all keywords.
            let has_level = level == 0 || level >= LEVEL;
            let has_keyword = (any == 0 || any & KEYWORD != 0) && all & !KEYWORD == 0;
            state.is_enabled.store(has_level && has_keyword, Relaxed);
        }
        CAPTURE_STATE => {}
        _ => return,
    }
    if !state.is_enabled.load(Relaxed) || state.handle.load(Acquire) == 0 {
        return;
    }
    // A recording that begins now has no source yet.
    state.sources.lock().unwrap_or_else(PoisonError::into_inner).clear();
    if let Some(called) = &state.when_enabled {
        // Not dropped: it is the same one as its owner's.
        let etw = std::mem::ManuallyDrop::new(Etw { state: pointer });
        // A panic must not get into the system.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| called(&etw)));
    }
}

impl Drop for Etw {
    fn drop(&mut self) {
        let handle = self.state().handle.swap(0, Relaxed);
        if handle != 0 {
            // SAFETY: it was registered, and is unregistered once.
            unsafe { (self.state().functions.unregister)(handle) };
        }
        // SAFETY: it is from a `Box`, and nobody has its address any more.
        drop(unsafe { Box::from_raw(self.state.as_ptr()) });
    }
}

impl fmt::Debug for Etw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etw").field("is_enabled", &self.is_enabled()).finish_non_exhaustive()
    }
}

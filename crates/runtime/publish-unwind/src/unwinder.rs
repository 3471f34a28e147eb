//! One unwinder of the process, and what is registered with it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use fallible::Refused;
use jit_code::Code;

use crate::entries::{Entry, Frames, entries};
use crate::functions::{Functions, Kind};
use crate::libunwind::{self, Libunwind};
use crate::llvm::{Llvm, Object};
use crate::regions::Regions;
use crate::singles::Singles;

/// The registrations with one unwinder. Its methods are those of [`Unwinders`](crate::Unwinders).
#[derive(Debug)]
pub(crate) struct Unwinder {
    functions: Functions,
    /// Whether code is registered with nongnu's libunwind, too.
    with_libunwind: bool,
    registrations: Mutex<Registrations>,
    /// Whether [`Llvm::use_object`] should be called.
    is_object_wanted: AtomicBool,
    /// Whether a fork left the state with a thread that does not exist in this process: it is not touched again.
    is_lost: AtomicBool,
    /// Whether an allocation failed: nothing is registered any more.
    is_off: AtomicBool,
    /// Whether an allocation failed and this was not queried yet.
    is_refused: AtomicBool,
}

/// The registered frames.
#[derive(Debug)]
struct Registrations {
    frames: FrameRegistry,
    /// libunwind, if all frames are registered with it in addition to the other unwinder.
    libunwind: Option<&'static Libunwind>,
}

#[derive(Debug)]
enum FrameRegistry {
    Singles(Singles),
    Regions(Regions),
    Llvm(Llvm),
}

impl Unwinder {
    pub(crate) fn new(functions: Functions, with_libunwind: bool) -> Self {
        let frames = match functions.kind {
            Kind::OldLibgcc => FrameRegistry::Regions(Regions::default()),
            Kind::Libgcc => FrameRegistry::Singles(Singles::default()),
            Kind::Llvm => FrameRegistry::Llvm(Llvm::default()),
        };
        let registrations = Registrations { frames, libunwind: None };
        Self {
            functions,
            with_libunwind,
            registrations: Mutex::new(registrations),
            is_object_wanted: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Registers nothing from now on, and removes all registrations, as if an allocation had failed.
    pub(crate) fn give_up(&self) {
        if let Some(mut registrations) = self.lock() {
            self.turn_off(&mut registrations);
        }
    }

    /// Whether an allocation failed since the last call. In this case all registrations were removed, and nothing is registered
    /// any more.
    pub(crate) fn take_refusal(&self) -> bool {
        self.is_refused.load(Relaxed) && self.is_refused.swap(false, Relaxed)
    }

    /// The kind of unwinder.
    pub(crate) fn kind(&self) -> Kind {
        self.functions.kind
    }

    /// Announces a code load. The code must not run before this returns. Earlier code at its address is unregistered. Code
    /// without unwind info is skipped.
    pub(crate) fn load(&self, code: &Code<'_>) {
        if self.is_off.load(Relaxed) {
            return;
        }
        let entries = fallible::attempt(|| entries(code));
        let libunwind = if self.with_libunwind { libunwind::look() } else { None };
        let is_object_wanted =
            self.is_object_wanted.load(Relaxed) && self.is_object_wanted.swap(false, Relaxed);
        let object = if is_object_wanted { Object::load() } else { None };
        let Some(mut registrations) = self.lock() else { return };
        let result = entries.and_then(|entries| {
            fallible::attempt(|| {
                registrations.use_object(object)?;
                self.register_entries(&mut registrations, code, &entries, libunwind)
            })
            .and_then(|result| result)
        });
        if let Err(Refused) = result {
            self.turn_off(&mut registrations);
        }
    }

    /// Stops registering.
    fn turn_off(&self, registrations: &mut Registrations) {
        self.is_off.store(true, Relaxed);
        self.is_refused.store(true, Relaxed);
        registrations.end();
    }

    fn register_entries(
        &self,
        registrations: &mut Registrations,
        code: &Code<'_>,
        entries: &[Entry],
        libunwind: Option<&'static Libunwind>,
    ) -> Result<(), Refused> {
        if let Some(libunwind) = libunwind.filter(|_| registrations.libunwind.is_none()) {
            registrations.begin(libunwind)?;
        }
        if entries.is_empty() {
            registrations.forget(
                self.functions,
                code.address,
                code.address.saturating_add(code.size),
            )?;
        }
        for entry in entries {
            match &mut registrations.frames {
                FrameRegistry::Singles(singles) => singles.add(self.functions, entry)?,
                FrameRegistry::Regions(regions) => regions.add(self.functions, entry)?,
                FrameRegistry::Llvm(llvm) => {
                    llvm.add(self.functions, entry)?;
                    if llvm.wants_object() {
                        self.is_object_wanted.store(true, Relaxed);
                    }
                }
            }
            if let (Some(libunwind), Some(frames)) = (registrations.libunwind, entry.frames()) {
                libunwind.add(frames)?;
            }
        }
        Ok(())
    }

    /// Announces the unload of the code at `address` with `size` bytes, which does not run any more, nor is on any stack.
    pub(crate) fn unload(&self, address: u64, size: u64) {
        if let Some(mut registrations) = self.lock() {
            let end = address.saturating_add(size);
            let forgotten =
                fallible::attempt(|| registrations.forget(self.functions, address, end))
                    .and_then(|result| result);
            if let Err(Refused) = forgotten {
                self.turn_off(&mut registrations);
            }
        }
    }

    /// Call this in the child of a fork, on its only thread, before anything else. The registrations of the parent are valid in
    /// the child, too. If another thread was in a method of this value at the fork, the value is left unchanged for ever.
    pub(crate) fn forked(&self) {
        if let Err(TryLockError::WouldBlock) = self.registrations.try_lock() {
            self.is_lost.store(true, Relaxed);
        } else if let Some(libunwind) =
            self.lock().and_then(|registrations| registrations.libunwind)
        {
            libunwind.forked();
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Registrations>> {
        if self.is_lost.load(Relaxed) || self.is_off.load(Relaxed) {
            return None;
        }
        Some(self.registrations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Registrations {
    /// Registers all existing code with libunwind.
    fn begin(&mut self, libunwind: &'static Libunwind) -> Result<(), Refused> {
        self.libunwind = Some(libunwind);
        let mut result = Ok(());
        self.frames.each(|frames| {
            if result.is_ok() {
                result = libunwind.add(frames);
            }
        });
        result
    }

    /// Removes all registrations.
    fn end(&mut self) {
        if let Some(libunwind) = self.libunwind.take() {
            self.frames.each(|frames| libunwind.forget(frames.start, frames.end));
        }
        self.frames = match self.frames {
            FrameRegistry::Singles(_) => FrameRegistry::Singles(Singles::default()),
            FrameRegistry::Regions(_) => FrameRegistry::Regions(Regions::default()),
            FrameRegistry::Llvm(_) => FrameRegistry::Llvm(Llvm::default()),
        };
    }

    fn use_object(&mut self, object: Option<Object>) -> Result<(), Refused> {
        match (object, &mut self.frames) {
            (Some(object), FrameRegistry::Llvm(llvm)) => llvm.use_object(object),
            _ => Ok(()),
        }
    }

    fn forget(&mut self, functions: Functions, start: u64, end: u64) -> Result<(), Refused> {
        match &mut self.frames {
            FrameRegistry::Singles(singles) => singles.forget(start, end),
            FrameRegistry::Regions(regions) => regions.forget(functions, start, end)?,
            FrameRegistry::Llvm(llvm) => llvm.forget(start, end)?,
        }
        if let Some(libunwind) = self.libunwind {
            libunwind.forget(start, end);
        }
        Ok(())
    }
}

impl Drop for Registrations {
    fn drop(&mut self) {
        self.end();
    }
}

impl FrameRegistry {
    fn each(&self, register_entries: impl FnMut(Frames<'_>)) {
        match self {
            Self::Singles(singles) => singles.all().for_each(register_entries),
            Self::Regions(regions) => regions.all().for_each(register_entries),
            Self::Llvm(llvm) => llvm.all().for_each(register_entries),
        }
    }
}

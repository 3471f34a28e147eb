//! Calls to the JVM. Memory that it allocates is freed.
#![allow(unsafe_code, reason = "the JVM's interface is one of C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};

use crate::jvmti::{
    self, Callbacks, Capabilities, Class, DISABLE, ENABLE, Error, Functions, JNI_VERSION_1_6,
    JVMTI_VERSION_1_2, Jni, LineNumber, MethodId, OK,
};

/// The JVM of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vm(NonNull<jvmti::Vm>);

// SAFETY: the JVM accepts calls with this pointer from any thread; it is valid until the process ends.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

/// A JVMTI environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Env(NonNull<jvmti::Env>);

// SAFETY: JVMTI accepts calls with this pointer from any thread; it is never disposed of here.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}

impl Vm {
    /// # Safety
    /// `vm` is the JVM's pointer, or null.
    pub(crate) unsafe fn new(vm: *mut jvmti::Vm) -> Option<Self> {
        NonNull::new(vm).map(Self)
    }

    fn functions(&self) -> &jvmti::VmFunctions {
        // SAFETY: by `new`, it points to a pointer to the table; both are valid until the process ends.
        unsafe { &*self.0.as_ref().functions }
    }

    /// An address within the JVM's library.
    pub(crate) fn library_address(&self) -> *const c_void {
        self.functions().get_env as *const c_void
    }

    fn env(&self, version: c_int) -> Option<NonNull<c_void>> {
        let mut env = null_mut();
        // SAFETY: the JVM's own pointer; `env` is an out-parameter.
        let got = unsafe { (self.functions().get_env)(self.0.as_ptr(), &raw mut env, version) };
        (got == OK).then(|| NonNull::new(env)).flatten()
    }

    /// A new environment, which the JVM does not free before it ends.
    pub(crate) fn jvmti(&self) -> Option<Env> {
        self.env(JVMTI_VERSION_1_2).map(|env| Env(env.cast()))
    }

    /// Calls `then` on a thread that the JVM knows: directly, if this already is one, else attached during the call.
    pub(crate) fn attached<T>(&self, then: impl FnOnce() -> T) -> Option<T> {
        if self.env(JNI_VERSION_1_6).is_some() {
            return Some(then());
        }
        let functions = self.functions();
        let mut env = null_mut();
        // SAFETY: the JVM's own pointer; no arguments are needed.
        let attached = unsafe {
            (functions.attach_current_thread_as_daemon)(self.0.as_ptr(), &raw mut env, null_mut())
        };
        (attached == OK).then(|| {
            let done = then();
            // SAFETY: this thread was attached above, and has no Java frame.
            let _ = unsafe { (functions.detach_current_thread)(self.0.as_ptr()) };
            done
        })
    }

    /// Releases a local reference to a class that this thread got.
    fn release(&self, class: Class) {
        if let Some(env) = self.env(JNI_VERSION_1_6).map(NonNull::cast::<Jni>) {
            // SAFETY: the environment is this thread's; `class` is a local reference of this thread that is not used
            // any more.
            unsafe { ((*env.as_ref().functions).delete_local_ref)(env.as_ptr(), class) };
        }
    }
}

impl Env {
    fn functions(&self) -> &Functions {
        // SAFETY: by `Vm::jvmti`, it points to a pointer to the table; both are valid until the process ends.
        unsafe { &*self.0.as_ref().functions }
    }

    /// Makes the JVM deliver the events of `callbacks`.
    pub(crate) fn prepare(&self, callbacks: &Callbacks) -> Result<(), Error> {
        let capabilities = Capabilities::of(&[
            Capabilities::GET_SOURCE_FILE_NAME,
            Capabilities::GET_LINE_NUMBERS,
            Capabilities::GENERATE_COMPILED_METHOD_LOAD_EVENTS,
        ]);
        let (env, functions) = (self.0.as_ptr(), self.functions());
        // SAFETY: a valid environment, and structures of the given sizes.
        unsafe {
            result((functions.add_capabilities)(env, &raw const capabilities))?;
            result((functions.set_event_callbacks)(env, callbacks, size_of::<Callbacks>() as c_int))
        }
    }

    /// Turns an event on or off for all threads.
    pub(crate) fn deliver(&self, event: c_int, is_on: bool) -> Result<(), Error> {
        let mode = if is_on { ENABLE } else { DISABLE };
        let set = self.functions().set_event_notification_mode;
        // SAFETY: a valid environment; a null thread stands for all of them.
        result(unsafe { set(self.0.as_ptr(), mode, event, null_mut()) })
    }

    /// Makes the JVM deliver an event again for all that exists, on this thread, before this returns.
    pub(crate) fn replay(&self, event: c_int) -> Result<(), Error> {
        // SAFETY: a valid environment.
        result(unsafe { (self.functions().generate_events)(self.0.as_ptr(), event) })
    }

    /// A method's name. The descriptor is not requested, because the JVM would have to print it.
    pub(crate) fn name(&self, method: MethodId) -> Option<Allocated> {
        let mut name = null_mut();
        let get = self.functions().get_method_name;
        // SAFETY: a valid environment, an id that the JVM checks, an out-parameter; the others are null.
        let got = unsafe { get(self.0.as_ptr(), method, &raw mut name, null_mut(), null_mut()) };
        result(got).ok()?;
        Allocated::new(*self, name)
    }

    /// A method's descriptor: `(I[Ljava/lang/String;)V`.
    pub(crate) fn descriptor(&self, method: MethodId) -> Option<Allocated> {
        let mut descriptor = null_mut();
        let get = self.functions().get_method_name;
        // SAFETY: as for `name`.
        let got =
            unsafe { get(self.0.as_ptr(), method, null_mut(), &raw mut descriptor, null_mut()) };
        result(got).ok()?;
        Allocated::new(*self, descriptor)
    }

    /// Whether two methods have the same name and descriptor, and their classes the same name.
    pub(crate) fn have_same_name(&self, vm: Vm, one: MethodId, other: MethodId) -> bool {
        let called = |method| {
            let (name, descriptor) = (self.name(method)?, self.descriptor(method)?);
            let class = self.class_of(vm, method, |class| class.signature())?;
            Some([class, name, descriptor])
        };
        let (Some(one), Some(other)) = (called(one), called(other)) else { return false };
        one.iter().zip(&other).all(|(one, other)| one.bytes() == other.bytes())
    }

    /// The result of `inspect` for the class that declares a method.
    pub(crate) fn class_of<T>(
        &self,
        vm: Vm,
        method: MethodId,
        inspect: impl FnOnce(&ClassOf<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut class = null_mut();
        // SAFETY: a valid environment, an id that the JVM checks, an out-parameter.
        result(unsafe {
            (self.functions().get_method_declaring_class)(self.0.as_ptr(), method, &raw mut class)
        })
        .ok()?;
        let inspected = inspect(&ClassOf { env: self, class });
        vm.release(class);
        inspected
    }

    /// Calls `take` with a method's line table.
    pub(crate) fn lines<T>(
        &self,
        method: MethodId,
        take: impl FnOnce(&[LineNumber]) -> T,
    ) -> Option<T> {
        let (mut count, mut table) = (0, null_mut());
        let get = self.functions().get_line_number_table;
        // SAFETY: a valid environment, an id that the JVM checks, out-parameters.
        result(unsafe { get(self.0.as_ptr(), method, &raw mut count, &raw mut table) }).ok()?;
        let table = Table { env: *self, entries: NonNull::new(table)? };
        let count = usize::try_from(count).ok()?;
        // SAFETY: the JVM has written this many entries there; they are freed when `table` is dropped, which is later.
        Some(take(unsafe { std::slice::from_raw_parts(table.entries.as_ptr(), count) }))
    }

    fn deallocate(&self, memory: *mut u8) {
        // SAFETY: called once for each block that this environment allocated.
        let _ = unsafe { (self.functions().deallocate)(self.0.as_ptr(), memory) };
    }
}

/// A class, while it is inspected.
pub(crate) struct ClassOf<'a> {
    env: &'a Env,
    class: Class,
}

impl ClassOf<'_> {
    /// `Ljava/lang/String;`.
    pub(crate) fn signature(&self) -> Option<Allocated> {
        let mut signature = null_mut();
        let get = self.env.functions().get_class_signature;
        // SAFETY: a valid environment, a live reference, an out-parameter; the other is null.
        result(unsafe { get(self.env.0.as_ptr(), self.class, &raw mut signature, null_mut()) })
            .ok()?;
        Allocated::new(*self.env, signature)
    }

    /// `String.java`.
    pub(crate) fn source(&self) -> Option<Allocated> {
        let mut name = null_mut();
        let get = self.env.functions().get_source_file_name;
        // SAFETY: a valid environment, a live reference, an out-parameter.
        result(unsafe { get(self.env.0.as_ptr(), self.class, &raw mut name) }).ok()?;
        Allocated::new(*self.env, name)
    }
}

/// A string that the JVM allocated.
pub(crate) struct Allocated {
    env: Env,
    text: NonNull<c_char>,
}

impl Allocated {
    fn new(env: Env, text: *mut c_char) -> Option<Self> {
        NonNull::new(text).map(|text| Self { env, text })
    }

    /// Modified UTF-8.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a NUL-terminated string of the JVM, which is freed when this is dropped.
        unsafe { CStr::from_ptr(self.text.as_ptr()) }.to_bytes()
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        self.env.deallocate(self.text.as_ptr().cast());
    }
}

struct Table {
    env: Env,
    entries: NonNull<LineNumber>,
}

impl Drop for Table {
    fn drop(&mut self) {
        self.env.deallocate(self.entries.as_ptr().cast());
    }
}

/// The string at `text`; empty if that is null.
///
/// # Safety
/// It is NUL-terminated, and lives as long as the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: as required above.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// The slice of `count` values at `first`; empty if that is null.
///
/// # Safety
/// `count` values are there, and stay as long as the result is used.
pub(crate) unsafe fn slice<'a, T>(first: *const T, count: c_int) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: as required above.
        Ok(count) if !first.is_null() => unsafe { std::slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

fn result(error: Error) -> Result<(), Error> {
    if error == OK { Ok(()) } else { Err(error) }
}

//! The publisher, which a runtime calls.

use jit_code::Code;

use crate::functions::{Functions, Kind};
use crate::unwinder::Unwinder;

/// The registrations of jitted code with the unwinders in the process. See the [crate's documentation](crate).
///
/// Every method may be called from any thread, except from signal handlers. None fails: code that cannot be described is left
/// out.
#[derive(Debug)]
pub struct Unwinders {
    first: Unwinder,
    /// A second one, which the program was linked with while its libraries use the first (`gcc -static-libgcc`).
    second: Option<Unwinder>,
}

impl Unwinders {
    /// Looks for the unwinders of this process; `None` if there is none that accepts registrations.
    #[must_use]
    pub fn find() -> Option<Self> {
        let [first, second] = Functions::look();
        Some(Self {
            first: Unwinder::new(first?, true),
            second: second.map(|functions| Unwinder::new(functions, false)),
        })
    }

    /// Registers nothing from now on, and removes all registrations, as if an allocation had failed.
    pub fn give_up(&self) {
        self.each().for_each(Unwinder::give_up);
    }

    /// Whether an allocation failed since the last call. In this case all registrations were removed, and nothing is registered
    /// any more.
    pub fn take_refusal(&self) -> bool {
        self.each().fold(false, |any, unwinder| unwinder.take_refusal() | any)
    }

    /// The kind of unwinder; of two, that of the program's libraries.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.first.kind()
    }

    /// Announces a code load. The code must not run before this returns. Earlier code at its address is unregistered. Code
    /// without unwind info is skipped.
    pub fn load(&self, code: &Code<'_>) {
        self.each().for_each(|unwinder| unwinder.load(code));
    }

    /// Announces the unload of the code at `address` with `size` bytes, which does not run any more, nor is on any stack.
    pub fn unload(&self, address: u64, size: u64) {
        self.each().for_each(|unwinder| unwinder.unload(address, size));
    }

    /// Call this in the child of a fork, on its only thread, before anything else. The registrations of the parent are valid in
    /// the child, too. If another thread was in a method of this value at the fork, the value is left unchanged for ever.
    pub fn forked(&self) {
        self.each().for_each(Unwinder::forked);
    }

    fn each(&self) -> impl Iterator<Item = &Unwinder> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

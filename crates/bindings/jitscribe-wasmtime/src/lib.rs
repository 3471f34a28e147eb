//! Announces the code that [wasmtime] compiles.
//!
//! ```
//! use jitscribe::Scribe;
//! use jitscribe_wasmtime::{Options, announce};
//! use wasmtime::{Engine, Module};
//!
//! # fn main() -> wasmtime::Result<()> {
//! # let wasm = b"\0asm\x01\0\0\0";
//! let scribe = Scribe::global();
//! let module = Module::new(&Engine::default(), wasm)?;
//! let announced = announce(scribe, &module, &Options::new().wasm(wasm));
//! // … instances of the module run; when none will run any more:
//! drop(announced);
//! # Ok(())
//! # }
//! ```
//!
//! It announces for each function: its name from the module's name section (as it is there; tools
//! demangle it), its unwind info (all of wasmtime's code keeps a frame pointer), and, on request,
//! source lines and inlined calls from the module's own DWARF ([`Options::wasm`]) and the offsets of
//! its WebAssembly instructions ([`Options::bytecode_offsets`]). It also announces the trampolines
//! through which calls enter and leave the module.
//!
//! The engine needs no particular configuration, and wasmtime's own profiler stays off. With
//! `Config::generate_address_map(false)` there are no lines; with `Config::debug_symbols(false)` there
//! are no trampolines. With guest debugging, a store may run a copy of the code, which is not
//! announced.
//!
//! With the feature `component-model`, `announce_component` does the same for a component: for all its modules, each with
//! its own DWARF, and for the code between them.

mod compiled;
mod functions;
mod image;
mod lines;
mod sections;
mod source;

use jitscribe::{Code, LoadedCode, Scribe};
use wasmtime::Module;
#[cfg(feature = "component-model")]
use wasmtime::component::Component;

use crate::compiled::Compiled;
use crate::lines::Lines;

/// What to announce about a module.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "options do nothing until they are given to `announce`"]
pub struct Options<'a> {
    wasm: Option<&'a [u8]>,
    bytecode_offsets: bool,
    tier: &'a str,
}

impl<'a> Options<'a> {
    /// Names, kinds and unwind info.
    pub fn new() -> Self {
        Self::default()
    }

    /// The binary from which the module was compiled. If it contains DWARF (`.debug_info`,
    /// `.debug_line`, …), source lines and inlined calls are announced. Do not pass another binary, nor
    /// WebAssembly text: the lines would be wrong.
    pub fn wasm(mut self, binary: &'a [u8]) -> Self {
        self.wasm = Some(binary);
        self
    }

    /// A second line table: its "file" is the module's name, and its "line" is the offset of the
    /// WebAssembly instruction in the binary, as `wasm-objdump -d` and `wasm-tools print
    /// --print-offsets` show it. It takes about 18 bytes of the code log for each instruction.
    pub fn bytecode_offsets(mut self, wanted: bool) -> Self {
        self.bytecode_offsets = wanted;
        self
    }

    /// Name of the compiler's tier, such as "cranelift" or "winch". The module itself does not know it.
    pub fn tier(mut self, tier: &'a str) -> Self {
        self.tier = tier;
        self
    }
}

/// A module (or component) whose code was announced. Dropping it announces that the code is unloaded.
///
/// It keeps the module alive, so the code stays where it was announced.
#[derive(Debug)]
#[must_use = "dropping it announces that the code is unloaded; `leak` it if it lives as long as the process"]
pub struct Announced<T = Module> {
    codes: Vec<LoadedCode>,
    // Dropped last: the code may go only after its unload is announced.
    compiled: T,
}

impl<T> Announced<T> {
    /// Number of functions and trampolines that were announced; 0 if the scribe is off.
    #[must_use]
    pub fn count(&self) -> usize {
        self.codes.len()
    }

    /// Makes the code and the module live as long as the process.
    pub fn leak(self) {
        self.codes.into_iter().for_each(LoadedCode::leak);
        std::mem::forget(self.compiled);
    }
}

impl Announced<Module> {
    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.compiled
    }
}

#[cfg(feature = "component-model")]
impl Announced<Component> {
    /// The component.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.compiled
    }
}

/// Announces the code of a module. Call it before the module is instantiated.
///
/// It cannot fail: damaged debug info gives no lines. If the scribe is off, or the engine interprets (Pulley), it
/// announces nothing.
pub fn announce(scribe: Scribe, module: &Module, options: &Options<'_>) -> Announced {
    Announced { codes: load(scribe, module, options), compiled: module.clone() }
}

/// Announces the code of a component. Call it before the component is instantiated.
///
/// As [`announce`]; [`Options::wasm`] takes the component's binary. Modules that the program extracts from the component
/// are part of it: do not announce them again.
#[cfg(feature = "component-model")]
pub fn announce_component(
    scribe: Scribe,
    component: &Component,
    options: &Options<'_>,
) -> Announced<Component> {
    Announced { codes: load(scribe, component, options), compiled: component.clone() }
}

fn load(scribe: Scribe, compiled: &impl Compiled, options: &Options<'_>) -> Vec<LoadedCode> {
    let mut codes = Vec::new();
    if !scribe.is_on() || compiled.engine().is_pulley() {
        return codes;
    }
    let text = compiled.text();
    let functions = functions::of(compiled);
    let source = options.wasm.and_then(source::Source::of);
    let mut lines = Lines::new(compiled, source.as_ref(), options.bytecode_offsets);
    codes.reserve_exact(functions.len());
    for function in &functions {
        let Some(bytes) = text.get(function.range()) else { continue };
        let told = lines.of(function);
        let ranges = told.inlined();
        codes.push(
            scribe.load(
                &Code::new(bytes)
                    .named(&function.name)
                    .kind(function.kind)
                    .tier(options.tier)
                    .lines(&told.source)
                    .ir_lines(&told.bytecode)
                    .inlined(&ranges)
                    .frame_pointer(),
            ),
        );
    }
    codes
}

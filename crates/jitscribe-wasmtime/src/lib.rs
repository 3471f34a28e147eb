//! Announces the code that [wasmtime] compiled.
//!
//! ```
//! use jitscribe::Scribe;
//! use jitscribe_wasmtime::{Options, announce};
//! use wasmtime::{Engine, Module};
//!
//! # fn main() -> wasmtime::Result<()> {
//! # let wasm = b"\0asm\x01\0\0\0";
//! let scribe = Scribe::from_env();
//! let module = Module::new(&Engine::default(), wasm)?;
//! let announced = announce(scribe, &module, &Options::new().wasm(wasm));
//! // … instances of the module run; when none will run any more:
//! drop(announced);
//! # Ok(())
//! # }
//! ```
//!
//! What is told of each function: its name from the module's name section (as it stands there;
//! tools demangle), how to unwind it (wasmtime keeps a frame pointer in all its code), and, on
//! demand, source lines and inlined calls from the module's own DWARF ([`Options::wasm`]) and the
//! offsets of its WebAssembly instructions ([`Options::bytecode_offsets`]). The trampolines through
//! which calls go in and out are told of too.
//!
//! Nothing is needed of the engine's configuration, and wasmtime's own profiler stays off.
//! `Config::generate_address_map(false)` costs the lines; `Config::debug_symbols(false)` costs the
//! trampolines. With guest debugging, a store may run a copy of the code, which is not told of; nor is
//! the code of components.

mod functions;
mod image;
mod lines;
mod sections;
mod source;

use jitscribe::{Code, LoadedCode, Scribe};
use wasmtime::Module;

use crate::lines::Lines;

/// What to tell of a module.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "options do nothing until they are given to `announce`"]
pub struct Options<'a> {
    wasm: Option<&'a [u8]>,
    bytecode_offsets: bool,
    tier: &'a str,
}

impl<'a> Options<'a> {
    /// Names, kinds and unwinding.
    pub fn new() -> Self {
        Self::default()
    }

    /// The binary that the module was compiled from. If there is DWARF in it (`.debug_info`,
    /// `.debug_line`, …), its source lines and inlined calls are told of. In another binary's lines, or
    /// in text instead of a binary, there is no sense.
    pub fn wasm(mut self, binary: &'a [u8]) -> Self {
        self.wasm = Some(binary);
        self
    }

    /// A second line table: "file" is the module's name, "line" is the offset in the binary of the
    /// WebAssembly instruction, as `wasm-objdump -d` and `wasm-tools print --print-offsets` show it.
    /// It takes some 18 bytes of the code log for each instruction.
    pub fn bytecode_offsets(mut self, wanted: bool) -> Self {
        self.bytecode_offsets = wanted;
        self
    }

    /// Name of the compiler's tier, of which a module itself knows nothing: "cranelift", "winch".
    pub fn tier(mut self, tier: &'a str) -> Self {
        self.tier = tier;
        self
    }
}

/// A module whose code was announced. Dropping it says that the code is gone.
///
/// It holds the module, whose code therefore stays where it was said to be.
#[derive(Debug)]
#[must_use = "dropping it says that the code is gone; `keep` it if it lives as long as the process"]
pub struct Announced {
    codes: Vec<LoadedCode>,
    // Dropped last: its code is gone only when that was said.
    module: Module,
}

impl Announced {
    /// How many functions and trampolines were announced. None if the scribe is off.
    #[must_use]
    pub fn count(&self) -> usize {
        self.codes.len()
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The code lives as long as the process, and so does the module.
    pub fn keep(self) {
        self.codes.into_iter().for_each(LoadedCode::keep);
        std::mem::forget(self.module);
    }
}

/// Announces the code of a module. Call it before the module is instantiated.
///
/// Nothing fails: damaged debug information gives no lines. If the scribe is off, or the engine
/// interprets (Pulley), there is nothing to announce.
pub fn announce(scribe: Scribe, module: &Module, options: &Options<'_>) -> Announced {
    let mut codes = Vec::new();
    if scribe.is_on() && !module.engine().is_pulley() {
        let text = module.text();
        let functions = functions::of(module);
        let source = options.wasm.and_then(source::Source::of);
        let mut lines = Lines::new(module, source.as_ref(), options.bytecode_offsets);
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
    }
    Announced { codes, module: module.clone() }
}

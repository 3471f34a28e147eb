//! The pieces of code in a module, and their kinds.

use std::collections::HashMap;
use std::ops::Range;

use crate::compiled::Compiled;
use crate::image;
use jitscribe::Kind;

/// A function or trampoline.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    start: usize,
    len: usize,
}

impl Function {
    /// Offsets in the module's text.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start.saturating_add(self.len)
    }
}

/// All code of a module or component, in the order of its text.
pub(crate) fn of(compiled: &impl Compiled) -> Vec<Function> {
    let mut own = None;
    let mut by_start: HashMap<usize, Function> = HashMap::new();
    for function in compiled.functions() {
        own = Some(function.module.as_u32());
        // The name that wasmtime itself uses for a function without a name.
        let name = function.name.unwrap_or_else(|| {
            format!("wasm[{}]::function[{}]", function.module.as_u32(), function.index.as_u32())
        });
        let (start, len) = (function.offset, function.len);
        by_start.insert(start, Function { name, kind: Kind::Function, start, len });
    }
    for symbol in image::symbols(compiled) {
        let Ok(start) = usize::try_from(symbol.range.start) else { continue };
        // A module of a component shares its image with other modules.
        if compiled.shares_image()
            && module_of(symbol.name).is_some_and(|module| Some(module) != own)
        {
            continue;
        }
        by_start.entry(start).or_insert_with(|| Function {
            name: symbol.name.to_owned(),
            kind: kind(symbol.name),
            start,
            len: usize::try_from(symbol.range.end).unwrap_or(usize::MAX).saturating_sub(start),
        });
    }
    let mut all: Vec<Function> =
        by_start.into_values().filter(|function| function.len != 0).collect();
    all.sort_unstable_by_key(|function| function.start);
    all
}

/// The number of the module in `wasm[3]::…`.
fn module_of(symbol: &str) -> Option<u32> {
    symbol.strip_prefix("wasm[")?.split_once(']')?.0.parse().ok()
}

/// The kind of code behind one of wasmtime's own symbols, as far as its name tells.
fn kind(symbol: &str) -> Kind {
    let is_trampoline = symbol.contains("trampoline") || symbol.starts_with("wasmtime_");
    if is_trampoline {
        Kind::Trampoline
    } else if symbol.starts_with("wasm[") {
        Kind::Function
    } else {
        Kind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_say_what_they_are() {
        for (symbol, told, module) in [
            ("wasm[3]::function[7]::spin", Kind::Function, Some(3)),
            ("wasm[3]::array_to_wasm_trampoline[7]", Kind::Trampoline, Some(3)),
            ("signatures[1]::wasm_to_array_trampoline", Kind::Trampoline, None),
            ("wasmtime_builtin_memory_grow", Kind::Trampoline, None),
            ("module_start[0]::Array", Kind::Other, None),
            ("wasm[x]", Kind::Function, None),
        ] {
            assert_eq!((kind(symbol), module_of(symbol)), (told, module), "{symbol}");
        }
    }
}

//! The symbols in the object file that wasmtime keeps of a module.
#![allow(unsafe_code, reason = "wasmtime tells only the addresses of the image")]

use std::ops::Range;

use object::read::elf::ElfFile64;
use object::{NativeEndian, Object, ObjectSymbol, SymbolKind};

use crate::compiled::Compiled;

/// A symbol of the image's text.
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    /// Offsets in the text.
    pub(crate) range: Range<u64>,
}

/// The symbols of an image, in its order. Empty if there is no image, or if it is not as expected.
pub(crate) fn symbols(compiled: &impl Compiled) -> Vec<Symbol<'_>> {
    let Ok(image) = ElfFile64::<NativeEndian>::parse(bytes(compiled)) else { return Vec::new() };
    // A symbol's value is an offset in the text: wasmtime itself reads it that way.
    let symbols = image.symbols().filter(|symbol| {
        symbol.is_definition() && symbol.kind() == SymbolKind::Text && symbol.size() != 0
    });
    symbols
        .filter_map(|symbol| {
            let start = symbol.address();
            let range = start..start.checked_add(symbol.size())?;
            Some(Symbol { name: symbol.name().ok()?, range })
        })
        .collect()
}

fn bytes(compiled: &impl Compiled) -> &[u8] {
    let Range { start, end } = compiled.image_range();
    // SAFETY: `image_range` is `as_ptr_range` of a `&[u8]` that the module or component owns, so the pointers
    // belong to one readable allocation and are in order. It lives as long as its owner, which is borrowed for
    // as long as the result. Nothing writes to it once the owner exists (wasmtime passes it as `&[u8]` to its
    // own profilers in the same way). `Compiled` is implemented in this crate only, by wasmtime's methods.
    unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) }
}

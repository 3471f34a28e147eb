//! Names of WebAssembly functions in which an engine names the module, too.

use super::place::{is_number, split_first, split_last};

/// What JavaScriptCore puts between the name of the module, which may be empty, and that of the function.
pub(super) const JSC_FUNCTION: &[u8] = b".wasm-function[";

/// The function in JavaScriptCore's `lib.wasm.wasm-function[run]#BLSL4P`, whose hash may be absent. `None` if the module has no name
/// for it, and there is a number.
pub(super) fn in_jsc_name(name: &[u8]) -> Option<&[u8]> {
    let without_hash = split_last(name, b'#')
        .filter(|(_, hash)| !hash.is_empty() && hash.iter().all(u8::is_ascii_alphanumeric));
    let name = without_hash.map_or(name, |(name, _)| name).strip_suffix(b"]")?;
    let at = name.windows(JSC_FUNCTION.len()).position(|part| part == JSC_FUNCTION)?;
    let function = name.get(at.saturating_add(JSC_FUNCTION.len())..)?;
    (!function.is_empty() && !is_number(function)).then_some(function)
}

/// The function in wasmtime's `wasm[0]::function[3]::run`. `None` if the module has no name for it.
pub(super) fn in_wasmtime_name(name: &[u8]) -> Option<&[u8]> {
    let (module, rest) = split_first(name.strip_prefix(b"wasm[")?, b']')?;
    let (index, rest) = split_first(rest.strip_prefix(b"::function[")?, b']')?;
    let function = rest.strip_prefix(b"::").filter(|function| !function.is_empty())?;
    (is_number(module) && is_number(index)).then_some(function)
}

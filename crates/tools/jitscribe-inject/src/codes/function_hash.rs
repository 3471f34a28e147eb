//! Which codes belong to one function.

use std::hash::BuildHasher;

use code_index::FunctionName;
use rustc_hash::FxBuildHasher;

/// What the function of a code is recognized by: codes of one function have the same number, and few others.
pub fn function_hash(code: &[u8]) -> u32 {
    let name = FunctionName::of(code);
    // The upper half is mixed best.
    let place = (name.file, name.definition(), name.source_hash);
    (FxBuildHasher.hash_one((&*name.function, place)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_one_function_are_recognized() {
        let hash = |name: &str| function_hash(name.as_bytes());
        assert_eq!(hash("JS:*f /a.js:1:2"), hash("JS:^f /a.js:1:2"));
        assert_ne!(hash("JS:*f /a.js:1:2"), hash("JS:*f /a.js:1:3"));
        assert_ne!(hash("f(/a.raku:1)"), hash("f(/a.raku:2)"));
        assert_eq!(hash("TRACE-1$f$5"), hash("TRACE-2$f$6"));
        assert_eq!(hash("JSC-DFG: f#BgABRU"), hash("JSC-FTL: f#BgABRU"));
        assert_ne!(hash("JSC-DFG: f#BgABRU"), hash("JSC-FTL: f#CgABRU"));
    }
}

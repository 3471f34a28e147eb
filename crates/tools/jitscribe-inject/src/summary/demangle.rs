//! Names as they are in the source. Those of Swift stay mangled: `docs/design/names.md` says why.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longer names are cut off: substitutions make names that are exponentially longer than their mangled form.
const LONGEST: usize = 1 << 14;
/// Names that nest deeper stay mangled, so that the stack is bounded. The parser's own limit of 96 is too low for V8's compiler, whose
/// templates have a dozen reducers as nested parameters.
const DEEPEST: u32 = 192;

/// A string that refuses to grow beyond [`LONGEST`].
#[derive(Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = LONGEST.saturating_sub(self.0.len());
        if text.len() <= left {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(text.get(..text.floor_char_boundary(left)).unwrap_or_default());
        Err(fmt::Error)
    }
}

/// The name of a symbol of a program or library: as in the source, without parameters, as perf shows it, and without the version that the
/// linker put behind it; the symbol itself if it is not mangled.
#[must_use]
pub fn demangled_symbol(symbol: &[u8]) -> Vec<u8> {
    demangled(without_version(symbol))
}

/// Whether a name begins as mangled names do.
pub(crate) fn is_mangled(name: &[u8]) -> bool {
    let name = name.strip_prefix(CFUNC.as_bytes()).unwrap_or(name);
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

/// The name as in the source, without parameters; the name itself if it is not mangled. numba's names have parameters: it compiles a function for each list of
/// types that it is called with.
pub(crate) fn demangled(symbol: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(symbol) else { return symbol.to_vec() };
    let name = rust(text).or_else(|| numba(text)).or_else(|| cpp(text));
    name.map_or_else(|| symbol.to_vec(), String::into_bytes)
}

/// A symbol without the version that the linker put behind it: `memcpy@@GLIBC_2.14`.
fn without_version(symbol: &[u8]) -> &[u8] {
    let at = symbol.iter().position(|&byte| byte == b'@').filter(|&at| at > 0);
    let (name, version) = at.and_then(|at| symbol.split_at_checked(at)).unwrap_or((symbol, b""));
    let version = version.strip_prefix(b"@@").or_else(|| version.strip_prefix(b"@"));
    match version {
        // Other names have an `@`, too.
        Some([first, ..]) if first.is_ascii_uppercase() => name,
        _ => symbol,
    }
}

fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut text = Limited::default();
    // Without the hash. A name that is too long is cut off.
    _ = write!(text, "{name:#}");
    Some(text.0)
}

fn cpp(symbol: &str) -> Option<String> {
    demangled_cpp(symbol, &DemangleOptions::new().no_params().no_return_type())
}

fn demangled_cpp(symbol: &str, options: &DemangleOptions) -> Option<String> {
    // Others are not mangled, but parse as names of types.
    if !symbol.starts_with("_Z") {
        return None;
    }
    let parsing = ParseOptions::default().recursion_limit(DEEPEST);
    let name = Symbol::new_with_options(symbol, &parsing).ok()?;
    let mut text = Limited::default();
    _ = name.structured_demangle(&mut text, options);
    (!text.0.is_empty()).then_some(text.0)
}

/// What numba puts before the names of functions that C can call.
const CFUNC: &str = "cfunc.";
/// How a demangled name has an ABI tag. numba's are a number (`v12`), and a hash of the compiler's flags.
const TAG: &str = "[abi:";

/// The name of a function that numba compiled (`numba/core/itanium_mangler.py`): without its tags, with the types of its parameters.
fn numba(symbol: &str) -> Option<String> {
    let (prefix, symbol) = match symbol.strip_prefix(CFUNC) {
        Some(symbol) => (CFUNC, symbol),
        None => ("", symbol),
    };
    // Few names have tags, and the whole name takes longer.
    if !symbol.contains('B') {
        return None;
    }
    let name = demangled_cpp(symbol, &DemangleOptions::new().no_return_type())?;
    let mut parts = name.split(TAG);
    let mut plain = format!("{prefix}{}", parts.next()?);
    let (number, rest) = parts.next()?.split_once(']')?;
    let number = number.strip_prefix('v')?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    plain.push_str(rest);
    for part in parts {
        let (_, rest) = part.split_once(']')?;
        plain.push_str(rest);
    }
    // `<locals>`, `<lambda>` and `<dynamic>`. Other characters of names need no escape.
    Some(plain.replace("_3c", "<").replace("_3e", ">"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_each_language() {
        for (symbol, name) in [
            ("main", "main"),
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZN2v88internal7Isolate3newEi", "v8::internal::Isolate::new"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backEOi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            (
                "_ZN8__main__4leafB2v2B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dEdd",
                "__main__::leaf(double, double)",
            ),
            ("cfunc._ZN8__main__4leafB2v2B5c8_3dEd", "cfunc.__main__::leaf(double)"),
            ("_ZN8__main__1f12_3clocals_3e1gB3v12Ex", "__main__::f::<locals>::g(long long)"),
            ("_ZN1a1fB5cxx11Ei", "a::f[abi:cxx11]"),
            ("cfunc.f", "cfunc.f"),
            ("clock_gettime@GLIBC_2.2.5", "clock_gettime"),
            ("_IO_file_xsputn@@GLIBC_2.2.5", "_IO_file_xsputn"),
            ("malloc@plt", "malloc@plt"),
            ("@", "@"),
            ("_Znot", "_Znot"),
            ("i", "i"),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&demangled_symbol(symbol.as_bytes())),
                name,
                "{symbol}"
            );
        }
        assert_eq!(demangled_symbol(b"\xff_Z1fv"), b"\xff_Z1fv");
    }

    proptest! {
        #[test]
        fn any_symbol_has_a_name(text in "(_Z|_R|_ZN)?[A-Za-z0-9_]{0,60}") {
            prop_assert!(demangled_symbol(text.as_bytes()).len() <= LONGEST.max(text.len()));
        }
    }

    #[test]
    fn a_name_that_grows_exponentially_is_cut_off() {
        // Each substitution has the one before twice.
        let mut symbol = String::from("_Z1f1AIiE");
        for number in 0..30 {
            let last = if number == 0 { "S0_".to_owned() } else { format!("S{}_", base36(number)) };
            symbol.push_str(&format!("1AI{last}{last}E"));
        }
        assert!(demangled_symbol(symbol.as_bytes()).len() <= LONGEST);
    }

    #[test]
    fn names_that_nest_deeply() {
        let of_v8 = concat!(
            "_ZN2v88internal8compiler10turboshaft12GraphVisitorINS2_25LateEscapeAnalysisReducerI",
            "NS2_26MachineOptimizationReducerINS2_25MemoryOptimizationReducerI",
            "NS2_24BranchEliminationReducerINS2_26LateLoadEliminationReducerI",
            "NS2_21EmitProjectionReducerINS2_21ValueNumberingReducerINS2_18GenericReducerBaseI",
            "NS2_13TSReducerBaseINS2_11StackBottomINS_4base3tmp5list1I",
            "JS3_S4_S5_S6_S7_S8_SA_SC_EEEEEEEEEEEEEEEEEEEEEEEE8FinalizeEv"
        );
        let name = demangled_symbol(of_v8.as_bytes());
        assert!(name.starts_with(b"v8::internal::compiler::turboshaft::GraphVisitor<v8::"));
        assert!(name.ends_with(b">::Finalize"));

        let nested =
            |depth: usize| format!("_ZN1a1fI{}i{}EEv", "1AI".repeat(depth), "E".repeat(depth));
        for depth in [20, 100, 10_000, 1_000_000] {
            let symbol = nested(depth);
            let name = demangled_symbol(symbol.as_bytes());
            assert!(name == symbol.as_bytes() || name.starts_with(b"a::f"), "{depth}");
        }
    }

    fn base36(number: usize) -> String {
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        char::from(digits[number % 36]).to_string()
    }
}

//! Which function a compiled code belongs to: names without the marks of a compiler.
//!
//! A runtime compiles a function several times, and most mark the compiler's tier in the name. What is to be counted or compared by function
//! needs the name without it.
//!
//! | Runtime | In a name | Mark |
//! |---|---|---|
//! | V8 | `JS:*f file:1:2`; in older versions `LazyCompile:`, `Function:`, `Eval:` or `Script:` | `*` TurboFan, `+` Maglev, `^` Sparkplug, `~` interpreted; then `'` if the code is for one context. Since V8 15, an `o` before the tier if the code was entered within a loop |
//! | V8, WebAssembly | `JS:f-7-liftoff` | the number of the function in its module, and the tier |
//! | SpiderMonkey | `Ion: f (a.js:1:2)` | the tier in front |
//! | JavaScriptCore | `JSC-FTL: f#AhuXRj` | the tier in front; the hash is that of the function's source, and stays |
//! | .NET | `int32 [Spin] Spin::Fib(int32)[OptimizedTier1]` | the tier in the last brackets |
//! | PHP | `TRACE-11$mandel$5`, `JIT$mandel` | a trace, with its number and first line, or a whole function |
//! | Erlang | `$spin:spin/1`, `$spin:spin/1-CodeInfoPrologue` | `$`, which the runtime's own functions lack, and the end for the code before the entry; there is only one tier |
//!
//! Names of other runtimes have no marks. Some versions of V8 mark code that was entered within a loop by an `o` behind the tier, which may also be the
//! beginning of the name: [`osr_alternative`] is the name without it.

use std::borrow::Cow;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// The name of a function, and the tier that the name of one of its codes is marked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName<'a> {
    /// The name without marks.
    pub function: Cow<'a, [u8]>,
    /// The tier.
    pub tier: Option<&'a [u8]>,
}

/// What V8 puts before the tier's mark.
const V8_KINDS: [&[u8]; 5] = [b"JS:", b"LazyCompile:", b"Function:", b"Eval:", b"Script:"];
/// V8's marks.
const V8_TIERS: [(u8, &str); 4] =
    [(b'*', "turbofan"), (b'+', "maglev"), (b'^', "sparkplug"), (b'~', "interpreted")];
/// V8's tiers for WebAssembly (`ExecutionTierToString`).
const WASM_TIERS: [&str; 2] = ["liftoff", "turbofan"];
/// SpiderMonkey's tiers of functions (`js/src/jit/PerfSpewer.cpp`), and how they are called here: JavaScriptCore has tiers of the same names.
const SPIDERMONKEY_TIERS: [(&str, &str); 3] = [
    ("Ion: ", "ion"),
    ("Baseline: ", "baseline"),
    ("BaselineInterpreter: ", "baseline-interpreter"),
];
/// .NET's tiers (`PerfMapTier` and `GetJitOptimizationTierName`, before `Instrumented` or `OSR`).
const DOTNET_TIERS: [&[u8]; 9] = [
    b"PreJIT",
    b"ReadyToRun",
    b"Tier0",
    b"Tier1",
    b"QuickJitted",
    b"Optimized",
    b"OptimizedTier1",
    b"MinOptJitted",
    b"Unknown",
];

/// What Erlang puts behind the name of a function for the code before its entry.
const PROLOGUE: &[u8] = b"-CodeInfoPrologue";

impl<'a> FunctionName<'a> {
    /// The function that a code with this name belongs to.
    #[must_use]
    pub fn of(code: &'a [u8]) -> Self {
        v8(code)
            .or_else(|| v8_wasm(code))
            .or_else(|| spidermonkey(code))
            .or_else(|| jsc(code))
            .or_else(|| dotnet(code))
            .or_else(|| php(code))
            .or_else(|| erlang(code))
            .unwrap_or(Self { function: Cow::Borrowed(code), tier: None })
    }
}

/// The function if the `o` at the beginning of its name was a mark of V8: see the [module](self).
#[must_use]
pub fn osr_alternative(function: &[u8]) -> Option<Cow<'_, [u8]>> {
    // Only names of V8 have a line at the end.
    let line = function.rsplit(|&byte| byte == b':').next().filter(|line| *line != function);
    let has_position =
        line.is_some_and(|line| !line.is_empty() && line.iter().all(u8::is_ascii_digit));
    let rest = function.strip_prefix(b"o")?;
    has_position.then(|| anonymous(rest))
}

/// What the function of a code is recognized by: codes of one function have the same number, and few others.
pub(crate) fn function_hash(code: &[u8]) -> u32 {
    let function = FunctionName::of(code).function;
    // The upper half is mixed best.
    (FxBuildHasher.hash_one(&*function) >> 32) as u32
}

/// A function of V8, which may have no name.
fn anonymous(name: &[u8]) -> Cow<'_, [u8]> {
    match name.first() {
        Some(b' ') => Cow::Owned([b"(anonymous)", name].concat()),
        _ => Cow::Borrowed(name),
    }
}

fn v8(code: &[u8]) -> Option<FunctionName<'_>> {
    let name = V8_KINDS.iter().find_map(|kind| code.strip_prefix(*kind))?;
    let marked = |name: &'_ [u8]| {
        let (mark, rest) = name.split_first()?;
        Some((V8_TIERS.iter().find(|(of, _)| of == mark)?.1, name.len().checked_sub(rest.len())?))
    };
    // No name begins with an `o` and a mark.
    let entered_in_loop = || marked(name.strip_prefix(b"o")?).map(|(tier, at)| (tier, at + 1));
    let (tier, at) = marked(name).or_else(entered_in_loop)?;
    let rest = name.get(at..)?;
    let rest = rest.strip_prefix(b"'").unwrap_or(rest);
    Some(FunctionName { function: anonymous(rest), tier: Some(tier.as_bytes()) })
}

fn v8_wasm(code: &[u8]) -> Option<FunctionName<'_>> {
    let name = code.strip_prefix(b"JS:")?;
    let (tier, rest) = WASM_TIERS.iter().find_map(|tier| {
        let rest = name.strip_suffix(tier.as_bytes())?.strip_suffix(b"-")?;
        Some((tier, rest))
    })?;
    let dash = rest.iter().rposition(|&byte| byte == b'-')?;
    let (function, number) = (rest.get(..dash)?, rest.get(dash + 1..)?);
    (!function.is_empty() && !number.is_empty() && number.iter().all(u8::is_ascii_digit))
        .then_some(FunctionName { function: Cow::Borrowed(function), tier: Some(tier.as_bytes()) })
}

fn spidermonkey(code: &[u8]) -> Option<FunctionName<'_>> {
    let (tier, function) = SPIDERMONKEY_TIERS
        .iter()
        .find_map(|(begin, tier)| Some((tier, code.strip_prefix(begin.as_bytes())?)))?;
    // Stubs have no place.
    let is_function = function.ends_with(b")") && function.contains(&b'(');
    is_function
        .then_some(FunctionName { function: Cow::Borrowed(function), tier: Some(tier.as_bytes()) })
}

fn jsc(code: &[u8]) -> Option<FunctionName<'_>> {
    let rest = code.strip_prefix(b"JSC-")?;
    let end = rest.iter().position(|&byte| byte == b':')?;
    let (tier, function) = (rest.get(..end)?, rest.get(end..)?.strip_prefix(b": ")?);
    let is_tier = !tier.is_empty() && tier.iter().all(u8::is_ascii_alphanumeric);
    (is_tier && !function.is_empty())
        .then_some(FunctionName { function: Cow::Borrowed(function), tier: Some(tier) })
}

fn dotnet(code: &[u8]) -> Option<FunctionName<'_>> {
    let inner = code.strip_suffix(b"]")?;
    let at = inner.iter().rposition(|&byte| byte == b'[')?;
    let (function, tier) = (inner.get(..at)?, inner.get(at + 1..)?);
    let plain = tier.strip_suffix(b"OSR").unwrap_or(tier);
    let plain = plain.strip_suffix(b"Instrumented").unwrap_or(plain);
    (DOTNET_TIERS.contains(&plain) && !function.is_empty())
        .then_some(FunctionName { function: Cow::Borrowed(function), tier: Some(tier) })
}

fn php(code: &[u8]) -> Option<FunctionName<'_>> {
    // Stubs have another `$`.
    let is_function = |name: &&[u8]| !name.is_empty() && !name.starts_with(b"$");
    if let Some(function) = code.strip_prefix(b"JIT$").filter(is_function) {
        return Some(FunctionName { function: Cow::Borrowed(function), tier: Some(b"function") });
    }
    let rest = code.strip_prefix(b"TRACE-")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest.get(digits..)?.strip_prefix(b"$").filter(|_| digits > 0)?;
    let end = rest.iter().rposition(|&byte| byte == b'$')?;
    let (function, line) = (rest.get(..end)?, rest.get(end + 1..)?);
    (!function.is_empty() && !line.is_empty() && line.iter().all(u8::is_ascii_digit))
        .then_some(FunctionName { function: Cow::Borrowed(function), tier: Some(b"trace") })
}

fn erlang(code: &[u8]) -> Option<FunctionName<'_>> {
    let marked = code.strip_prefix(b"$");
    let before_entry = code.strip_suffix(PROLOGUE);
    let name = match (marked, before_entry) {
        (Some(name), _) => name.strip_suffix(PROLOGUE).unwrap_or(name),
        // The runtime's own functions have no `$`.
        (None, name) => name?,
    };
    let slash = name.iter().rposition(|&byte| byte == b'/')?;
    let arity = name.get(slash + 1..)?;
    let is_function = name.get(..slash)?.contains(&b':')
        && !arity.is_empty()
        && arity.iter().all(u8::is_ascii_digit);
    is_function.then_some(FunctionName { function: Cow::Borrowed(name), tier: None })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_each_runtime() {
        for (code, function, tier) in [
            ("JS:*spin /a/spin.js:1:14", "spin /a/spin.js:1:14", Some("turbofan")),
            ("JS:+spin a.js:1:14", "spin a.js:1:14", Some("maglev")),
            ("JS:^spin a.js:1:14", "spin a.js:1:14", Some("sparkplug")),
            ("JS:~spin a.js:1:14", "spin a.js:1:14", Some("interpreted")),
            ("JS:*'spin a.js:1:14", "spin a.js:1:14", Some("turbofan")),
            ("JS:* /a/spin.js:1:1", "(anonymous) /a/spin.js:1:1", Some("turbofan")),
            ("JS:~", "", Some("interpreted")),
            ("JS:o*hot file:///a.js:1:23", "hot file:///a.js:1:23", Some("turbofan")),
            ("JS:o+ file:///a.js:1:1", "(anonymous) file:///a.js:1:1", Some("maglev")),
            ("JS:o", "JS:o", None),
            ("JS:collatz-0-liftoff", "collatz", Some("liftoff")),
            ("JS:a-b-12-turbofan", "a-b", Some("turbofan")),
            ("JS:wasm-function[3]-3-liftoff", "wasm-function[3]", Some("liftoff")),
            ("JS:f-x-liftoff", "JS:f-x-liftoff", None),
            ("JS:-1-liftoff", "JS:-1-liftoff", None),
            ("Ion: fib (evaluate:1:13)", "fib (evaluate:1:13)", Some("ion")),
            ("Baseline: fib (evaluate:1:13)", "fib (evaluate:1:13)", Some("baseline")),
            ("BaselineIC: Call.CallScripted", "BaselineIC: Call.CallScripted", None),
            ("Trampoline: EnterJIT", "Trampoline: EnterJIT", None),
            ("LazyCompile:~*gen a.js:3:1", "*gen a.js:3:1", Some("interpreted")),
            ("JS:spin", "JS:spin", None),
            ("RegExp:a*b", "RegExp:a*b", None),
            ("Builtin:ArrayMap", "Builtin:ArrayMap", None),
            ("BytecodeHandler:LdaZero", "BytecodeHandler:LdaZero", None),
            (
                "int32 [Spin] Spin::Fib(int32)[OptimizedTier1]",
                "int32 [Spin] Spin::Fib(int32)",
                Some("OptimizedTier1"),
            ),
            (
                "void [Spin] Spin::Main()[OptimizedTier1OSR]",
                "void [Spin] Spin::Main()",
                Some("OptimizedTier1OSR"),
            ),
            (
                "void A::b()[QuickJittedInstrumented]",
                "void A::b()",
                Some("QuickJittedInstrumented"),
            ),
            ("int[] A.b(int[])", "int[] A.b(int[])", None),
            ("f[x]", "f[x]", None),
            ("[PreJIT]", "[PreJIT]", None),
            ("TRACE-11$mandel$5", "mandel", Some("trace")),
            ("TRACE-10$Vec::run$4", "Vec::run", Some("trace")),
            ("TRACE-1$$5", "TRACE-1$$5", None),
            ("TRACE-$f$5", "TRACE-$f$5", None),
            ("JIT$$exit_0", "JIT$$exit_0", None),
            ("LazyCompile:*fib /a/work.js:4", "fib /a/work.js:4", Some("turbofan")),
            ("JIT$mandel", "mandel", Some("function")),
            ("$spin:spin/1", "spin:spin/1", None),
            ("$work:'-qs/1-lc$^1/1-0-'/2", "work:'-qs/1-lc$^1/1-0-'/2", None),
            ("$work:fib/1-CodeInfoPrologue", "work:fib/1", None),
            ("erts_beamasm:normal_exit/0-CodeInfoPrologue", "erts_beamasm:normal_exit/0", None),
            ("$global::call_nif", "$global::call_nif", None),
            ("Interpreter", "Interpreter", None),
            ("py::fib:/a/x.py", "py::fib:/a/x.py", None),
            ("JSC-FTL: vecs#BgABRU", "vecs#BgABRU", Some("FTL")),
            ("JSC-: f", "JSC-: f", None),
            ("vecs#BgABRU", "vecs#BgABRU", None),
            ("int Work.sieve(int)", "int Work.sieve(int)", None),
        ] {
            let name = FunctionName::of(code.as_bytes());
            let read = (&*name.function, name.tier);
            assert_eq!(read, (function.as_bytes(), tier.map(str::as_bytes)), "{code}");
        }
    }

    #[test]
    fn a_mark_that_may_be_part_of_the_name() {
        let alternative = |name: &'static str| osr_alternative(name.as_bytes());
        assert_eq!(alternative("ospin a.js:1:14").as_deref(), Some(&b"spin a.js:1:14"[..]));
        assert_eq!(alternative("o a.js:1:14").as_deref(), Some(&b"(anonymous) a.js:1:14"[..]));
        assert_eq!(alternative("spin a.js:1:14"), None);
        assert_eq!(alternative("open(int)"), None);
    }

    #[test]
    fn tiers_of_one_function_are_recognized() {
        let hash = |name: &str| function_hash(name.as_bytes());
        assert_eq!(hash("JS:*f /a.js:1:2"), hash("JS:^f /a.js:1:2"));
        assert_ne!(hash("JS:*f /a.js:1:2"), hash("JS:*f /a.js:1:3"));
    }

    proptest! {
        #[test]
        fn any_name_is_a_function(code in prop::collection::vec(any::<u8>(), 0..40)) {
            let name = FunctionName::of(&code);
            // What remains is a part of it, except for the name of functions without one.
            let rest = name.function.strip_prefix(b"(anonymous)").unwrap_or(&name.function);
            prop_assert!(rest.is_empty() || code.windows(rest.len()).any(|part| part == rest));
            let _ = osr_alternative(&code);
        }
    }
}

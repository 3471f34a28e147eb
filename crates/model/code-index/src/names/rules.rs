//! The rules by which names are read.
//!
//! | Runtime | In a name | Meaning |
//! |---|---|---|
//! | V8 | `JS:*f FILE:1:2`; in older versions `LazyCompile:`, `Function:`, `Eval:` or `Script:` | `*` TurboFan, `+` Maglev, `^` Sparkplug, `~` interpreted; then `'` if the code is for one context. Since V8 15, an `o` before the tier if the code was entered within a loop |
//! | V8, WebAssembly | `JS:f-7-liftoff` | the number of the function in its module, and the tier |
//! | V8, calls from WebAssembly | `JS:wasm-to-js:i:-f-0-turbofan`, in V8 13 `JS:wasm-to-js-<anonymous>-none` | the types of parameters and results, and the import `f`; one wrapper for all imports |
//! | SpiderMonkey | `Ion: f (FILE:1:2)` | the tier in front |
//! | JavaScriptCore | `JSC-FTL: f#AhuXRj` | the tier in front; the hash is that of the function's source. A private method is `#f#AhuXRj` |
//! | JavaScriptCore, WebAssembly | `JSC-WasmOMG: lib.wasm.wasm-function[f]#BLSL4P`, `.wasm-function[f]` | the module in front, and the hash of its code |
//! | wasmtime | `wasm[0]::function[3]::f` | the numbers of the module and of the function |
//! | .NET | `int32 [Spin] Spin::Fib(int32)[OptimizedTier1]` | the tier in the last brackets |
//! | HotSpot | `int App$$Lambda$5/0x00007f366c002470.applyAsInt(int)`, `LambdaForm$MH/0x…` | the address of a hidden class |
//! | PHP | `TRACE-11$mandel$5`, `JIT$mandel` | a trace, with its number and first line, or a whole function |
//! | LuaJIT | `TRACE_3::FILE:7` | a trace, with its number and where it begins |
//! | Elixir | `$'Elixir.Enum':'-map/2-lists^map/1-0-'/2` | a function that the compiler made of a loop or closure in `Enum.map/2` |
//! | Erlang | `$spin:spin/1`, `$spin:spin/1-CodeInfoPrologue` | `$`, which the runtime's own functions lack, and the end for the code before the entry; there is only one tier |
//! | MoarVM | `collatz(FILE:1)`, `(FILE:1)`, `collatz(FILE (MODULE):1)` | where a function or block begins |
//! | CPython | `py::Class.method:FILE` | a trampoline of the interpreter |
//! | Pyston | `/a/x.py:3:f` | where a function begins |
//! | PostgreSQL | `evalexpr_0_3`, `deform_0_4` | the number of the module, and a counter |
//!
//! Names of other runtimes have no marks, and are functions as a whole.

use std::borrow::Cow;

use super::function_name::{ANONYMOUS, FunctionName, NameKind};
use super::place::{
    Placed, behind_name, file_and_line, in_parentheses, is_number, last_parentheses, number,
    split_first, split_last,
};
use super::webassembly::{self, JSC_FUNCTION as JSC_WASM};

/// Reads the names of one runtime; `None` for others.
type Rule = for<'a> fn(&'a [u8]) -> Option<FunctionName<'a>>;

/// All rules. The first one that knows a name reads it.
const RULES: [Rule; 16] = [
    v8,
    v8_wasm,
    spidermonkey,
    jsc,
    jsc_wasm,
    wasmtime,
    dotnet,
    hotspot,
    php,
    luajit,
    elixir,
    erlang,
    moarvm,
    cpython,
    pyston,
    postgresql,
];

/// The rules that borrow all parts of a name, and so allocate nothing. Of the others, only HotSpot's knows names that end in a place.
const BORROWING_RULES: [Rule; 13] = [
    v8,
    spidermonkey,
    jsc,
    jsc_wasm,
    wasmtime,
    dotnet,
    php,
    luajit,
    erlang,
    moarvm,
    cpython,
    pyston,
    postgresql,
];

impl<'a> FunctionName<'a> {
    /// What the name of a code says if that has a file: the same as [`Self::of`], for libraries in a foreign process, as nothing is
    /// allocated.
    #[must_use]
    pub fn placed_of(code: &'a [u8]) -> Option<Self> {
        let is_hidden = |class: &[u8]| code.windows(class.len()).any(|part| part == class);
        if HIDDEN_CLASSES.into_iter().any(is_hidden) {
            return None;
        }
        BORROWING_RULES.iter().find_map(|rule| rule(code)).filter(|name| !name.file.is_empty())
    }

    /// What the name of a code says.
    #[must_use]
    pub fn of(code: &'a [u8]) -> Self {
        RULES.iter().find_map(|rule| rule(code)).unwrap_or_else(|| Self::plain(code))
    }

    /// The same for a function that was inlined. One without a name has its place behind a word.
    #[must_use]
    pub fn of_inlined(name: &'a [u8]) -> Self {
        let anonymous = name.strip_prefix(ANONYMOUS).filter(|place| place.starts_with(b" "));
        let placed = anonymous.and_then(behind_name).map(Self::placed);
        placed.unwrap_or_else(|| Self::plain(name))
    }

    fn placed(place: Placed<'a>) -> Self {
        let Placed { function, file, line, column } = place;
        let function = if function.is_empty() { ANONYMOUS } else { function };
        Self { file, line, column, ..Self::plain(function) }
    }
}

/// What V8 puts before the tier's mark.
const V8_KINDS: [&[u8]; 5] = [b"JS:", b"LazyCompile:", b"Function:", b"Eval:", b"Script:"];
/// V8's marks.
const V8_TIERS: [(u8, &[u8]); 4] =
    [(b'*', b"turbofan"), (b'+', b"maglev"), (b'^', b"sparkplug"), (b'~', b"interpreted")];

fn v8(code: &[u8]) -> Option<FunctionName<'_>> {
    let name = V8_KINDS.iter().find_map(|kind| code.strip_prefix(*kind))?;
    // No name begins with an `o` and a mark.
    let (tier, rest) = v8_mark(name).or_else(|| v8_mark(name.strip_prefix(b"o")?))?;
    let rest = rest.strip_prefix(b"'").unwrap_or(rest);
    let name = behind_name(rest).map_or_else(|| FunctionName::plain(rest), FunctionName::placed);
    Some(FunctionName { may_have_loop_mark: name.has_place(), ..name }.tier(tier))
}

/// The tier that a mark at the beginning means, and what follows.
fn v8_mark(name: &[u8]) -> Option<(&'static [u8], &[u8])> {
    let (mark, rest) = name.split_first()?;
    Some((V8_TIERS.iter().find(|(of, _)| of == mark)?.1, rest))
}

/// V8's tiers for WebAssembly (`ExecutionTierToString`). Code that no compiler optimizes has none.
const WASM_TIERS: [(&[u8], Option<&[u8]>); 4] = [
    (b"liftoff", Some(b"liftoff")),
    (b"turbofan", Some(b"turbofan")),
    (b"interpreter", Some(b"interpreter")),
    (b"none", None),
];

/// What V8 writes for the number of code that is of no function of its module (`WasmCode::IsAnonymous`).
const WASM_ANONYMOUS: &[u8] = b"<anonymous>";

fn v8_wasm(code: &[u8]) -> Option<FunctionName<'_>> {
    let (rest, tier) = split_last(code.strip_prefix(b"JS:")?, b'-')?;
    let (_, tier) = WASM_TIERS.iter().find(|(known, _)| *known == tier)?;
    let (function, number) = split_last(rest, b'-')?;
    let is_code = !function.is_empty() && (is_number(number) || number == WASM_ANONYMOUS);
    let name = match wasm_import(function) {
        Some(import) => FunctionName {
            function: Cow::Owned([b"wasm-to-js ", import].concat()),
            ..FunctionName::default()
        },
        None => FunctionName::plain(function),
    };
    is_code.then_some(FunctionName { tier: *tier, ..name })
}

/// The import that a wrapper calls, if the module has a name for it: `wasm-to-js:PARAMETERS:RESULTS-IMPORT`, a letter for each type.
fn wasm_import(wrapper: &[u8]) -> Option<&[u8]> {
    let (parameters, rest) = split_first(wrapper.strip_prefix(b"wasm-to-js:")?, b':')?;
    let (results, import) = split_first(rest, b'-')?;
    let is_types = |types: &[u8]| types.iter().all(u8::is_ascii_alphanumeric);
    (is_types(parameters) && is_types(results) && !import.is_empty()).then_some(import)
}

/// SpiderMonkey's tiers of functions (`js/src/jit/PerfSpewer.cpp`), and how they are called here: JavaScriptCore has tiers of the
/// same names.
const SPIDERMONKEY_TIERS: [(&[u8], &[u8]); 3] = [
    (b"Ion: ", b"ion"),
    (b"Baseline: ", b"baseline"),
    (b"BaselineInterpreter: ", b"baseline-interpreter"),
];

fn spidermonkey(code: &[u8]) -> Option<FunctionName<'_>> {
    let (tier, name) = SPIDERMONKEY_TIERS
        .iter()
        .find_map(|(begin, tier)| Some((*tier, code.strip_prefix(*begin)?)))?;
    // Stubs have no place.
    let is_function = name.ends_with(b")") && name.contains(&b'(');
    let placed = in_parentheses(name).map(FunctionName::placed);
    is_function.then(|| placed.unwrap_or_else(|| FunctionName::plain(name)).tier(tier))
}

fn jsc(code: &[u8]) -> Option<FunctionName<'_>> {
    let (tier, function) = split_first(code.strip_prefix(b"JSC-")?, b':')?;
    let function = function.strip_prefix(b" ").filter(|function| !function.is_empty())?;
    let is_tier = !tier.is_empty() && tier.iter().all(u8::is_ascii_alphanumeric);
    let name = match webassembly::in_jsc_name(function) {
        Some(function) => FunctionName::plain(function),
        None => jsc_function(function),
    };
    is_tier.then(|| name.tier(tier))
}

/// The number of letters and digits in JavaScriptCore's hash of a source (`CodeBlockHash`).
const JSC_HASH: usize = 6;

/// A name with the hash behind it. What has no name but a hash, or a private one without it, is a name as a whole.
fn jsc_function(name: &[u8]) -> FunctionName<'_> {
    let is_hash =
        |hash: &[u8]| hash.len() == JSC_HASH && hash.iter().all(u8::is_ascii_alphanumeric);
    let of_function = |name: &[u8]| {
        !name.is_empty() && !name.windows(JSC_WASM.len()).any(|part| part == JSC_WASM)
    };
    match split_last(name, b'#').filter(|(name, hash)| of_function(name) && is_hash(hash)) {
        Some((name, source_hash)) => FunctionName { source_hash, ..FunctionName::plain(name) },
        None => FunctionName::plain(name),
    }
}

/// What hosts that embed JavaScriptCore write without the tier.
fn jsc_wasm(code: &[u8]) -> Option<FunctionName<'_>> {
    webassembly::in_jsc_name(code).map(FunctionName::plain)
}

fn wasmtime(code: &[u8]) -> Option<FunctionName<'_>> {
    webassembly::in_wasmtime_name(code).map(FunctionName::plain)
}

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

fn dotnet(code: &[u8]) -> Option<FunctionName<'_>> {
    let (function, tier) = split_last(code.strip_suffix(b"]")?, b'[')?;
    let plain = tier.strip_suffix(b"OSR").unwrap_or(tier);
    let plain = plain.strip_suffix(b"Instrumented").unwrap_or(plain);
    let is_function = DOTNET_TIERS.contains(&plain) && !function.is_empty();
    is_function.then(|| FunctionName::plain(function).tier(tier))
}

/// How HotSpot names the hidden classes of lambdas and method handles. What `javac` makes of a lambda's body has a name of its
/// own.
const HIDDEN_CLASSES: [&[u8]; 2] = [b"$$Lambda", b"LambdaForm$"];

fn hotspot(code: &[u8]) -> Option<FunctionName<'_>> {
    if !code.windows(6).any(|part| part == b"Lambda") {
        return None;
    }
    let (mut kept, mut rest) = (Vec::new(), code);
    while !rest.is_empty() {
        let class = HIDDEN_CLASSES.iter().find(|class| rest.starts_with(class));
        let Some(class) = class else {
            let step = rest.iter().skip(1).position(|byte| matches!(byte, b'$' | b'L'));
            let step = step.map_or(rest.len(), |step| step.saturating_add(1));
            let (before, behind) = rest.split_at_checked(step)?;
            kept.extend_from_slice(before);
            rest = behind;
            continue;
        };
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'$' | b'_');
        let name = rest.iter().skip(class.len()).take_while(is_name).count();
        let (name, behind) = rest.split_at_checked(class.len().saturating_add(name))?;
        kept.extend_from_slice(name);
        rest = behind_class_address(behind).unwrap_or(behind);
    }
    let is_shorter = kept.len() < code.len();
    is_shorter.then(|| FunctionName { function: Cow::Owned(kept), ..FunctionName::default() })
}

/// What follows the address behind the name of a hidden class, which Java 8 writes in decimal.
fn behind_class_address(text: &[u8]) -> Option<&[u8]> {
    let hexadecimal = [&b"/0x"[..], b"+0x", b".0x"].iter().find_map(|begin| {
        let rest = text.strip_prefix(*begin)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        rest.get(digits..).filter(|_| digits > 0)
    });
    let decimal = || {
        let rest = text.strip_prefix(b"/")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        rest.get(digits..).filter(|_| digits > 0)
    };
    hexadecimal.or_else(decimal)
}

fn php(code: &[u8]) -> Option<FunctionName<'_>> {
    // Stubs have another `$`.
    let is_function = |name: &&[u8]| !name.is_empty() && !name.starts_with(b"$");
    if let Some(function) = code.strip_prefix(b"JIT$").filter(is_function) {
        return Some(FunctionName::plain(function).tier(b"function"));
    }
    let (trace, rest) = split_first(code.strip_prefix(b"TRACE-")?, b'$')?;
    let (function, line) = split_last(rest, b'$')?;
    let is_trace = is_number(trace) && !function.is_empty();
    let line = number(line).filter(|_| is_trace)?;
    Some(FunctionName { line, ..FunctionName::plain(function).tier(b"trace") })
}

fn luajit(code: &[u8]) -> Option<FunctionName<'_>> {
    let (trace, place) = split_first(code.strip_prefix(b"TRACE_")?, b':')?;
    let place = place.strip_prefix(b":").filter(|_| is_number(trace))?;
    let (file, line) = file_and_line(place).filter(|(file, _)| !file.is_empty())?;
    // A text that was loaded.
    let file = if file == b"(string)" { b"" } else { file };
    Some(FunctionName { file, line, ..FunctionName::plain(place).tier(b"trace") })
}

/// Module, function, and arity in Erlang's spelling: `spin:spin/1`, `'a b':'-f/1-fun-0-'/2`.
fn module_function_arity(name: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (function, arity) = split_last(name, b'/').filter(|(_, arity)| is_number(arity))?;
    let (module, function) = match function.strip_prefix(b"'") {
        Some(quoted) => {
            let (module, rest) = split_first(quoted, b'\'')?;
            (module, rest.strip_prefix(b":")?)
        }
        None => split_first(function, b':')?,
    };
    Some((module, function, arity))
}

/// What Erlang puts behind the name of a function for the code before its entry.
const PROLOGUE: &[u8] = b"-CodeInfoPrologue";

fn elixir(code: &[u8]) -> Option<FunctionName<'_>> {
    let name = code.strip_prefix(b"$").unwrap_or(code);
    let name = name.strip_suffix(PROLOGUE).unwrap_or(name);
    let (module, function, arity) = module_function_arity(name)?;
    let module = module.strip_prefix(b"Elixir.")?;
    let unquoted = function.strip_prefix(b"'").and_then(|quoted| quoted.strip_suffix(b"'"));
    let function = unquoted.unwrap_or(function);
    let function = match made_of(function) {
        Some((outer, outer_arity, true)) => {
            [b"anonymous fn/", arity, b" in ", module, b".", outer, b"/", outer_arity].concat()
        }
        Some((outer, outer_arity, false)) => [module, b".", outer, b"/", outer_arity].concat(),
        None => [module, b".", function, b"/", arity].concat(),
    };
    Some(FunctionName { function: Cow::Owned(function), ..FunctionName::default() })
}

/// The name and arity of the function of which Erlang's compiler made `-NAME/ARITY-…`, and whether it is a closure.
fn made_of(function: &[u8]) -> Option<(&[u8], &[u8], bool)> {
    let inner = function.strip_prefix(b"-")?.strip_suffix(b"-")?;
    let slashes = inner.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    // A name may contain slashes. Three are enough for all that were seen.
    slashes.take(3).find_map(|at| {
        let (name, rest) = inner.split_at_checked(at)?;
        let (arity, kind) = split_first(rest.strip_prefix(b"/")?, b'-')?;
        let is_function = !name.is_empty() && is_number(arity);
        is_function.then(|| (name, arity, kind.starts_with(b"fun-")))
    })
}

fn erlang(code: &[u8]) -> Option<FunctionName<'_>> {
    let marked = code.strip_prefix(b"$");
    let before_entry = code.strip_suffix(PROLOGUE);
    let name = match (marked, before_entry) {
        (Some(name), _) => name.strip_suffix(PROLOGUE).unwrap_or(name),
        // The runtime's own functions have no `$`.
        (None, name) => name?,
    };
    let (function, arity) = split_last(name, b'/')?;
    let is_function = function.contains(&b':') && is_number(arity);
    is_function.then(|| FunctionName::plain(name))
}

/// How files of Raku's and NQP's source and bytecode end.
const RAKU_FILES: [&[u8]; 11] = [
    b".raku",
    b".rakumod",
    b".rakutest",
    b".rakudoc",
    b".p6",
    b".pl6",
    b".pm6",
    b".t",
    b".nqp",
    b".setting",
    b".moarvm",
];

fn is_raku_file(file: &[u8]) -> bool {
    RAKU_FILES.iter().any(|end| file.ends_with(end))
}

/// A file without the name of the module in it, which Rakudo adds to the files of precompiled ones: `lib/A/B.rakumod (A::B)`.
fn without_module(file: &[u8]) -> &[u8] {
    let path = last_parentheses(file).and_then(|(before, _)| before.strip_suffix(b" "));
    path.filter(|path| is_raku_file(path)).unwrap_or(file)
}

fn moarvm(code: &[u8]) -> Option<FunctionName<'_>> {
    let (function, place) = last_parentheses(code)?;
    let (file, line) = file_and_line(place)?;
    let file = without_module(file);
    let is_evaluated = file.strip_prefix(b"EVAL_").is_some_and(is_number);
    // The same form in other runtimes is a parameter: `f(x:1)`.
    let is_file = file.starts_with(b"/")
        || file.starts_with(b"SETTING::")
        || is_raku_file(file)
        || file == b"-e"
        || file == b"<unknown>"
        || is_evaluated;
    if !is_file || line == 0 || function.ends_with(b" ") {
        return None;
    }
    let file = if file == b"<unknown>" { b"" } else { file };
    Some(FunctionName::placed(Placed { function, file, line, column: 0 }))
}

fn cpython(code: &[u8]) -> Option<FunctionName<'_>> {
    let (function, file) = split_first(code.strip_prefix(b"py::")?, b':')?;
    let name = FunctionName { file, kind: NameKind::Trampoline, ..FunctionName::plain(function) };
    (!function.is_empty()).then_some(name)
}

/// Other programs write `FILE:LINE:NAME` as well: only Python's files are meant.
fn pyston(code: &[u8]) -> Option<FunctionName<'_>> {
    let (place, function) = split_last(code, b':')?;
    let (file, line) = file_and_line(place)?;
    let is_python = file.ends_with(b".py") && file.len() > b".py".len();
    let place = Placed { function, file, line, column: 0 };
    (is_python && line > 0 && !function.is_empty() && !is_number(function))
        .then(|| FunctionName::placed(place))
}

/// What PostgreSQL compiles: expressions, and the reading of a row's columns (`llvm_expand_funcname`).
const POSTGRESQL_FUNCTIONS: [&[u8]; 2] = [b"evalexpr", b"deform"];

fn postgresql(code: &[u8]) -> Option<FunctionName<'_>> {
    let function = POSTGRESQL_FUNCTIONS.iter().find(|function| code.starts_with(function))?;
    let numbers = code.strip_prefix(*function)?.strip_prefix(b"_")?;
    let (module, counter) = split_first(numbers, b'_')?;
    (is_number(module) && is_number(counter)).then(|| FunctionName::plain(function))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn a_place_belongs_to_the_rule_that_knows_the_name() {
        for code in [
            "JSC-DFG: f(/x.js:1)",
            "JIT$f(/x.php:1)",
            "a.b$$Lambda/0x7f12(/x.raku:1)",
            "TRACE-1$f$5",
            "JS:f-7-liftoff",
        ] {
            assert_eq!(FunctionName::placed_of(code.as_bytes()), None, "{code}");
        }
        for code in [
            "f(/x.raku:1)",
            "JS:*f /x.js:1:2",
            "TRACE_3::/x.lua:7",
            "Ion: f (x.js:1:2)",
            "py::f:/x.py",
            "/x.py:3:f",
        ] {
            let name = FunctionName::of(code.as_bytes());
            assert_eq!(FunctionName::placed_of(code.as_bytes()), Some(name), "{code}");
        }
    }

    #[test]
    fn names_with_a_place() {
        for (code, function, file, line, column, tier) in [
            ("JS:*spin /a/spin.js:1:14", "spin", "/a/spin.js", 1, 14, "turbofan"),
            ("JS:+spin a.js:1:14", "spin", "a.js", 1, 14, "maglev"),
            ("JS:^spin a.js:1:14", "spin", "a.js", 1, 14, "sparkplug"),
            ("JS:~get x :5:15", "get x", "", 5, 15, "interpreted"),
            ("JS:~spin a.js:1:14", "spin", "a.js", 1, 14, "interpreted"),
            ("JS:*'spin a.js:1:14", "spin", "a.js", 1, 14, "turbofan"),
            ("JS:* /a/spin.js:1:1", "(anonymous)", "/a/spin.js", 1, 1, "turbofan"),
            ("JS:^get size /a b/x.js:3:7", "get size", "/a b/x.js", 3, 7, "sparkplug"),
            ("JS:o*hot file:///a.js:1:23", "hot", "file:///a.js", 1, 23, "turbofan"),
            ("JS:o+ file:///a.js:1:1", "(anonymous)", "file:///a.js", 1, 1, "maglev"),
            ("JS:*f node:internal/a:9:8", "f", "node:internal/a", 9, 8, "turbofan"),
            (
                "JS:*get x webpack-internal:///./a.js:5:7",
                "get x",
                "webpack-internal:///./a.js",
                5,
                7,
                "turbofan",
            ),
            ("JS:*f C:\\a b\\x.js:9:8", "f", "C:\\a b\\x.js", 9, 8, "turbofan"),
            ("LazyCompile:*fib /a/work.js:4", "fib", "/a/work.js", 4, 0, "turbofan"),
            ("LazyCompile:~*gen a.js:3:1", "*gen", "a.js", 3, 1, "interpreted"),
            ("Ion: fib (evaluate:1:13)", "fib", "evaluate", 1, 13, "ion"),
            ("Baseline: g (a (b).js:2:3)", "g", "a (b).js", 2, 3, "baseline"),
            ("TRACE_3::/a/x.lua:7", "/a/x.lua:7", "/a/x.lua", 7, 0, "trace"),
            ("TRACE_12::(string):7", "(string):7", "", 7, 0, "trace"),
            ("TRACE-11$mandel$5", "mandel", "", 5, 0, "trace"),
            ("TRACE-10$Vec::run$4", "Vec::run", "", 4, 0, "trace"),
            ("collatz(p.raku:1)", "collatz", "p.raku", 1, 0, ""),
            ("(/srv/work.raku:2)", "(anonymous)", "/srv/work.raku", 2, 0, ""),
            ("(-e:1)", "(anonymous)", "-e", 1, 0, ""),
            ("f(EVAL_3:2)", "f", "EVAL_3", 2, 0, ""),
            ("f(<unknown>:1)", "f", "", 1, 0, ""),
            ("größe(/usr/bin/app:3)", "größe", "/usr/bin/app", 3, 0, ""),
            ("f(/a (b)/x.raku:3)", "f", "/a (b)/x.raku", 3, 0, ""),
            (
                "infix:<(+)>(SETTING::src/core.c/set.pm6:12)",
                "infix:<(+)>",
                "SETTING::src/core.c/set.pm6",
                12,
                0,
                "",
            ),
            ("!dba(gen/moar/QRegex.nqp:1795)", "!dba", "gen/moar/QRegex.nqp", 1795, 0, ""),
            ("f(/x/Work.rakumod (A::Work):2)", "f", "/x/Work.rakumod", 2, 0, ""),
            ("f(lib/Work.rakumod (Work):2)", "f", "lib/Work.rakumod", 2, 0, ""),
            ("f(/x/copy (1):2)", "f", "/x/copy (1)", 2, 0, ""),
            ("f(C:\\x\\p.raku:4)", "f", "C:\\x\\p.raku", 4, 0, ""),
            ("py::C.fib:/a:b/x.py", "C.fib", "/a:b/x.py", 0, 0, ""),
            ("py::<module>:<string>", "<module>", "<string>", 0, 0, ""),
            ("/a:b/x.py:3:f", "f", "/a:b/x.py", 3, 0, ""),
            ("x.py:1:<module>", "<module>", "x.py", 1, 0, ""),
        ] {
            let name = FunctionName::of(code.as_bytes());
            let read = (text(&name.function), text(name.file), name.line, name.column);
            assert_eq!(read, (function.into(), file.into(), line, column), "{code}");
            assert_eq!(text(name.tier.unwrap_or_default()), tier, "{code}");
        }
    }

    #[test]
    fn names_with_marks() {
        for (code, function, tier) in [
            ("JS:~", "", "interpreted"),
            ("JS:*f", "f", "turbofan"),
            ("JS:collatz-0-liftoff", "collatz", "liftoff"),
            ("JS:a-b-12-turbofan", "a-b", "turbofan"),
            ("JS:wasm-function[3]-3-liftoff", "wasm-function[3]", "liftoff"),
            (
                "JS:core::iter-x::<impl A for B>::next-3-1-turbofan",
                "core::iter-x::<impl A for B>::next-3",
                "turbofan",
            ),
            ("JS:wasm-to-js:i:-log_it-0-turbofan", "wasm-to-js log_it", "turbofan"),
            ("JS:wasm-to-js:ifl:d-a-b-12-turbofan", "wasm-to-js a-b", "turbofan"),
            ("JS:wasm-to-js:i:-0-turbofan", "wasm-to-js:i:", "turbofan"),
            ("JS:wasm-to-js-<anonymous>-none", "wasm-to-js", ""),
            (
                "int32 [Spin] Spin::Fib(int32)[OptimizedTier1]",
                "int32 [Spin] Spin::Fib(int32)",
                "OptimizedTier1",
            ),
            (
                "void [Spin] Spin::Main()[OptimizedTier1OSR]",
                "void [Spin] Spin::Main()",
                "OptimizedTier1OSR",
            ),
            ("void A::b()[QuickJittedInstrumented]", "void A::b()", "QuickJittedInstrumented"),
            ("JIT$mandel", "mandel", "function"),
            ("JSC-FTL: vecs#BgABRU", "vecs", "FTL"),
            ("JSC-DFG: get #x#BgABRU", "get #x", "DFG"),
            ("JSC-Baseline: #x#BgABRU", "#x", "Baseline"),
            ("JSC-Baseline: <global>#BgABRU", "<global>", "Baseline"),
            // Without a name, and without a hash.
            ("JSC-DFG: #BgABRU", "#BgABRU", "DFG"),
            ("JSC-DFG: f#x", "f#x", "DFG"),
            ("JSC-DFG: f#BgABR-", "f#BgABR-", "DFG"),
            ("JSC-WasmOMG: lib.wasm.wasm-function[run]#BLSL4P", "run", "WasmOMG"),
            ("JSC-WasmBBQ: .wasm-function[a[0]]#BvAZCn", "a[0]", "WasmBBQ"),
            ("JSC-WasmBBQ: .wasm-function[7]#BvAZCn", ".wasm-function[7]#BvAZCn", "WasmBBQ"),
            (".wasm-function[_ZN3hot8leafworkEi]", "_ZN3hot8leafworkEi", ""),
            ("wasm[0]::function[3]::_ZN3hot8leafworkEi", "_ZN3hot8leafworkEi", ""),
            ("wasm[0]::function[3]::a::b", "a::b", ""),
            ("$spin:spin/1", "spin:spin/1", ""),
            ("$work:'-qs/1-lc$^1/1-0-'/2", "work:'-qs/1-lc$^1/1-0-'/2", ""),
            ("$work:fib/1-CodeInfoPrologue", "work:fib/1", ""),
            ("erts_beamasm:normal_exit/0-CodeInfoPrologue", "erts_beamasm:normal_exit/0", ""),
            ("$'Elixir.Enum':map/2", "Enum.map/2", ""),
            ("'Elixir.Enum':'-map/2-lists^map/1-0-'/2", "Enum.map/2", ""),
            ("$'Elixir.Enum':'-map/2-lists^map/1-0-'/2-CodeInfoPrologue", "Enum.map/2", ""),
            ("$'Elixir.My.App':'-run/1-fun-0-'/2", "anonymous fn/2 in My.App.run/1", ""),
            ("$'Elixir.My.App':'-a-b/1-fun-0-'/2", "anonymous fn/2 in My.App.a-b/1", ""),
            ("$'Elixir.Kernel':'/'/2", "Kernel.//2", ""),
            ("$'Elixir.A':'is_ok?'/1", "A.is_ok?/1", ""),
            (
                "int Work$$Lambda$5/0x00007f366c002470.applyAsInt(int)",
                "int Work$$Lambda$5.applyAsInt(int)",
                "",
            ),
            ("App$$Lambda+0x00007f1234567890.run", "App$$Lambda.run", ""),
            ("App$$Lambda$14/1044036744.run", "App$$Lambda$14.run", ""),
            (
                "long java.lang.invoke.LambdaForm$MH/0x00007f366c004800.invoke(int)",
                "long java.lang.invoke.LambdaForm$MH.invoke(int)",
                "",
            ),
            ("evalexpr_0_3", "evalexpr", ""),
            ("deform_12_40", "deform", ""),
        ] {
            let name = FunctionName::of(code.as_bytes());
            let read = (text(&name.function), text(name.tier.unwrap_or_default()));
            assert_eq!(read, (function.into(), tier.into()), "{code}");
            assert!(!name.has_place(), "{code}");
        }
    }

    #[test]
    fn names_may_have_a_hash_of_the_source() {
        for (code, hash) in [
            ("JSC-FTL: vecs#BgABRU", "BgABRU"),
            ("JSC-DFG: #x#BgABRU", "BgABRU"),
            ("JSC-DFG: #BgABRU", ""),
            // Of the module's code, and not of the function.
            ("JSC-WasmBBQ: .wasm-function[7]#BvAZCn", ""),
            ("vecs#BgABRU", ""),
        ] {
            assert_eq!(text(FunctionName::of(code.as_bytes()).source_hash), hash, "{code}");
        }
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for code in [
            "",
            "main",
            "JS:spin",
            "JS:o",
            "JS:f-x-liftoff",
            "JS:f-none",
            "JS:-<anonymous>-none",
            "Stub:js-to-wasm:i:i",
            "JS:-1-liftoff",
            "RegExp:a*b",
            "Builtin:ArrayMap",
            "BytecodeHandler:LdaZero",
            "BaselineIC: Call.CallScripted",
            "Trampoline: EnterJIT",
            "int[] A.b(int[])",
            "f[x]",
            "[PreJIT]",
            "TRACE-1$$5",
            "TRACE-$f$5",
            "TRACE-1$f$",
            "TRACE_::a:5",
            "JIT$$exit_0",
            "$global::call_nif",
            "Interpreter",
            "py::f",
            "JSC-: f",
            ".wasm-function[3]",
            ".wasm-function[]",
            "wasm[0]::function[3]",
            "wasm[0]::function[3]::",
            "wasm[0]::function[x]::f",
            "wasm[0]::array_to_wasm_trampoline[3]",
            "vecs#BgABRU",
            "int Work.sieve(int)",
            "App.lambda$main$0",
            "java.lang.invoke.LambdaForm$Name.index()",
            "operator()(int)",
            "f(x:1)",
            "f(a/b:1)",
            "f(map<a,b>:1)",
            "f (/a/x.raku:1)",
            "f(/a/x.raku:0)",
            "f(/a/x.raku:-1)",
            "f(/a/x.raku)",
            ":1)",
            "C:\\a\\b.dll!f",
            "std::vector<int>::push_back(int const&)",
            "(wrapper runtime-invoke) <Module>:runtime_invoke_void (object,intptr)",
            "evalexpr_0",
            "evalexpr_a_1",
            "deform",
            "work:f/1",
            "'Elixir.Enum'",
            "trace 3 x.lua:7",
            "/a/x.py:3",
            "/a/x.py:3:4",
            "/a/x.py:0:f",
            "/a/x.c:3:f",
            ".py:3:f",
        ] {
            let name = FunctionName::of(code.as_bytes());
            assert_eq!(name, FunctionName::plain(code.as_bytes()));
        }
    }

    #[test]
    fn inlined_functions_without_a_name_have_a_place() {
        let of = |name: &'static str| FunctionName::of_inlined(name.as_bytes());
        let name = of("(anonymous) /a/x.js:3:4");
        assert_eq!((&*name.function, name.file), (&b"(anonymous)"[..], &b"/a/x.js"[..]));
        assert_eq!((name.line, name.column), (3, 4));
        for other in ["f", "(anonymous)", "(anonymous) f", "JS:*f a.js:1:2", ""] {
            assert_eq!(of(other), FunctionName::plain(other.as_bytes()));
        }
    }

    #[test]
    fn trampolines_are_no_compiled_functions() {
        assert_eq!(FunctionName::of(b"py::fib:/a/x.py").kind, NameKind::Trampoline);
        assert_eq!(FunctionName::of(b"JS:~fib /a/x.js:1:2").kind, NameKind::Compiled);
    }

    #[test]
    fn a_mark_that_may_be_part_of_the_name() {
        let without =
            |code: &str| FunctionName::of(code.as_bytes()).without_loop_mark().map(<[u8]>::to_vec);
        assert_eq!(without("JS:*ospin a.js:1:14"), Some(b"spin".to_vec()));
        assert_eq!(without("JS:*o a.js:1:14"), Some(b"(anonymous)".to_vec()));
        for other in ["JS:*spin a.js:1:14", "JS:*ospin", "open(/a.raku:1)", "open(int)"] {
            assert_eq!(without(other), None, "{other}");
        }
    }

    /// Texts of what the rules look for.
    fn made() -> impl Strategy<Value = Vec<u8>> {
        let words = [
            "JS:",
            "*",
            "o",
            "Ion: ",
            " (",
            ")",
            "(",
            ":1",
            ":",
            "/",
            "'",
            "$",
            "-",
            "JSC-",
            "FTL",
            "[",
            "Tier1]",
            "TRACE-",
            "TRACE_",
            "1",
            "Elixir.",
            "fun-",
            "py::",
            "f",
            "evalexpr_",
            "_",
            "$$Lambda",
            "LambdaForm$",
            "/0x",
            "ab",
            ".raku",
            ".py:",
            " ",
            "-liftoff",
            ".wasm-function[",
            "wasm[1]::function[1]::",
            "]#",
            "ä",
        ];
        let words = prop::collection::vec(prop::sample::select(words.to_vec()), 0..12);
        words.prop_map(|words| words.concat().into_bytes())
    }

    fn is_part(part: &[u8], code: &[u8]) -> bool {
        part.is_empty() || code.windows(part.len()).any(|other| other == part)
    }

    proptest! {
        #[test]
        fn any_name_is_read(code in prop_oneof![made(), prop::collection::vec(any::<u8>(), 0..40)]) {
            let name = FunctionName::of(&code);
            prop_assert!(is_part(name.file, &code) && is_part(name.source_hash, &code));
            let placed = FunctionName::placed_of(&code);
            let is_hidden = code.windows(6).any(|part| part == b"Lambda");
            let expected = Some(&name).filter(|name| !name.file.is_empty() && !is_hidden);
            prop_assert_eq!(placed.as_ref().filter(|_| !is_hidden), expected);
            prop_assert!(placed.is_none_or(|name| matches!(name.function, Cow::Borrowed(_))));
            // Tiers of some runtimes are marks in the name.
            prop_assert!(name.tier.is_none_or(|tier| !tier.is_empty()));
            match &name.function {
                Cow::Borrowed(function) => {
                    prop_assert!(*function == ANONYMOUS || is_part(function, &code));
                }
                // Marks are taken out.
                Cow::Owned(function) => prop_assert!(function.len() < code.len() + 32),
            }
        }
    }
}

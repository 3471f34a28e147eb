//! Which function of a [profile] a jitted code or an inlined call belongs to: the same in the summary of an injection and in all
//! views of the new recording.

use std::borrow::Cow;

use code_index::{FunctionName, NameKind};
use native_files::SourceFrame;
use profile::{Builder, Function, FunctionId, FunctionKind, ModuleId, name_with_place};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::codes::original_places::{OriginalPlaces, SourcePlace};
use crate::source_name;
use crate::summary::demangle::{demangled, is_mangled};

/// What the symbol of a jitted code says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JittedName<'a> {
    /// The function's name as in the source, without the compiler's tier and without a place.
    pub name: Cow<'a, [u8]>,
    /// The file, as a path, if the symbol has it.
    pub file: Cow<'a, [u8]>,
    /// The line, from 1; 0 if the symbol has none.
    pub line: u32,
    /// The column, from 1; 0 if the symbol has none.
    pub column: u32,
    /// The hash of its source, by which its runtime tells functions of one name apart; empty if the symbol has none.
    pub source_hash: &'a [u8],
    /// The tier; empty if there is none.
    pub tier: &'a [u8],
    /// What the code is to the function.
    kind: FunctionKind,
    /// The function if the first letter of the name is a mark.
    without_loop_mark: Option<Vec<u8>>,
}

impl<'a> JittedName<'a> {
    /// Of a code with this symbol.
    #[must_use]
    pub fn of(symbol: &'a [u8]) -> Self {
        let name = FunctionName::of(symbol);
        let without_loop_mark = name.without_loop_mark().map(demangled_name).map(Cow::into_owned);
        let (line, column) = name.definition();
        let FunctionName { function, file, source_hash, tier, kind, .. } = name;
        let function = match function {
            Cow::Borrowed(name) => demangled_name(name),
            Cow::Owned(name) => name.into(),
        };
        // CPython's trampolines: one for each function, by which the interpreter calls itself. Of other runtimes, functions that
        // were interpreted may be compiled as well, and are the same functions.
        let kind = match kind {
            NameKind::Trampoline => FunctionKind::Interpreted,
            NameKind::Compiled => FunctionKind::Jitted,
        };
        let (name, file, tier) = (function, source_name(file), tier.unwrap_or_default());
        Self { name, file, line, column, source_hash, tier, kind, without_loop_mark }
    }

    /// The same with the place in the source that the script was compiled from, if it is one of these.
    fn in_source(self, originals: &OriginalPlaces) -> Self {
        match originals.of(&self.file, (self.line, self.column)) {
            Some(&SourcePlace(ref file, line, column)) => {
                Self { file: file.as_bytes().to_vec().into(), line, column, ..self }
            }
            None => self,
        }
    }
}

/// The file, line and column in the symbol of a code, as the runtime spells the file.
#[must_use]
pub fn place_in_symbol(symbol: &[u8]) -> Option<(Vec<u8>, u32, u32)> {
    let name = Some(FunctionName::of(symbol)).filter(FunctionName::has_place)?;
    Some((name.file.to_vec(), name.line, name.column))
}

/// The line that a trace begins at, if its symbol has that line and no file; 0 for others. It is that of the code: the function has
/// other traces, which begin at other lines.
#[must_use]
pub fn line_of_trace(symbol: &[u8]) -> u32 {
    let name = FunctionName::of(symbol);
    let is_of_function = name.definition() == (name.line, name.column);
    if is_of_function || !name.file.is_empty() { 0 } else { name.line }
}

/// The name of a function in views: the name of one without a name has its place, for views that show names alone.
fn shown<'a>(name: &'a [u8], file: &[u8], (line, column): (u32, u32)) -> Cow<'a, [u8]> {
    if name != FunctionName::ANONYMOUS || (file.is_empty() && line == 0) {
        return name.into();
    }
    name_with_place(name, file, (line, column)).into()
}

/// A function's name as in the source. What was compiled to WebAssembly or by LLVM may have another one.
fn demangled_name(name: &[u8]) -> Cow<'_, [u8]> {
    if is_mangled(name) { demangled(name).into() } else { name.into() }
}

/// A name and a file.
type NameAndFile = (Vec<u8>, Vec<u8>);

/// The functions that have code of their own, by name and file: inlined calls of them are the same functions.
#[derive(Debug, Default)]
pub struct JittedFunctions {
    /// Lines and columns where functions begin.
    by_place: FxHashMap<NameAndFile, Vec<(u32, u32)>>,
    /// The names of those without a place.
    names: FxHashSet<Vec<u8>>,
    originals: OriginalPlaces,
}

impl JittedFunctions {
    /// None yet. These are the places of functions in the sources that scripts were compiled from.
    #[must_use]
    pub fn new(originals: OriginalPlaces) -> Self {
        Self { originals, ..Self::default() }
    }

    /// Adds the places of functions in the sources that scripts were compiled from. From now on, these are the functions' places.
    pub fn add_originals(&mut self, rows: Vec<(SourcePlace, SourcePlace)>) {
        self.originals.extend(rows);
    }

    /// The places of functions in the sources that scripts were compiled from.
    #[must_use]
    pub fn originals(&self) -> &OriginalPlaces {
        &self.originals
    }

    /// Adds the function of a code.
    pub fn add(&mut self, symbol: &[u8]) {
        let name = JittedName::of(symbol).in_source(&self.originals);
        if name.file.is_empty() {
            if !self.names.contains(&*name.name) {
                self.names.insert(name.name.into_owned());
            }
            return;
        }
        let key = (name.name.into_owned(), name.file.into_owned());
        let places = self.by_place.entry(key).or_default();
        if !places.contains(&(name.line, name.column)) {
            places.push((name.line, name.column));
        }
    }

    /// The function of a code. V8 marks some codes by an `o` that may also be the beginning of the name.
    pub fn of_code(
        &self,
        builder: &mut Builder,
        name: &JittedName<'_>,
        runtime: Option<ModuleId>,
    ) -> FunctionId {
        let name = &name.clone().in_source(&self.originals);
        let place = (name.line, name.column);
        let function = name.without_loop_mark.as_ref().filter(|other| {
            let key = ((*other).clone(), name.file.to_vec());
            self.by_place.get(&key).is_some_and(|places| places.contains(&place))
        });
        let text = function.map_or(&*name.name, Vec::as_slice);
        jitted(builder, text, &name.file, place, (name.kind, runtime, name.source_hash))
    }

    /// The function of an inlined call in the code of `outer`.
    pub fn of_inlined(
        &self,
        builder: &mut Builder,
        frame: &SourceFrame,
        outer: FunctionId,
    ) -> FunctionId {
        let runtime = builder.function_row(outer).and_then(|outer| outer.runtime);
        let as_jitted = (FunctionKind::Jitted, runtime, &b""[..]);
        // Functions without a name have a place.
        if let Some(name) = anonymous_name(&frame.function) {
            let name = name.in_source(&self.originals);
            let place = (name.line, name.column);
            return jitted(builder, &name.name, &name.file, place, as_jitted);
        }
        let name = demangled(&frame.function);
        let key = (name, frame.file.clone());
        if let Some(places) = self.by_place.get(&key) {
            // The last one that begins before the position: functions of minified scripts share a line.
            let column = if frame.column == 0 { u32::MAX } else { frame.column };
            let before = places.iter().filter(|place| **place <= (frame.line, column)).max();
            let place = before.or_else(|| places.first()).copied().unwrap_or_default();
            return jitted(builder, &key.0, &frame.file, place, as_jitted);
        }
        let (name, file) = key;
        // If the code's symbol has its file, equal names in other files are other functions.
        let outer_has_file =
            builder.function_row(outer).is_some_and(|outer| !outer.file.is_empty());
        match outer_has_file && !self.names.contains(&name) {
            true => jitted(builder, &name, &file, (0, 0), as_jitted),
            false => jitted(builder, &name, b"", (0, 0), as_jitted),
        }
    }
}

/// The name that an inlined function without one gets, in its parts.
fn anonymous_name(symbol: &[u8]) -> Option<JittedName<'_>> {
    let FunctionName { function, file, line, column, .. } =
        Some(FunctionName::of_inlined(symbol)).filter(FunctionName::has_place)?;
    let (file, kind) = (source_name(file), FunctionKind::Jitted);
    let (source_hash, tier, without_loop_mark) = (&b""[..], &b""[..], None);
    let name = function;
    Some(JittedName { name, file, line, column, source_hash, tier, kind, without_loop_mark })
}

/// The name of the function that an inlined call is of: see [`JittedFunctions::of_inlined`].
#[must_use]
pub fn inlined_name(symbol: &[u8], originals: &OriginalPlaces) -> Vec<u8> {
    let Some(name) = anonymous_name(symbol) else { return demangled(symbol) };
    let name = name.in_source(originals);
    shown(&name.name, &name.file, (name.line, name.column)).into_owned()
}

fn jitted(
    builder: &mut Builder,
    name: &[u8],
    file: &[u8],
    place: (u32, u32),
    (kind, runtime, source_hash): (FunctionKind, Option<ModuleId>, &[u8]),
) -> FunctionId {
    let name = shown(name, file, place);
    let (name, file) = (builder.string(&name), builder.string(file));
    let mut function = Function::new(name, kind);
    function.file = file;
    (function.line, function.column) = place;
    function.runtime = runtime;
    function.source_hash = builder.string(source_hash);
    builder.function(function)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn symbols_may_have_a_place() {
        for (symbol, name, file, place, tier) in [
            ("JS:*spin /a/spin.js:1:14", "spin", "/a/spin.js", (1, 14), "turbofan"),
            ("JS:~ /a/spin.js:1:1", "(anonymous)", "/a/spin.js", (1, 1), "interpreted"),
            ("JS:^get size /a b/x.js:3:7", "get size", "/a b/x.js", (3, 7), "sparkplug"),
            ("LazyCompile:*fib /a/work.js:4", "fib", "/a/work.js", (4, 0), "turbofan"),
            ("JS:*f file:///a/x.mjs:2:3", "f", "/a/x.mjs", (2, 3), "turbofan"),
            (
                "JS:*nextTick node:internal/process:9:8",
                "nextTick",
                "node/internal/process",
                (9, 8),
                "turbofan",
            ),
            ("JS:*f", "f", "", (0, 0), "turbofan"),
            ("JS:o*f file:///a.js:1:2", "f", "/a.js", (1, 2), "turbofan"),
            ("JS:_ZN3hot4workEi-7-liftoff", "hot::work", "", (0, 0), "liftoff"),
            (
                "JSC-WasmOMG: a.wasm-function[_ZN3lib4work7collatz17h7192250dcfc35c1cE]#BvAZCn",
                "lib::work::collatz",
                "",
                (0, 0),
                "WasmOMG",
            ),
            ("JSC-DFG: gamma#B5QEX4", "gamma", "", (0, 0), "DFG"),
            ("wasm[0]::function[3]::_ZN3hot8leafworkEi", "hot::leafwork", "", (0, 0), ""),
            ("Ion: fib (evaluate:1:13)", "fib", "evaluate", (1, 13), "ion"),
            ("Baseline: g (a (b).js:2:3)", "g", "a (b).js", (2, 3), "baseline"),
            ("_ZN3hot8leafworkEi", "hot::leafwork", "", (0, 0), ""),
            ("_RNvCs1234_7mycrate8run_loop", "mycrate::run_loop", "", (0, 0), ""),
            ("call@Plain", "call@Plain", "", (0, 0), ""),
            ("int Work.sieve(int)", "int Work.sieve(int)", "", (0, 0), ""),
            ("TRACE-11$mandel$5", "mandel", "", (0, 0), "trace"),
            ("collatz(p.raku:1)", "collatz", "p.raku", (1, 0), ""),
            ("sink(SETTING::src/L.pm6:7)", "sink", "SETTING/src/L.pm6", (7, 0), ""),
            ("py::C.f:/a/x.py", "C.f", "/a/x.py", (0, 0), ""),
        ] {
            let found = JittedName::of(symbol.as_bytes());
            assert_eq!(found.name, name.as_bytes(), "{symbol}");
            assert_eq!(found.file, file.as_bytes(), "{symbol}");
            assert_eq!(((found.line, found.column), found.tier), (place, tier.as_bytes()));
        }
    }

    #[test]
    fn traces_without_a_file_have_a_line() {
        for (symbol, line) in [
            ("TRACE-11$mandel$5", 5),
            ("TRACE_12::(string):7", 7),
            ("TRACE_3::/a/x.lua:7", 0),
            ("JIT$mandel", 0),
            ("JS:~get x :5:15", 0),
        ] {
            assert_eq!(line_of_trace(symbol.as_bytes()), line, "{symbol}");
        }
    }

    #[test]
    fn inlined_calls_are_of_the_function_with_code_of_its_own() {
        let mut known = JittedFunctions::default();
        for symbol in ["JS:*f /a.js:3:9", "JS:^f /a.js:20:9", "JS:*of /b.js:1:2", "JS:*f /b.js:1:2"]
        {
            known.add(symbol.as_bytes());
        }
        let mut builder = Builder::new();
        let mut place_of = |file: &str, line| {
            let outer = known.of_code(&mut builder, &JittedName::of(b"JS:*g /a.js:9:9"), None);
            let frame = SourceFrame { function: b"f".to_vec(), file: file.into(), line, column: 0 };
            let function = known.of_inlined(&mut builder, &frame, outer);
            let row = builder.function_row(function).expect("a function");
            (builder.text(row.file).to_vec(), row.line)
        };
        assert_eq!(place_of("/a.js", 5), (b"/a.js".to_vec(), 3));
        assert_eq!(place_of("/a.js", 25), (b"/a.js".to_vec(), 20));
        assert_eq!(place_of("/a.js", 1), (b"/a.js".to_vec(), 3));
        assert_eq!(place_of("/c.js", 1), (b"/c.js".to_vec(), 0));
        let osr = known.of_code(&mut builder, &JittedName::of(b"JS:*of /b.js:1:2"), None);
        let plain = known.of_code(&mut builder, &JittedName::of(b"JS:*f /b.js:1:2"), None);
        assert_eq!(osr, plain);
    }

    /// The lines of code are those of the source, so that the places of functions must be, too.
    #[test]
    fn functions_have_their_places_in_the_source() {
        let mut known = JittedFunctions::default();
        let place = |file: &str, line, column| SourcePlace(file.to_owned(), line, column);
        known.add_originals(vec![
            (place("/dist/a.js", 1, 20), place("/src/a.ts", 3, 10)),
            (place("/dist/a.js", 1, 40), place("/src/a.ts", 5, 7)),
        ]);
        known.add(b"JS:^f file:///dist/a.js:1:20");
        let mut builder = Builder::new();
        let mut rows = Vec::new();
        let code = JittedName::of(b"JS:*f file:///dist/a.js:1:20");
        let outer = known.of_code(&mut builder, &code, None);
        rows.push(outer);
        for symbol in ["JS:^ file:///dist/a.js:1:40", "JS:^ file:///dist/a.js:1:50", "JS:^ :1:60"] {
            rows.push(known.of_code(&mut builder, &JittedName::of(symbol.as_bytes()), None));
        }
        for (function, file, line) in
            [("f", "/src/a.ts", 4), ("(anonymous) file:///dist/a.js:1:40", "/src/a.ts", 5)]
        {
            let frame =
                SourceFrame { function: function.into(), file: file.into(), line, column: 3 };
            rows.push(known.of_inlined(&mut builder, &frame, outer));
        }
        let shown: Vec<String> = rows
            .iter()
            .map(|&id| {
                let row = builder.function_row(id).expect("a function");
                let [name, file] =
                    [row.name, row.file].map(|id| String::from_utf8_lossy(builder.text(id)));
                format!("{name} {file}:{}:{}", row.line, row.column)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "f /src/a.ts:3:10",
                "(anonymous) a.ts:5:7 /src/a.ts:5:7",
                "(anonymous) a.js:1:50 /dist/a.js:1:50",
                "(anonymous) :1:60 :1:60",
                "f /src/a.ts:3:10",
                "(anonymous) a.ts:5:7 /src/a.ts:5:7",
            ]
        );
        let name = inlined_name(b"(anonymous) file:///dist/a.js:1:40", known.originals());
        assert_eq!(name, b"(anonymous) a.ts:5:7");
    }

    #[test]
    fn inlined_calls_are_told_apart_in_one_line() {
        let mut known = JittedFunctions::default();
        for symbol in ["JS:*f /a.js:1:20", "JS:*f /a.js:1:900"] {
            known.add(symbol.as_bytes());
        }
        let mut builder = Builder::new();
        let outer = known.of_code(&mut builder, &JittedName::of(b"JS:*g /a.js:1:2"), None);
        let mut column_of = |column| {
            let (function, file) = (b"f".to_vec(), b"/a.js".to_vec());
            let frame = SourceFrame { function, file, line: 1, column };
            let function = known.of_inlined(&mut builder, &frame, outer);
            builder.function_row(function).expect("a function").column
        };
        assert_eq!((column_of(30), column_of(950), column_of(0)), (20, 900, 900));
    }

    #[test]
    fn functions_of_cpython_are_interpreted() {
        let (known, mut builder) = (JittedFunctions::default(), Builder::new());
        let mut kind = |symbol: &str| {
            let function = known.of_code(&mut builder, &JittedName::of(symbol.as_bytes()), None);
            builder.function_row(function).expect("a function").kind
        };
        assert_eq!(kind("py::fib:/a/x.py"), FunctionKind::Interpreted);
        assert_eq!(kind("JS:~fib /a/x.js:1:2"), FunctionKind::Jitted);
    }

    proptest! {
        #[test]
        fn any_symbol_is_of_a_function(symbol in prop::collection::vec(any::<u8>(), 0..40)) {
            let with_place = [b"JS:*", &symbol[..], b" /x.js:1:2"].concat();
            let (mut known, mut builder) = (JittedFunctions::default(), Builder::new());
            for symbol in [&symbol, &with_place] {
                known.add(symbol);
                known.of_code(&mut builder, &JittedName::of(symbol), None);
            }
        }
    }
}

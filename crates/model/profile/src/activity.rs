//! What a runtime's own functions and threads do: collect garbage, compile, interpret.
//!
//! Their names tell. The tables here are heuristics: names of functions change between versions, and distributions strip symbols from some
//! runtimes. Then nothing is known of a function.

/// What a runtime does for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Collects garbage.
    GarbageCollector,
    /// Parses or compiles.
    Compiler,
    /// Interprets.
    Interpreter,
}

use Activity::{Compiler, GarbageCollector, Interpreter};

/// The names of a runtime.
struct Runtime {
    /// The beginnings of the names of its files.
    files: &'static [&'static str],
    /// Names of its functions, as they are in the symbol table.
    functions: &'static [(Match, Activity)],
}

/// How a name is recognized.
enum Match {
    /// By its beginning.
    Begins(&'static str),
    /// By its beginning and a part of the rest.
    Has(&'static str, &'static [&'static str]),
    /// By its beginning and its end.
    Ends(&'static str, &'static str),
}

use Match::{Begins, Ends, Has};

const RUNTIMES: [Runtime; 9] = [
    // V8. Bytecode handlers are compiled ahead, into the program.
    Runtime {
        files: &["node", "libnode.so", "nodejs", "deno", "d8", "chrome", "electron", "libv8.so"],
        functions: &[
            (Ends("Builtins_", "Handler"), Interpreter),
            (Begins("Builtins_InterpreterE"), Interpreter),
            (Begins("_ZN2v88internal8compiler"), Compiler),
            (Begins("_ZN2v88internal6maglev"), Compiler),
            (Begins("_ZN2v88internal8baseline"), Compiler),
            (Begins("_ZN6cppgc8internal"), GarbageCollector),
            (
                Has(
                    "_ZN",
                    &[
                        "v88internal8Compiler",
                        "v88internal6Parser",
                        "v88internal9PreParser",
                        "v88internal10ParserBase",
                        "v88internal7Scanner",
                        "BytecodeGenerator",
                        "CompilationJob",
                        "CompileDispatcher",
                    ],
                ),
                Compiler,
            ),
            (
                Has(
                    "_ZN",
                    &[
                        "Scaveng",
                        "MarkCompact",
                        "MarkingVisitor",
                        "ConcurrentMarking",
                        "IncrementalMarking",
                        "7Sweeper",
                        "Evacuat",
                        "4Heap14CollectGarbage",
                        "4Heap24PerformGarbageCollection",
                        "18PretenuringHandler",
                    ],
                ),
                GarbageCollector,
            ),
        ],
    },
    // HotSpot. Its threads tell more.
    Runtime {
        files: &["libjvm.so"],
        functions: &[
            (
                Has(
                    "_ZN",
                    &[
                        "13CompileBroker",
                        "10C2Compiler",
                        "8Compiler14compile_method",
                        "7Compile",
                        "12PhaseChaitin",
                        "11Compilation",
                    ],
                ),
                Compiler,
            ),
            (
                Has(
                    "_ZN",
                    &[
                        "2G1",
                        "3G1",
                        "G1Par",
                        "G1Full",
                        "G1Concurrent",
                        "G1Collect",
                        "16PSPromotion",
                        "17PSParallelCompact",
                        "10PSScavenge",
                        "13GenCollected",
                        "16DefNewGeneration",
                        "Shenandoah",
                        "6ZHeap",
                        "5ZMark",
                        "9ZRelocate",
                    ],
                ),
                GarbageCollector,
            ),
            (Begins("_ZN19BytecodeInterpreter"), Interpreter),
        ],
    },
    // PHP; its compiler is in opcache.
    Runtime {
        files: &["php", "libphp", "opcache.so"],
        functions: &[
            (Begins("execute_ex"), Interpreter),
            (Begins("ZEND_"), Interpreter),
            (Begins("zend_gc_"), GarbageCollector),
            (Begins("gc_"), GarbageCollector),
            (Begins("zend_compile"), Compiler),
            (Begins("zend_optimize"), Compiler),
            (Begins("zend_jit_trace"), Compiler),
            (Begins("zend_jit_compile"), Compiler),
            (Begins("zendparse"), Compiler),
            (Begins("lex_scan"), Compiler),
        ],
    },
    Runtime {
        files: &["beam.smp", "beam.emu.smp", "beam"],
        functions: &[
            (Begins("process_main"), Interpreter),
            (Begins("erts_garbage_collect"), GarbageCollector),
            (Begins("erts_gc_"), GarbageCollector),
            (Begins("garbage_collect"), GarbageCollector),
            (Begins("sweep"), GarbageCollector),
            (Has("_ZN", &["19BeamModuleAssembler", "6asmjit"]), Compiler),
            (Begins("beamasm_"), Compiler),
        ],
    },
    Runtime {
        files: &["python", "libpython"],
        functions: &[
            (Begins("_PyEval_EvalFrame"), Interpreter),
            (Begins("gc_collect"), GarbageCollector),
            (Begins("_PyGC_"), GarbageCollector),
            (Begins("PyGC_Collect"), GarbageCollector),
            (Begins("_PyJIT_Compile"), Compiler),
            (Begins("_PyAST_Compile"), Compiler),
            (Begins("_PyPegen_"), Compiler),
            (Begins("_PyOptimizer_Optimize"), Compiler),
        ],
    },
    Runtime {
        files: &["libmoar"],
        functions: &[
            (Begins("MVM_interp_run"), Interpreter),
            (Begins("MVM_gc_"), GarbageCollector),
            (Begins("MVM_spesh_"), Compiler),
            (Begins("MVM_jit_"), Compiler),
        ],
    },
    Runtime {
        files: &["mono", "libmono"],
        functions: &[
            (Begins("interp_exec_method"), Interpreter),
            (Begins("mono_interp_exec_method"), Interpreter),
            (Begins("sgen_"), GarbageCollector),
            (Begins("mono_gc_"), GarbageCollector),
            (Begins("mono_jit_compile"), Compiler),
            (Begins("mini_method_compile"), Compiler),
        ],
    },
    // .NET's compiler is a library of its own.
    Runtime { files: &["libclrjit.so"], functions: &[(Begins(""), Compiler)] },
    Runtime {
        files: &["libjavascriptcore", "jsc", "bun"],
        functions: &[
            (Begins("llint_"), Interpreter),
            (
                Has("_ZN3JSC", &["3DFG", "3FTL", "2B3", "3JIT", "6Parser", "17BytecodeGenerator"]),
                Compiler,
            ),
            (Has("_ZN3JSC", &["4Heap", "11SlotVisitor", "11MarkedBlock"]), GarbageCollector),
        ],
    },
];

/// Threads, by the beginnings of their names, which the kernel cuts to 15 bytes.
const THREADS: [(&str, Activity); 24] = [
    // HotSpot
    ("C1 CompilerThre", Compiler),
    ("C2 CompilerThre", Compiler),
    ("JVMCI", Compiler),
    ("GC Thread#", GarbageCollector),
    ("ParGC Thread#", GarbageCollector),
    ("G1 ", GarbageCollector),
    ("ZDriver", GarbageCollector),
    ("ZWorker", GarbageCollector),
    ("ZDirector", GarbageCollector),
    ("Shenandoah", GarbageCollector),
    // .NET
    (".NET Tiered Com", Compiler),
    (".NET BGC", GarbageCollector),
    (".NET Server GC", GarbageCollector),
    (".NET SGC", GarbageCollector),
    // JavaScriptCore
    ("JITWorker", Compiler),
    ("JIT Worker", Compiler),
    ("DFG", Compiler),
    ("FTL", Compiler),
    ("HeapHelper", GarbageCollector),
    ("Heap Helper", GarbageCollector),
    ("JSC Heap", GarbageCollector),
    // mono and MoarVM
    ("SGen worker", GarbageCollector),
    ("spesh optimizer", Compiler),
    ("MVM spesh", Compiler),
];

/// Whether code with this symbol, at this tier, interprets: HotSpot's interpreter, and what V8's is made of. The tier is empty if it is not known.
#[must_use]
pub fn is_interpreter(name: &[u8], tier: &[u8]) -> bool {
    tier == b"interpreted"
        || name == b"Interpreter"
        || name.starts_with(b"BytecodeHandler:")
        || name.starts_with(b"Builtin:Interpreter")
}

/// Whether the name of a file is one of those that begin so: `node20`, `libnode.so.108`, `php-fpm8.2`, `qemu-arm` (of `qemu-`), but not
/// `nodemon`.
#[must_use]
pub fn is_file_of(name: &[u8], begin: &str) -> bool {
    let may_go_on = begin.starts_with("lib") || begin.ends_with('-');
    let rest = name.strip_prefix(begin.as_bytes());
    rest.is_some_and(|rest| may_go_on || !rest.first().is_some_and(u8::is_ascii_lowercase))
}

/// Whether a file belongs to a runtime that is known by name.
#[must_use]
pub fn is_of_runtime(path: &[u8]) -> bool {
    Runtime::of_file(path).is_some()
}

impl Activity {
    /// What a function does, by the path of its file and its symbol (mangled). `None` if that is not known, or it does something else.
    #[must_use]
    pub fn of_function(file: &[u8], symbol: &[u8]) -> Option<Self> {
        Runtime::of_file(file)?.activity(symbol)
    }

    /// What a thread with this name does, if it has one task.
    #[must_use]
    pub fn of_thread(name: &[u8]) -> Option<Self> {
        THREADS.iter().find(|(begin, _)| name.starts_with(begin.as_bytes())).map(|(_, is)| *is)
    }
}

impl Runtime {
    /// The runtime that a file belongs to.
    fn of_file(path: &[u8]) -> Option<&'static Self> {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        RUNTIMES.iter().find(|runtime| runtime.files.iter().any(|begin| is_file_of(name, begin)))
    }

    fn activity(&self, symbol: &[u8]) -> Option<Activity> {
        let has =
            |text: &[u8], part: &str| text.windows(part.len()).any(|it| it == part.as_bytes());
        let is = |pattern: &Match| match pattern {
            Begins(begin) => symbol.starts_with(begin.as_bytes()),
            Has(begin, parts) => symbol
                .strip_prefix(begin.as_bytes())
                .is_some_and(|rest| parts.iter().any(|part| has(rest, part))),
            Ends(begin, end) => {
                symbol.starts_with(begin.as_bytes()) && symbol.ends_with(end.as_bytes())
            }
        };
        self.functions.iter().find(|(pattern, _)| is(pattern)).map(|(_, activity)| *activity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_runtimes() {
        for (file, symbol, activity) in [
            ("/usr/bin/node", "Builtins_LdaZeroHandler", Some(Interpreter)),
            ("/usr/bin/node", "Builtins_InterpreterEntryTrampoline", Some(Interpreter)),
            ("/usr/bin/node", "Builtins_ArrayMap", None),
            (
                "/usr/bin/node",
                "_ZN2v88internal9Scavenger7ProcessEPNS_11JobDelegateE",
                Some(GarbageCollector),
            ),
            ("/usr/bin/node", "_ZN2v88internal8compiler12PipelineImplE", Some(Compiler)),
            ("/usr/bin/node", "_ZN4node9inspector", None),
            ("/usr/bin/nodemon", "Builtins_LdaZeroHandler", None),
            (
                "/usr/lib/jvm/lib/server/libjvm.so",
                "_ZN13CompileBroker20compiler_thread_loopEv",
                Some(Compiler),
            ),
            (
                "/usr/lib/jvm/lib/server/libjvm.so",
                "_ZN10PSScavenge6invokeEv",
                Some(GarbageCollector),
            ),
            ("/usr/bin/php8.2", "execute_ex", Some(Interpreter)),
            ("/usr/bin/php8.2", "zend_gc_collect_cycles", Some(GarbageCollector)),
            ("/usr/lib/php/20220829/opcache.so", "zend_jit_trace_hot_root", Some(Compiler)),
            ("/usr/bin/python3.13", "_PyEval_EvalFrameDefault", Some(Interpreter)),
            ("/usr/lib/libpython3.13.so.1.0", "_PyEval_EvalFrameDefault", Some(Interpreter)),
            (
                "/usr/lib/erlang/erts/bin/beam.smp",
                "erts_garbage_collect_nobump",
                Some(GarbageCollector),
            ),
            ("/usr/share/dotnet/libclrjit.so", "anything", Some(Compiler)),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", "memmove", None),
        ] {
            let found = Activity::of_function(file.as_bytes(), symbol.as_bytes());
            assert_eq!(found, activity, "{file} {symbol}");
        }
    }

    #[test]
    fn threads_and_codes() {
        assert_eq!(Activity::of_thread(b"C2 CompilerThre"), Some(Compiler));
        assert_eq!(Activity::of_thread(b"GC Thread#3"), Some(GarbageCollector));
        assert_eq!(Activity::of_thread(b"node"), None);
        assert!(THREADS.iter().all(|(name, _)| name.len() <= 15), "the kernel cuts longer names");
        assert!(is_interpreter(b"Interpreter", b""));
        assert!(is_interpreter(b"f a.js:1:1", b"interpreted"));
        assert!(!is_interpreter(b"InterpreterOfMine", b""));
    }
}

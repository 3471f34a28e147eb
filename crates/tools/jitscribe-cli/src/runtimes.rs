//! The settings that make known runtimes announce their code, how a process with such a runtime is recognized, and what to type if
//! it was started without the settings: in one table.
//!
//! Three rules keep a recorded program from behaving differently:
//! - A variable is set for every command, since a script may start any runtime. It must therefore be
//!   harmless to versions that do not know it.
//! - A value set by the user stays. If the variable is a list, ours is appended; otherwise it is not set.
//! - Settings that other versions of a runtime would reject, or that turn on a JIT that is off, are
//!   flags. They are passed only if the command itself is that runtime and accepts them.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use profile::activity::is_file_of;
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::{Error, Result, java_agent};

/// A runtime and its settings.
#[derive(Debug)]
pub struct Runtime {
    /// Its name.
    pub name: &'static str,
    /// The commands that are this runtime; a version may follow (`python3.13`).
    pub programs: &'static [&'static str],
    /// The first version that supports these settings; empty if it is not known.
    pub since: &'static str,
    /// Variables, set for every command.
    pub variables: &'static [Variable],
    /// Sets of flags. Each set is passed as a whole if the runtime accepts it.
    pub flags: &'static [&'static [&'static str]],
    /// The subcommands that accept the flags. If there are any, a word that is neither one of them nor
    /// a file is another subcommand, which gets no flags.
    pub subcommands: &'static [&'static str],
    /// The beginnings of the names of the files by which a process with this runtime is recognized, where it has mapped them.
    pub mapped: &'static [&'static str],
    /// What makes it announce its code, in short; empty if nothing does.
    pub switch: &'static str,
    /// What to type, for a process that was started without the switch.
    pub advice: &'static str,
    /// How to start it so that a debugger that attaches later finds its code; empty if nothing does. Perf maps are preferred here: V8 and others
    /// write jitdumps through a buffer, which lacks the last functions.
    pub debugger_switch: &'static str,
    /// Whether it writes its jitdumps below `$JITDUMPDIR/.debug/jit`, or `~/.debug/jit`.
    pub in_jitdumpdir: bool,
    /// How the name of a file ends in which it keeps compiled code, and which is no object file; empty if it has none.
    pub heap_image: &'static str,
}

/// A runtime without any settings.
const PLAIN: Runtime = Runtime {
    name: "",
    programs: &[],
    since: "",
    variables: &[],
    flags: &[],
    subcommands: &[],
    mapped: &[],
    switch: "",
    advice: "",
    debugger_switch: "",
    in_jitdumpdir: false,
    heap_image: "",
};

/// An environment variable.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value; [`DUMPS`] and [`PHP_INI`] stand for folders, [`JAVA_AGENT`] for a file with [`JAVA_OPTIONS`].
    pub value: &'static str,
    /// How a value set by the user is treated.
    pub merge: Merge,
    /// When it is set.
    pub when: When,
}

/// How our value of a variable is combined with the user's.
#[derive(Clone, Copy, Debug)]
pub enum Merge {
    /// The user's value is kept, ours is not set.
    Keep,
    /// Ours is appended to the user's, with this separator.
    Append(&'static str),
}

/// When a variable is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// If call chains are unwound by DWARF, so that unwind info is useful.
    Dwarf,
    /// If perf maps are wanted beside jitdumps ([`Maps::BesideDumps`]).
    BesideDumps,
    /// If there is a Java agent (`true`), or if there is none (`false`).
    JavaAgent(bool),
    /// If files in the folder for dumps may be mapped as code: the runtime exits if it cannot map its dump.
    DumpsAreMappable,
}

/// Placeholder for the folder for dumps.
const DUMPS: &str = "{dumps}";
/// Placeholder for the folder with our `.ini` for PHP.
const PHP_INI: &str = "{php-ini}";
/// Placeholder for the path of the Java agent.
const JAVA_AGENT: &str = "{java-agent}";
/// Placeholder for the Java agent's options.
const JAVA_OPTIONS: &str = "{java-options}";

/// Who walks the call stacks, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// The kernel, by frame pointers, if at all.
    FramePointers,
    /// perf, by unwind info, in copies of the stacks.
    Copied,
    /// A debugger, by unwind info.
    Debugger,
}

/// Whether a runtime that writes its jitdump through a buffer also writes a perf map, line by line. A signal that ends it (Ctrl-C, a
/// crash) loses what is in the buffer: of V8's dump up to 2 MB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maps {
    /// Only where it writes no jitdump.
    InsteadOfDumps,
    /// Also beside a jitdump.
    BesideDumps,
}

/// This does not turn on PHP's JIT; code that it compiles is written to a jitdump and a perf map. Without
/// the second line, scripts written in the last two seconds are not compiled.
const PHP_SETTINGS: &str = "opcache.jit_debug=32\nopcache.file_update_protection=0\n";

/// The same for a debugger. PHP's jitted code runs in the frame of its interpreter, whose layout only PHP knows. PHP itself
/// registers its traces with GDB, with unwind tables for debuggers.
const PHP_DEBUGGED: &str = "opcache.jit_debug=288\n";

const fn always(name: &'static str, value: &'static str, merge: Merge) -> Variable {
    Variable { name, value, merge, when: When::Always }
}

const fn for_dwarf(name: &'static str, value: &'static str, merge: Merge) -> Variable {
    Variable { name, value, merge, when: When::Dwarf }
}

const fn beside_dumps(name: &'static str, value: &'static str, merge: Merge) -> Variable {
    Variable { name, value, merge, when: When::BesideDumps }
}

const fn for_java(agent: bool, options: &'static str) -> Variable {
    let when = When::JavaAgent(agent);
    Variable { name: "JAVA_TOOL_OPTIONS", value: options, merge: SPACE, when }
}

const SPACE: Merge = Merge::Append(" ");

/// The table. "Seen" means that the version was tested; other rows name their source.
pub const RUNTIMES: &[Runtime] = &[
    // Seen with 18, 20 and 24. NODE_OPTIONS accepts a fixed list of V8's options (src/node_options.cc):
    // all of these since 12.4, but neither --perf-prof-path, which V8 has since 11.9 (node 21), nor
    // --logfile, nor --log-code. So --perf-prof leaves an isolate-*-v8.log in the working directory, and
    // only node as the command has inlined calls. (With /dev/null, V8 logs to standard output.) V8 puts
    // isolate-*-PID- before the log's name: worker threads and forked children, which have the same
    // options, write files of their own.
    Runtime {
        name: "node",
        programs: &["node", "nodejs"],
        since: "12.4",
        variables: &[
            always("NODE_OPTIONS", "--perf-prof --interpreted-frames-native-stack", SPACE),
            for_dwarf("NODE_OPTIONS", "--perf-prof-unwinding-info", SPACE),
            // V8 writes the jitdump through a buffer of 2 MB, and the perf map line by line.
            beside_dumps("NODE_OPTIONS", "--perf-basic-prof", SPACE),
        ],
        flags: &[
            &["--perf-prof-path={dumps}"],
            &["--log-code", "--log-source-code", "--logfile={dumps}/v8.log"],
        ],
        subcommands: &[],
        mapped: &["node", "nodejs", "libnode.so"],
        switch: "--perf-basic-prof",
        advice: "jitscribe record -- node app.js, or start it with NODE_OPTIONS=--perf-basic-prof, or, if it runs: jitscribe record -p PID --inspect",
        debugger_switch: "node --perf-basic-prof --interpreted-frames-native-stack",
        ..PLAIN
    },
    // Seen with 2.9. The variable: cli/args/flags.rs of deno. Deno rejects flags that its V8 lacks; it has all
    // of these. Without --logfile, a log stays in the working directory.
    Runtime {
        name: "deno",
        programs: &["deno"],
        since: "1.40",
        variables: &[
            always(
                "DENO_V8_FLAGS",
                "--perf-prof,--perf-prof-path={dumps},--interpreted-frames-native-stack,\
                 --log-code,--log-source-code,--logfile={dumps}/v8.log",
                Merge::Append(","),
            ),
            beside_dumps(
                "DENO_V8_FLAGS",
                "--perf-basic-prof,--perf-basic-prof-path={dumps}",
                Merge::Append(","),
            ),
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["deno"],
        switch: "DENO_V8_FLAGS=--perf-prof",
        advice: "jitscribe record -- deno run app.ts, or start it with DENO_V8_FLAGS=--perf-basic-prof",
        debugger_switch: "DENO_V8_FLAGS=--perf-basic-prof,--interpreted-frames-native-stack",
        ..PLAIN
    },
    // Seen with 2.50 (WebKitGTK). JSC reads any of its options from JSC_NAME.
    Runtime {
        name: "JavaScriptCore",
        programs: &["jsc"],
        since: "2.44",
        variables: &[
            always("JSC_useJITDump", "1", Merge::Keep),
            always("JSC_jitDumpDirectory", DUMPS, Merge::Keep),
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["libjavascriptcore", "jsc"],
        switch: "JSC_useJITDump=1",
        advice: "jitscribe record -- COMMAND, or start it with JSC_useJITDump=1 JSC_jitDumpDirectory=DIR",
        debugger_switch: "JSC_useJITDump=1",
        ..PLAIN
    },
    // Seen with 1.4. The same options with bun's own prefix: bun's documentation, "Debugging JavaScriptCore".
    Runtime {
        name: "bun",
        programs: &["bun"],
        since: "1.2",
        variables: &[
            always("BUN_JSC_useJITDump", "1", Merge::Keep),
            always("BUN_JSC_jitDumpDirectory", DUMPS, Merge::Keep),
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["bun"],
        switch: "BUN_JSC_useJITDump=1",
        advice: "jitscribe record -- bun app.js, or start it with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=DIR",
        debugger_switch: "BUN_JSC_useJITDump=1",
        ..PLAIN
    },
    // Seen with 17 and 25. The first option lets versions before 17 start, which have no perf maps. Java reports on standard
    // error that it picked these up. It does the same for JDK_JAVA_OPTIONS, which only the command `java` reads.
    Runtime {
        name: "Java",
        programs: &["java"],
        since: "17, from 8 with the agent",
        variables: &[
            always(
                "JAVA_TOOL_OPTIONS",
                "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer",
                SPACE,
            ),
            for_java(true, "-agentpath:{java-agent}{java-options}"),
            for_java(false, "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"),
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["libjvm.so"],
        switch: "an agent or -XX:+DumpPerfMapAtExit",
        advice: "jitscribe record -- java ..., or jitscribe record -p PID, which asks a running JVM (17 or later) for its code",
        debugger_switch: "java -XX:+PreserveFramePointer; `jcmd PID Compiler.perfmap` then writes the perf map",
        ..PLAIN
    },
    // Seen with 25. ERL_AFLAGS goes before the command line, so a +JPperf on the command line wins.
    Runtime {
        name: "Erlang",
        programs: &["erl", "elixir", "iex", "mix", "escript"],
        since: "24",
        variables: &[always("ERL_AFLAGS", "+JPperf true", SPACE)],
        flags: &[],
        subcommands: &[],
        mapped: &["beam.smp"],
        switch: "+JPperf true",
        advice: "jitscribe record -- erl ..., or start it with ERL_AFLAGS='+JPperf true'",
        debugger_switch: "erl +JPperf true",
        ..PLAIN
    },
    // Seen with 8.2. A colon with nothing before it stands for the folder that PHP was built with. Ours is
    // read last, and -d overrides everything.
    Runtime {
        name: "PHP",
        programs: &["php"],
        since: "8.0",
        variables: &[always("PHP_INI_SCAN_DIR", PHP_INI, Merge::Append(":"))],
        flags: &[&[
            "-dopcache.enable_cli=1",
            "-dopcache.jit=tracing",
            "-dopcache.jit_buffer_size=64M",
        ]],
        subcommands: &[],
        mapped: &["php", "libphp", "opcache.so"],
        switch: "opcache.jit_debug=32",
        advice: "jitscribe record -- php app.php, or start it with -d opcache.jit_debug=32",
        debugger_switch: "php -d opcache.jit_debug=288",
        ..PLAIN
    },
    // Seen with 3.12 and 3.13. With both, 3.13 writes a jitdump with unwind info, 3.12 a perf map.
    Runtime {
        name: "Python",
        programs: &["python", "python3"],
        since: "3.12",
        variables: &[
            always("PYTHONPERFSUPPORT", "1", Merge::Keep),
            for_dwarf("PYTHON_PERF_JIT_SUPPORT", "1", Merge::Keep),
        ],
        flags: &[],
        subcommands: &[],
        debugger_switch: "python -X perf",
        ..PLAIN
    },
    // Seen with 7.3.11. Without the second category, there are no lines, and bridges have no names. PyPy replaces %d by its process
    // id (rpython/translator/c/src/debug_print.c).
    Runtime {
        name: "PyPy",
        programs: &["pypy", "pypy3"],
        since: "7.3",
        variables: &[always(
            "PYPYLOG",
            "jit-backend-addr,jit-log-opt:{dumps}/pypy-%d.log",
            Merge::Keep,
        )],
        flags: &[],
        subcommands: &[],
        mapped: &["pypy", "libpypy"],
        switch: "PYPYLOG",
        advice: "jitscribe record -- pypy3 app.py, or start it with PYPYLOG=jit-backend-addr,jit-log-opt:FILE and add --jitdump FILE",
        debugger_switch: "PYPYLOG=jit-backend-addr,jit-log-opt:/tmp/pypy-%d.log",
        ..PLAIN
    },
    // News of Ruby 3.3. RUBYOPT would break a Ruby that was built without YJIT.
    Runtime {
        name: "Ruby",
        programs: &["ruby"],
        since: "3.3",
        variables: &[],
        flags: &[&["--yjit", "--yjit-perf"]],
        subcommands: &[],
        mapped: &["ruby", "libruby"],
        switch: "--yjit --yjit-perf",
        advice: "jitscribe record -- ruby app.rb, or start it with RUBYOPT='--yjit --yjit-perf' (or --zjit --zjit-perf); Ruby must be built \
                 with that JIT",
        debugger_switch: "ruby --yjit --yjit-perf",
        ..PLAIN
    },
    // Seen with 3.1, which writes only a perf map. clrconfignames.h; the prefix is COMPlus_ before 6.0. Since 8.0, the folder
    // also applies to the perf map. By default, .NET 10 announces blocks of stubs, before their memory is committed: its first versions
    // end the dump there (dotnet/runtime#120419). With granularity 2 (perfmap.cpp, `LogStubs`) they announce each stub
    // instead, with its bytes; other versions do not know the variable.
    Runtime {
        name: ".NET",
        programs: &["dotnet"],
        since: "3.1",
        variables: &[
            always("DOTNET_PerfMapEnabled", "1", Merge::Keep),
            always("DOTNET_PerfMapJitDumpPath", DUMPS, Merge::Keep),
            always("DOTNET_PerfMapStubGranularity", "2", Merge::Keep),
            always("COMPlus_PerfMapEnabled", "1", Merge::Keep),
            always("COMPlus_PerfMapJitDumpPath", DUMPS, Merge::Keep),
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["libcoreclr.so"],
        switch: "DOTNET_PerfMapEnabled=1",
        advice: "jitscribe record -- dotnet app.dll, or start it with DOTNET_PerfMapEnabled=1",
        debugger_switch: "DOTNET_PerfMapEnabled=1",
        ..PLAIN
    },
    // Seen with 6.8.
    Runtime {
        name: "Mono",
        programs: &["mono", "mono-sgen"],
        since: "4.0",
        variables: &[always("MONO_ENV_OPTIONS", "--jitmap", SPACE)],
        flags: &[],
        subcommands: &[],
        mapped: &["mono", "libmono"],
        switch: "--jitmap",
        advice: "jitscribe record -- mono app.exe, or start it with MONO_ENV_OPTIONS=--jitmap",
        debugger_switch: "mono --jitmap",
        ..PLAIN
    },
    // Julia's manual, "External Profiling"; it uses LLVM's listener, below. The second is for builds without it: "Environment
    // Variables" (1.9 and later) has Julia register its code with GDB, whose list is read.
    Runtime {
        name: "Julia",
        programs: &["julia"],
        since: "1.0",
        variables: &[
            always("ENABLE_JITPROFILING", "1", Merge::Keep),
            always("ENABLE_GDBLISTENER", "1", Merge::Keep),
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["julia", "libjulia"],
        switch: "ENABLE_JITPROFILING=1 or ENABLE_GDBLISTENER=1",
        advice: "jitscribe record -- julia app.jl, or start it with ENABLE_GDBLISTENER=1; before 1.9, Julia must be built with USE_PERF_JITEVENTS=1",
        debugger_switch: "ENABLE_JITPROFILING=1",
        in_jitdumpdir: true,
        ..PLAIN
    },
    // Seen with 14: PerfJITEventListener.cpp creates .debug/jit/ in this folder instead of in $HOME. perf's
    // own Java agent does the same.
    Runtime {
        name: "LLVM's JIT",
        programs: &["lli"],
        since: "7",
        variables: &[always("JITDUMPDIR", DUMPS, Merge::Keep)],
        flags: &[],
        subcommands: &[],
        mapped: &["lli", "libLLVM"],
        switch: "LLVM's listener for perf",
        advice: "the program must enable it (docs/runtimes/llvm.md); the jitdump is in $JITDUMPDIR/.debug/jit, or in ~/.debug/jit. If LLVM cannot \
                 create that folder, it prints \"could not create jit cache directory\" and writes none",
        debugger_switch: "JITDUMPDIR=/tmp",
        in_jitdumpdir: true,
        ..PLAIN
    },
    // Wasmtime's book, "Profiling"; the command reads no variable.
    Runtime {
        name: "Wasmtime",
        programs: &["wasmtime"],
        since: "11",
        variables: &[],
        flags: &[&["--profile=jitdump"]],
        subcommands: &["run", "serve", "wast"],
        mapped: &["wasmtime", "libwasmtime.so", "_libwasmtime.so"],
        switch: "its profiler",
        advice: "wasmtime --profile=jitdump; in Python: config.profiler = \"jitdump\"; in Rust: Config::profiler(ProfilingStrategy::JitDump)",
        debugger_switch: "wasmtime run --profile=perfmap",
        ..PLAIN
    },
    // Seen with 2022.12, and the jitdump with the writer of 2026.05 (`src/jit/compile.c`). The map is set as well: older versions
    // write no jitdump, and what its buffer still holds when the process is killed is in the map.
    Runtime {
        name: "Rakudo",
        programs: &["rakudo", "rakudo-m", "raku", "perl6", "nqp", "nqp-m", "moar"],
        since: "2019",
        variables: &[
            always("MVM_JIT_PERF_MAP", "1", Merge::Keep),
            Variable {
                name: "MVM_JIT_PERF_DUMP",
                value: DUMPS,
                merge: Merge::Keep,
                when: When::DumpsAreMappable,
            },
        ],
        flags: &[],
        subcommands: &[],
        mapped: &["libmoar"],
        switch: "MVM_JIT_PERF_MAP=1",
        advice: "jitscribe record -- rakudo app.raku, or start it with MVM_JIT_PERF_MAP=1",
        debugger_switch: "MVM_JIT_PERF_MAP=1",
        ..PLAIN
    },
    // Seen: our own demo.
    Runtime {
        name: "programs that link jitscribe",
        programs: &[],
        since: "0.1",
        variables: &[
            always("JITSCRIBE", "jitdump", Merge::Keep),
            always("JITSCRIBE_DIR", DUMPS, Merge::Keep),
        ],
        flags: &[],
        subcommands: &[],
        ..PLAIN
    },
    // linux-user/main.c.
    Runtime {
        name: "QEMU's user mode",
        programs: &[],
        since: "8.0",
        variables: &[always("QEMU_PERFMAP", "1", Merge::Keep)],
        flags: &[],
        subcommands: &[],
        mapped: &["qemu-"],
        switch: "QEMU_PERFMAP=1",
        advice: "jitscribe record -- qemu-ARCH COMMAND, or start it with -perfmap",
        debugger_switch: "QEMU_PERFMAP=1",
        ..PLAIN
    },
    // Seen with cppyy 3.5. Cling then also compiles with frame pointers (lib/Interpreter/IncrementalJIT.cpp).
    Runtime {
        name: "Cling (cppyy, ROOT)",
        variables: &[always("CLING_PROFILE", "1", Merge::Keep)],
        mapped: &["libCling.so", "libcling"],
        switch: "CLING_PROFILE=1",
        advice: "jitscribe record -- COMMAND, or start it with CLING_PROFILE=1",
        in_jitdumpdir: true,
        ..PLAIN
    },
    // oneDNN's documentation, "Profiling oneDNN Performance": 4 is a jitdump, 2 a perf map. torch and JAX link it statically.
    Runtime {
        name: "oneDNN",
        variables: &[always("ONEDNN_JIT_PROFILE", "6", Merge::Keep)],
        mapped: &["libdnnl", "libmkldnn", "libjax_common.so", "libtorch_cpu.so"],
        switch: "ONEDNN_JIT_PROFILE=6",
        advice: "jitscribe record -- COMMAND, or start it with ONEDNN_JIT_PROFILE=6; its jitdump is $JITDUMPDIR/.debug/jit/dnnl.*/jit-PID.dump",
        in_jitdumpdir: true,
        ..PLAIN
    },
    Runtime {
        name: "numba",
        mapped: &["libllvmlite.so"],
        advice: "its code is read from GDB's JIT list while it is recorded, without any setting (docs/runtimes/llvm.md)",
        ..PLAIN
    },
    Runtime {
        name: "LuaJIT",
        mapped: &["luajit", "libluajit"],
        advice: "its traces are found in its memory while it is recorded, without any setting (docs/runtimes/luajit.md)",
        ..PLAIN
    },
    Runtime {
        name: "PostgreSQL",
        mapped: &["postgres", "llvmjit.so"],
        switch: "jit_profiling_support = on",
        advice: "set it in postgresql.conf, then jitscribe record -p PID of the backend",
        in_jitdumpdir: true,
        ..PLAIN
    },
    // js/src/jit/PerfSpewer.cpp. Builds without --enable-perf, as distributions' are, ignore them.
    Runtime {
        name: "SpiderMonkey",
        variables: &[
            always("IONPERF", "func", Merge::Keep),
            always("PERF_SPEW_DIR", DUMPS, Merge::Keep),
        ],
        mapped: &["libmozjs", "libxul.so"],
        switch: "IONPERF=func",
        advice: "jitscribe record -- COMMAND, or start it with IONPERF=func PERF_SPEW_DIR=DIR and add --jitdump; it must be built with --enable-perf",
        ..PLAIN
    },
    // Qt's qv4assemblercommon.cpp: a perf map, in Qt 5 and 6.
    Runtime {
        name: "Qt's QML",
        variables: &[always("QV4_PROFILE_WRITE_PERF_MAP", "1", Merge::Keep)],
        mapped: &["libQt5Qml.so", "libQt6Qml.so"],
        switch: "QV4_PROFILE_WRITE_PERF_MAP=1",
        advice: "jitscribe record -- COMMAND, or start it with QV4_PROFILE_WRITE_PERF_MAP=1",
        debugger_switch: "QV4_PROFILE_WRITE_PERF_MAP=1",
        ..PLAIN
    },
    // Seen with pyston_lite 2.3.5: a perf map.
    Runtime {
        name: "Pyston",
        variables: &[always("JIT_PERF_MAP", "1", Merge::Keep)],
        mapped: &["pyston_lite", "pyston"],
        switch: "JIT_PERF_MAP=1",
        advice: "jitscribe record -- COMMAND, or start it with JIT_PERF_MAP=1",
        debugger_switch: "JIT_PERF_MAP=1",
        ..PLAIN
    },
    // The sandbox keeps a renderer from writing files, and a jitdump's buffer is lost when a renderer is killed. These are flags of the
    // browser that turn off a protection, and so the user's choice.
    Runtime {
        name: "Chromium",
        mapped: &["chrome", "chromium", "electron", "libcef.so"],
        switch: "--js-flags=--perf-basic-prof",
        advice: "start it with --no-sandbox --js-flags='--perf-basic-prof --interpreted-frames-native-stack', for pages that you trust",
        ..PLAIN
    },
    // libguile/jit.c: the log has addresses of bytecode, and neither names nor addresses of compiled code.
    Runtime {
        name: "Guile",
        mapped: &["libguile-3", "guile"],
        advice: "it does not report where its compiled code is; GUILE_JIT_THRESHOLD=-1 turns its JIT off",
        ..PLAIN
    },
    // Seen with 2.2.9. It has no switch, but a program can list all functions itself.
    Runtime {
        name: "SBCL",
        mapped: &["sbcl"],
        heap_image: ".core",
        switch: "a perf map",
        advice: "jitscribe record -- sbcl --noinform --load perf-map.lisp --script app.lisp, with the perf-map.lisp in docs/runtimes/sbcl.md, which \
                 writes one at the end",
        ..PLAIN
    },
];

/// A command and its environment, prepared so that the runtimes in it announce their code.
#[derive(Debug, Default)]
pub struct Preparation {
    /// Variables to set, by name.
    pub variables: BTreeMap<OsString, OsString>,
    /// The command with the added flags.
    pub command: Vec<OsString>,
    /// The runtime, if the command itself is one.
    pub runtime: Option<&'static Runtime>,
    /// The flags that were added to the command.
    pub flags: Vec<OsString>,
}

impl Preparation {
    /// Prepares `command`. Its runtimes may write to the folder `dumps`, which also gets our own
    /// settings.
    pub fn of(command: &[OsString], dumps: &Path, stacks: Stacks, maps: Maps) -> Result<Self> {
        let php_ini = dumps.join("php-ini");
        fs::create_dir(&php_ini).map_err(Error::file(&php_ini))?;
        let settings = php_ini.join("jitscribe.ini");
        fs::write(&settings, PHP_SETTINGS).map_err(Error::file(&settings))?;
        let java_agent = java_agent::path().filter(|path| is_one_word(path));
        let places = Places { dumps, php_ini: &php_ini, java_agent: java_agent.as_deref(), stacks };
        let fill = |template: &str| fill(template, &places);

        let is_wanted = |when| match when {
            When::Always => true,
            When::Dwarf => stacks != Stacks::FramePointers,
            When::BesideDumps => maps == Maps::BesideDumps,
            When::JavaAgent(agent) => agent == java_agent.is_some(),
            When::DumpsAreMappable => are_mappable(dumps),
        };
        let variables = variables(&is_wanted, &fill, &|name| std::env::var_os(name));
        let runtime = command.first().and_then(|program| runtime_of(program));
        let mut prepared = command.to_vec();
        let mut flags = Vec::new();
        if let (Some(runtime), Some(program)) = (runtime, command.first()) {
            let taken = |set: &Vec<OsString>| takes(program, set);
            let sets = runtime.flags.iter().map(|set| set.iter().map(|flag| fill(flag)).collect());
            flags = sets.filter(taken).flatten().collect();
            match insertion(runtime, command) {
                Some(at) => drop(prepared.splice(at..at, flags.iter().cloned())),
                None => flags.clear(),
            }
        }
        Ok(Self { variables, command: prepared, runtime, flags })
    }

    /// Like [`Self::of`], for a command that a debugger runs.
    pub fn for_debugger(command: &[OsString], dumps: &Path) -> Result<Self> {
        let prepared = Self::of(command, dumps, Stacks::Debugger, Maps::InsteadOfDumps)?;
        // PHP reads the files of a folder in the order of their names, so this one overrides jitscribe.ini.
        let settings = dumps.join("php-ini/jitscribe_debugger.ini");
        fs::write(&settings, PHP_DEBUGGED).map_err(Error::file(&settings))?;
        Ok(prepared)
    }
}

/// Whether files in this folder may be mapped as code: its file system is not mounted `noexec`.
fn are_mappable(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// The values of the placeholders.
struct Places<'a> {
    dumps: &'a Path,
    php_ini: &'a Path,
    java_agent: Option<&'a Path>,
    stacks: Stacks,
}

/// Whether Java reads the path as a single word in its list of options.
fn is_one_word(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| byte.is_ascii_whitespace() || b"='\"".contains(byte))
}

/// Replaces the placeholders.
fn fill(template: &str, places: &Places<'_>) -> OsString {
    // Where stacks are copied, interpreted methods can be named.
    let java_options = if places.stacks == Stacks::Copied { "=interpreted" } else { "" };
    let mut filled = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, holder) = rest.split_at(at);
        filled.extend_from_slice(before.as_bytes());
        let place = [
            (DUMPS, places.dumps.as_os_str()),
            (PHP_INI, places.php_ini.as_os_str()),
            (JAVA_AGENT, places.java_agent.map_or(OsStr::new(""), Path::as_os_str)),
            (JAVA_OPTIONS, OsStr::new(java_options)),
        ];
        let place = place.iter().find(|(name, _)| holder.starts_with(name)).map(|place| place.1);
        filled.extend_from_slice(place.map_or(&[][..], OsStr::as_bytes));
        rest = holder.split_once('}').map_or("", |(_, behind)| behind);
    }
    filled.extend_from_slice(rest.as_bytes());
    OsString::from_vec(filled)
}

/// Computes the values of the variables, given the user's.
fn variables(
    is_wanted: &dyn Fn(When) -> bool,
    fill: &dyn Fn(&str) -> OsString,
    users: &dyn Fn(&str) -> Option<OsString>,
) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    let rows = RUNTIMES.iter().flat_map(|runtime| runtime.variables);
    for variable in rows.filter(|variable| is_wanted(variable.when)) {
        let name = OsString::from(variable.name);
        let value = fill(variable.value);
        let before = all.get(&name).cloned().or_else(|| users(variable.name));
        let joined = match (before, variable.merge) {
            (Some(_), Merge::Keep) => continue,
            (Some(before), Merge::Append(_)) if names(&before, variable.value) => continue,
            // If nothing is set, the list starts with an empty name, which stands for PHP's default. An empty
            // list set by the user has no such name.
            (None, Merge::Append(":")) => joined(OsStr::new(""), ":", &value),
            (Some(before), Merge::Append(between)) if !before.is_empty() => {
                joined(&before, between, &value)
            }
            _ => value,
        };
        all.insert(name, joined);
    }
    all
}

fn joined(before: &OsStr, between: &str, value: &OsStr) -> OsString {
    let mut joined = before.to_owned();
    joined.push(between);
    joined.push(value);
    joined
}

/// Whether the user's value already contains all options of ours, so that nothing needs to be
/// added.
fn names(users: &OsStr, ours: &str) -> bool {
    let users = users.as_bytes();
    let has = |option: &str| {
        users.split(|byte| b" ,".contains(byte)).any(|word| word == option.as_bytes())
    };
    // Options with placeholders are ignored: the user's have other paths.
    let mut options = ours.split([' ', ',']).filter(|word| !word.contains('{')).peekable();
    ours.starts_with(['-', '+']) && options.peek().is_some() && options.all(has)
}

/// Whether a program is node, by its name.
pub fn is_node(program: &OsStr) -> bool {
    runtime_of(program).is_some_and(|runtime| runtime.name == "node")
}

/// Whether a program is QEMU's user mode, by its name (`qemu-aarch64`, `qemu-x86_64-static`).
pub fn is_qemu_user(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    let machine = name.and_then(|name| name.strip_prefix("qemu-"));
    machine.is_some_and(|machine| !machine.starts_with("system-"))
}

/// The runtime that a program is, by its name.
pub fn runtime_of(program: &OsStr) -> Option<&'static Runtime> {
    let name = Path::new(program).file_name()?.to_str()?;
    RUNTIMES.iter().find(|runtime| {
        runtime.programs.iter().any(|program| {
            name.strip_prefix(program).is_some_and(|version| {
                version.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-')
            })
        })
    })
}

/// The runtimes that a process has, by the files that it has mapped.
pub fn runtimes_of_files<'f>(files: impl Iterator<Item = &'f Path>) -> Vec<&'static Runtime> {
    let names: HashSet<&[u8]> =
        files.filter_map(Path::file_name).map(|name| name.as_bytes()).collect();
    let has = |begin: &&str| names.iter().any(|name| is_file_of(name, begin));
    RUNTIMES.iter().filter(|runtime| runtime.mapped.iter().any(has)).collect()
}

/// The index for flags in a command of this runtime; `None` if it gets none.
fn insertion(runtime: &Runtime, command: &[OsString]) -> Option<usize> {
    let first = command.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let other_subcommand =
        || !first.is_empty() && !first.starts_with('-') && !first.contains(['.', '/']);
    if runtime.subcommands.contains(&first) {
        Some(2)
    } else if !runtime.subcommands.is_empty() && other_subcommand() {
        None
    } else {
        Some(1)
    }
}

/// Whether a runtime accepts these flags: with `--version`, it fails on flags that it does not know.
fn takes(program: &OsStr, flags: &[OsString]) -> bool {
    let asked = Command::new(program)
        .args(flags)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// The table for `--help`.
pub fn help() -> String {
    let mut text = String::from(
        "RUNTIMES (settings that are added; --no-env adds none; your own values are kept, and extended \
         if they are lists):\n",
    );
    let has_settings = |of: &&Runtime| !(of.variables.is_empty() && of.flags.is_empty());
    for runtime in RUNTIMES.iter().filter(has_settings) {
        let mut names: Vec<&str> = runtime.variables.iter().map(|variable| variable.name).collect();
        names.dedup();
        let flags = runtime.flags.concat().join(" ");
        let what = match (names.is_empty(), flags.is_empty()) {
            (false, true) => names.join(", "),
            (true, _) => format!("{flags} (if it is the command)"),
            (false, false) => format!("{}; {flags} (if it is the command)", names.join(", ")),
        };
        let since = match runtime.since {
            "" => String::new(),
            since => format!(" from {since}"),
        };
        text.push_str(&format!("  {}{since}: {what}\n", runtime.name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(stacks: Stacks, users: &[(&str, &str)]) -> BTreeMap<String, String> {
        asked(Maps::InsteadOfDumps, stacks, users)
    }

    fn asked(maps: Maps, stacks: Stacks, users: &[(&str, &str)]) -> BTreeMap<String, String> {
        let places = Places {
            dumps: Path::new("/d"),
            php_ini: Path::new("/d/php-ini"),
            java_agent: Some(Path::new("/a.so")),
            stacks,
        };
        let fill = |template: &str| fill(template, &places);
        let is_wanted = |when| match when {
            When::Always => true,
            When::Dwarf => stacks != Stacks::FramePointers,
            When::BesideDumps => maps == Maps::BesideDumps,
            When::JavaAgent(agent) => agent,
            When::DumpsAreMappable => true,
        };
        let value = |name: &str| {
            users.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value))
        };
        let all = variables(&is_wanted, &fill, &value).into_iter();
        all.map(|(n, v)| (n.into_string().unwrap(), v.into_string().unwrap())).collect()
    }

    #[test]
    fn values_stand_alone_where_the_user_has_none() {
        let set = with(Stacks::FramePointers, &[]);
        assert_eq!(set["NODE_OPTIONS"], "--perf-prof --interpreted-frames-native-stack");
        assert_eq!(
            set["DENO_V8_FLAGS"],
            "--perf-prof,--perf-prof-path=/d,--interpreted-frames-native-stack,\
             --log-code,--log-source-code,--logfile=/d/v8.log"
        );
        assert_eq!(set["JITDUMPDIR"], "/d");
        assert_eq!(set["MVM_JIT_PERF_DUMP"], "/d");
        assert_eq!(set["PHP_INI_SCAN_DIR"], ":/d/php-ini");
        assert!(!set.contains_key("PYTHON_PERF_JIT_SUPPORT"));
        assert_eq!(
            set["JAVA_TOOL_OPTIONS"],
            "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer -agentpath:/a.so"
        );
    }

    #[test]
    fn java_gets_the_agent_only_where_its_path_is_one_word() {
        assert!(is_one_word(Path::new("/usr/lib/a-b.so")));
        for path in ["/my lib/a.so", "/a=b/a.so", "/it's/a.so"] {
            assert!(!is_one_word(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn dwarf_call_chains_ask_for_unwind_info() {
        let set = with(Stacks::Copied, &[]);
        assert_eq!(
            set["NODE_OPTIONS"],
            "--perf-prof --interpreted-frames-native-stack --perf-prof-unwinding-info"
        );
        assert_eq!(set["PYTHON_PERF_JIT_SUPPORT"], "1");
    }

    #[test]
    fn lists_of_the_user_are_extended_and_other_values_kept() {
        let set = with(
            Stacks::FramePointers,
            &[
                ("NODE_OPTIONS", "--max-old-space-size=99"),
                ("ERL_AFLAGS", "-kernel shell_history enabled"),
                ("JITDUMPDIR", "/mine"),
                ("PHP_INI_SCAN_DIR", "/mine"),
                ("PYTHONPERFSUPPORT", "0"),
                ("MONO_ENV_OPTIONS", ""),
            ],
        );
        assert_eq!(
            set["NODE_OPTIONS"],
            "--max-old-space-size=99 --perf-prof --interpreted-frames-native-stack"
        );
        assert_eq!(set["ERL_AFLAGS"], "-kernel shell_history enabled +JPperf true");
        assert!(!set.contains_key("JITDUMPDIR") && !set.contains_key("PYTHONPERFSUPPORT"));
        assert_eq!(set["PHP_INI_SCAN_DIR"], "/mine:/d/php-ini");
        assert_eq!(set["MONO_ENV_OPTIONS"], "--jitmap");
    }

    #[test]
    fn what_the_user_asked_for_is_not_asked_for_again() {
        let set = with(
            Stacks::FramePointers,
            &[("MONO_ENV_OPTIONS", "--jitmap -O=all"), ("ERL_AFLAGS", "+JPperf true")],
        );
        assert!(!set.contains_key("MONO_ENV_OPTIONS") && !set.contains_key("ERL_AFLAGS"));
    }

    #[test]
    fn an_empty_scan_folder_of_php_stays_without_the_default() {
        assert_eq!(
            with(Stacks::FramePointers, &[("PHP_INI_SCAN_DIR", "")])["PHP_INI_SCAN_DIR"],
            "/d/php-ini"
        );
    }

    #[test]
    fn a_command_is_known_by_its_program() {
        let name = |program: &str| runtime_of(OsStr::new(program)).map(|runtime| runtime.name);
        assert_eq!(name("/usr/bin/node"), Some("node"));
        assert_eq!(name("python3.13"), Some("Python"));
        assert_eq!(name("php8.2"), Some("PHP"));
        assert_eq!(name("lli-14"), Some("LLVM's JIT"));
        assert_eq!(name("nodemon"), None);
        assert_eq!(name("sh"), None);
    }

    #[test]
    fn a_process_is_known_by_its_files() {
        let names = |files: &[&str]| {
            let found = runtimes_of_files(files.iter().map(Path::new));
            found.iter().map(|runtime| runtime.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["/usr/bin/node", "/lib/libc.so.6"]), ["node"]);
        assert_eq!(names(&["/usr/lib/libnode.so.108"]), ["node"]);
        assert_eq!(names(&["/usr/sbin/php-fpm8.2"]), ["PHP"]);
        assert_eq!(names(&["/usr/bin/nodemon", "/usr/bin/python3.11"]), Vec::<&str>::new());
        let python = ["/usr/bin/python3.11", "/x/cppyy_backend/lib/libCling.so"];
        assert_eq!(names(&python), ["Cling (cppyy, ROOT)"]);
        for torch in ["/x/torch/lib/libtorch_cpu.so", "/x/libdnnl.so.3", "/x/libjax_common.so"] {
            assert_eq!(names(&[torch]), ["oneDNN"]);
        }
        assert_eq!(names(&["/usr/bin/qemu-aarch64"]), ["QEMU's user mode"]);
        assert_eq!(names(&["/usr/lib/libluajit-5.1.so.2"]), ["LuaJIT"]);
    }

    #[test]
    fn what_is_recognized_has_an_advice() {
        for runtime in RUNTIMES.iter().filter(|runtime| !runtime.mapped.is_empty()) {
            assert!(!runtime.advice.is_empty(), "{}", runtime.name);
        }
        for runtime in RUNTIMES {
            let is_used = !(runtime.mapped.is_empty() && runtime.variables.is_empty());
            assert!(is_used, "{}", runtime.name);
        }
    }

    #[test]
    fn user_mode_of_qemu_is_known_by_its_name() {
        let is_qemu = |program: &str| is_qemu_user(OsStr::new(program));
        assert!(is_qemu("qemu-x86_64") && is_qemu("/opt/bin/qemu-aarch64-static"));
        assert!(!is_qemu("qemu-system-x86_64") && !is_qemu("qemu") && !is_qemu("/qemu-9/node"));
    }

    #[test]
    fn flags_go_behind_a_subcommand_that_takes_them() {
        let wasmtime = runtime_of(OsStr::new("wasmtime")).unwrap();
        let at = |words: &[&str]| {
            insertion(wasmtime, &words.iter().map(OsString::from).collect::<Vec<_>>())
        };
        assert_eq!(at(&["wasmtime", "a.wasm"]), Some(1));
        assert_eq!(at(&["wasmtime", "run", "a.wasm"]), Some(2));
        assert_eq!(at(&["wasmtime", "compile", "a.wasm"]), None);
        assert_eq!(at(&["wasmtime"]), Some(1));
    }

    #[test]
    fn no_variable_stands_in_two_rows() {
        let mut names: Vec<&str> = Vec::new();
        for runtime in RUNTIMES {
            let mut of_this: Vec<&str> = runtime.variables.iter().map(|v| v.name).collect();
            of_this.dedup();
            names.extend(of_this);
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_perf_map_beside_the_jitdump_has_what_a_signal_loses() {
        let set = asked(Maps::BesideDumps, Stacks::FramePointers, &[]);
        let node = "--perf-prof --interpreted-frames-native-stack --perf-basic-prof";
        assert_eq!(set["NODE_OPTIONS"], node);
        let deno = &set["DENO_V8_FLAGS"];
        assert!(deno.ends_with(",--perf-basic-prof,--perf-basic-prof-path=/d"), "{deno}");
    }
}

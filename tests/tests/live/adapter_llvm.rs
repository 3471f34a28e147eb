//! `jitscribe/llvm.hpp` and `jitscribe/llvm_plugin.hpp`: a program in C++ that compiles modules with LLVM's ORC and MCJIT.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use end_to_end::jitscribe::{jitscribe, json_lines};
use end_to_end::live::workload;
use end_to_end::record::Record;
use end_to_end::running::Running;
use end_to_end::runtimes::script;
use end_to_end::tool::{argument, crate_dir, run, tool};
use serde_json::Value;
use tempfile::TempDir;
use test_once::once;

/// An LLVM: the installed one, or the one that `JITSCRIBE_LLVM` names, which scripts/llvm.sh has unpacked.
struct Llvm {
    major: u32,
    root: PathBuf,
}

impl Llvm {
    fn chosen() -> &'static Self {
        static CHOSEN: OnceLock<Llvm> = OnceLock::new();
        CHOSEN.get_or_init(|| {
            let unpacked = std::env::var_os("JITSCRIBE_LLVM").map(PathBuf::from);
            let major = unpacked.as_ref().map_or(14, |root| {
                let name = root.file_name().and_then(|name| name.to_str()).expect("a folder");
                name.strip_prefix("llvm-")
                    .and_then(|major| major.parse().ok())
                    .expect("llvm-VERSION")
            });
            Self { major, root: unpacked.unwrap_or_else(|| "/".into()) }
        })
    }

    /// Libraries of a newer system need its dynamic linker and C library.
    fn loader(&self) -> Option<PathBuf> {
        let loader = self.root.join("usr/lib64/ld-linux-x86-64.so.2");
        (self.root != Path::new("/") && loader.exists()).then_some(loader)
    }

    fn libraries(&self) -> PathBuf {
        self.root.join("usr/lib/x86_64-linux-gnu")
    }

    fn includes(&self) -> [PathBuf; 2] {
        ["llvm", "llvm-c"].map(|name| self.root.join(format!("usr/include/{name}-{}", self.major)))
    }

    /// A command that compiles a program or library, with all warnings.
    fn compiler(&self) -> Command {
        let mut compile = tool("c++");
        compile.args(["-std=c++17", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion"]);
        compile.arg("-Werror");
        for folder in self.includes() {
            compile.arg("-isystem").arg(folder);
        }
        compile.arg("-I").arg(installed().join("include"));
        compile
    }

    /// What links it with this LLVM, which it finds at run time.
    fn link(&self, compile: &mut Command) {
        let libraries = self.libraries();
        compile.arg("-L").arg(self.root.join(format!("usr/lib/llvm-{}/lib", self.major)));
        compile.arg("-L").arg(&libraries).arg(format!("-lLLVM-{}", self.major));
        compile.args(["-lpthread", "-ldl"]);
        if self.root != Path::new("/") {
            // For what its libraries need as well.
            compile.arg("-Wl,--disable-new-dtags,--allow-shlib-undefined");
            compile.arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        if let Some(loader) = self.loader() {
            compile.arg(format!("-Wl,--dynamic-linker={}", loader.display()));
        }
    }
}

/// The folder of jitscribe's headers and libraries, installed once in a run of the tests, as a user does.
fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // …/target/debug/deps/this
        let this = std::env::current_exe().expect("this program");
        let target = this.ancestors().nth(3).expect("the target folder");
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let name = format!("llvm-{}", Llvm::chosen().major);
        once(&target.join("tmp"), &name, |prefix| {
            let mut make = tool("make");
            make.arg("-C").arg(crate_dir().join("../crates/bindings/jitscribe-capi"));
            make.arg("install").arg(format!("PREFIX={}", prefix.display()));
            make.arg(format!("PROFILE={profile}")).env("CARGO_TARGET_DIR", target);
            run(make.env("CARGO", env!("CARGO")));
        })
    })
}

/// The program, compiled once as the header's documentation describes.
fn program() -> Command {
    let llvm = Llvm::chosen();
    let folder = once(installed(), "orc", |folder| {
        let mut compile = llvm.compiler();
        compile.arg(workload("orc.cpp")).arg("-o").arg(folder.join("orc"));
        compile.arg(installed().join("lib/libjitscribe.a"));
        llvm.link(&mut compile);
        run(&mut compile);
    });
    Command::new(folder.join("orc"))
}

/// The codes that `jitscribe dump` lists.
fn codes(arguments: &[&str]) -> Vec<Value> {
    let mut codes = json_lines(jitscribe().args(["dump", "--json"]).args(arguments));
    codes.retain(|event| event["event"] == "load");
    codes
}

/// Offset, file, line and column.
type Line = (u64, String, u64, u64);

fn number(hex: &Value) -> u64 {
    let hex = hex.as_str().and_then(|hex| hex.strip_prefix("0x")).expect("an address");
    u64::from_str_radix(hex, 16).expect("a number")
}

/// Name, size and lines, of which a dump of LLVM's has no columns.
fn told(codes: &[Value], columns: bool) -> Vec<(String, u64, Vec<Line>)> {
    let told = |code: &Value| {
        let start = number(&code["address"]);
        let lines = code["lines"].as_array().expect("lines").iter().map(|line| {
            let file = line["file"].as_str().expect("a path").to_owned();
            let column = if columns { line["column"].as_u64().expect("a column") } else { 0 };
            let line_number = line["line"].as_u64().expect("a line");
            (number(&line["address"]) - start, file, line_number, column)
        });
        let name = code["name"].as_str().expect("a name").to_owned();
        (name, code["size"].as_u64().expect("a size"), lines.collect())
    };
    codes.iter().map(told).collect()
}

/// Starts the program on a module for so many seconds, and waits until it says a word. Its process id.
fn start(
    mode: &str,
    module: &Path,
    words: &[&str],
    dumps: &Path,
    until: &str,
) -> (Running, String) {
    let mut command = program();
    command.arg(mode).arg(module).args(words).env("JITDUMPDIR", dumps).env_remove("JITSCRIBE");
    let mut running = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let pid = running.pid().to_string();
    running.wait_for_line(until);
    (running, pid)
}

/// Runs a module for a moment. Returns the content of its log while the code is loaded, and after it was unloaded.
fn announced(mode: &str, module: &str, function: &str) -> [Vec<Value>; 2] {
    let folder = TempDir::with_prefix("jitscribe-llvm-").expect("a temporary folder");
    announced_beside(mode, module, function, folder.path())
}

/// The same, where LLVM's own listener writes into a folder.
fn announced_beside(mode: &str, module: &str, function: &str, dumps: &Path) -> [Vec<Value>; 2] {
    let module = &workload(module);
    let (running, pid) = start(mode, module, &[function, "0.2"], dumps, "freed");
    let after = codes(&["-p", &pid]);
    drop(running);
    let (_running, pid) = start(mode, module, &[function, "60"], &dumps.join("more"), "loaded");
    [codes(&["-p", &pid]), after]
}

#[test]
fn orc_code_is_announced_as_by_llvms_own_listener() {
    let folder = TempDir::with_prefix("jitscribe-llvm-").expect("a temporary folder");
    let [there, gone] = announced_beside("both", "spin.ll", "main", folder.path());
    let names: Vec<_> = there.iter().map(|code| code["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["fib", "mix of words", "main"]);
    for code in &there {
        assert!(code["died"].is_null() && code["unwind"].is_object(), "{code}");
        assert_eq!(code["tier"], "llvm");
    }
    assert_eq!(told(&there, true), told(&gone, true));
    assert!(gone.iter().all(|code| code["died"].is_u64()), "{gone:#?}");

    let find = run(tool("find").arg(folder.path()).args(["-name", "*.dump"])).stdout;
    let theirs = find.lines().find(|path| !path.contains("/more/")).expect("LLVM's dump");
    assert_eq!(told(&gone, false), told(&codes(&[theirs]), false));
    let columns = told(&gone, true).into_iter().flat_map(|(_, _, lines)| lines);
    assert!(columns.filter(|line| line.3 != 0).count() > 8);
}

/// The inlined calls of each code, with the offsets of their ranges in place of addresses.
fn inlined(codes: &[Value]) -> Vec<Value> {
    let mut codes = codes.to_vec();
    for code in &mut codes {
        let start = number(&code["address"]);
        for call in code["inlined"].as_array_mut().into_iter().flatten() {
            for bound in call["ranges"].as_array_mut().into_iter().flatten() {
                for address in bound.as_array_mut().into_iter().flatten() {
                    *address = (number(address) - start).into();
                }
            }
        }
    }
    codes.iter().map(|code| code["inlined"].clone()).collect()
}

/// JITLink reads the same object files as RTDyld, and tells where symbols are instead of sections.
#[test]
fn code_linked_by_jitlink_is_announced_like_that_of_rtdyld() {
    for (module, function) in [("spin.ll", "main"), ("lines.ll", "run")] {
        let [by_rtdyld, _] = announced("orc", module, function);
        let [there, gone] = announced("jitlink", module, function);
        let [by_rtdyld, by_jitlink] = [&by_rtdyld, &there].map(|codes| by_name(codes));
        assert_eq!(told(&by_jitlink, true), told(&by_rtdyld, true), "{module}");
        assert_eq!(inlined(&by_jitlink), inlined(&by_rtdyld), "{module}");
        for (code, same) in by_jitlink.iter().zip(&by_rtdyld) {
            assert!(code["died"].is_null() && code["unwind"].is_object(), "{code}");
            assert_eq!(code["unwind"], same["unwind"], "{module}");
            assert_eq!(code["tier"], "llvm");
        }
        assert_eq!(gone.len(), there.len());
        assert!(gone.iter().all(|code| code["died"].is_u64()), "{gone:#?}");
    }
}

fn by_name(codes: &[Value]) -> Vec<Value> {
    let mut codes = codes.to_vec();
    codes.sort_by_key(|code| code["name"].as_str().expect("a name").to_owned());
    codes
}

/// LLJIT's own layer is JITLink's from LLVM 17 on.
#[test]
fn code_of_the_default_layer_is_announced() {
    if Llvm::chosen().major < 17 {
        return;
    }
    let [by_jitlink, _] = announced("jitlink", "lines.ll", "run");
    let [there, gone] = announced("default", "lines.ll", "run");
    assert_eq!(told(&by_name(&there), true), told(&by_name(&by_jitlink), true));
    assert_eq!(inlined(&by_name(&there)), inlined(&by_name(&by_jitlink)));
    assert!(gone.iter().all(|code| code["died"].is_u64()), "{gone:#?}");
}

/// LLVM has a plugin for perf from 18 on. Of columns and inlined calls it says nothing, and it repeats the last line at the
/// address of the last instruction.
#[test]
fn jitlink_code_is_announced_as_by_llvms_own_plugin() {
    if Llvm::chosen().major < 18 {
        return;
    }
    for (module, function) in [("spin.ll", "main"), ("lines.ll", "run")] {
        let folder = TempDir::with_prefix("jitscribe-llvm-").expect("a temporary folder");
        let [there, gone] = announced_beside("perf", module, function, folder.path());
        let find = run(tool("find").arg(folder.path()).args(["-name", "*.dump"])).stdout;
        let theirs = find.lines().find(|path| !path.contains("/more/")).expect("LLVM's dump");
        let without_repetition = |codes: &[Value]| {
            let mut told = told(&by_name(codes), false);
            for (_, _, lines) in &mut told {
                lines.dedup_by(|next, line| (&next.1, next.2) == (&line.1, line.2));
            }
            told
        };
        let theirs = codes(&[theirs]);
        assert_eq!(without_repetition(&gone), without_repetition(&theirs), "{module}");
        assert!(theirs.iter().all(|code| code["inlined"].as_array().is_none_or(Vec::is_empty)));
        // It writes the tables of the whole object, and only once.
        assert_eq!(theirs.iter().filter(|code| code["unwind"].is_object()).count(), 1);
        assert!(there.iter().all(|code| code["unwind"].is_object()), "{there:#?}");
    }
}

#[test]
fn what_was_loaded_while_the_log_was_off_is_announced_when_it_is_turned_on() {
    for (mode, on_at_once) in
        [("late-orc", "orc"), ("late-jitlink", "jitlink"), ("late-mcjit", "mcjit")]
    {
        let folder = TempDir::with_prefix("jitscribe-llvm-").expect("a temporary folder");
        let [expected, _] = announced(on_at_once, "lines.ll", "run");
        let (mut running, pid) =
            start(mode, &workload("lines.ll"), &["run", "600"], folder.path(), "loaded");
        // What MCJIT registers with GDB's JIT interface has no tier.
        let announced = || {
            let mut codes = codes(&["-p", &pid]);
            codes.retain(|code| code["tier"] == "llvm");
            codes
        };
        assert_eq!(announced().len(), 0, "{mode}");
        run(jitscribe().args(["ctl", "-p", &pid, "on"]));
        // A thread of the process does it.
        let there = (0..3000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            Some(announced()).filter(|there| there.len() == expected.len())
        });
        let there = there.expect("the codes are announced within a minute");
        assert_eq!(told(&by_name(&there), true), told(&by_name(&expected), true), "{mode}");
        assert_eq!(inlined(&by_name(&there)), inlined(&by_name(&expected)), "{mode}");
        assert!(there.iter().all(|code| code["unwind"].is_object()), "{mode}: {there:#?}");
        // What was announced is not announced once more.
        run(jitscribe().args(["ctl", "-p", &pid, "off"]));
        run(jitscribe().args(["ctl", "-p", &pid, "on"]));
        run(tool("sh").arg("-c").arg(format!("kill -USR1 {pid}")));
        running.wait_for_line("freed");
        let gone = codes(&["-p", &pid]);
        assert_eq!(gone.len(), expected.len(), "{mode}");
        assert!(gone.iter().all(|code| code["died"].is_u64()), "{mode}: {gone:#?}");
    }
}

/// A program that knows nothing of jitscribe, with a library that is preloaded.
#[test]
fn the_code_of_lli_is_announced_by_a_preloaded_library() {
    let llvm = Llvm::chosen();
    let library = installed().join("libjitscribe_llvm.so");
    let mut compile = llvm.compiler();
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library);
    compile.arg(installed().join("include/jitscribe/llvm_preload.cpp"));
    compile.arg(installed().join("lib/libjitscribe.a"));
    llvm.link(&mut compile);
    run(&mut compile);

    let lli = llvm.root.join(format!("usr/lib/llvm-{}/bin/lli", llvm.major));
    for arguments in [
        &["--jit-kind=orc"][..],
        &["--jit-kind=orc-lazy"],
        &["--jit-kind=orc", "--jit-linker=jitlink", "--relocation-model=pic", "--code-model=small"],
        &["--jit-kind=mcjit"],
    ] {
        let folder = TempDir::with_prefix("jitscribe-lli-").expect("a temporary folder");
        let mut command = match llvm.loader() {
            Some(loader) => {
                let mut command = tool(loader);
                command.arg("--library-path").arg(llvm.libraries()).arg("--preload").arg(&library);
                command.arg(&lli);
                command
            }
            None => {
                let mut command = tool("env");
                command.arg(format!("LD_PRELOAD={}", library.display()));
                command.arg(format!("LD_LIBRARY_PATH={}", llvm.libraries().display())).arg(&lli);
                command
            }
        };
        command.args(arguments).arg(workload("spin.ll"));
        command.env("JITSCRIBE", "jitdump").env("JITSCRIBE_DIR", folder.path());
        run(command.env("JITDUMPDIR", folder.path().join("theirs")).stdin(Stdio::null()));
        let dump = run(tool("find").arg(folder.path()).args(["-name", "*.dump"])).stdout;
        // LLVM's own listener, which lli registers with MCJIT, has written nothing.
        let [dump] = dump.lines().collect::<Vec<_>>()[..] else { panic!("{arguments:?}: {dump}") };
        let there = codes(&[dump]);
        for name in ["fib", "mix of words", "main"] {
            let own: Vec<_> = there.iter().filter(|code| code["name"] == name).collect();
            let [code] = own[..] else { panic!("{arguments:?}: {name}: {own:?}") };
            assert!(code["unwind"].is_object(), "{arguments:?}: {code}");
            let lines = code["lines"].as_array().expect("lines");
            assert!(lines.len() > 3, "{arguments:?}: {code}");
            assert!(lines.iter().all(|line| line["line"] == 0 || line["file"] == "/src/spin.src"));
        }
    }
}

#[test]
fn mcjit_code_is_announced_like_orc_code() {
    let [by_orc, _] = announced("orc", "spin.ll", "main");
    let [there, gone] = announced("mcjit", "spin.ll", "main");
    let functions = |codes: &[Value]| {
        told(codes, true)
            .into_iter()
            .map(|(name, _, lines)| (name, lines.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(functions(&there), functions(&by_orc));
    assert!(there.iter().all(|code| code["unwind"].is_object()), "{there:#?}");
    assert!(gone.iter().all(|code| code["died"].is_u64()), "{gone:#?}");
}

#[test]
fn inlined_calls_are_those_of_the_module() {
    let [there, _] = announced("orc", "lines.ll", "run");
    let names: Vec<_> = there.iter().map(|code| code["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["mix", "fib", "run"]);
    let calls = there[0]["inlined"].as_array().expect("calls");
    let sites: Vec<_> = calls
        .iter()
        .map(|call| {
            let text = |field: &str| call[field].as_str().expect("text").to_owned();
            let number = |field: &str| call[field].as_u64();
            (text("name"), number("parent"), text("file"), number("line"), number("column"))
        })
        .collect();
    let site = |name: &str, parent, file: &str, line, column| {
        (name.to_owned(), parent, file.to_owned(), Some(line), Some(column))
    };
    let expected =
        [site("step", None, "/src/mix.src", 12, 9), site("twist", Some(0), "/src/step.src", 31, 4)];
    assert_eq!(sites, expected);
    // Their lines are within them, and only theirs.
    for (call, own) in calls.iter().zip([30..50, 40..50]) {
        let ranges = call["ranges"].as_array().expect("ranges");
        assert!(!ranges.is_empty());
        let within = |address: &Value| {
            let address = address.as_str().expect("an address");
            ranges.iter().any(|range| {
                let bound = |at: usize| range[at].as_str().expect("an address");
                (bound(0)..bound(1)).contains(&address)
            })
        };
        for line in there[0]["lines"].as_array().expect("lines") {
            let number = line["line"].as_u64().expect("a line");
            if number != 0 {
                assert_eq!(within(&line["address"]), own.contains(&number), "{line} in {call}");
            }
        }
    }
    assert_eq!(there[2]["lines"].as_array().map(Vec::len), Some(0));
}

/// `fib` has no frame pointer: the stacks come from what was in .eh_frame.
#[test]
fn a_recorded_module_has_names_and_stacks_to_its_beginning() {
    for mode in ["orc", "jitlink"] {
        expect_names_and_stacks(mode);
    }
}

fn expect_names_and_stacks(mode: &str) {
    let record = Record::new(&["-F", "999", "--call-graph", "dwarf"]);
    let home = record.folder().to_owned();
    let program = [argument(program().get_program()), mode.into(), script("spin.ll")];
    let chains = record
        .env("HOME", home)
        .program(&[&program[..], &["main".into(), "1".into()]].concat())
        .chains();
    let mut seen = [0, 0];
    for chain in &chains {
        let Some(first) = chain.frames.first() else { continue };
        match first.name() {
            Some("fib" | "mix of words") => {
                seen[usize::from(first.name() == Some("fib"))] += 1;
                assert!(
                    chain.frames.iter().filter(|frame| frame.name() == Some("main")).count() == 2,
                    "{}",
                    chain.line()
                );
            }
            Some(_) => {}
            None => assert!(!first.dso.contains("anon"), "{}", chain.line()),
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}

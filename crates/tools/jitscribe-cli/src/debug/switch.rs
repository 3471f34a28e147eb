//! How a runtime has to be started so that a debugger that attaches later finds its code.
//!
//! Perf maps are preferred to jitdumps here: V8 and others write jitdumps through a buffer, which lacks the last functions.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::runtimes::{is_qemu_user, runtime_of};

/// The switch of each runtime, by its name in the table of runtimes.
const SWITCHES: &[(&str, &str)] = &[
    ("node", "node --perf-basic-prof --interpreted-frames-native-stack"),
    ("deno", "DENO_V8_FLAGS=--perf-basic-prof,--interpreted-frames-native-stack"),
    ("JavaScriptCore", "JSC_useJITDump=1"),
    ("bun", "BUN_JSC_useJITDump=1"),
    (
        "Java",
        "java -XX:+PreserveFramePointer; `jcmd PID Compiler.perfmap` then writes the perf map",
    ),
    ("Erlang", "erl +JPperf true"),
    ("PHP", "php -d opcache.jit_debug=288"),
    ("Python", "python -X perf"),
    ("PyPy", "PYPYLOG=jit-backend-addr,jit-log-opt:/tmp/pypy-%d.log"),
    ("Ruby", "ruby --yjit --yjit-perf"),
    (".NET", "DOTNET_PerfMapEnabled=1"),
    ("Mono", "mono --jitmap"),
    ("Julia", "ENABLE_JITPROFILING=1"),
    // It registers its code with debuggers by itself.
    ("LLVM's JIT", "JITDUMPDIR=/tmp"),
    ("Wasmtime", "wasmtime run --profile=perfmap"),
    ("Rakudo", "MVM_JIT_PERF_MAP=1"),
    (QEMU, "QEMU_PERFMAP=1"),
];

const QEMU: &str = "QEMU's user mode";

/// Programs that commands start.
const STARTED: &[(&str, &str)] = &[("beam.smp", "erl"), ("moar", "rakudo"), ("rakudo-m", "rakudo")];

/// The runtime that one of these mapped files is, and how to start it.
fn switch_of<'p>(
    mut files: impl Iterator<Item = &'p [u8]>,
) -> Option<(&'static str, &'static str)> {
    files.find_map(|path| {
        let name = Path::new(OsStr::from_bytes(path)).file_name()?;
        let started = STARTED.iter().find(|(program, _)| name == OsStr::new(program));
        let name = started.map_or(name, |(_, command)| OsStr::new(command));
        let runtime = runtime_of(name).map(|runtime| runtime.name);
        let runtime = runtime.or_else(|| is_qemu_user(name).then_some(QEMU))?;
        SWITCHES.iter().find(|(of, _)| *of == runtime).copied()
    })
}

/// What to say about code without names in a process that has mapped these files. `is_stopped_in_it` is whether the process was
/// stopped in such code; otherwise, only runtimes that are known are worth a message.
pub fn message<'p>(
    files: impl Iterator<Item = &'p [u8]>,
    is_stopped_in_it: bool,
) -> Option<String> {
    match switch_of(files) {
        Some((runtime, switch)) => Some(format!(
            "{runtime} was started without what announces its code, which has no names here. Start it so: {switch}"
        )),
        None if is_stopped_in_it => Some(
            "the code in executable memory without a file has no names: nothing announces it. `jitscribe debug -- COMMAND` sets what \
             known runtimes need"
                .into(),
        ),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::RUNTIMES;

    #[test]
    fn every_runtime_has_a_switch() {
        for runtime in RUNTIMES {
            for program in runtime.programs {
                let path = format!("/usr/bin/{program}");
                let found = switch_of([path.as_bytes()].into_iter()).map(|(name, _)| name);
                assert_eq!(found, Some(runtime.name));
            }
        }
    }

    #[test]
    fn the_runtime_is_found_among_the_mapped_files() {
        let say = |files: &[&str], here| message(files.iter().map(|file| file.as_bytes()), here);
        let node = say(&["/lib/libc.so.6", "/usr/bin/node"], false).unwrap();
        assert!(
            node.ends_with("node --perf-basic-prof --interpreted-frames-native-stack"),
            "{node}"
        );
        let erl = say(&["/usr/lib/erlang/erts-13/bin/beam.smp"], false).unwrap();
        assert!(erl.contains("+JPperf true"), "{erl}");
        let qemu = say(&["/usr/bin/qemu-aarch64-static"], false).unwrap();
        assert!(qemu.contains("QEMU_PERFMAP=1"), "{qemu}");
        assert_eq!(say(&["/usr/bin/cat"], false), None);
        assert!(say(&["/usr/bin/cat"], true).unwrap().contains("jitscribe debug -- COMMAND"));
    }
}

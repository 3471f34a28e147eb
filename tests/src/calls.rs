//! The program of `workloads/calls`, run under callgrind as a shared object and as jitted code.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folder::{Folder, shared_folder};
use crate::profile::{ByName, Profile, callgrind, callgrind_files};
use crate::tool::{crate_dir, run, tool};

/// The calls whose inclusive costs a profile of unknown code has not in it, and why:
///
/// - Of two functions that jump to a third one in the same call of theirs, nothing says how much of what that one
///   cost was for whom.
/// - In a ring of jumps that was entered several times, a jump to a function's own beginning among them, nothing says
///   how often it was gone round at a time, and so how much each jump led to.
/// - In a ring that was entered once, nothing says which visit of a function cost how much, if they differ, nor in
///   which order the functions were visited, if there are several ways.
pub const UNRECOVERABLE: &[(&str, &str)] = &[
    ("uneven", "uneven_left"),
    ("uneven", "uneven_right"),
    ("uneven_left", "uneven_bottom"),
    ("uneven_right", "uneven_bottom"),
    ("ping", "pong"),
    ("pong", "ping"),
    ("self_jump", "self_jump"),
    ("uneven_ring", "uneven_ring_back"),
    ("uneven_ring_back", "uneven_ring"),
    ("ways", "way_left"),
    ("ways", "way_right"),
    ("way_left", "ways"),
    ("way_right", "ways"),
];

/// How often `run` does everything.
const ROUNDS: &str = "40";

/// The shared object, compiled into a folder.
#[derive(Debug)]
pub struct Calls {
    folder: Folder,
    library: PathBuf,
    runner: PathBuf,
}

impl Calls {
    /// Compiles the shared object into a folder of its own, where the profiles will be, too. `runner` is the program `run-calls`.
    pub fn build(runner: &str) -> Self {
        Self::build_in(Folder::own(), runner)
    }

    fn build_in(folder: Folder, runner: &str) -> Self {
        let sources = crate_dir().join("workloads/calls");
        let library = folder.path().join("calls.so");
        let mut compile = tool("cc");
        compile.args(["-O2", "-g", "-fPIC", "-fvisibility=hidden", "-fno-jump-tables"]);
        compile.args(["-fcf-protection=none", "-fno-stack-protector"]);
        compile.args(["-fno-asynchronous-unwind-tables"]);
        compile.args(["-nostdlib", "-shared", "-Wl,-Bsymbolic,-z,text", "-o"]).arg(&library);
        run(compile.arg(sources.join("calls.c")).arg(sources.join("moves.S")));
        Self { folder, library, runner: runner.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// What it costs as a shared object, with no options: what profiles are compared to. Measured once in a run of the tests.
    pub fn known(&self) -> Profile {
        let runner = self.runner.to_str().expect("a UTF-8 path");
        let folder = shared_folder("calls", |folder| {
            let shared = Self::build_in(Folder::Shared(folder.to_owned()), runner);
            let profile = shared.profile("library", &[], &[]);
            std::fs::rename(profile, folder.join("known")).expect("a profile");
        });
        Profile::read(&folder.join("known"))
    }

    /// Runs it as the dynamic linker loads it, and reads the profile.
    pub fn as_library(&self, options: &[&str]) -> Profile {
        Profile::read(&self.profile("library", options, &[]))
    }

    /// Runs it from anonymous memory with these variables, and returns the path of the profile.
    pub fn as_copy(&self, options: &[&str], variables: &[(&str, &str)]) -> PathBuf {
        self.profile("copy", options, variables)
    }

    /// The command that runs it in threads, `library` or `copy`.
    pub fn command(&self, how: &str, threads: usize) -> Vec<OsString> {
        let (runner, library) = (self.runner.clone().into(), self.library.clone().into());
        vec![runner, how.into(), library, ROUNDS.into(), threads.to_string().into()]
    }

    /// Runs it in threads, `library` or `copy`, with a profile for each thread: the main one's comes first.
    pub fn threads(&self, how: &str, threads: usize, variables: &[(&str, &str)]) -> Vec<PathBuf> {
        let words = self.command(how, threads);
        let (program, arguments) = words.split_first().expect("a program");
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().copied());
        let options = ["--separate-threads=yes"];
        let (mut profiles, printed) = callgrind_files(self.dir(), &options, &command);
        // Callgrind makes the file without a number as well, and writes nothing to it.
        profiles.retain(|path| std::fs::metadata(path).is_ok_and(|file| file.len() > 0));
        let one: i64 = self.expected().parse().expect("a number");
        let all = i64::try_from(threads).expect("few") * one;
        assert_eq!(printed.stdout.trim(), all.to_string(), "the code computes something else");
        profiles
    }

    fn profile(&self, how: &str, options: &[&str], variables: &[(&str, &str)]) -> PathBuf {
        let mut command = Command::new(&self.runner);
        command.arg(how).arg(&self.library).arg(ROUNDS).envs(variables.iter().copied());
        let (profile, printed) = callgrind(self.dir(), options, &command);
        assert_eq!(printed.stdout.trim(), self.expected(), "the code computes something else");
        profile
    }

    /// What it prints without valgrind.
    fn expected(&self) -> String {
        let printed = run(Command::new(&self.runner).arg("library").arg(&self.library).arg(ROUNDS));
        printed.stdout.trim().to_owned()
    }

    /// The names of the functions in it.
    pub fn functions(&self) -> BTreeSet<String> {
        let printed = run(tool("nm").arg("--defined-only").arg(&self.library)).stdout;
        let lines = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.filter(|line| matches!(line[1], "t" | "T")).map(|line| line[2].to_owned()).collect()
    }

    /// A profile's part that the functions in it have a part in.
    pub fn part_of(&self, profile: &Profile) -> ByName {
        let functions = self.functions();
        // The caller of `run` is the runner, compiled once for both: two functions, then.
        let mut part = profile.by_name().of(|name| functions.contains(name));
        part.calls.retain(|(caller, _), _| functions.contains(caller) || caller == "qsort_r");
        part
    }
}

/// Compiles `workloads/heap.c` into a folder, with this option for debug information.
pub fn compile_heap(dir: &Path, debug: &str) -> PathBuf {
    let library = dir.join("heap.so");
    let mut compile = tool("cc");
    compile.args(["-O1", debug, "-fPIC", "-fno-optimize-sibling-calls", "-fno-omit-frame-pointer"]);
    compile.args(["-fcf-protection=none", "-fno-stack-protector", "-nostdlib", "-shared"]);
    compile.args(["-Wl,-Bsymbolic,-z,text", "-o"]).arg(&library);
    run(compile.arg(crate_dir().join("workloads/heap.c")));
    library
}

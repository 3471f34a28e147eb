//! Call stacks that the kernel walked by frame pointers: which of them reach the bottom, with the C library's debug symbols and without.

use std::path::Path;
use std::process::Command;

use end_to_end::jitscribe::{jitscribe, json};
use end_to_end::perf::Perf;
use end_to_end::tool::{run, tool};
use tempfile::TempDir;
use test_privilege::needs;
use test_privilege::unshare;

/// Runs in `main` and in a thread. With an argument, frames stand behind that of `main`'s caller, as where the C library does not set the frame
/// pointer to zero (Debian's from 2.41 on).
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
struct frame { struct frame *next; void *back; };
static struct frame second = { 0, (void *)0x2f6e69622f3d4c4c }, first = { &second, (void *)0x1000 };
static volatile unsigned long sum;
__attribute__((noinline)) static unsigned long half_a_second(void) {
    struct timespec begun, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    do {
        for (unsigned long i = 0; i < 2000000; i++) sum += i * i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 500);
    return sum + 1;
}
__attribute__((noinline)) static void *body(void *unused) {
    unsigned long done = half_a_second();
    sum += done;
    return unused;
}
int main(int count, char **words) {
    pthread_t thread;
    /* What main saved is the frame pointer of its caller. */
    if (count > 1) *(void **)__builtin_frame_address(0) = &first;
    body(words);
    pthread_create(&thread, 0, body, 0);
    pthread_join(thread, 0);
    exit(0);
}
"#;

/// The callers of `main` and of threads, as perf names them with the C library's debug symbols.
const CALLERS: [&str; 2] = ["__libc_start_call_main", "start_thread"];

fn program(folder: &Path) -> String {
    let (source, program) = (folder.join("walked.c"), folder.join("walked"));
    std::fs::write(&source, PROGRAM).expect("a file");
    let mut compiler = tool("cc");
    compiler.args(["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"]);
    run(compiler.arg("-o").arg(&program).arg(&source));
    program.to_str().expect("a UTF-8 path").to_owned()
}

/// The counts in what `inject` reports of the stacks.
fn counts(command: &mut Command) -> (u64, u64) {
    let report = json(command);
    let count = |name: &str| report["stacks"][name].as_u64().expect("a count");
    (count("stacks"), count("whole"))
}

/// Of a recording made by frame pointers: what `inject` counts with the debug symbols and without, and what perf shows with them.
fn expect_the_same_counts(words: &[&str], behind: usize) {
    let folder = TempDir::with_prefix("jitscribe-walked-").expect("a temporary folder");
    let program = program(folder.path());
    let data = folder.path().join("it.data");
    let mut perf = tool("perf");
    perf.args(["record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-F", "1999", "-g"]);
    perf.args(["--no-buildid-cache", "-o"]).arg(&data).arg("--").arg(program).args(words);
    run(&mut perf);

    let inject =
        ["inject", "--json", "--force", "--allow-empty", "-i", "it.data", "-o", "out.data"];
    let (stacks, whole) = counts(jitscribe().args(inject).current_dir(folder.path()));
    // perf names the callers, and shows what is behind them.
    let chains = Perf::installed().chains(&data);
    let is_caller = |name: &str| CALLERS.contains(&name);
    let reach = |chain: &&end_to_end::chains::Chain| {
        let caller = chain.frames.iter().position(|frame| frame.name().is_some_and(is_caller));
        caller.is_some_and(|at| chain.frames.len() - 1 - at <= behind)
    };
    let of_main = chains.iter().filter(|chain| chain.passes("main")).count();
    let expected = chains.iter().filter(reach).count();
    assert!(of_main > 50 && expected > of_main + 50, "{of_main}, {expected}");
    // Stacks of the dynamic linker have other bottoms.
    let others = chains.iter().filter(|chain| chain.passes("_dl_start_user")).count();
    assert!(whole >= expected as u64 && whole <= (expected + others + 2) as u64, "{whole}");
    assert_eq!(stacks, chains.len() as u64);

    needs!(Mounts);
    let mut hidden = unshare();
    hidden.args(["--mount", "sh", "-c", "mount -t tmpfs none /usr/lib/debug && exec \"$@\"", "sh"]);
    hidden.arg(jitscribe().get_program()).args(inject).current_dir(folder.path());
    assert_eq!(counts(&mut hidden), (stacks, whole));
}

#[test]
fn the_bottom_is_found_without_debug_symbols_and_with_frames_behind_it() {
    needs!(Perf);
    for (words, behind) in [(&[][..], 0), (&["behind"], 2)] {
        expect_the_same_counts(words, behind);
    }
}

//! `jitscribe record --tool` with the real valgrind.

use crate::common::{Bench, expect_tool};

/// Runs code from anonymous memory that allocates and forgets, and tells of it in a perf map. The code is
/// copied from a function that refers to nothing outside of itself.
const JIT: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((section("jitted"), noinline, used, no_stack_protector))
static void work(void *(*alloc)(size_t))
{
    *(volatile char *)alloc(1234) = 1;
    *(volatile char *)alloc(1234) = 2;
}
extern char __start_jitted[], __stop_jitted[];

int main(int count, char **words)
{
    size_t size = __stop_jitted - __start_jitted;
    char *code = mmap(0, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, __start_jitted, size);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx %lx jit code\n", (long)code, (long)size);
    fclose(map);
    ((void (*)(void *(*)(size_t)))(code + ((char *)work - __start_jitted)))(malloc);
    return count > 1 ? atoi(words[1]) : 0;
}
"#;

fn bench() -> Bench {
    expect_tool("valgrind");
    let bench = Bench::with("jit.c", JIT).and("jit.sh", "./jit; exec ./jit 7\n");
    bench.run("cc -g -O1 -fno-omit-frame-pointer -o jit jit.c");
    bench
}

/// The files of this prefix that have this text: their names, and what is in them.
fn with(bench: &Bench, prefix: &str, text: &str) -> Vec<(String, String)> {
    let files = bench.files().into_iter().filter(|name| name.starts_with(prefix));
    let read = |name: String| {
        let read = String::from_utf8(bench.read(&name)).expect("text");
        (name, read)
    };
    files.map(read).filter(|(_, read)| read.contains(text)).collect()
}

#[test]
fn each_process_has_a_log_with_names_and_the_exit_code_is_passed_through() {
    let bench = bench();
    let done = bench.record("--tool=memcheck --leak-check=full -- sh jit.sh").ends(7);
    let logs = with(&bench, "memcheck.out.", ": jit code (in /tmp/perf-");
    assert_eq!(logs.len(), 2, "{:?} {}", bench.files(), done.stderr);
    for (name, log) in logs {
        assert!(!log.contains("???"), "{log}");
        done.says(&format!("next: less {name}"));
    }
    assert!(!bench.files().iter().any(|name| name.starts_with('.')), "{:?}", bench.files());
}

#[test]
fn all_other_tools_are_run_as_well() {
    let bench = bench();
    for (tool, options, text) in [
        ("callgrind", "", "fn=jit code"),
        ("massif", "--detailed-freq=1 --threshold=0.0", ": jit code (in /tmp/perf-"),
        ("dhat", "", ": jit code (in /tmp/perf-"),
        ("cachegrind", "", "fn=main"),
    ] {
        let words = format!("--tool={tool} -o {tool} --json {options} -- ./jit");
        let done = bench.record(&words).ok();
        assert_eq!(with(&bench, &format!("{tool}."), text).len(), 1, "{}", done.stderr);
        assert_eq!(done.json().as_array().map(Vec::len), Some(1), "{}", done.stdout);
    }
}

#[test]
fn what_perf_alone_can_do_and_other_places_are_refused() {
    let bench = bench();
    for (words, code) in [
        ("--tool=memcheck -p 1", 2),
        ("--tool=memcheck --log-file=x -- ./jit", 2),
        ("--tool=massif --massif-out-file=x -- ./jit", 2),
        ("--tool=massif", 2),
        ("--tool=dhat -- ./nonesuch", 127),
    ] {
        bench.record(words).ends(code);
    }
    assert_eq!(bench.files(), ["jit", "jit.c", "jit.sh"]);
}

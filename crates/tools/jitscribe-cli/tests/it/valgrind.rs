//! `jitscribe record --tool` with the real valgrind.

use std::fs;

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
    let bench = Bench::new();
    bench.write("jit.c", JIT);
    bench.run(&["cc", "-g", "-O1", "-fno-omit-frame-pointer", "-o", "jit", "jit.c"]);
    bench.write("jit.sh", "./jit; exec ./jit 7\n");
    bench
}

/// The one file among those of several processes that has this text.
fn with(bench: &Bench, prefix: &str, text: &str) -> Vec<(String, String)> {
    let files = bench.files().into_iter().filter(|name| name.starts_with(prefix));
    let read = |name: String| {
        let read = fs::read_to_string(bench.path(&name)).expect("a file");
        (name, read)
    };
    files.map(read).filter(|(_, read)| read.contains(text)).collect()
}

#[test]
fn each_process_has_a_log_with_names_and_the_exit_code_is_passed_through() {
    let bench = bench();
    let done = bench.record(&["--tool=memcheck", "--leak-check=full", "--", "sh", "jit.sh"]);
    assert_eq!(done.code, 7, "{}", done.stderr);
    let logs = with(&bench, "memcheck.out.", ": jit code (in /tmp/perf-");
    assert_eq!(logs.len(), 2, "{:?} {}", bench.files(), done.stderr);
    for (name, log) in logs {
        assert!(!log.contains("???"), "{log}");
        assert!(done.stderr.contains(&format!("next: less {name}")), "{}", done.stderr);
    }
    assert!(!bench.files().iter().any(|name| name.starts_with('.')), "{:?}", bench.files());
}

#[test]
fn all_other_tools_are_run_as_well() {
    let bench = bench();
    for (tool, text) in [
        ("callgrind", "fn=jit code"),
        ("massif", ": jit code (in /tmp/perf-"),
        ("dhat", ": jit code (in /tmp/perf-"),
        ("cachegrind", "fn=main"),
    ] {
        let tool_option = format!("--tool={tool}");
        let mut words = vec![tool_option.as_str(), "-o", tool, "--json"];
        if tool == "massif" {
            words.extend(["--detailed-freq=1", "--threshold=0.0"]);
        }
        words.extend(["--", "./jit"]);
        let done = bench.record(&words);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(with(&bench, &format!("{tool}."), text).len(), 1, "{}", done.stderr);
        let report: serde_json::Value = serde_json::from_str(&done.stdout).expect("a report");
        assert_eq!(report.as_array().map(Vec::len), Some(1), "{report}");
    }
}

#[test]
fn what_perf_alone_can_do_and_other_places_are_refused() {
    let bench = bench();
    for words in [
        &["--tool=memcheck", "-p", "1"][..],
        &["--tool=memcheck", "--log-file=x", "--", "./jit"],
        &["--tool=massif", "--massif-out-file=x", "--", "./jit"],
        &["--tool=massif"],
    ] {
        let done = bench.record(words);
        assert_eq!(done.code, 2, "{words:?} {}", done.stderr);
    }
    assert_eq!(bench.record(&["--tool=dhat", "--", "./nonesuch"]).code, 127);
    assert_eq!(bench.files(), ["jit", "jit.c", "jit.sh"]);
}

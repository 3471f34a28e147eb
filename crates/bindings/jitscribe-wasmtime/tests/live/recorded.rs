//! `jitscribe-wasmtime`: a WebAssembly module in a process of its own, recorded by perf.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use end_to_end::jitscribe::jitscribe;
use end_to_end::live::Recorder;
use end_to_end::perf::Perf;
use end_to_end::running::Running;
use end_to_end::sample::Sample;
use end_to_end::tool::{output, run};
use jitscribe::Scribe;
use jitscribe_wasmtime::{Options, announce};
use tempfile::TempDir;
use wasmtime::{Config, Engine, Func, Instance, Module, ProfilingStrategy, Store};

/// Time is spent in two functions, and in what leads from them to the host and back.
const MODULE: &str = r#"(module $spin
  (import "host" "tell" (func $tell (param i32)))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                     (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $count (export "count") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func $asks (export "asks") (param i32) (local i32)
    (loop $again
      (local.set 1 (i32.const 20))
      (loop $work (br_if $work (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
      (call $tell (local.get 0))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;

/// The other tests run this in a separate process, whose environment determines how it announces its code.
#[test]
#[ignore = "run by the other tests"]
#[expect(clippy::print_stdout, reason = "they wait for it")]
fn guest() {
    let ours = std::env::var_os("GUEST_PROFILER").is_none();
    let strategy = if ours { ProfilingStrategy::None } else { ProfilingStrategy::PerfMap };
    let engine = Engine::new(Config::new().profiler(strategy)).expect("an engine");
    let module = Module::new(&engine, MODULE).expect("a module");
    let scribe = if ours { Scribe::global() } else { Scribe::off() };
    let _announced = announce(scribe, &module, &Options::new());
    let mut store = Store::new(&engine, ());
    let tell = Func::wrap(&mut store, |_: i32| {});
    let instance = Instance::new(&mut store, &module, &[tell.into()]).expect("an instance");
    let mut function = |name| instance.get_func(&mut store, name).expect("an export");
    let (fib, count, asks) = (function("fib"), function("count"), function("asks"));
    let fib = fib.typed::<i32, i32>(&store).expect("its type");
    let count = count.typed::<i32, i32>(&store).expect("its type");
    let asks = asks.typed::<i32, ()>(&store).expect("its type");
    println!("\nannounced");
    std::io::stdout().flush().expect("a reader");
    let seconds: f64 = std::env::var("GUEST_SECONDS").map_or(1.0, |s| s.parse().expect("a number"));
    // By the processor's time: the recording has as many samples on a machine that is busy with something else.
    while processor_time() < Duration::from_secs_f64(seconds) {
        fib.call(&mut store, 20).expect("no trap");
        count.call(&mut store, 50_000).expect("no trap");
        asks.call(&mut store, 5_000).expect("no trap");
    }
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().expect("a time since the beginning")
}

fn guest_words() -> [PathBuf; 5] {
    let program = std::env::current_exe().expect("this program");
    let words = ["--exact", "recorded::guest", "--ignored", "--nocapture"].map(PathBuf::from);
    let [a, b, c, d] = words;
    [program, a, b, c, d]
}

fn record(folder: &Path) -> Command {
    let mut command = jitscribe();
    // Nothing of the user's is in the surroundings.
    command.arg("record").current_dir(folder).env("HOME", folder).env("LC_ALL", "C.UTF-8");
    command.args(["-F", "999", "-g", "-o", "out.data"]);
    command
}

/// Symbols of the module's code in which samples were taken; where a sample has none, its address.
fn seen(samples: &[Sample]) -> BTreeSet<String> {
    let jitted = samples.iter().filter(|sample| {
        sample.in_anonymous_memory() || sample.dso.contains(".jit/") || sample.is_jitted()
    });
    jitted
        .map(|sample| match sample.name() {
            Some(name) => name.to_owned(),
            None => format!("nothing at {:#x} in {}", sample.ip, sample.dso),
        })
        .collect()
}

/// What may be seen, and what must be: trampolines are short.
fn expect_all_named(samples: &[Sample]) {
    let seen = seen(samples);
    for name in ["fib", "count", "asks"] {
        assert!(seen.contains(name), "{name} is not in {seen:#?}");
    }
    for name in &seen {
        let known = ["fib", "count", "asks"].contains(&name.as_str())
            || name.contains("trampoline")
            || name.starts_with("wasmtime_builtin_");
        assert!(known, "{name}");
    }
}

/// How much of the jitted time is in a function, by its share of samples.
fn share(samples: &[Sample], name: &str) -> f64 {
    let named = |sample: &&Sample| sample.name() == Some(name);
    let all = ["fib", "count", "asks"];
    let jitted = samples.iter().filter(|sample| sample.name().is_some_and(|n| all.contains(&n)));
    let (jitted, named) = (jitted.count(), samples.iter().filter(named).count());
    named as f64 / jitted as f64
}

#[test]
fn a_recorded_module_has_names_as_by_wasmtime_s_own_profiler() {
    let folder = TempDir::with_prefix("jitscribe-wasmtime-").expect("a temporary folder");
    run(record(folder.path()).arg("--").args(guest_words()));
    let data = folder.path().join("out.data");
    let ours = Perf::installed().samples(&data);
    expect_all_named(&ours);
    // Frame pointers lead through all of it, trampolines too.
    let chains = Perf::installed().chains(&data);
    let fib: Vec<_> = chains
        .iter()
        .filter(|chain| chain.frames.first().is_some_and(|f| f.name() == Some("fib")))
        .collect();
    let whole = fib.iter().filter(|chain| {
        chain.frames.iter().any(|frame| frame.name().is_some_and(|n| n.contains("trampoline")))
    });
    assert!(whole.count() * 10 > fib.len() * 9, "{}", fib[0].line());

    // The same by wasmtime itself: a perf map, which stock perf reads.
    let theirs = Recorder::new().env("GUEST_PROFILER", "perfmap").record(&guest_words());
    let map = format!("/tmp/perf-{}.map", theirs.pid());
    assert!(std::fs::exists(&map).expect("a folder"), "{map}");
    expect_all_named(theirs.raw());
    for name in ["fib", "count", "asks"] {
        let (a, b) = (share(&ours, name), share(theirs.raw(), name));
        assert!((a - b).abs() < 0.15, "{name} took {a} of the time by ours, {b} by wasmtime's map");
    }
}

#[test]
fn a_running_module_has_names_from_earlier_announcements() {
    let folder = TempDir::with_prefix("jitscribe-wasmtime-").expect("a temporary folder");
    let [program, words @ ..] = guest_words();
    let mut guest = Command::new(program);
    guest.args(words).env("GUEST_SECONDS", "20").stdout(Stdio::piped());
    let mut guest = Running::start(&mut guest);
    guest.wait_for_line("announced");
    let pid = guest.pid().to_string();
    let done = output(record(folder.path()).args(["-p", &pid, "--duration", "3"]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    expect_all_named(&Perf::installed().samples(&folder.path().join("out.data")));
}

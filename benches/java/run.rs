//! One run, and what it took.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use benches::measure;
use tempfile::TempDir;

use crate::agents::Way;

/// What `Load` is to do.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub name: &'static str,
    pub steps: usize,
}

/// What a run took.
#[derive(Debug)]
pub struct Taken {
    /// From start to end; of use only where it does nothing.
    pub wall: Duration,
    pub steps: Vec<Duration>,
    /// User and system, of the whole process.
    pub processor: Duration,
    /// Processor time of the thread on which HotSpot tells of compiled methods.
    pub service: Duration,
    /// How many HotSpot compiled.
    pub methods: usize,
}

/// What the threads took of a program at steady state, on which something of an agent may run.
#[derive(Debug, Default)]
pub struct Steady {
    /// That on which HotSpot tells of compiled methods.
    pub service: Duration,
    /// Those that are the agent's own.
    pub own: Duration,
    /// All of the process's.
    pub all: Duration,
    /// How many methods were compiled meanwhile.
    pub methods: usize,
}

pub fn run(way: &Way, workload: Workload, dir: &Path) -> Taken {
    let work = Work::done(way, workload, dir);
    let (service, methods) = match workload.steps {
        0 => (Duration::ZERO, 0),
        _ => {
            // Until all is told that was compiled.
            std::thread::sleep(Duration::from_millis(300));
            (threads(&work.child).service, methods(&work.child))
        }
    };
    let (start, steps) = (work.start, work.steps.clone());
    let processor = work.end();
    Taken { wall: start.elapsed(), steps, processor, service, methods }
}

/// What is taken in `time` by a program that has done its steps, and compiled what it needs.
pub fn steady(way: &Way, workload: Workload, time: Duration, dir: &Path) -> Steady {
    let work = Work::done(way, workload, dir);
    std::thread::sleep(time / 2);
    let compiled = methods(&work.child);
    let before = threads(&work.child);
    std::thread::sleep(time);
    let after = threads(&work.child);
    let methods = methods(&work.child) - compiled;
    work.end();
    Steady {
        service: after.service - before.service,
        own: after.own - before.own,
        all: after.all - before.all,
        methods,
    }
}

/// A program that has done its steps.
struct Work {
    child: Child,
    start: Instant,
    steps: Vec<Duration>,
    /// What perf's agent writes to.
    _written: TempDir,
}

impl Work {
    fn done(way: &Way, workload: Workload, dir: &Path) -> Self {
        let written = tempfile::tempdir_in(dir).expect("a folder");
        let mut java = Command::new("java");
        // A heap that does not grow, and no threads but those that are asked about.
        java.args(["-XX:+UseSerialGC", "-Xms1g", "-Xmx1g"]).args(&way.options).arg("-cp").arg(dir);
        java.arg("Load").arg(workload.name).arg(workload.steps.to_string());
        java.env("JITDUMPDIR", written.path())
            .env_remove("JITSCRIBE")
            .env_remove("JAVA_TOOL_OPTIONS");
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let start = Instant::now();
        let mut child = java.spawn().expect("java: run scripts/setup.sh test");
        let mut steps = Vec::new();
        for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
            let line = line.expect("a line");
            if line == "done" {
                break;
            }
            steps.push(Duration::from_nanos(line.parse().expect("nanoseconds")));
        }
        assert_eq!(steps.len(), workload.steps, "{java:?} stopped");
        Self { child, start, steps, _written: written }
    }

    /// Lets it end. Returns the processor time that it took.
    fn end(mut self) -> Duration {
        drop(self.child.stdin.take());
        let map = format!("/tmp/perf-{}.map", self.child.id());
        let processor = measure::wait(self.child).expect("it ends").cpu;
        // `+DumpPerfMapAtExit`'s; nothing is there otherwise.
        let _ = std::fs::remove_file(map);
        processor
    }
}

/// What threads have had of the processors up to now.
fn threads(child: &Child) -> Steady {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads");
    let mut sum = Steady::default();
    for task in tasks.flatten().map(|task| task.path()) {
        let read = |name| std::fs::read_to_string(task.join(name)).unwrap_or_default();
        let time = read("schedstat").split(' ').next().and_then(|time| time.parse().ok());
        let time = time.map_or(Duration::ZERO, Duration::from_nanos);
        sum.all += time;
        match read("comm").trim_end() {
            "Service Thread" => sum.service += time,
            name if name.starts_with("jitscribe") => sum.own += time,
            _ => {}
        }
    }
    sum
}

fn methods(child: &Child) -> usize {
    let jcmd = Command::new("jcmd").arg(child.id().to_string()).arg("PerfCounter.print").output();
    let printed = jcmd.expect("jcmd: run scripts/setup.sh test").stdout;
    let printed = String::from_utf8_lossy(&printed);
    let count = printed.lines().find_map(|line| line.strip_prefix("sun.ci.totalCompiles="));
    count.and_then(|count| count.parse().ok()).expect("the number of compiled methods")
}

//! One run, and what it took.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use benches::measure;

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

pub fn run(way: &Way, workload: Workload, dir: &Path) -> Taken {
    let written = tempfile::tempdir_in(dir).expect("a folder");
    let mut java = Command::new("java");
    // A heap that does not grow, and no threads but those that are asked about.
    java.args(["-XX:+UseSerialGC", "-Xms1g", "-Xmx1g"]).args(&way.options).arg("-cp").arg(dir);
    java.arg("Load").arg(workload.name).arg(workload.steps.to_string());
    // Where perf's agent writes.
    java.env("JITDUMPDIR", written.path()).env_remove("JITSCRIBE").env_remove("JAVA_TOOL_OPTIONS");
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
    let (service, methods) = match workload.steps {
        0 => (Duration::ZERO, 0),
        _ => (service(&child), methods(&child)),
    };
    drop(child.stdin.take());
    let map = format!("/tmp/perf-{}.map", child.id());
    let (processor, wall) = (measure::wait(child).expect("it ends").cpu, start.elapsed());
    // `+DumpPerfMapAtExit`'s; nothing is there otherwise.
    let _ = std::fs::remove_file(map);
    Taken { wall, steps, processor, service, methods }
}

/// Once all is told that was compiled.
fn service(child: &Child) -> Duration {
    std::thread::sleep(Duration::from_millis(300));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("its threads");
    let read = |path: &Path, name| std::fs::read_to_string(path.join(name)).unwrap_or_default();
    let mut tasks = tasks.flatten().map(|task| task.path());
    let service = tasks.find(|task| read(task, "comm").trim_end() == "Service Thread");
    let statistics = read(&service.expect("HotSpot's service thread"), "schedstat");
    let time = statistics.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(time.expect("nanoseconds"))
}

fn methods(child: &Child) -> usize {
    let jcmd = Command::new("jcmd").arg(child.id().to_string()).arg("PerfCounter.print").output();
    let printed = jcmd.expect("jcmd: run scripts/setup.sh test").stdout;
    let printed = String::from_utf8_lossy(&printed);
    let count = printed.lines().find_map(|line| line.strip_prefix("sun.ci.totalCompiles="));
    count.and_then(|count| count.parse().ok()).expect("the number of compiled methods")
}

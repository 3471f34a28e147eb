//! The ways that are compared, built where nobody else does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How Java is run.
#[derive(Debug)]
pub struct Way {
    pub name: &'static str,
    /// Options of the JVM.
    pub options: Vec<String>,
    /// Whether HotSpot tells it of compiled methods.
    pub has_events: bool,
}

/// All that there are, `none` first.
pub fn ways(dir: &Path) -> Vec<Way> {
    let way = |name, agent: String| Way {
        name,
        options: vec![format!("-agentpath:{agent}")],
        has_events: true,
    };
    let null = dir.join("libnull.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/null_agent.c");
    execute(compiler(&null).arg("-Wall").arg("-Wextra").arg(source));
    let ours = ours();
    let mut ways = vec![
        Way { name: "none", options: Vec::new(), has_events: false },
        way("null", null.display().to_string()),
        way("null, that asks", format!("{}=ask", null.display())),
        way("jitscribe", ours.display().to_string()),
        way("jitscribe, with bytes", format!("{}=bytes", ours.display())),
        way("jitscribe, no-lines,no-inlined", format!("{}=no-lines,no-inlined", ours.display())),
    ];
    match perf(dir) {
        Some(agent) => ways.push(way("perf's agent", agent.display().to_string())),
        None => println!("perf's agent is left out: see PERF_JVMTI in this bench's description"),
    }
    ways.push(Way {
        name: "`+DumpPerfMapAtExit`",
        options: ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"]
            .map(String::from)
            .into(),
        has_events: false,
    });
    ways
}

/// The release build of ours.
fn ours() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", "jitscribe-jvmti"]);
    execute(cargo.env("CARGO_TARGET_DIR", target).current_dir(env!("CARGO_MANIFEST_DIR")));
    target.join("release/libjitscribe_jvmti.so")
}

/// perf's, if there is one.
fn perf(dir: &Path) -> Option<PathBuf> {
    if let Some(agent) = std::env::var_os("PERF_JVMTI") {
        return Some(agent.into());
    }
    let packaged = ["/usr/lib64/libperf-jvmti.so", "/usr/lib/libperf-jvmti.so"].map(PathBuf::from);
    if let Some(agent) = packaged.into_iter().find(|agent| agent.exists()) {
        return Some(agent);
    }
    let sources = std::fs::read_dir("/usr/src").ok()?.flatten().map(|entry| entry.path());
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("linux-source-") && name.ends_with(".tar.xz")
    };
    build_perf(&sources.into_iter().find(is_kernel)?, dir)
}

/// As perf's own Makefile does, with what this JDK and C library have.
fn build_perf(sources: &Path, dir: &Path) -> Option<PathBuf> {
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(sources).arg("-C").arg(dir).args(["--strip-components=1", "--wildcards"]);
    tar.args(["*/tools/perf/jvmti/*", "*/tools/perf/util/jitdump.h", "*/tools/include/*"]);
    execute(tar.args(["*/tools/lib/string.c", "*/tools/lib/ctype.c"]));
    let (tools, agent) = (dir.join("tools"), dir.join("libperf-jvmti.so"));
    let mut cc = compiler(&agent);
    cc.args(["-w", "-D_GNU_SOURCE", "-DHAVE_GETTID", "-DHAVE_JVMTI_CMLR", "-Iinclude"])
        .current_dir(tools);
    execute(cc.args([
        "perf/jvmti/libjvmti.c",
        "perf/jvmti/jvmti_agent.c",
        "lib/string.c",
        "lib/ctype.c",
    ]));
    Some(agent)
}

/// The C compiler, to make a library that knows the JDK's headers.
fn compiler(library: &Path) -> Command {
    let mut jdks =
        std::fs::read_dir("/usr/lib/jvm").expect("no JDK: run scripts/setup.sh test").flatten();
    let include = jdks.find_map(|jdk| {
        Some(jdk.path().join("include")).filter(|path| path.join("jvmti.h").exists())
    });
    let include = include.expect("no jvmti.h: run scripts/setup.sh test");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(library).arg("-I").arg(&include);
    cc.arg("-I").arg(include.join("linux"));
    cc
}

/// Compiles Java beside this file into `dir`.
pub fn compile(files: &[&str], dir: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
    execute(Command::new("javac").arg("-d").arg(dir).args(files).current_dir(here));
}

fn execute(command: &mut Command) {
    let done = command.stdin(Stdio::null()).status();
    let done =
        done.unwrap_or_else(|error| panic!("{command:?}: {error}: run scripts/setup.sh test"));
    assert!(done.success(), "{command:?}: {done}");
}

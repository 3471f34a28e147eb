//! Java at work, with the agent or without.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

use crate::jitscribe::{java_agent, jitscribe, json_lines};
use crate::live::workload;
use crate::running::{Running, wait_until};
use crate::tool::{cache, path_behind, run, tool};

/// Milliseconds longer than any test takes; the workload is ended when the test is done with it.
pub const LONG: &str = "300000";

/// One test for each JDK of functions that take one: `openjdk_17::NAME` and `openjdk_21::NAME`.
#[macro_export]
macro_rules! on_each_jdk {
    ($($name:ident),* $(,)?) => {
        mod openjdk_17 {
            $(#[test] fn $name() { super::$name(&end_to_end::java::Jdk::of_debian_12()); })*
        }
        mod openjdk_21 {
            $(#[test] fn $name() { super::$name(&end_to_end::java::Jdk::of_debian_13()); })*
        }
    };
}

/// An installed JDK.
#[derive(Debug)]
pub struct Jdk(PathBuf);

impl Jdk {
    /// OpenJDK 17, which Debian 12 has.
    pub fn of_debian_12() -> Self {
        Self::at(PathBuf::from("/usr/lib/jvm/java-17-openjdk-amd64"), "17.")
    }

    /// OpenJDK 21, which `scripts/trixie.sh` unpacks.
    pub fn of_debian_13() -> Self {
        Self::at(cache().join("trixie/run/jdk-21"), "21.")
    }

    fn at(home: PathBuf, version: &str) -> Self {
        let told = fs::read_to_string(home.join("release")).unwrap_or_default();
        let wanted = format!("JAVA_VERSION=\"{version}");
        assert!(
            told.contains(&wanted),
            "{} is no OpenJDK {version}: run scripts/setup.sh live",
            home.display()
        );
        Self(home)
    }

    /// One of its programs.
    pub fn tool(&self, program: &str) -> Command {
        tool(self.0.join("bin").join(program))
    }

    /// The value of `PATH` by which its programs come first.
    pub fn path(&self) -> std::ffi::OsString {
        path_behind(&self.0.join("bin"))
    }

    /// The folder with the headers for agents.
    pub fn include(&self) -> PathBuf {
        self.0.join("include")
    }

    /// Compiles a workload into a folder.
    pub fn compile(&self, source: &str, into: &Path) {
        run(self.tool("javac").arg("-d").arg(into).arg(workload(source)));
    }
}

/// A workload, at work, and what it printed.
#[derive(Debug)]
pub struct Java {
    running: Running,
    dir: TempDir,
    jdk: PathBuf,
}

impl Java {
    /// Starts `Tiers` with options for the JVM, and waits until most is compiled.
    pub fn start(jdk: &Jdk, options: &[&str], arguments: &[&str]) -> Self {
        Self::start_class(jdk, "Tiers", options, arguments)
    }

    /// Starts a workload's class, and waits until it reports that it is running.
    pub fn start_class(jdk: &Jdk, class: &str, options: &[&str], arguments: &[&str]) -> Self {
        let dir = TempDir::with_prefix("jitscribe-java-").expect("a temporary folder");
        jdk.compile(&format!("{class}.java"), dir.path());
        let mut java = jdk.tool("java");
        java.args(options).arg(class).args(arguments).current_dir(dir.path());
        Self::started(jdk, java, dir)
    }

    /// Starts a command that becomes Java, and waits until it reports that it is running.
    pub fn started(jdk: &Jdk, mut command: Command, dir: TempDir) -> Self {
        let out = File::create(dir.path().join("out")).expect("a file");
        command.stderr(out.try_clone().expect("a copy")).stdout(out).stdin(Stdio::null());
        let java = Self { running: Running::start(&mut command), dir, jdk: jdk.0.clone() };
        java.wait_for("running");
        java
    }

    /// Waits until it has printed this.
    pub fn wait_for(&self, wanted: &str) {
        let instead = || format!("it never said {wanted}:\n{}", self.printed());
        wait_until(instead, || self.printed().contains(wanted));
    }

    /// Its working directory, with its classes.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What it and its JVM have printed.
    pub fn printed(&self) -> String {
        fs::read_to_string(self.dir.path().join("out")).expect("its output")
    }

    /// Its process id.
    pub fn pid(&self) -> String {
        self.running.pid().to_string()
    }

    /// The ids of its threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).expect("its threads");
        let names = tasks.flatten().map(|task| task.file_name().into_string());
        names.map(|name| name.expect("a number")).collect()
    }

    /// What the JVM answers to a command.
    pub fn jcmd(&self, words: &[&str]) -> String {
        run(tool(self.jdk.join("bin/jcmd")).arg(self.pid()).args(words)).stdout
    }

    /// Loads the agent, or gives it an option.
    pub fn agent(&self, option: &str) {
        let agent = java_agent();
        let agent = agent.to_str().expect("a UTF-8 path");
        let said = self.jcmd(&["JVMTI.agent_load", agent, option]);
        assert!(said.contains("return code: 0"), "{said}");
    }

    /// The codes in its log; `died` is set for those that were unloaded.
    pub fn codes(&self) -> Vec<Value> {
        let mut codes = json_lines(jitscribe().args(["dump", "--json", "-p", &self.pid()]));
        codes.retain(|event| event["event"] == "load");
        codes
    }

    /// The codes that are alive.
    pub fn alive(&self) -> Vec<Value> {
        self.codes().into_iter().filter(|code| code["died"].is_null()).collect()
    }

    /// Address → tier, of all methods that HotSpot has compiled.
    pub fn code_list(&self) -> BTreeMap<u64, u64> {
        let list = self.jcmd(&["Compiler.codelist"]);
        let lines = list.lines().filter_map(|line| {
            let level = line.split(' ').nth(1)?.parse().ok()?;
            let (_, place) = line.rsplit_once("[0x")?;
            let begin = place.split([',', ' ', '-']).filter(|word| !word.is_empty()).nth(1)?;
            Some((u64::from_str_radix(begin.strip_prefix("0x")?, 16).ok()?, level))
        });
        lines.collect()
    }

    /// Waits until HotSpot has compiled these methods, named as in `Chain.leaf`.
    pub fn wait_for_compiled(&self, methods: &[String]) {
        let list = || self.jcmd(&["Compiler.codelist"]);
        wait_until(list, || {
            let list = list();
            methods.iter().all(|method| list.contains(&format!(" {method}(")))
        });
    }

    /// How much memory it has for itself: without that of files, and of the log, which has its own limit.
    pub fn private_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("status");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
    }

    /// Checks that neither the JVM nor the agent has said a word beside the workload's own, but for what OpenJDK says from
    /// 21 on of every agent that comes late.
    pub fn expect_no_complaint(&self) {
        let printed = self.printed();
        let of_late_agents = [
            "WARNING: A JVM TI agent has been loaded dynamically (",
            "WARNING: If a serviceability tool is in use, please run with -XX:+EnableDynamicAgentLoading",
            "WARNING: Dynamic loading of agents will be disallowed by default in a future release",
        ];
        let is_of_late_agents =
            |line: &&str| of_late_agents.iter().any(|said| line.starts_with(said));
        let others: Vec<_> = printed.lines().filter(|line| !is_of_late_agents(line)).collect();
        assert_eq!(others, ["running"], "the JVM complains");
    }
}

/// The option of `java` that loads the agent.
pub fn agent_option(options: &str) -> String {
    format!("-agentpath:{}={options}", java_agent().display())
}

/// An address as `jitscribe dump --json` writes it.
pub fn address(text: &Value) -> u64 {
    let text = text.as_str().expect("a text").strip_prefix("0x").expect("0x");
    u64::from_str_radix(text, 16).expect("an address")
}

/// The name of a code or of an inlined call.
pub fn name(value: &Value) -> &str {
    value["name"].as_str().expect("a name")
}

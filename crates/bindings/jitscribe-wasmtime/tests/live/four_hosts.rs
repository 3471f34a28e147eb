//! One program on four hosts, in four folders and two versions: what the tables of all of them say is the same function, and the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::engines::DUCKDB;
use end_to_end::java::Jdk;
use end_to_end::jitscribe::{java_agent, jitscribe};
use end_to_end::live::workload;
use end_to_end::profiles::read;
use end_to_end::tool::run;
use jitscribe::Scribe;
use jitscribe_wasmtime::{Options, announce};
use tempfile::TempDir;
use wasmtime::{Engine, Instance, Module, Store};

/// The hosts: their names, where the program is deployed, and its version.
const HOSTS: [(&str, &str, &str); 4] = [
    ("host-a", "srv/app-1.2.3", "1"),
    ("host-b", "srv/app-1.2.4", "1"),
    ("host-c", "srv/app-1.3.0", "2"),
    ("host-d", "srv/app-v2.0.0-rc1", "2"),
];

/// How many hosts have a function, how many function keys it has, and how many lineages: by its name and version, or of all versions.
const FUNCTIONS: &str = "
    SELECT f.name, COALESCE(c.version, 'all'), COUNT(DISTINCT c.host), COUNT(DISTINCT f.function_key), COUNT(DISTINCT f.lineage_key)
    FROM codes AS c
    JOIN functions AS f ON f.function_key = c.function_key
    WHERE f.origin = 'runtime'
    GROUP BY GROUPING SETS ((f.name, c.version), (f.name))
";

/// The codes of functions, and which hosts have them.
const CODES: &str = "
    SELECT f.name, c.tier, c.size, CAST(c.code_key AS VARCHAR), STRING_AGG(DISTINCT c.host, ' ' ORDER BY c.host)
    FROM codes AS c
    JOIN (SELECT DISTINCT function_key, name, origin FROM functions) AS f ON f.function_key = c.function_key
    WHERE f.origin = 'runtime'
    GROUP BY f.name, c.tier, c.size, c.code_key
";

/// The hosts on which a function was sampled.
const SAMPLED: &str = "
    SELECT f.name, COUNT(DISTINCT s.host)
    FROM samples AS s
    JOIN (SELECT DISTINCT function_key, name, origin FROM functions) AS f ON f.function_key = s.function_key
    WHERE f.origin = 'runtime'
    GROUP BY f.name
";

/// What the keys of functions are made of, and which hosts have them: for the message if they differ.
const DETAILS: &str = "
    SELECT f.name, f.file, f.start_line, f.runtime, f.runtime_build_id, f.source_hash, STRING_AGG(DISTINCT c.host, ' ' ORDER BY c.host)
    FROM codes AS c
    JOIN functions AS f ON f.function_key = c.function_key
    WHERE f.origin = 'runtime'
    GROUP BY f.function_key, f.name, f.file, f.start_line, f.runtime, f.runtime_build_id, f.source_hash
";

/// A code, and the hosts that have it.
#[derive(Debug)]
struct Code {
    tier: String,
    size: u64,
    hosts: String,
}

/// What the tables of the hosts say.
#[derive(Debug)]
struct Fleet {
    /// Hosts, function keys and lineages, by name and version.
    functions: BTreeMap<(String, String), [u64; 3]>,
    /// By name.
    codes: BTreeMap<String, Vec<Code>>,
    /// The number of hosts, by name.
    sampled: BTreeMap<String, u64>,
    /// Shown when a test fails.
    #[expect(dead_code, reason = "for the message")]
    details: Vec<Vec<serde_json::Value>>,
}

impl Fleet {
    fn ask(tables: &Path) -> Self {
        let folder = TempDir::new().expect("a folder");
        let queries = [
            ("functions", FUNCTIONS),
            ("codes", CODES),
            ("sampled", SAMPLED),
            ("details", DETAILS),
        ];
        let queries = queries.map(|(name, query)| {
            let path = folder.path().join(name);
            fs::write(&path, query).expect("written");
            path
        });
        let [functions, codes, sampled, details] =
            DUCKDB.ask(tables, &queries).try_into().expect("four answers");
        let mut fleet = Self {
            functions: BTreeMap::new(),
            codes: BTreeMap::new(),
            sampled: BTreeMap::new(),
            details: details.1,
        };
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        for row in functions.1 {
            let counts = [&row[2], &row[3], &row[4]].map(number);
            fleet.functions.insert((text(&row[0]), text(&row[1])), counts);
        }
        for row in codes.1 {
            let code = Code { tier: text(&row[1]), size: number(&row[2]), hosts: text(&row[4]) };
            fleet.codes.entry(text(&row[0])).or_default().push(code);
        }
        fleet.sampled = sampled.1.iter().map(|row| (text(&row[0]), number(&row[1]))).collect();
        fleet
    }

    /// Checks the numbers of function keys: those of all hosts, and one on the two hosts with a version. The lineage is one.
    #[track_caller]
    fn expect_functions(&self, name: &str, keys: u64) {
        let of = |version: &str| self.functions.get(&(name.to_owned(), version.to_owned()));
        assert_eq!(of("1"), Some(&[2, 1, 1]), "{name} of version 1: {self:#?}");
        assert_eq!(of("2"), Some(&[2, 1, 1]), "{name} of version 2: {self:#?}");
        assert_eq!(of("all"), Some(&[4, keys, 1]), "{name}: {self:#?}");
    }

    /// Checks that a function was sampled on all hosts.
    #[track_caller]
    fn expect_sampled(&self, name: &str) {
        assert_eq!(self.sampled.get(name), Some(&4), "{name}: {self:#?}");
    }

    /// The hosts that have each code of a function of a tier.
    fn hosts_of(&self, name: &str, tier: &str) -> Vec<&str> {
        let codes = self.codes.get(name).into_iter().flatten();
        let mut hosts: Vec<&str> =
            codes.filter(|code| code.tier == tier).map(|code| code.hosts.as_str()).collect();
        hosts.sort_unstable();
        hosts
    }
}

/// A version of a program in `tests/workloads/hosts`.
fn source(name: &str, version: &str) -> String {
    let text = fs::read_to_string(workload(&format!("hosts/{name}"))).expect("a program");
    if version == "1" {
        return text;
    }
    let mut other = text.clone();
    for (of_first, of_second) in [(" 31", " 37"), (" Moved.\n", " Moved.\n\n")] {
        assert_eq!(other.matches(of_first).count(), 1, "{of_first} in {name}");
        other = other.replace(of_first, of_second);
    }
    other
}

/// Records a program on each host, exports all of them into one folder, and asks what is there. `deploy` puts a version of the program into a folder, and returns what
/// to run.
fn record(deploy: impl Fn(&Path, &str) -> Vec<PathBuf>, changed: &str) -> Fleet {
    let folder = TempDir::new().expect("a folder");
    let tables = folder.path().join("fleet");
    let mut pids = BTreeSet::new();
    let mut addresses = BTreeSet::new();
    for (host, deployment, version) in HOSTS {
        // Another folder for each, as temporary ones of hosts are.
        let root = TempDir::new().expect("a folder");
        let deployment = root.path().join(deployment);
        fs::create_dir_all(&deployment).expect("folders");
        let words = deploy(&deployment, version);
        let data = root.path().join("recorded.data");
        let mut record = jitscribe();
        record.args(["record", "-q", "-F", "999", "-g", "-o"]).arg(&data).arg("--").args(words);
        record.env("JITSCRIBE_JAVA_AGENT", java_agent()).current_dir(root.path());
        record.env("DEPLOYMENT", &deployment);
        run(&mut record);
        let mut export: Command = jitscribe();
        export.args(["export", "-q", "--service", "app", "--host", host]);
        export.args(["--service-version", version, "-i"]).arg(&data).arg("--parquet").arg(&tables);
        run(&mut export);
        let profile = read(&data).profile;
        let codes = profile.codes().iter().filter(|code| {
            code.process.is_some()
                && profile.text(profile.function(code.function).name) == changed.as_bytes()
        });
        let codes: Vec<_> = codes.collect();
        assert!(!codes.is_empty(), "no code of {changed}");
        for code in codes {
            addresses.insert(code.address);
            pids.insert(code.process.map(|process| profile.process(process).pid));
        }
    }
    assert_eq!(pids.len(), 4, "processes");
    assert!(addresses.len() > 1, "all at {addresses:x?}: is randomize_va_space 0?");
    Fleet::ask(&tables)
}

/// A recording has the source of scripts, so that another version of the file is another function; its lineage is the same.
#[test]
fn functions_of_node() {
    let deploy = |folder: &Path, version: &str| {
        let path = folder.join("app.js");
        fs::write(&path, source("app.js", version)).expect("written");
        vec!["node".into(), "--always-sparkplug".into(), path]
    };
    let fleet = record(deploy, "changed");
    fleet.expect_sampled("kept");
    fleet.expect_sampled("changed");
    for name in ["kept", "changed", "moved"] {
        fleet.expect_functions(name, 2);
        // This tier's code depends on nothing but the source.
        let hosts = fleet.hosts_of(name, "sparkplug");
        assert_eq!(hosts, ["host-a host-b", "host-c host-d"], "{name}: {:#?}", fleet.codes[name]);
    }
}

/// Nothing is known of a module's source: a function has one key while its name is the same, and other code has another key.
#[test]
fn functions_of_cranelift() {
    let deploy = |folder: &Path, version: &str| {
        let path = folder.join("module.wat");
        fs::write(&path, source("module.wat", version)).expect("written");
        let program = std::env::current_exe().expect("this program");
        let words = ["--exact", "four_hosts::guest", "--ignored", "--nocapture"].map(PathBuf::from);
        std::iter::once(program).chain(words).collect()
    };
    let fleet = record(deploy, "changed");
    for name in ["kept", "changed", "moved"] {
        fleet.expect_functions(name, 1);
    }
    fleet.expect_sampled("kept");
    fleet.expect_sampled("changed");
    assert_eq!(fleet.hosts_of("kept", ""), ["host-a host-b host-c host-d"]);
    assert_eq!(fleet.hosts_of("changed", ""), ["host-a host-b", "host-c host-d"]);
    assert_eq!(fleet.hosts_of("moved", ""), ["host-a host-b host-c host-d"]);
    let changed = &fleet.codes["changed"];
    assert_eq!(changed[0].size, changed[1].size, "only a number differs: {changed:#?}");
}

#[test]
#[ignore = "the program that is recorded, started by the test above"]
fn guest() {
    let Some(deployment) = std::env::var_os("DEPLOYMENT") else { return };
    let module = Path::new(&deployment).join("module.wat");
    let engine = Engine::default();
    let module = Module::from_file(&engine, module).expect("a module");
    let _announced = announce(Scribe::global(), &module, &Options::new());
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).expect("an instance");
    let moved = instance.get_typed_func::<i32, i32>(&mut store, "moved").expect("an export");
    for _ in 0..20_000 {
        moved.call(&mut store, 9000).expect("no trap");
    }
}

/// Nor is the source of methods known.
#[test]
fn functions_of_java() {
    let jdk = Jdk::of_debian_12();
    let deploy = |folder: &Path, version: &str| {
        let path = folder.join("Hosts.java");
        fs::write(&path, source("Hosts.java", version)).expect("written");
        run(jdk.tool("javac").arg("-d").arg(folder).arg(path));
        let java: PathBuf = jdk.tool("java").get_program().into();
        vec![java, "-cp".into(), folder.to_owned(), "Hosts".into()]
    };
    let fleet = record(deploy, "Hosts.changed");
    for name in ["Hosts.kept", "Hosts.changed", "Hosts.moved"] {
        fleet.expect_functions(name, 1);
        fleet.expect_sampled(name);
    }
    // Codes of one function may differ (`docs/design/identity.md` says how), those of another one do.
    for code in &fleet.codes["Hosts.changed"] {
        let is_of = |hosts: [&str; 2]| hosts.iter().any(|host| code.hosts.contains(host));
        assert!(
            is_of(["host-a", "host-b"]) != is_of(["host-c", "host-d"]),
            "{:#?}",
            fleet.codes["Hosts.changed"]
        );
    }
}

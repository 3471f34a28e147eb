//! PostgreSQL compiles the expressions of a query, registers that code with GDB's JIT interface, and frees it after some milliseconds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use end_to_end::record::Record;
use end_to_end::tool::{argument, run, tool};
use rustix::process::geteuid;
use test_privilege::needs;

/// A user other than root, as which the server runs.
const NOBODY: u32 = 65534;

/// A database, and the program that starts PostgreSQL's programs for it: they refuse to run as root.
struct Database(PathBuf);

impl Database {
    fn new(folder: &Path) -> Self {
        let data = folder.join("data");
        fs::create_dir(&data).expect("a folder");
        if geteuid().is_root() {
            chown(&data, Some(NOBODY), Some(NOBODY)).expect("its owner");
        }
        let database = Self(data);
        let initdb = ["initdb", "-D", &argument(&database.0), "-A", "trust", "--no-sync"];
        let words = database.words(&initdb);
        run(tool(&words[0]).args(&words[1..]));
        database
    }

    /// The command that runs this program of PostgreSQL's.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let (program, arguments) = words.split_first().expect("a program");
        let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let user = user.iter().filter(|_| geteuid().is_root()).map(|word| (*word).to_owned());
        let program = format!("/usr/lib/postgresql/15/bin/{program}");
        let arguments = arguments.iter().map(|word| (*word).to_owned());
        user.chain([program]).chain(arguments).collect()
    }
}

#[test]
fn code_of_short_queries_has_names_with_exact_times() {
    needs!(Perf);
    needs!(Trace);
    needs!(Breakpoints);
    if geteuid().is_root() {
        needs!(OtherUsers);
    }
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
    let database = Database::new(folder.path());
    let table = "create table t as select g as a, g % 7 as b from generate_series(1, 20000) g\n";
    let query = "select sum(a * b + a % 3) from t where a % 5 < 4\n";
    // LLVM is loaded by the first query. Then there is time to find out that it has a list.
    let queries = format!("{table}{query}select pg_sleep(2)\n{}", query.repeat(150));
    let input = folder.path().join("queries");
    fs::write(&input, queries).expect("a file");
    let mut server = vec!["postgres", "--single", "-F", "-D"];
    let data = argument(&database.0);
    server.push(&data);
    for setting in ["jit=on", "jit_above_cost=0", "jit_debugging_support=on"] {
        server.extend(["-c", setting]);
    }
    server.push("postgres");
    let script = format!("exec \"$@\" < {} > /dev/null", input.display());
    let mut program = vec!["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
    program.extend(database.words(&server));
    let options = ["-F", "1999", "--call-graph=none", "--exact-times"];
    let recorded = Record::new(&options).program(&program);
    let samples = &recorded.report["samples"];
    let count = |name: &str| samples[name].as_u64().expect("a number");
    assert!(count("named") > 50, "{samples}");
    // On a busy machine, some code is freed before it is read. Without exact times, two thirds have names.
    assert!(count("named") >= count("unnamed") * 9, "{samples}");
    let top = recorded.report["top"].as_array().expect("a list");
    let names: Vec<&str> = top.iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(names.contains(&"evalexpr") && names.contains(&"deform"), "{names:?}");
    assert!(recorded.said.contains("have exact times"), "{}", recorded.said);
}

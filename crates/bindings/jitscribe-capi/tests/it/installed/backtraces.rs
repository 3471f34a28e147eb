//! Who names jitted code in the process: what each of them prints, and the table of `docs/crash.md`.

use std::process::Command;

use crate::installed::tree::{Link, compile, root};

const PROGRAM: &str = "tests/cpp/backtraces.cpp";
/// Where the code is.
const PLACES: [&str; 3] = ["memory", "unwinders", "arena"];

/// What prints a stack: as the table has it, the way in the program, and how the program is compiled.
const WAYS: [(&str, &str, &[&str]); 11] = [
    ("`dladdr`", "dladdr", &[]),
    ("`backtrace`, `backtrace_symbols`", "backtrace", &[]),
    ("`abort` of glibc", "abort", &[]),
    ("`jitscribe_symbolize`, frames of libgcc", "symbolize", &[]),
    ("libbacktrace", "libbacktrace", &["-DWITH_LIBBACKTRACE"]),
    ("Boost.Stacktrace, `dladdr`", "boost", &["-DWITH_BOOST", "-D_GNU_SOURCE"]),
    (
        "Boost.Stacktrace, `addr2line`",
        "boost",
        &["-DWITH_BOOST", "-DBOOST_STACKTRACE_USE_ADDR2LINE"],
    ),
    (
        "Boost.Stacktrace, libbacktrace",
        "boost",
        &["-DWITH_BOOST", "-DBOOST_STACKTRACE_USE_BACKTRACE"],
    ),
    ("AddressSanitizer", "fault", &["-fsanitize=address"]),
    ("ThreadSanitizer", "fault", &["-fsanitize=thread"]),
    ("UndefinedBehaviorSanitizer", "overflow", &["-fsanitize=undefined"]),
];

/// What was printed of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The code's name, and what is below it.
    Named,
    /// The code's name alone, where nothing else is asked for.
    Name,
    /// The code's name, and nothing below it.
    Last,
    /// What is below it, but not its name.
    Through,
    /// Neither.
    Nothing,
}

impl Seen {
    fn of(said: &str, way: &str) -> Self {
        let name = said.find("jit::caller");
        match (name, said.find("native_bottom")) {
            (Some(name), Some(below)) => {
                assert!(name < below, "{said}");
                Self::Named
            }
            (Some(_), None) if way == "dladdr" => Self::Name,
            (Some(_), None) => Self::Last,
            (None, Some(_)) => Self::Through,
            (None, None) => Self::Nothing,
        }
    }

    /// As the table has it.
    fn text(self) -> &'static str {
        match self {
            Self::Named => "name, stack goes on",
            Self::Name => "name",
            Self::Last => "name, stack ends",
            Self::Through => "address, stack goes on",
            Self::Nothing => "-",
        }
    }
}

/// What the program prints, to standard output and error. Some of the ways end it.
fn said(command: &mut Command) -> String {
    let output = command.env_remove("JITSCRIBE").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text + &String::from_utf8_lossy(&output.stderr)
}

fn row(title: &str, seen: [Seen; 3]) -> String {
    let [memory, unwinders, arena] = seen.map(Seen::text);
    format!("| {title} | {memory} | {unwinders} | {arena} |")
}

fn seen_in_cpp(way: &str, options: &[&str]) -> [Seen; 3] {
    let common = ["-rdynamic", "-fno-omit-frame-pointer"];
    let libraries = ["-ldl", "-lbacktrace"];
    let options: Vec<&str> = options.iter().copied().chain(common).chain(libraries).collect();
    let program = compile(PROGRAM, Link::Static, &options);
    PLACES.map(|place| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(&program);
        command.args([way, place]).arg(folder.path()).env("UBSAN_OPTIONS", "print_stacktrace=1");
        let said = said(&mut command);
        Seen::of(&said, way)
    })
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    #[test]
    fn the_table_of_who_names_code_is_true() {
        let mut rows: Vec<String> = WAYS
            .iter()
            .map(|(title, way, options)| row(title, seen_in_cpp(way, options)))
            .collect();
        let own = std::env::current_exe().expect("this program");
        let seen = PLACES.map(|place| {
            let folder = tempfile::tempdir().expect("a folder");
            let mut command = Command::new(&own);
            command.args([
                "--exact",
                "installed::rust_backtraces::print",
                "--ignored",
                "--nocapture",
            ]);
            let said = said(command.env("PLACE", place).env("FOLDER", folder.path()));
            Seen::of(&said, "rust")
        });
        rows.push(row("Rust's `std::backtrace`", seen));
        let docs =
            std::fs::read_to_string(root().join("../../../docs/crash.md")).expect("docs/crash.md");
        let (_, table) = docs.split_once("| in the process | ").expect("a table");
        let table: Vec<&str> =
            table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(table, rows, "docs/crash.md should have\n{}", rows.join("\n"));
    }
}

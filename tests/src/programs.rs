//! Programs that are not ours, at some seconds of work. `scripts/profilers.sh` compares the same ones with other profilers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::live::workload;
use crate::runtimes::Words;
use crate::tool::{argument, cache, crate_dir, installed, run, tool};

/// A file of `scripts/profilers`.
fn of_profilers(name: &str) -> String {
    let path = crate_dir().parent().expect("the workspace").join("scripts/profilers").join(name);
    assert!(path.exists(), "there is no {}", path.display());
    argument(path)
}

fn words(program: &[&str]) -> Words {
    program.iter().map(|word| (*word).to_owned()).collect()
}

/// terser, which makes a parser for JavaScript smaller.
pub fn terser() -> Words {
    let modules = installed("terser-5.44.1/node_modules");
    let [terser, input] =
        ["terser/bin/terser", "acorn/dist/acorn.js"].map(|name| argument(modules.join(name)));
    words(&["node", &terser, &input, "-c", "-m", "-o", "/dev/null"])
}

/// tsc, which compiles a program with a source map; and that program. They are two processes.
pub fn tsc(folder: &Path) -> Words {
    fs::copy(workload("typed.ts"), folder.join("typed.ts")).expect("a copy");
    let tsc = argument(installed("typescript-5.9.3/bin/tsc"));
    let compile = format!("node {tsc} --sourceMap --target es2022 --outDir dist typed.ts");
    words(&["sh", "-c", &format!("{compile}; node dist/typed.js")])
}

/// The installed Java, which runs a class that needs these archives.
fn java(folder: &Path, class: &str, archives: &[PathBuf], work: &str) -> Words {
    let paths = [folder.to_owned()].into_iter().chain(archives.iter().cloned());
    let classes = std::env::join_paths(paths).expect("paths without colons");
    let mut javac = tool("javac");
    javac.arg("-d").arg(folder).arg("-cp").arg(&classes);
    run(javac.arg(of_profilers(&format!("{class}.java"))));
    words(&["java", "-XX:+UseSerialGC", "-cp", &argument(classes), class, work])
}

/// H2, a database: tables in memory.
pub fn h2(folder: &Path) -> Words {
    java(folder, "Queries", &["/usr/share/java/h2.jar".into()], "12")
}

/// Lucene: an index in memory.
pub fn lucene(folder: &Path) -> Words {
    let archives = ["core", "analyzers-common", "queryparser"];
    let path = |name| format!("/usr/share/java/lucene-{name}-4.10.4.jar").into();
    java(folder, "Index", &archives.map(path), "1")
}

/// pylint, which runs on Python 3.13 and looks at one of its own modules.
pub fn pylint() -> Words {
    let python = argument(installed("trixie/run/python3.13"));
    let checked = argument(installed("pylint-3.3.7/mccabe.py"));
    words(&[&python, "-m", "pylint", "--exit-zero", "--disable=all", "--enable=E,W", &checked])
}

/// Where Python finds pylint: the value of `PYTHONPATH`.
pub fn pylint_path() -> PathBuf {
    cache().join("pylint-3.3.7")
}

/// Twig, which renders pages, on PHP.
pub fn twig() -> Words {
    let script = of_profilers("render.php");
    let jit = ["-dopcache.enable_cli=1", "-dopcache.jit=tracing", "-dopcache.jit_buffer_size=64M"];
    let program = ["-dopcache.file_update_protection=0", &script, "10000"];
    words(&[&["php"], &jit[..], &program].concat())
}

/// Elixir's formatter.
pub fn formatter() -> Words {
    words(&["elixir", &of_profilers("format.exs")])
}

//! What `make install` installs, as programs in C use it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use jitdump::{Endian, Load, Writer, WriterConfig};
use test_once::once;

/// The output of a command, which must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    text
}

/// The folder of this crate.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn make(target: &str, prefix: &Path) {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let mut make = Command::new("make");
    make.arg("-C").arg(root()).arg(target);
    make.args([format!("PROFILE={profile}"), format!("PREFIX={}", prefix.display())]);
    run(make.env("CARGO_TARGET_DIR", target_dir).env("CARGO", env!("CARGO")));
}

fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Where the library was installed, once for all tests of a run.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        once(Path::new(env!("CARGO_TARGET_TMPDIR")), "codes-installed", |prefix| {
            make("install", prefix);
        })
    })
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("jitscribe-codes");
    let output = run(command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")));
    output.split_whitespace().map(str::to_owned).collect()
}

/// Compiles a header by itself, without warnings, in every standard of C and C++.
fn compiles(header: &str) {
    for (compiler, language, standards) in [
        ("cc", "c", &["c99", "c11", "c17", "c2x"][..]),
        ("c++", "c++", &["c++11", "c++14", "c++17", "c++20", "c++23"]),
    ] {
        for standard in standards {
            let mut compile = Command::new(compiler);
            compile.arg(format!("-std={standard}")).args(pkg_config(&["--cflags"]));
            compile.args(["-include", header, "-x", language]);
            compile.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]);
            run(compile.args(["-fsyntax-only", "/dev/null"]));
        }
    }
}

#[test]
fn the_header_compiles() {
    compiles("jitscribe/codes.h");
}

/// With tools of the second tier: the header of libipt.
mod live {
    use super::compiles;

    #[test]
    fn the_header_for_libipt_compiles() {
        compiles("jitscribe/libipt.h");
    }
}

/// No symbol of Rust's library is in the way of another library that is written in Rust.
#[test]
fn only_what_the_header_declares_is_exported() {
    let library = prefix().join("lib/libjitscribe_codes.a");
    let listed = run(Command::new("nm").args(["--extern-only", "--defined-only"]).arg(library));
    let mut exported: Vec<_> = listed.lines().filter_map(|line| line.split(" T ").nth(1)).collect();
    exported.sort_unstable();
    let declared = ["at", "close", "copy", "count", "damage", "has_processor_clock", "open"]
        .map(|name| format!("jitscribe_codes_{name}"));
    assert_eq!(exported, declared, "{listed}");
    // The file that it lists, an empty line, and its symbols.
    assert_eq!(
        listed.lines().filter(|line| line.contains(' ')).count(),
        declared.len(),
        "{listed}"
    );
}

#[test]
fn a_program_finds_code_in_a_dump() {
    let folder = fresh("codes-program");
    let config =
        WriterConfig { endian: Endian::Little, machine: 62, pid: 4711, timestamp: 1, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &config).expect("a header");
    for (index, name, code) in [(0, "old", [0x90, 0xc3]), (1, "new", [0xcc, 0xc3])] {
        let load = Load {
            pid: 4711,
            tid: 4711,
            vma: 0x7f00_1000,
            code_addr: 0x7f00_1000,
            code_index: index,
            name: name.as_bytes(),
            code: &code,
            padding: &[],
            missing: 0,
        };
        writer.load(1000 * (index + 1), &load).expect("a code");
    }
    let dump = folder.join("dump");
    std::fs::write(&dump, writer.into_sink()).expect("written");

    for linked in [&["-O1"][..], &["-O1", "-static"]] {
        let program = folder.join("code_at");
        let mut compile = Command::new("cc");
        compile.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]);
        compile.args(linked).arg(root().join("examples/c/code_at.c")).arg("-o").arg(&program);
        run(compile.args(pkg_config(&["--cflags", "--libs"])));
        let said = |words: &[&str]| run(Command::new(&program).arg(&dump).args(words));
        assert_eq!(said(&["7f001001"]), "old: 2 bytes at 7f001000: 90 c3\n");
        assert_eq!(said(&["7f001000", "2000"]), "new: 2 bytes at 7f001000: cc c3\n");
    }
}

#[test]
fn nothing_stays_after_uninstall() {
    let prefix = fresh("codes-uninstalled");
    make("install", &prefix);
    make("uninstall", &prefix);
    let left = run(Command::new("find").arg(&prefix).args(["!", "-type", "d"]));
    assert_eq!(left, "");
}

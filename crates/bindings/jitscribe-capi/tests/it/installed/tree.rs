//! An installed tree, and programs compiled against it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use test_once::once;

/// The directory of the crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The output of a command, which must succeed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    text
}

/// `make` in the crate, with the libraries built in the profile of this test.
pub fn make(target: &str, variables: &[String]) {
    let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let mut make = Command::new("make");
    make.arg("-C").arg(root()).arg(target).arg(format!("PROFILE={profile}")).args(variables);
    run(make.env("CARGO_TARGET_DIR", target_dir).env("CARGO", env!("CARGO")));
}

/// An empty directory of this name.
pub fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Where the library was installed, once for all tests of a run.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        once(Path::new(env!("CARGO_TARGET_TMPDIR")), "installed", |prefix| {
            make("install", &[format!("PREFIX={}", prefix.display())]);
        })
    })
}

/// The words of pkg-config's output.
pub fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).arg("jitscribe").env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    run(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// The library that a program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Shared,
    Static,
}

/// Compiles a C or C++ file of this crate as the documentation tells users to, with warnings as
/// errors.
///
/// Each file is compiled only once in a run of the tests.
pub fn compile(source: &str, link: Link, more: &[&str]) -> PathBuf {
    let mut name = source.replace(['/', '.'], "_");
    for word in more {
        name += &word.replace(|c: char| !c.is_alphanumeric(), "_");
    }
    name += &format!("-{link:?}");
    let folders = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let folder =
        once(&folders, &name, |folder| compile_to(&folder.join(&name), source, link, more));
    folder.join(name)
}

fn compile_to(program: &Path, source: &str, link: Link, more: &[&str]) {
    let (compiler, standard) =
        if source.ends_with(".c") { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
    // GCC has no MemorySanitizer.
    let compiler = if more.contains(&"-fsanitize=memory") { "clang-14" } else { compiler };
    let mut command = Command::new(compiler);
    command.args([standard, "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion"]);
    // A library is searched for what is missing so far.
    let (libraries, more): (Vec<&str>, Vec<&str>) =
        more.iter().partition(|word| word.starts_with("-l"));
    command.args(["-Werror", "-pthread"]).args(more).arg(root().join(source)).args(libraries);
    command.args(pkg_config(&["--cflags"])).arg("-o").arg(program);
    match link {
        Link::Shared => {
            command.args(pkg_config(&["--libs"]));
            command.arg(format!("-Wl,-rpath,{}", prefix().join("lib").display()));
        }
        Link::Static => {
            // The linker prefers the shared library where it has the choice.
            for word in pkg_config(&["--libs", "--static"]) {
                command.arg(if word == "-ljitscribe" {
                    "-l:libjitscribe.a".to_owned()
                } else {
                    word
                });
            }
        }
    }
    run(&mut command);
}

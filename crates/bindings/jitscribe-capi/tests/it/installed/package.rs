//! The files that `make install` installs.

use std::path::Path;
use std::process::Command;

use crate::installed::tree::{Link, compile, fresh, make, pkg_config, prefix, root, run};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_shared_library_has_its_soname_and_links() {
    let lib = prefix().join("lib");
    let dynamic = run(Command::new("readelf").arg("-d").arg(lib.join("libjitscribe.so")));
    let soname = dynamic.lines().find(|line| line.contains("(SONAME)")).expect("a soname");
    assert!(soname.ends_with("[libjitscribe.so.0]"), "{soname}");
    let link = |name: &str| std::fs::read_link(lib.join(name)).expect("a link");
    assert_eq!(link("libjitscribe.so"), Path::new("libjitscribe.so.0"));
    assert_eq!(link("libjitscribe.so.0"), Path::new(&format!("libjitscribe.so.{VERSION}")));
}

/// What the headers declare.
fn declared() -> Vec<String> {
    let headers = ["jitscribe", "jitscribe/arena", "jitscribe/crash", "jitscribe/objects"];
    let headers = headers.map(|name| {
        let path = prefix().join("include").join(name).with_extension("h");
        std::fs::read_to_string(path).expect("a header")
    });
    let mut declared: Vec<_> = headers
        .iter()
        .flat_map(|header| header.lines())
        .filter(|line| line.starts_with(|first: char| first.is_alphabetic()))
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .map(str::to_owned)
        .collect();
    declared.sort_unstable();
    assert!(declared.len() >= 12, "{declared:?}");
    declared
}

/// The symbols that `nm` lists with these options.
fn symbols(options: &[&str], library: &str) -> Vec<String> {
    let output = run(Command::new("nm").args(options).arg(prefix().join("lib").join(library)));
    let mut symbols: Vec<_> = output
        .lines()
        .filter_map(|line| line.split_once(' ')?.1.split_whitespace().next_back())
        .map(str::to_owned)
        .collect();
    symbols.sort_unstable();
    symbols
}

const FOR_DEBUGGERS: [&str; 2] = ["__jit_debug_descriptor", "__jit_debug_register_code"];

/// Both libraries export the symbols for debuggers and those that the header declares, and no others.
#[test]
fn only_the_api_is_exported() {
    // Each has the version in which it came.
    let mut shared: Vec<_> =
        declared().into_iter().map(|name| format!("{name}@@JITSCRIBE_0.1")).collect();
    shared.extend(FOR_DEBUGGERS.map(str::to_owned));
    shared.push("JITSCRIBE_0.1".to_owned());
    shared.sort_unstable();
    assert_eq!(
        symbols(&["-D", "--defined-only", "--with-symbol-versions"], "libjitscribe.so"),
        shared
    );

    let mut linked = declared();
    linked.extend(FOR_DEBUGGERS.map(str::to_owned));
    linked.sort_unstable();
    assert_eq!(symbols(&["--extern-only", "--defined-only"], "libjitscribe.a"), linked);
}

/// The names of a file's sections and symbols.
fn contents(file: &Path) -> String {
    run(Command::new("readelf").args(["--sections", "--symbols", "--wide"]).arg(file))
}

/// Debug info is in a file apart, and debuggers find it.
#[test]
fn libraries_are_stripped() {
    let lib = prefix().join("lib");
    for library in ["libjitscribe.a", "libjitscribe.so"] {
        let contents = contents(&lib.join(library));
        assert!(!contents.contains(".debug_") && !contents.contains(".llvmbc"), "{library}");
    }
    assert!(!contents(&lib.join("libjitscribe.so")).contains(".symtab"));
    let apart = lib.join(format!(".debug/libjitscribe.so.{VERSION}.debug"));
    assert!(contents(&apart).contains(".debug_line"));
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "info line jitscribe_version"]);
    let said = run(gdb.arg(lib.join("libjitscribe.so")));
    assert!(said.contains("api.rs\" starts at address"), "{said}");
}

/// What prints backtraces would be a fifth of a megabyte.
#[test]
fn no_reader_of_debug_info_is_linked() {
    let lib = prefix().join("lib");
    let apart = lib.join(format!(".debug/libjitscribe.so.{VERSION}.debug"));
    for file in [lib.join("libjitscribe.a"), apart] {
        let contents = contents(&file);
        // Methods of vectors that these crates of the standard library have in common with others bear their names, too.
        for part in ["5gimli4read4line", "9addr2line4line", "11miniz_oxide7inflate"] {
            let found: Vec<_> = contents.lines().filter(|line| line.contains(part)).collect();
            assert!(found.is_empty(), "{}: {found:#?}", file.display());
        }
        assert!(contents.contains("rust_eh_personality"), "panics are caught");
    }
}

/// A library that is made as ours is, with a function that panics: it returns, with the message, and without the backtrace.
#[test]
fn a_panic_is_caught_and_says_where() {
    let folder = fresh("panics");
    std::fs::write(
        folder.join("panics.rs"),
        "#[unsafe(no_mangle)]
        pub extern \"C\" fn panics() -> i32 {
            std::panic::catch_unwind(|| { panic!(\"a fault\") }).unwrap_or(7)
        }",
    )
    .expect("written");
    std::fs::write(
        folder.join("main.c"),
        "int panics(void);
        int main(void) { return panics() == 7 && panics() == 7 ? 0 : 1; }",
    )
    .expect("written");
    std::fs::write(
        folder.join("Makefile"),
        format!(
            "include {}\nlibmade.a:\n\twork=.; set -e; $(call archive,libpanics.a,panics,made)\n",
            root().join("../archive.mk").display()
        ),
    )
    .expect("written");
    for (options, backtrace) in [(&[][..], "1"), (&["-O", "-Clto=fat"], "full")] {
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition=2024", "--crate-type=staticlib", "-o", "libpanics.a", "panics.rs"]);
        run(rustc.args(options).current_dir(&folder));
        run(Command::new("make").args(["--always-make", "libmade.a"]).current_dir(&folder));
        assert!(!contents(&folder.join("libmade.a")).contains("5gimli4read4line"));
        let mut link = Command::new("cc");
        link.args(["main.c", "-o", "program", "libmade.a", "-lpthread", "-ldl", "-lgcc_s"]);
        run(link.current_dir(&folder));
        let mut program = Command::new(folder.join("program"));
        let output = program.env("RUST_BACKTRACE", backtrace).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.matches("panicked at panics.rs:3:").count(), 2, "{said}");
        assert_eq!(said.matches("a fault").count(), 2, "{said}");
        assert!(!said.contains("panics::panics"), "{said}");
    }
}

/// A program may contain another library that is written in Rust, with symbols of the same names: here, with an allocator and a panic
/// handler of its own.
#[test]
fn another_library_in_rust_may_be_in_the_program() {
    let folder = fresh("two-libraries");
    std::fs::write(
        folder.join("other.rs"),
        "#[unsafe(no_mangle)]
        pub extern \"C\" fn other_length() -> usize {
            std::panic::catch_unwind(|| format!(\"{:?}\", std::env::args()).len()).unwrap_or(0)
        }",
    )
    .expect("written");
    std::fs::write(
        folder.join("main.c"),
        "#include <jitscribe.h>
        #include <stddef.h>
        size_t other_length(void);
        int main(void) { return other_length() == 0 || jitscribe_version() == NULL; }",
    )
    .expect("written");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "--crate-type=staticlib", "-o", "libother.a", "other.rs"]);
    run(rustc.current_dir(&folder));
    for first in ["-l:libjitscribe.a", "-l:libother.a"] {
        let mut link = Command::new("cc");
        link.args(["main.c", "-o", "program", "-L."]).args(pkg_config(&["--cflags"]));
        let libraries = pkg_config(&["--libs", "--static"]);
        link.args(libraries.iter().filter(|word| word.starts_with("-L"))).arg(first);
        link.args(["-l:libjitscribe.a", "-l:libother.a"]);
        link.args(libraries.iter().filter(|word| word.starts_with("-l") && *word != "-ljitscribe"));
        run(link.arg("-lgcc_s").current_dir(&folder));
        run(&mut Command::new(folder.join("program")));
    }
}

#[test]
fn pkg_config_finds_the_installation() {
    let prefix = prefix().display();
    assert_eq!(pkg_config(&["--modversion"]), [VERSION]);
    assert_eq!(pkg_config(&["--cflags"]), [format!("-I{prefix}/include")]);
    assert_eq!(pkg_config(&["--libs"]), [format!("-L{prefix}/lib"), "-ljitscribe".to_owned()]);
}

/// No shared library at all: `gcc -static`.
#[test]
fn a_program_may_be_static_as_a_whole() {
    let program = compile("examples/c/tinyjit.c", Link::Static, &["-static"]);
    let headers = run(Command::new("readelf").arg("-lW").arg(&program));
    assert!(!headers.contains("INTERP"), "{headers}");
    run(Command::new(&program).current_dir(fresh("static")));
}

#[test]
fn destdir_differs_from_the_prefix() {
    let (staged, libdir) = (fresh("staged"), "/usr/lib/some-triplet");
    let variables =
        [format!("DESTDIR={}", staged.display()), "PREFIX=/usr".into(), format!("LIBDIR={libdir}")];
    make("install", &variables);
    let text = std::fs::read_to_string(staged.join("usr/lib/some-triplet/pkgconfig/jitscribe.pc"));
    let text = text.expect("the file for pkg-config");
    assert!(text.contains("prefix=/usr\n") && text.contains(libdir), "{text}");
    assert!(!text.contains("staged") && !text.contains('@'), "{text}");
    let files = || {
        let found =
            run(Command::new("find").arg(&staged).args(["!", "-type", "d", "-printf", "%P\n"]));
        let mut found: Vec<_> = found.lines().map(str::to_owned).collect();
        found.sort_unstable();
        found
    };
    let lib = libdir.trim_start_matches('/');
    let mut expected = vec![
        "usr/include/jitscribe.h".to_owned(),
        "usr/include/jitscribe.hpp".to_owned(),
        "usr/include/jitscribe/arena.h".to_owned(),
        "usr/include/jitscribe/arena.hpp".to_owned(),
        "usr/include/jitscribe/crash.h".to_owned(),
        "usr/include/jitscribe/crash.hpp".to_owned(),
        "usr/include/jitscribe/llvm.hpp".to_owned(),
        "usr/include/jitscribe/llvm/debug_info.hpp".to_owned(),
        "usr/include/jitscribe/llvm/frames.hpp".to_owned(),
        "usr/include/jitscribe/llvm/linked.hpp".to_owned(),
        "usr/include/jitscribe/llvm/objects.hpp".to_owned(),
        "usr/include/jitscribe/llvm_plugin.hpp".to_owned(),
        "usr/include/jitscribe/llvm_preload.cpp".to_owned(),
        "usr/include/jitscribe/objects.h".to_owned(),
        "usr/include/jitscribe/objects.hpp".to_owned(),
        format!("{lib}/.debug/libjitscribe.so.{VERSION}.debug"),
        format!("{lib}/cmake/jitscribe/jitscribe-config-version.cmake"),
        format!("{lib}/cmake/jitscribe/jitscribe-config.cmake"),
        format!("{lib}/libjitscribe.a"),
        format!("{lib}/libjitscribe.so"),
        format!("{lib}/libjitscribe.so.0"),
        format!("{lib}/libjitscribe.so.{VERSION}"),
        format!("{lib}/pkgconfig/jitscribe.pc"),
        "usr/share/jitscribe/jitscribe.supp".to_owned(),
    ];
    expected.sort_unstable();
    assert_eq!(files(), expected);
    make("uninstall", &variables);
    assert_eq!(files(), Vec::<String>::new());
}

/// With tools of the second tier (`scripts/test.sh --live`).
mod live {
    use super::*;

    /// As for any other package, and with both libraries.
    #[test]
    fn cmake_finds_the_installation() {
        let folder = fresh("cmake");
        let [major, minor] = VERSION.split('.').take(2).collect::<Vec<_>>()[..] else {
            panic!("{VERSION} has no minor version")
        };
        let project = |wanted: &str| {
            format!(
                "cmake_minimum_required(VERSION 3.13)
                project(user C)
                find_package(jitscribe {wanted} REQUIRED CONFIG)
                add_executable(shared {source})
                target_link_libraries(shared jitscribe::jitscribe)
                add_executable(static {source})
                target_link_libraries(static jitscribe::static)",
                source = root().join("examples/c/tinyjit.c").display()
            )
        };
        let configure = |wanted: &str| {
            std::fs::write(folder.join("CMakeLists.txt"), project(wanted)).expect("written");
            let mut cmake = Command::new("cmake");
            cmake.args(["-S", ".", "-B", "built"]).current_dir(&folder);
            cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
            cmake
        };
        run(&mut configure(&format!("{major}.{minor}")));
        run(Command::new("cmake").args(["--build", "built"]).current_dir(&folder));
        for (program, needs) in [("shared", true), ("static", false)] {
            let program = folder.join("built").join(program);
            run(Command::new(&program).current_dir(&folder));
            let dynamic = run(Command::new("readelf").arg("-d").arg(program));
            assert_eq!(dynamic.contains("[libjitscribe.so.0]"), needs, "{dynamic}");
        }
        // Each minor version may change the interface.
        let refused = configure(&format!("{major}.{minor}9")).output().expect("cmake");
        assert!(!refused.status.success());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(&format!("version: {VERSION}")), "{said}");
    }
}

//! The committed headers are what the source says, and every program can include them.

use std::path::Path;
use std::process::Command;

/// Set to write the headers instead of comparing them.
const WRITE: &str = "JITSCRIBE_WRITE_HEADER";

/// What is in a header beside `jitscribe.h`.
struct Extension {
    name: &'static str,
    intro: &'static str,
    functions: &'static [&'static str],
    types: &'static [&'static str],
    /// Enumerations, to which no function refers: they are numbers there.
    enums: &'static [&'static str],
    constants: &'static str,
}

const EXTENSIONS: [Extension; 3] = [
    Extension {
        name: "arena",
        intro: "Memory for code that is a growing object file, which perf, debuggers, dladdr and unwinders read. Not on Windows and macOS.",
        functions: &[
            "jitscribe_arena_open",
            "jitscribe_arena_allocate",
            "jitscribe_allocation_finish",
            "jitscribe_allocation_edit",
            "jitscribe_allocation_free",
        ],
        types: &["ArenaSettings", "OpaqueArena", "OpaqueAllocation"],
        enums: &["ArenaFlag"],
        constants: "",
    },
    Extension {
        name: "crash",
        intro: "For crash handlers and crash reporters in the process. All of this may be called in signal handlers.",
        functions: &[
            "jitscribe_symbolize",
            "jitscribe_crash_stream",
            "jitscribe_show_to_debuggers",
        ],
        types: &["Symbol", "Stack"],
        enums: &[],
        constants: "\n/* The type of the stream of jitscribe_crash_stream in a minidump. */\n#define JITSCRIBE_CRASH_STREAM_TYPE 0x4a530001\n",
    },
    Extension {
        name: "objects",
        intro: "All code that is alive as an object file for a loader. Not on Windows.",
        functions: &["jitscribe_write_object"],
        types: &[],
        enums: &["ObjectFormat"],
        constants: "",
    },
];

impl Extension {
    fn items(&self) -> impl Iterator<Item = String> {
        let all = [self.functions, self.types, self.enums];
        all.into_iter().flatten().map(|&item| item.to_owned())
    }

    /// The configuration for this header, which is `jitscribe.h`'s without what is in that.
    fn config(&self, main: &cbindgen::Config, of_main: &[String]) -> cbindgen::Config {
        let mut config = main.clone();
        let Self { name, intro, constants, .. } = self;
        config.header = Some(format!(
            "/*\n * {intro}\n * Results, ownership, units and pointers are as in jitscribe.h.\n *\n * This file is generated from the library's \
             source by cbindgen. Do not edit it.\n */"
        ));
        config.include_guard = Some(format!("JITSCRIBE_{}_H", name.to_uppercase()));
        config.sys_includes = vec!["jitscribe.h".to_owned()];
        config.after_includes = Some((*constants).to_owned());
        config.export.include = self.enums.iter().map(|&item| item.to_owned()).collect();
        let others = EXTENSIONS.iter().filter(|other| other.name != *name);
        config.export.exclude =
            of_main.iter().cloned().chain(others.flat_map(Self::items)).collect();
        config
    }
}

/// What the source declares for `jitscribe.h`.
fn of_main(main: &cbindgen::Config) -> Vec<String> {
    let map = include_str!("../../libjitscribe.map");
    let functions = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let functions = functions.filter(|name| name.starts_with("jitscribe_")).map(str::to_owned);
    let types = main.export.rename.keys().cloned();
    let extensions: Vec<String> = EXTENSIONS.iter().flat_map(Extension::items).collect();
    functions.chain(types).filter(|item| !extensions.contains(item)).collect()
}

fn generated(config: cbindgen::Config) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bindings = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .expect("cbindgen understands the source");
    let mut made = Vec::new();
    bindings.write(&mut made);
    // "# Safety" is for Rust; in C the contract stands at the top.
    let made = String::from_utf8(made).expect("UTF-8");
    made.replace("//\n// # Safety\n// The contract of the header.\n", "")
}

#[test]
fn the_headers_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut main =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    assert!(
        main.after_includes.as_deref().unwrap_or_default().contains(concat!(
            "JITSCRIBE_VERSION \"",
            env!("CARGO_PKG_VERSION"),
            "\""
        )),
        "cbindgen.toml has another version"
    );
    let of_main = of_main(&main);
    let mut headers: Vec<(String, String)> = EXTENSIONS
        .iter()
        .map(|it| (format!("jitscribe/{}.h", it.name), generated(it.config(&main, &of_main))))
        .collect();
    main.export.exclude = EXTENSIONS.iter().flat_map(Extension::items).collect();
    headers.push(("jitscribe.h".to_owned(), generated(main)));
    for (name, made) in headers {
        let path = root.join("include").join(&name);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &made).expect("the header can be written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == made,
            "include/{name} is not up to date; run {WRITE}=1 cargo test -p jitscribe-capi --test it header::"
        );
    }
}

#[test]
fn the_headers_compile_without_warnings_in_every_standard() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, language, header, standards) in [
        ("cc", "c", "jitscribe.h", &["c99", "c11", "c17", "c2x"][..]),
        ("c++", "c++", "jitscribe.h", &["c++11", "c++14", "c++17", "c++20", "c++23"]),
        ("c++", "c++", "jitscribe.hpp", &["c++17", "c++20", "c++23"]),
        ("cc", "c", "jitscribe/arena.h", &["c99", "c2x"]),
        ("cc", "c", "jitscribe/crash.h", &["c99", "c2x"]),
        ("cc", "c", "jitscribe/objects.h", &["c99", "c2x"]),
        ("c++", "c++", "jitscribe/arena.hpp", &["c++17", "c++23"]),
        ("c++", "c++", "jitscribe/crash.hpp", &["c++17", "c++23"]),
        ("c++", "c++", "jitscribe/objects.hpp", &["c++17", "c++23"]),
    ] {
        for standard in standards {
            let mut compile = Command::new(compiler);
            compile.arg(format!("-std={standard}")).arg("-I").arg(root.join("include"));
            compile.args(["-include", header, "-x", language]);
            compile.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]);
            let output = compile.args(["-fsyntax-only", "/dev/null"]).output().expect(compiler);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{header} as {standard}: {said}");
        }
    }
}

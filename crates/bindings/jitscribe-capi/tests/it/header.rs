//! The committed header is what the source says, and every program can include it.

use std::path::Path;
use std::process::Command;

/// Set to write the header instead of comparing it.
const WRITE: &str = "JITSCRIBE_WRITE_HEADER";

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    assert!(
        config.after_includes.as_deref().unwrap_or_default().contains(concat!(
            "JITSCRIBE_VERSION \"",
            env!("CARGO_PKG_VERSION"),
            "\""
        )),
        "cbindgen.toml tells of another version"
    );
    let bindings = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .expect("cbindgen understands the source");
    let mut made = Vec::new();
    bindings.write(&mut made);
    // "# Safety" is for Rust; in C the contract stands at the top.
    let made = String::from_utf8(made).expect("UTF-8");
    let made = made.replace("//\n// # Safety\n// The contract of the header.\n", "");

    let path = root.join("include/jitscribe.h");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "include/jitscribe.h is not up to date; run {WRITE}=1 cargo test -p jitscribe-capi --test it header::"
    );
}

#[test]
fn the_headers_compile_without_warnings_in_every_standard() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (compiler, language, header, standards) in [
        ("cc", "c", "jitscribe.h", &["c99", "c11", "c17", "c2x"][..]),
        ("c++", "c++", "jitscribe.h", &["c++11", "c++14", "c++17", "c++20", "c++23"]),
        ("c++", "c++", "jitscribe.hpp", &["c++17", "c++20", "c++23"]),
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

//! Checks which dependencies are allowed, and which crates have no `unsafe`, according to cargo's metadata.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::tool::{crate_dir, run};
use serde_json::Value;

fn root() -> &'static Path {
    crate_dir().parent().expect("the workspace")
}

/// What cargo knows of a workspace and all that it is built of on Linux.
fn metadata(folder: &Path) -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    // For a system of which nothing was fetched, cargo would have to reach the registry.
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    serde_json::from_str(&run(cargo.current_dir(folder)).stdout).expect("JSON")
}

/// The strings of a list in `deny.toml`.
fn list(text: &str, key: &str) -> BTreeSet<String> {
    let start = text.find(&format!("\n{key} = [")).unwrap_or_else(|| panic!("no {key}"));
    let rest = &text[start + 1..];
    let line = rest.lines().next().expect("a line");
    // On a line of its own, or over several.
    let end = if line.ends_with(']') { line.len() } else { rest.find("\n]").expect("an end") };
    let strings = rest[..end].split('"').skip(1).step_by(2);
    strings.map(str::to_owned).collect()
}

/// Whether an expression of licences, as SPDX has them, is fulfilled by those that are allowed. `/` is an old way to write `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let fulfilled = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "{expression}");
    fulfilled
}

fn either(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fulfilled = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        fulfilled |= both(words, at, allowed);
    }
    fulfilled
}

fn both(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fulfilled = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        fulfilled &= one(words, at, allowed);
    }
    fulfilled
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let word = words[*at];
    *at += 1;
    if word == "(" {
        let fulfilled = either(words, at, allowed);
        assert_eq!(words.get(*at), Some(&")"));
        *at += 1;
        return fulfilled;
    }
    let mut name = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{word} WITH {}", words[*at + 1]);
        *at += 2;
    }
    allowed.contains(&name)
}

#[test]
fn licences_bans_and_sources_are_as_deny_toml_has_them() {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let allowed = list(&text, "allow");
    let exceptions = list(&text, "exceptions");
    let registries = list(&text, "allow-registry");
    let bans = list(&text, "deny");
    assert!(allowed.contains("MIT") && exceptions.contains("cbindgen") && bans.len() > 1);
    let mut wrong = Vec::new();
    let mut count = 0;
    for workspace in ["", "fuzz", "fleet", "crates/bindings/jitscribe-wasmtime"] {
        let folder = root().join(workspace);
        let metadata = metadata(&folder);
        for package in metadata["packages"].as_array().expect("packages") {
            count += 1;
            let name = package["name"].as_str().expect("a name");
            let licence = package["license"].as_str().unwrap_or_default();
            if !exceptions.contains(name) && (licence.is_empty() || !is_allowed(licence, &allowed))
            {
                wrong.push(format!("{name}: licence {licence:?}"));
            }
            if bans.contains(name) {
                wrong.push(format!("{name}: is banned"));
            }
            // A package of this repository has no source.
            if let Some(source) = package["source"].as_str()
                && !source.strip_prefix("registry+").is_some_and(|url| registries.contains(url))
            {
                wrong.push(format!("{name}: from {source}"));
            }
        }
    }
    assert!(count > 200, "only {count} packages");
    assert_eq!(wrong, [""; 0]);
}

/// The command works if it is built alone, as `cargo install` builds it. The tests cannot show this: in the workspace, other crates
/// choose features of its dependencies as well.
#[test]
fn the_command_alone_takes_the_auxiliary_vector_from_the_c_library() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--package", "jitscribe-cli", "--invert", "rustix"]);
    cargo.args(["--edges", "normal,features"]);
    let tree = run(cargo.current_dir(root())).stdout;
    assert!(tree.contains("rustix feature \"use-libc-auxv\""), "{tree}");
}

#[test]
fn expressions_of_licences() {
    let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];
    let allowed: BTreeSet<String> = allowed.map(str::to_owned).into();
    for (expression, is) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("GPL-2.0-only OR MIT", true),
        ("MIT/GPL-3.0-only", true),
        ("MIT AND GPL-3.0-only", false),
        ("(MIT OR GPL-3.0-only) AND Apache-2.0", true),
        ("MIT OR GPL-3.0-only AND GPL-2.0-only", true),
        ("GPL-3.0-only AND (MIT OR Apache-2.0)", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-2.0-only WITH Classpath-exception-2.0", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), is, "{expression}");
    }
}

/// Files of Rust below a folder.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

/// Whether there is `unsafe` in code. One in a string counts too, which errs on the side of asking nothing.
fn has_unsafe(file: &Path) -> bool {
    let text = fs::read_to_string(file).expect("a source");
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')))
        .any(|word| word == "unsafe")
}

#[test]
fn crates_without_unsafe_forbid_it() {
    let metadata = metadata(root());
    let mut silent = Vec::new();
    let mut said = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        if !package["source"].is_null() {
            continue;
        }
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let folder = manifest.parent().expect("a folder").join("src");
        let mut files = Vec::new();
        sources(&folder, &mut files);
        if files.iter().any(|file| has_unsafe(file)) {
            continue;
        }
        for root in ["lib.rs", "main.rs"].map(|name| folder.join(name)) {
            if root.exists() {
                said += 1;
                if !fs::read_to_string(&root).expect("a source").contains("#![forbid(unsafe_code)]")
                {
                    silent.push(root);
                }
            }
        }
    }
    assert!(said > 5, "only {said} crates have no unsafe");
    assert!(silent.is_empty(), "{silent:?}");
}

/// The folders of `crates/`, and those whose crates they may depend on besides their own. ARCHITECTURE.md gives the reasons.
const LAYERS: [(&str, &[&str]); 6] = [
    ("base", &[]),
    ("formats", &["base"]),
    ("model", &["base", "formats"]),
    ("runtime", &["base", "formats", "model"]),
    ("bindings", &["base", "formats", "model", "runtime"]),
    ("tools", &["base", "formats", "model"]),
];

/// The layer of the crate in this folder; `None` for what is not in `crates/`.
fn layer(manifest: &str) -> Option<&str> {
    let inside = Path::new(manifest).strip_prefix(root()).ok()?.to_str()?;
    inside.strip_prefix("crates/")?.split('/').next()
}

#[test]
fn crates_depend_on_the_layers_below_them() {
    let metadata = metadata(root());
    let packages = metadata["packages"].as_array().expect("packages");
    let manifest = |name: &Value| {
        let found = packages.iter().find(|package| package["name"] == *name)?;
        found["source"].is_null().then(|| found["manifest_path"].as_str().expect("a path"))
    };
    let mut wrong = Vec::new();
    let mut checked = 0;
    for package in packages {
        let Some(from) = manifest(&package["name"]).and_then(layer) else { continue };
        let (_, below) = LAYERS
            .into_iter()
            .find(|(name, _)| *name == from)
            .unwrap_or_else(|| panic!("no layer {from}"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // Tests may use what they like.
            if dependency["kind"] == "dev" {
                continue;
            }
            let Some(manifest) = manifest(&dependency["name"]) else { continue };
            checked += 1;
            let to = layer(manifest).unwrap_or("outside crates/");
            if to != from && !below.contains(&to) {
                let (package, dependency) = (&package["name"], &dependency["name"]);
                wrong.push(format!("{from}: {package} depends on {dependency} ({to})"));
            }
        }
    }
    assert!(checked > 40, "only {checked} dependencies");
    assert_eq!(wrong, [""; 0]);
}

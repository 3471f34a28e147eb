//! No file of a crate imports a file that imports it, directly or through others: then each file can be read with what is
//! below it alone. `dependencies.rs` checks the same between crates.

mod cycles;
mod modules;

use std::fs;
use std::path::{Path, PathBuf};

use cycles::cycles;
use end_to_end::tool::crate_dir;
use modules::Crate;

/// The cycles that there still are: a crate, one file of the cycle, and why it is there. The list may only become shorter.
const KNOWN: &[(&str, &str, &str)] = &[
    ("code-image", "elf/symfile/assemble.rs", "`Symfile` and `Layout` are in the parent"),
    ("jitscribe", "builder.rs", "`Scribe::builder` makes the builder that makes a scribe"),
    ("jitscribe-cli", "foreign/task.rs", "a task lists what workers do and return"),
];

/// The files that import each other, each group by their paths from the folder of `root`, sorted.
fn circular(root: &Path) -> (usize, Vec<Vec<String>>) {
    let read = Crate::read(root);
    let folder = root.parent().expect("a folder");
    let name = |file: &PathBuf| {
        file.strip_prefix(folder).expect("a file of the crate").display().to_string()
    };
    let mut groups = Vec::new();
    for cycle in cycles(&read.imports()) {
        let mut group: Vec<String> = cycle.iter().map(|&file| name(&read.files()[file])).collect();
        group.sort();
        groups.push(group);
    }
    groups.sort();
    (read.files().len(), groups)
}

/// The crates of the folders `crates/*/` and `examples/`, each with its root.
fn crates() -> Vec<(String, PathBuf)> {
    let workspace = crate_dir().parent().expect("the workspace");
    let folders = |path: PathBuf| fs::read_dir(path).expect("a folder").flatten();
    let layers = folders(workspace.join("crates")).map(|entry| entry.path());
    let mut crates = Vec::new();
    for layer in layers.chain([workspace.join("examples")]) {
        for entry in folders(layer) {
            for root in ["lib.rs", "main.rs"] {
                let root = entry.path().join("src").join(root);
                if root.exists() {
                    crates.push((entry.file_name().display().to_string(), root));
                }
            }
        }
    }
    crates.sort();
    crates
}

#[test]
fn files_do_not_import_each_other() {
    let mut unused: Vec<_> = KNOWN.to_vec();
    let mut count = 0;
    let mut new = Vec::new();
    let crates = crates();
    for (name, root) in &crates {
        let (files, groups) = circular(root);
        count += files;
        for group in groups {
            let is_known = |(of, file, _): &(&str, &str, &str)| {
                of == name && group.iter().any(|other| other == file)
            };
            if unused.extract_if(.., |known| is_known(known)).count() == 0 {
                new.push(format!("{name}: {}", group.join(", ")));
            }
        }
    }
    assert!(crates.len() > 20 && count > 400, "only {count} files of {} crates", crates.len());
    assert_eq!(new, [""; 0], "these files import each other");
    assert!(unused.is_empty(), "no cycles any more, so remove them from the list: {unused:?}");
}

/// Writes a crate, and returns its groups of files that import each other.
fn circular_in(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }
    circular(&dir.path().join("lib.rs")).1
}

#[test]
fn imports_are_found_however_they_are_written() {
    let text = "mod a; mod b; mod c { pub use crate::a::A as Renamed; } pub use c::Renamed;";
    for import in [
        "use crate::a::A; fn f(_: A) {}",
        "use super::{a::{self}}; fn f(_: a::A) {}",
        "fn f(_: crate::a::A) {}",
        "fn f() { vec![crate::a::A::new()]; }",
        "fn f() { use super::a as other; other::A::new(); }",
        // Through re-exports.
        "use crate::Renamed; fn f(_: Renamed) {}",
        "use crate::c::*; fn f(_: Renamed) {}",
        "use crate::*; fn f(_: c::Renamed) {}",
        "mod inner { use super::super::Renamed; }",
    ] {
        let groups = circular_in(&[
            ("lib.rs", text),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", &format!("pub struct B; {import}")),
        ]);
        assert_eq!(groups, [["a.rs", "b.rs"]], "{import}");
    }
}

#[test]
fn a_parent_and_its_children_may_not_import_each_other_either() {
    let files = [
        ("lib.rs", "mod log; pub use log::Log;"),
        ("log/mod.rs", "mod chunk; mod group; pub struct Log(chunk::Chunk);"),
        ("log/chunk.rs", "pub struct Chunk; impl super::Log { fn f(_: group::Group) {} }"),
        ("log/group.rs", "pub struct Group;"),
    ];
    assert_eq!(circular_in(&files), [["log/chunk.rs", "log/mod.rs"]]);
}

#[test]
fn tests_and_re_exports_are_no_imports() {
    let groups = circular_in(&[
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B; pub(crate) const ONE: u32 = 1;"),
        ("a.rs", "use crate::B; pub struct A(B);"),
        (
            "b.rs",
            "use crate::ONE; pub struct B;
            #[cfg(test)] impl B { fn a() -> crate::A { todo!() } }
            impl B { #[cfg(test)] fn b() -> crate::A { todo!() } }
            #[cfg(test)] mod tests { use crate::A; }
            #[cfg(all(test, unix))] use crate::A;",
        ),
    ]);
    assert!(groups.is_empty(), "{groups:?}");
}

//! The reader in Go.

use std::path::{Path, PathBuf};
use std::process::Command;

use end_to_end::tool::{run, tool};

pub const SOURCE: &str = "bindings/go/codelog";

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Go, which must fetch nothing.
pub fn go(arguments: &[&str]) -> Command {
    let mut go = tool("go");
    go.args(arguments).current_dir(root().join(SOURCE));
    go.env("GOFLAGS", "-mod=mod").env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    go
}

/// Builds the command `codelog` in this folder.
pub fn codelog(dir: &Path) -> PathBuf {
    let path = dir.join("codelog");
    run(go(&["build", "-o"]).arg(&path).arg("./cmd/codelog"));
    path
}

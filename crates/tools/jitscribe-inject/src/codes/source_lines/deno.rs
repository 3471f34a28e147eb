//! What deno compiles TypeScript to.
//!
//! V8 gets the result, whose lines differ from those of the file, without its source map. deno keeps both in its cache: `gen/file/PATH.js` (deno's cli/cache/disk_cache.rs,
//! cli/cache/emit.rs).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Scripts that deno compiles before V8 does.
const COMPILED: [&[u8]; 5] = [b"ts", b"mts", b"cts", b"tsx", b"jsx"];

/// The file in deno's cache for a script at an absolute path.
pub fn compiled(cache: &Path, path: &[u8]) -> Option<PathBuf> {
    let dot = path.iter().rposition(|&byte| byte == b'.')?;
    let extension = path.get(dot.saturating_add(1)..)?;
    if !path.starts_with(b"/") || !COMPILED.contains(&extension) {
        return None;
    }
    let mut file = cache.join("gen/file").into_os_string();
    file.push(OsStr::from_bytes(path));
    file.push(".js");
    Some(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_deno_compiles_is_in_its_cache() {
        let cache = Path::new("/cache/deno");
        let file = compiled(cache, b"/home/a/b.ts");
        assert_eq!(file, Some("/cache/deno/gen/file/home/a/b.ts.js".into()));
        for path in ["/home/a/b.js", "b.ts", "/home/a.ts/b", ""] {
            assert_eq!(compiled(cache, path.as_bytes()), None, "{path}");
        }
    }
}

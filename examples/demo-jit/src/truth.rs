//! What really was where and when: the record that other tools' output is compared with.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::codegen::Tier;
use crate::error::Error;

/// One code at one address for one span of time. A replaced, moved or freed code has died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeVersion {
    /// The function's name in the source.
    pub name: String,
    /// The name that was announced: the tier, `::`, the function.
    pub symbol: String,
    /// How it was compiled.
    pub tier: Tier,
    /// Where its first byte was.
    pub address: u64,
    /// Its size in bytes, without the unwind tables behind it.
    pub size: u64,
    /// The size of its unwind tables, which start at the next multiple of 8 behind it.
    pub unwind_size: u64,
    /// When it was about to be announced, in nanoseconds of `CLOCK_MONOTONIC`.
    pub announcing: u64,
    /// From when on it could run: it had been announced.
    pub loaded: u64,
    /// When it had run for the last time, and was about to be announced dead; `None` if it lived to
    /// the end.
    pub died: Option<u64>,
    /// Where it was before, if it was moved here.
    pub moved_from: Option<u64>,
    /// Whether it keeps a frame pointer; else `rbp` is spoilt within it.
    pub frame_pointer: bool,
    /// The file its lines are in.
    pub file: String,
    /// The compiler's table: each row holds up to the next one's address, the last to the end.
    pub lines: Vec<CodeLine>,
    /// Its bytes in hexadecimal.
    pub bytes: String,
}

/// A row of a code's line table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLine {
    /// From which address on.
    pub address: u64,
    /// The line, from 1.
    pub line: u32,
    /// The byte in the line, from 1.
    pub column: u32,
    /// The inlined calls that it lies in, from the innermost outward.
    pub inlined: Vec<InlinedInto>,
}

/// A call in whose place the callee was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlinedInto {
    /// The function called.
    pub callee: String,
    /// The line of the call, from 1.
    pub line: u32,
    /// The byte in the line, from 1.
    pub column: u32,
}

/// Writes the versions, one JSON object a line.
pub(crate) fn write(path: &Path, versions: &[CodeVersion]) -> Result<(), Error> {
    let failed = || Error::file::<std::io::Error>(path);
    // Renamed when it is whole: others wait for it.
    let part = path.with_extension("part");
    let mut out = BufWriter::new(File::create(&part).map_err(failed())?);
    for version in versions {
        serde_json::to_writer(&mut out, version)
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .map_err(failed())?;
    }
    out.flush().and_then(|()| std::fs::rename(&part, path)).map_err(failed())
}

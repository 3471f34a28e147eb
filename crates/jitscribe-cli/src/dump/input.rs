//! A file that a JIT wrote, and which of the two formats it has.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// How far a text is looked through for a line of a perf map.
const SEARCHED: usize = 1 << 16;

/// The formats that JITs write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Binary records.
    Jitdump,
    /// Text, a line a code.
    PerfMap,
}

impl Format {
    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jitdump => "jitdump",
            Format::PerfMap => "perf map",
        }
    }
}

/// The content of a file, with the name to call it by.
#[derive(Debug)]
pub struct Input {
    name: PathBuf,
    bytes: Vec<u8>,
    is_stdin: bool,
}

impl Input {
    /// Reads a whole file, or standard input for `-`.
    pub fn read(path: &Path) -> Result<Self> {
        if path != Path::new("-") {
            let bytes = fs::read(path).map_err(Error::file(path))?;
            return Ok(Self { name: path.to_owned(), bytes, is_stdin: false });
        }
        let name = PathBuf::from("standard input");
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(Error::file(&name))?;
        Ok(Self { name, bytes, is_stdin: true })
    }

    /// What was made elsewhere, under a name to call it by.
    pub fn made(name: String, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes, is_stdin: true }
    }

    /// What to call it in a message.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The name without the folder; nothing for standard input.
    pub fn file_name(&self) -> Option<&[u8]> {
        if self.is_stdin { None } else { Some(self.name.file_name()?.as_bytes()) }
    }

    /// The content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A message about it.
    pub fn told(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", self.name.display())
    }

    /// Tells the format by the content: the magic number of a jitdump, or any line of a perf map.
    /// Where the content says nothing, because the file is empty or its start was destroyed, the
    /// name does.
    pub fn format(&self) -> Result<Format> {
        let magic = self.bytes.first_chunk().map(|first| u32::from_ne_bytes(*first));
        if magic.is_some_and(|m| m == jitdump::MAGIC || m == jitdump::MAGIC.swap_bytes()) {
            return Ok(Format::Jitdump);
        }
        let text = &self.bytes[..self.bytes.len().min(SEARCHED)];
        if perf_map::entries(text).any(|entry| entry.is_ok()) {
            return Ok(Format::PerfMap);
        }
        match self.name.extension().and_then(|extension| extension.to_str()) {
            Some("dump") => Ok(Format::Jitdump),
            Some("map") => Ok(Format::PerfMap),
            _ => Err(Error::Format {
                path: self.name.clone(),
                cause: format!(
                    "neither a jitdump (it begins with {:02x?}, not with 4a 69 54 44 in either \
                     order) nor a perf map (no line reads ADDRESS SIZE NAME)",
                    &self.bytes[..self.bytes.len().min(4)]
                ),
            }),
        }
    }
}

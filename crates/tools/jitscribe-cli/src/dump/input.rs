//! An input file, and the detection of its format.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use code_index::translate_log;
use jitdump::{CodeEvent, Dump};
use jitscribe_inject::files::pid_of_log;

use crate::files::content::{self, Content};
use crate::files::{FoundSource, Kind};
use crate::{Error, Result, note, text};

/// How many bytes of a text are searched for a line of a perf map.
const SEARCHED: usize = 1 << 16;

/// The formats that JITs write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Binary records.
    Jitdump,
    /// Text, one line per code.
    PerfMap,
}

impl Format {
    /// The name of the format, as used in messages and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jitdump => "jitdump",
            Format::PerfMap => "perf map",
        }
    }
}

/// The content of a file, with a name for messages.
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
            let content = File::open(path).and_then(|file| content::binary(&file));
            let Content { bytes, left_out } = content.map_err(Error::file(path))?;
            let input = Self { name: path.to_owned(), bytes, is_stdin: false };
            if let Some(left_out) = left_out {
                note::warning(input.message(left_out));
            }
            return Ok(input);
        }
        let name = PathBuf::from("standard input");
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(Error::file(&name))?;
        Ok(Self { name, bytes, is_stdin: true })
    }

    /// The same; of a log in a format of its own, the jitdump that says the same.
    pub fn translated(self) -> Self {
        let pid = pid_of_log(&self.name, &self.bytes).unwrap_or(0);
        match translate_log(&self.bytes, pid) {
            Some(bytes) => Self { bytes, ..self },
            None => self,
        }
    }

    /// Reads a file that was found.
    pub fn of_found(file: &FoundSource) -> Result<Self> {
        let opened = file.open().map_err(Error::file(&file.path))?;
        let content = match file.kind {
            Kind::PerfMap => content::text(&opened, content::LARGEST_MAP),
            Kind::Jitdump => content::binary(&opened),
        };
        let Content { bytes, left_out } = content.map_err(Error::file(&file.path))?;
        let input = Self { name: file.path.clone(), bytes, is_stdin: false };
        if let Some(left_out) = left_out {
            note::warning(input.message(left_out));
        }
        Ok(input)
    }

    /// Whether it describes any code.
    pub fn has_code(&self) -> bool {
        let is_load = |event| matches!(event, Ok(CodeEvent::Load(_)));
        match Dump::parse(&self.bytes) {
            Ok(dump) => dump.codes().any(is_load),
            Err(_) => perf_map::entries(&self.bytes).any(|entry| entry.is_ok()),
        }
    }

    /// Content that does not come from a file, with a name for messages.
    pub fn from_bytes(name: String, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes, is_stdin: true }
    }

    /// The name to use in messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The name without the folder; `None` for standard input.
    pub fn file_name(&self) -> Option<&[u8]> {
        if self.is_stdin { None } else { Some(self.name.file_name()?.as_bytes()) }
    }

    /// The content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A message about this input.
    pub fn message(&self, what: impl std::fmt::Display) -> String {
        format!("{}: {what}", text::path(&self.name))
    }

    /// Detects the format by the content: the magic number of a jitdump, or any line of a perf map.
    /// If the content is inconclusive, because the file is empty or its start is damaged, the
    /// file extension decides.
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
                     byte order) nor a perf map (no line has the form ADDRESS SIZE NAME)",
                    &self.bytes[..self.bytes.len().min(4)]
                ),
            }),
        }
    }
}

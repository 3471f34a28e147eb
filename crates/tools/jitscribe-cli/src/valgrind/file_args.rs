//! The arguments of the commands for valgrind's files.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::symbols::SourceArgs;
use crate::{Error, Result};

/// A file written by valgrind, and what to do with it.
#[derive(Clone, Debug, clap::Args)]
pub struct FileArgs {
    /// The file that valgrind wrote
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Where to write the file with names, - for standard output [default: FILE.jitted]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Show source files with their folders, as valgrind does with --fullpath-after=
    #[arg(long)]
    pub full_path: bool,
    /// Replace the output if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Print a report as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

impl FileArgs {
    /// The path of the output; `None` for standard output.
    pub fn output(&self) -> Result<Option<PathBuf>> {
        let path = match &self.output {
            Some(path) => path.clone(),
            None if self.is_stdin() => "-".into(),
            None => {
                let mut name = OsString::from(&self.input);
                name.push(".jitted");
                name.into()
            }
        };
        if path.as_os_str() != "-" {
            return Ok(Some(path));
        }
        if self.json {
            return Err(Error::Refused("--json and -o - cannot share standard output".into()));
        }
        Ok(None)
    }

    pub fn is_stdin(&self) -> bool {
        self.input.as_os_str() == "-"
    }

    /// The process id in the file's name: the last number in it, as in `massif.out.4711`.
    pub fn pid_in_name(&self) -> Option<u32> {
        let name = self.input.file_name()?.to_str()?;
        name.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
    }
}

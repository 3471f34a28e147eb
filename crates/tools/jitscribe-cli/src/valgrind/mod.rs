//! The common part of the commands for valgrind's files: input, output, the naming of addresses, and the report.

pub mod cachegrind;
pub mod dhat;
pub mod massif;
pub mod memcheck;
mod namer;
mod report;

use std::ffi::OsString;
use std::io::{BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use crate::files::{Opened, open_regular};
use crate::symbols::SourceArgs;
use crate::text::Out;
use crate::{Error, Result};
use jitscribe_inject::output::Output;

use namer::CodeNamer;
pub use report::Report;

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
    fn output(&self) -> Result<Option<PathBuf>> {
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

    fn is_stdin(&self) -> bool {
        self.input.as_os_str() == "-"
    }

    /// The process id in the file's name: the last number in it, as in `massif.out.4711`.
    fn pid_in_name(&self) -> Option<u32> {
        let name = self.input.file_name()?.to_str()?;
        name.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
    }
}

/// Opens the input.
fn open(args: &FileArgs) -> Result<BufReader<Box<dyn Read>>> {
    let input: Box<dyn Read> = if args.is_stdin() {
        if std::io::stdin().is_terminal() {
            return Err(Error::Usage("standard input is a terminal; pipe a file into it".into()));
        }
        Box::new(std::io::stdin())
    } else {
        Box::new(open_regular(&args.input).map_err(Error::file(&args.input))?)
    };
    Ok(BufReader::with_capacity(1 << 16, input))
}

/// Rewrites the input with `rewrite` and returns a report.
fn rewrite(
    args: &FileArgs,
    tool: &'static str,
    rewrite: impl FnOnce(
        &mut dyn Write,
        &mut CodeNamer<'_>,
    ) -> Result<valgrind_log::Counts, valgrind_log::Error>,
) -> Result<Report> {
    let path = args.output()?;
    let mut target = path.as_ref().map(|path| Output::create(path, args.force)).transpose()?;
    let mut namer = CodeNamer::new(args);
    let counts = match &mut target {
        Some(file) => {
            let mut out = BufWriter::with_capacity(1 << 16, file.file());
            rewrite(&mut out, &mut namer)
        }
        // Line by line, so that live input appears immediately.
        None => rewrite(&mut Out::by_lines(), &mut namer),
    };
    let counts = counts.map_err(|error| failed(&args.input, path.as_deref(), error))?;
    let named = namer.finish()?;
    if let Some(file) = target {
        file.finish()?;
    }
    Ok(Report::new(tool, args, path, &counts, named))
}

fn failed(input: &Path, output: Option<&Path>, error: valgrind_log::Error) -> Error {
    match error {
        valgrind_log::Error::Read(source) => Error::File { path: input.to_owned(), source },
        valgrind_log::Error::Write(source) => match output {
            Some(path) => Error::File { path: path.to_owned(), source },
            None => Error::Stdout(source),
        },
        valgrind_log::Error::Format { .. } => Error::format(input)(error),
    }
}

/// Prints the report of a command.
fn done(args: &FileArgs, report: &Report) -> Result<()> {
    report.say();
    if args.json {
        report.print_json()?;
    }
    Ok(())
}

/// Opens the input, which must be a file because it is read more than once.
fn open_file(args: &FileArgs) -> Result<BufReader<Opened>> {
    let file = open_regular(&args.input).map_err(Error::file(&args.input))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

//! What the verbs for valgrind's files have in common: where to read from, where to write to, who
//! names addresses, and what is said of it in the end.

pub mod cachegrind;
pub mod dhat;
pub mod massif;
pub mod memcheck;
mod namer;
mod report;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use crate::files::open_regular;
use crate::known::SourceArgs;
use crate::output::Output;
use crate::{Error, Result};

use namer::CodeNamer;
pub use report::Report;

/// A file of valgrind's, and what becomes of it.
#[derive(Clone, Debug, clap::Args)]
pub struct FileArgs {
    /// The file that valgrind wrote
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Where to write it with names, - for standard output [default: FILE.jitted]
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
    /// Print what was done as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

impl FileArgs {
    /// The output's path; none for standard output.
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

    /// The process that the file's name says: the last number in it, as in `massif.out.4711`.
    fn pid_in_name(&self) -> Option<u32> {
        let name = self.input.file_name()?.to_str()?;
        name.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
    }
}

/// Opens the input.
fn open(args: &FileArgs) -> Result<BufReader<Box<dyn Read>>> {
    let input: Box<dyn Read> = if args.is_stdin() {
        if std::io::stdin().is_terminal() {
            return Err(Error::Usage("nothing is piped into standard input".into()));
        }
        Box::new(std::io::stdin())
    } else {
        Box::new(open_regular(&args.input).map_err(Error::file(&args.input))?)
    };
    Ok(BufReader::with_capacity(1 << 16, input))
}

/// Rewrites the input with `rewrite`, and tells what was done.
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
        // Line by line, as it comes.
        None => rewrite(&mut std::io::stdout().lock(), &mut namer),
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

/// Ends a verb.
fn done(args: &FileArgs, report: &Report) -> Result<()> {
    report.say();
    if args.json {
        report.print_json()?;
    }
    Ok(())
}

/// Opens the input, which must be a file as it is read more than once.
fn open_file(args: &FileArgs) -> Result<BufReader<File>> {
    let file = open_regular(&args.input).map_err(Error::file(&args.input))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

//! The common part of the commands for valgrind's files: input, output, the naming of addresses, and the report.

pub mod cachegrind;
pub mod dhat;
mod file_args;
pub mod massif;
pub mod memcheck;
mod namer;
mod report;

use std::io::{BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

use crate::files::{Opened, open_regular};
use crate::text::Out;
use crate::{Error, Result};
use jitscribe_inject::output::Output;

pub use file_args::FileArgs;
use namer::CodeNamer;
pub use report::Report;

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

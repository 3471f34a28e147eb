//! What the readers behind the conformance runner share.

#![forbid(unsafe_code)]

mod table;

use std::io;
use std::path::Path;
use std::process::ExitCode;

pub use jitdump_conformance::FIELDS;
pub use jitdump_conformance::reading::{address, bytes, hex};
use serde_json::Value;
pub use table::{BEGIN, END, table};

/// The main function of a reader: prints the reading of the file that the command line names.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "for programs for the terminal")]
pub fn print_reading(read: impl FnOnce(&Path) -> io::Result<Value>) -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("error: no FILE");
        return ExitCode::from(2);
    };
    let path = Path::new(&path);
    match read(path) {
        Ok(reading) => {
            println!("{reading}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

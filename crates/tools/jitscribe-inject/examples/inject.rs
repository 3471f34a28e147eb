//! Brings what JIT compilers wrote into a recording: `inject perf.data out.data [FOLDER...]`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::error::Error;
use std::path::PathBuf;

use jitscribe_inject::{Destination, Injector, Output, Progress, Recording, SearchPaths};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: inject perf.data out.data [FOLDER...]".into());
    };
    let progress = |progress: Progress| {
        if let Progress::Begins(stage) = progress {
            eprintln!("{stage:?}");
        }
    };
    let mut recording = Recording::open(&input, &progress)?;
    let paths = SearchPaths {
        folders: arguments.collect(),
        recorded_here: recording.is_of_this_machine(),
        ..SearchPaths::default()
    };
    let destination = Destination::File(Output::create(&output, false)?);
    let report = Injector::new(paths).progress(&progress).inject(&mut recording, destination)?;
    for warning in &report.warnings {
        eprintln!("warning: {warning}");
    }
    let samples = report.samples;
    println!("{} of {} samples have a name", samples.named, samples.samples);
    Ok(())
}

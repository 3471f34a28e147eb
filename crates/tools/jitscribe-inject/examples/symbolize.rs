//! Says which code was at an address at a time: `symbolize perf.data PID NANOSECONDS HEX_ADDRESS`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::error::Error;
use std::path::Path;

use jitscribe_inject::files::PlainFiles;
use jitscribe_inject::{CodeIndex, Recording, SearchPaths, Sources};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, pid, time, address] = arguments.as_slice() else {
        return Err("usage: symbolize perf.data PID NANOSECONDS HEX_ADDRESS".into());
    };
    let (pid, time) = (pid.parse()?, time.parse()?);
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;

    let recording = Recording::open(Path::new(path), &|_| {})?;
    let recorded_here = recording.is_of_this_machine();
    let beside = Path::new(path).parent().map(|folder| Path::new(".").join(folder));
    let paths = SearchPaths { beside, recorded_here, ..SearchPaths::default() };
    let mut warnings = Vec::new();
    let sources = Sources::find(&recording, &paths, &PlainFiles, &mut warnings);
    let codes = sources.read(&recording, &PlainFiles, &mut warnings);
    for warning in &warnings {
        eprintln!("warning: {warning}");
    }
    let Some(found) = CodeIndex::new(&recording, &codes).lookup(pid, time, address)? else {
        return Err("no code is known there".into());
    };
    println!("{} bytes behind {:#x}", found.offset, found.start);
    for frame in found.inlined_chain() {
        let (function, file) = (frame.function.escape_ascii(), frame.file.escape_ascii());
        println!("{function} at {file}:{}", frame.line);
    }
    Ok(())
}

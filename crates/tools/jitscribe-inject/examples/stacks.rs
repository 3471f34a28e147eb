//! Prints the call stacks of a recording: thread, time, why the stack ends, and the addresses of its frames.
//!
//! `stacks RECORDING [guess]`: with `guess`, code without unwind tables is taken to keep a frame pointer. Without, stacks end where those
//! of perf end.

use std::env;
use std::path::Path;

use jitscribe_inject::files::PlainFiles;
use jitscribe_inject::{Error, Guess, Recording};

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() -> Result<(), Error> {
    let path = env::args_os().nth(1).unwrap_or_else(|| "perf.data".into());
    let guess = if env::args_os().len() > 2 { Guess::FramePointer } else { Guess::AsPerf };
    let mut recording = Recording::open(Path::new(&path), &|_| {})?;
    recording.each_stack(&PlainFiles, guess, &mut |stack| {
        let end = stack.end.map_or_else(|| "whole".to_owned(), |end| format!("{end:x?}"));
        print!("{} {} {end}:", stack.tid, stack.time);
        for frame in stack.frames {
            print!(" {frame:x}");
        }
        println!();
    })?;
    Ok(())
}

//! Runs a Brainfuck program as machine code: `bf-jit FILE [SECONDS]`.
//!
//! An example of how a JIT announces its code; `announce` in this file is all that it takes. Each
//! outermost loop becomes a function of its own, so that a profile tells them apart:
//!
//! ```sh
//! jitscribe record -- target/debug/bf-jit examples/dynasm/loops.bf
//! perf report
//! ```

mod compile;
mod parse;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jitscribe::{Code, LoadedCode, Scribe};

use crate::compile::Compiled;

/// Tells whoever wants to know: one call a function, before it runs. The handles say that the code is gone when
/// they are dropped.
fn announce(scribe: Scribe, compiled: &Compiled, file: &str) -> Vec<LoadedCode> {
    let functions = compiled.functions.iter();
    functions
        .map(|function| {
            let lines = function.lines(file);
            scribe.load(
                &Code::new(compiled.bytes(function))
                    .named(&function.name)
                    .tier("only")
                    .lines(&lines)
                    .frame_pointer(),
            )
        })
        .collect()
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(file) = words.next() else {
        return fail("usage: bf-jit FILE [SECONDS]");
    };
    // Again and again for so long; once if it is not said.
    let seconds = words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let source = match std::fs::read(&file) {
        Ok(source) => source,
        Err(error) => return fail(&format!("{file}: {error}")),
    };
    let program = match parse::program(&source) {
        Ok(program) => program,
        Err(error) => return fail(&format!("{file}:{error}")),
    };
    let compiled = match compile::program(&program) {
        Ok(compiled) => compiled,
        Err(error) => return fail(&format!("{file}: {error}")),
    };

    let scribe = Scribe::global();
    let _announced = announce(scribe, &compiled, &file);

    let end = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        let output = compiled.run();
        if Instant::now() >= end {
            return match std::io::stdout().write_all(&output) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(&error.to_string()),
            };
        }
    }
}

fn fail(why: &str) -> ExitCode {
    // Where it cannot be said, the exit code says enough.
    _ = writeln!(std::io::stderr(), "bf-jit: {why}");
    ExitCode::FAILURE
}

//! `jitscribe cachegrind`: how much of a profile is in code without a name.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::files::open_regular;
use crate::inject::shell_word;
use crate::{Error, Result, note};

/// Say how much of a cachegrind profile is in code without a name
///
/// cachegrind adds up all code that it cannot name, jitted code among it, in one record (fl=??? fn=???)
/// without addresses, so nothing can be named afterwards. This says how much it is, and what to do
/// instead. The exit code is 1 if there is any such code, else 0.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "INSTEAD:
  callgrind counts the same events by address, and what it wrote can be named afterwards:
    valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes --cache-sim=yes --branch-sim=yes CMD
    jitscribe callgrind callgrind.out.PID
  A runtime that announces its code through jitscribe is named by cachegrind itself, at once.")]
pub struct Args {
    /// The file that cachegrind wrote
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Print what was found as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// What was found. With `--json` this is printed as it stands.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file that was read.
    pub input: PathBuf,
    /// What it counts.
    pub events: Vec<Event>,
}

/// One of the events.
#[derive(Debug, Serialize)]
pub struct Event {
    /// Its name: Ir, D1mr…
    pub name: String,
    /// How often it came.
    pub total: u64,
    /// How often in code that has no name.
    pub unknown: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let report = read(&args.input)?;
    report.say();
    if args.json {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &report)
            .map_err(|error| Error::Stdout(error.into()))?;
        writeln!(out).map_err(Error::Stdout)?;
    }
    if report.is_named() { Ok(()) } else { Err(Error::Reported) }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Report> {
    let file = open_regular(path).map_err(Error::file(path))?;
    let input = std::io::BufReader::with_capacity(1 << 16, file);
    let profile =
        valgrind_log::cachegrind::read(input).map_err(|error| super::failed(path, None, error))?;
    let counts = profile.total.into_iter().zip(profile.unknown);
    let events = profile
        .events
        .into_iter()
        .zip(counts)
        .map(|(name, (total, unknown))| Event { name, total, unknown })
        .collect();
    Ok(Report { input: path.to_owned(), events })
}

impl Report {
    /// Whether all code has a name.
    pub fn is_named(&self) -> bool {
        self.events.iter().all(|event| event.unknown == 0)
    }

    /// Says on standard error what was found.
    pub fn say(&self) {
        let path = self.input.display();
        if self.is_named() {
            let input = shell_word(&self.input);
            note::say(format_args!("{path}: all code has a name; now: cg_annotate {input}"));
            return;
        }
        let unknown = self.events.iter().filter(|event| event.unknown > 0).map(|event| {
            let Event { name, total, unknown } = event;
            let tenths = (u128::from(*unknown) * 1000).checked_div(u128::from(*total)).unwrap_or(0);
            format!("{unknown} of {total} {name} ({}.{} %)", tenths / 10, tenths % 10)
        });
        note::say(format_args!(
            "{path}: in code without a name: {}",
            unknown.collect::<Vec<_>>().join(", ")
        ));
        note::say(
            "cachegrind keeps no address of it, so it cannot be told what code that is, jitted or \
             not. Instead: jitscribe record --tool=callgrind --cache-sim=yes --branch-sim=yes -- \
             CMD counts the same by address, and names it; a runtime that announces its code \
             through jitscribe is named by cachegrind itself",
        );
    }
}

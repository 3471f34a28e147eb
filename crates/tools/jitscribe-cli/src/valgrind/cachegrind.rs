//! `jitscribe cachegrind`: reports how much of a profile is in code without a name.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::files::open_regular;
use crate::text::shell_word;
use crate::{Error, Result, note, text};

/// Show how much of a cachegrind profile is in code without a name
///
/// cachegrind adds up all code that it cannot name, including jitted code, in one record (fl=??? fn=???)
/// without addresses, so nothing can be named afterwards. This command reports how much that is, and
/// what to do instead. The exit code is 1 if there is any such code, else 0.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "INSTEAD:
  callgrind counts the same events by address, so its profile can be named afterwards:
    valgrind --tool=callgrind --dump-instr=yes --collect-jumps=yes --cache-sim=yes --branch-sim=yes CMD
    jitscribe callgrind callgrind.out.PID
  If a runtime announces its code through jitscribe, cachegrind itself names the code while it runs.")]
pub struct Args {
    /// The file that cachegrind wrote
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Print a report as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// The report. `--json` prints it in this form.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file that was read.
    #[serde(serialize_with = "text::path_in_json")]
    pub input: PathBuf,
    /// The counted events.
    pub events: Vec<Event>,
}

/// One of the events.
#[derive(Debug, Serialize)]
pub struct Event {
    /// Its name: Ir, D1mr…
    pub name: String,
    /// The total count.
    pub total: u64,
    /// The count in code without a name.
    pub unknown: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let report = read(&args.input)?;
    report.say();
    if args.json {
        let mut out = text::Out::new();
        out.json_pretty(&report)?;
        out.finish()?;
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

    /// Prints the report on standard error.
    pub fn say(&self) {
        let path = text::path(&self.input);
        if self.is_named() {
            let input = shell_word(&self.input);
            note::say(format_args!("{path}: all code has a name; next: cg_annotate {input}"));
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
            "cachegrind keeps no addresses, so this code, jitted or not, cannot be named afterwards. \
             Instead, count by address and name the code: jitscribe record --tool=callgrind \
             --cache-sim=yes --branch-sim=yes -- CMD. If a runtime announces its code through \
             jitscribe, cachegrind itself names the code",
        );
    }
}

//! Runs a reader on the files.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::case::Case;
use crate::compare::{Verdict, judge};

/// Runs a reader on one file: `command FILE`. A reader that fails, or prints something else than JSON, differs.
fn read_with(command: &[String], case: &Case, folder: &Path) -> Verdict {
    let Some((program, arguments)) = command.split_first() else {
        return Verdict::Differs("no reader".to_owned());
    };
    let mut run = Command::new(program);
    run.args(arguments).arg(folder.join(&case.name)).stdin(Stdio::null());
    let output = match run.output() {
        Ok(output) => output,
        Err(error) => return Verdict::Differs(format!("{program}: {error}")),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().next_back().unwrap_or_default();
        return Verdict::Differs(format!("the reader failed ({}): {last}", output.status));
    }
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(printed) => judge(case, &printed),
        Err(error) => Verdict::Differs(format!("the reader printed no JSON: {error}")),
    }
}

/// Runs a reader on all files.
pub fn run_all(command: &[String], cases: &[Case], folder: &Path) -> Vec<Verdict> {
    cases.iter().map(|case| read_with(command, case, folder)).collect()
}

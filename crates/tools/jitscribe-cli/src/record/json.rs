//! The report of `record --json`. `docs/scripts.md` describes its fields.

use std::path::PathBuf;

use serde::Serialize;

use super::perf::RecordingEnd;
use crate::inject::json::{Fields, SCHEMA_VERSION};
use crate::text;

/// The report.
#[derive(Debug, Serialize)]
pub struct Recorded<'r> {
    schema_version: u32,
    verb: &'static str,
    child: Child,
    #[serde(flatten)]
    report: Fields<'r>,
    /// The recording as perf wrote it, if it was kept.
    #[serde(serialize_with = "text::path_in_json")]
    raw: Option<PathBuf>,
    /// Files of runtimes that are not needed any more.
    left: Vec<String>,
}

/// How the recorded command ended.
#[derive(Debug, Serialize)]
struct Child {
    /// 128 + N if signal N ended it.
    exit_code: u8,
    /// Whether a signal to jitscribe ended the recording.
    interrupted: bool,
}

impl<'r> Recorded<'r> {
    /// The report on a recording whose command ended with `exit_code`.
    pub fn new(
        report: Fields<'r>,
        ended: RecordingEnd,
        exit_code: u8,
        raw: Option<PathBuf>,
        left: Vec<PathBuf>,
    ) -> Self {
        let left = left.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let child = Child { exit_code, interrupted: ended.interrupted() };
        Self { schema_version: SCHEMA_VERSION, verb: "record", child, report, raw, left }
    }
}

//! The checker: what is wrong with a dump, what that costs, and how the writer can fix it.
//!
//! ```
//! let report = jitdump::check::check(b"no dump");
//! assert!(report.has_errors());
//! assert_eq!(report.findings[0].rule, "not-a-jitdump");
//! ```

mod code;
mod debug;
mod extension;
mod findings;
mod header;
mod rules;
mod severity;
mod unwinding;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub use findings::{Finding, MAX_OFFSETS};
pub use rules::{RULES, Rule};
pub use severity::Severity;

use crate::error::{Error, ErrorKind};
use crate::extension::CodeItem;
use crate::quirks::Quirks;
use crate::reader::{Dump, End};
use crate::record::Body;
use code::CodeChecks;
use debug::DebugChecks;
use extension::ExtensionChecks;
use findings::Findings;
use unwinding::UnwindingChecks;

/// What the checker found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The most severe first; those of equal severity in the order of [`RULES`].
    pub findings: Vec<Finding>,
    /// How many records could be read.
    pub records: u64,
    /// How many codes were loaded, including those without bytes.
    pub loads: u64,
}

impl Report {
    /// The highest severity found; `None` if there is no finding.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.worst() == Some(Severity::Error)
    }
}

/// Checks a dump.
#[must_use]
pub fn check(data: &[u8]) -> Report {
    run(None, data)
}

/// Checks a dump and the name of its file (without the directory), by which perf finds it.
#[must_use]
pub fn check_named(file_name: &[u8], data: &[u8]) -> Report {
    run(Some(file_name), data)
}

fn run(file_name: Option<&[u8]>, data: &[u8]) -> Report {
    let mut findings = Findings::default();
    let mut report = Report::default();
    match Dump::parse(data) {
        Ok(dump) => {
            header::check(&mut findings, &dump, file_name);
            records(&mut findings, &mut report, &dump);
        }
        Err(error) => {
            let rule = match error.kind {
                ErrorKind::UnknownVersion { .. } => &rules::UNKNOWN_VERSION,
                _ => &rules::NOT_A_JITDUMP,
            };
            findings.add(rule, error.offset, || format!("{}", error.kind));
        }
    }
    report.findings = findings.into_vec();
    report
}

fn records(findings: &mut Findings, report: &mut Report, dump: &Dump<'_>) {
    let quirks = Quirks::detect(dump);
    let header = dump.header();
    let mut codes = CodeChecks::new(header, quirks);
    let mut debug = DebugChecks::new(quirks);
    let mut unwinding = UnwindingChecks::new(header.endian);
    let mut extensions = ExtensionChecks::default();
    // A log is not ordered, is never closed, and reserves space.
    let is_log = dump.log().is_some();
    let mut previous_timestamp = None;
    let mut closed = false;
    let mut records = dump.records();
    for record in &mut records {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                damage(findings, &error);
                debug.forget();
                extensions.forget();
                unwinding.forget();
                continue;
            }
        };
        report.records = report.records.saturating_add(1);
        let (offset, timestamp) = (record.offset, record.timestamp);
        if closed && !is_filler(&record.body) {
            findings.add(&rules::RECORD_AFTER_CLOSE, offset, || {
                format!("{} after CLOSE", record.body.id())
            });
        }
        if has_time(&record.body) && !extensions.is_within_group(offset) {
            let previous = previous_timestamp.replace(timestamp).filter(|_| !is_log);
            time(findings, offset, timestamp, previous);
        }
        if !matches!(record.body, Body::Load(_)) {
            extensions.record(findings, offset);
        }
        match &record.body {
            Body::Load(load) => {
                report.loads = report.loads.saturating_add(1);
                let item = extensions.load(findings, &record, load);
                codes.load(findings, offset, timestamp, load, item.as_ref());
                debug.load(findings, load);
                unwinding.load();
            }
            Body::Move(moved) => codes.moved(findings, offset, moved),
            Body::DebugInfo(info) => {
                debug.debug_info(findings, offset, info);
                let Some(tail) = info.tail() else { continue };
                let item = extensions.tail(findings, &record, info, &tail);
                if let Some(item) = item.filter(CodeItem::is_without_bytes) {
                    report.loads = report.loads.saturating_add(1);
                    codes.load_without_bytes(findings, offset, info.code_addr, &tail, &item);
                }
            }
            Body::UnwindingInfo(info) => unwinding.unwinding_info(findings, offset, info),
            Body::Close => closed = true,
            Body::Unknown { id, bytes } => findings.add(&rules::UNKNOWN_RECORD, offset, || {
                format!("type {id:#x}, {} bytes", bytes.len())
            }),
        }
    }
    debug.finish(findings);
    unwinding.finish(findings);
    extensions.finish(findings);
    end(findings, records.end(), is_log);
    if report.loads == 0 {
        findings.add(&rules::NO_CODE, 0, || format!("{} records", report.records));
    } else if !closed && !is_log {
        findings.add(&rules::NO_CLOSE, records.offset(), || String::from("no CLOSE at the end"));
    }
}

fn is_filler(body: &Body<'_>) -> bool {
    matches!(body, Body::DebugInfo(info) if info.is_filler())
}

/// Whether the timestamp of such a record has a meaning: not if it is unused space, or about the log itself.
fn has_time(body: &Body<'_>) -> bool {
    let Body::DebugInfo(info) = body else { return true };
    !info.is_filler() && info.tail().is_none_or(|tail| info.nr_entry != 0 || tail.code().is_some())
}

fn damage(findings: &mut Findings, error: &Error) {
    let rule = match error.kind {
        ErrorKind::Gap { zeros: true, .. } => &rules::HOLE,
        ErrorKind::RecordTooSmall { .. } => &rules::RECORD_TOO_SMALL,
        ErrorKind::NameNotTerminated => &rules::NAME_NOT_TERMINATED,
        ErrorKind::CodeTooLarge { .. } => &rules::CODE_TOO_LARGE,
        ErrorKind::UnwindingTooLarge { .. } => &rules::UNWINDING_SIZES,
        _ => &rules::GARBAGE,
    };
    findings.add(rule, error.offset, || format!("{}", error.kind));
}

fn time(findings: &mut Findings, offset: u64, timestamp: u64, previous: Option<u64>) {
    if timestamp == 0 {
        findings.add(&rules::TIMESTAMP_ZERO, offset, || String::from("timestamp 0"));
    } else if let Some(previous) = previous {
        if timestamp < previous {
            findings.add(&rules::TIMESTAMP_ORDER, offset, || {
                format!("timestamp {timestamp} after timestamp {previous}")
            });
        } else if timestamp == previous {
            findings.add(&rules::TIMESTAMP_EQUAL, offset, || {
                format!("timestamp {timestamp}, the same as in the previous record")
            });
        }
    }
}

fn end(findings: &mut Findings, end: Option<End>, is_log: bool) {
    match end {
        Some(End::CutOff { offset, missing }) => {
            findings.add(&rules::CUT_OFF, offset, || match missing {
                Some(missing) => format!("the last record lacks {missing} bytes"),
                None => String::from("the last record lacks part of its header"),
            });
        }
        Some(End::Zeros { offset }) if !is_log => {
            findings.add(&rules::ZERO_TAIL, offset, || String::from("zeros to the end"));
        }
        // Damage that extends to the end of the file was reported when it was found.
        Some(End::Complete { .. } | End::Zeros { .. } | End::Damaged { .. }) | None => {}
    }
}

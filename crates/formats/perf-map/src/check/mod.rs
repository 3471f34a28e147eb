//! The checker: what is wrong with a perf map, what it costs, and how to fix it.
//!
//! [`entries`](crate::entries) reads nearly anything; other tools do not. Each rule names one deviation that some
//! tool in use does not handle. A rule is an [`Severity::Error`] if a tool loses the symbol or names it wrongly, a
//! [`Severity::Warning`] if it may mislead, and a [`Severity::Note`] if it only costs space.

mod overlap;
mod report;
mod rules;
mod severity;

pub use report::{Finding, MAX_PLACES, Place, Report};
pub use rules::{RULES, Rule};
pub use severity::Severity;

use alloc::format;
use alloc::string::String;

use crate::line::Line;
use crate::read::{Lines, PlacedLine};
use crate::{Cause, Entry};
use overlap::Owners;

/// perf drops a line whose name has fewer bytes.
const SHORTEST_NAME: usize = 3;

/// No process maps the page at address 0 (`vm.mmap_min_addr`).
const FIRST_MAPPABLE: u64 = 0x1000;

/// Checks a whole perf map.
#[must_use]
pub fn check(bytes: &[u8]) -> Report {
    let mut report = Report::default();
    let mut owners = Owners::default();
    for placed in Lines::new(bytes) {
        match placed.parsed {
            None => {}
            Some(Err(error)) => {
                let rule = match error.cause {
                    Cause::NoAddress | Cause::NoSize => &rules::UNREADABLE_LINE,
                    Cause::AddressTooLarge | Cause::SizeTooLarge | Cause::EndOverflows { .. } => {
                        &rules::ADDRESS_OVERFLOW
                    }
                };
                report.add(rule, placed.offset, placed.line, || format!("{}", error.cause));
            }
            Some(Ok((entry, line))) => {
                report.entries = report.entries.saturating_add(1);
                check_spelling(&mut report, &entry, &line);
                check_name(&mut report, &entry, &line);
                check_range(&mut report, &mut owners, &entry);
            }
        }
        check_end(&mut report, &placed);
    }
    if report.entries == 0 {
        report.add(&rules::NO_ENTRIES, 0, 1, || "the file has no entry".into());
    }
    report.sort();
    report
}

fn check_spelling(report: &mut Report, entry: &Entry<'_>, line: &Line<'_>) {
    if line.address.prefixed || line.size.prefixed {
        report.add(&rules::HEX_PREFIX, entry.offset, entry.line, || {
            let which = match (line.address.prefixed, line.size.prefixed) {
                (true, true) => "address and size have",
                (true, false) => "the address has",
                _ => "the size has",
            };
            format!("{which} a 0x prefix")
        });
    }
    let name_follows = !entry.name.is_empty();
    if line.indented || line.first_gap != b" " || (name_follows && line.second_gap != b" ") {
        report.add(&rules::SEPARATOR, entry.offset, entry.line, || {
            if line.indented {
                "the line begins with blanks".into()
            } else if line.first_gap.contains(&b'\t') || line.second_gap.contains(&b'\t') {
                "the fields are separated by a tab".into()
            } else {
                "the fields are separated by more than one blank".into()
            }
        });
    }
    if line.carriage_return {
        report.add(&rules::CARRIAGE_RETURN, entry.offset, entry.line, || {
            "a carriage return ends the line".into()
        });
    }
}

fn check_name(report: &mut Report, entry: &Entry<'_>, fields: &Line<'_>) {
    let (offset, line, name) = (entry.offset, entry.line, entry.name);
    if name.is_empty() {
        report.add(&rules::EMPTY_NAME, offset, line, || {
            format!("the code at {:#x} has no name", entry.address)
        });
    } else if fields.padded_name.len() < SHORTEST_NAME {
        report.add(&rules::SHORT_NAME, offset, line, || {
            format!("the name {} has {} bytes", quoted(name), name.len())
        });
    }
    match core::str::from_utf8(name) {
        Ok(text) => {
            if let Some(c) = text.chars().find(|c| c.is_control()) {
                report.add(&rules::CONTROL_CHARACTER, offset, line, || {
                    format!("the name {} contains U+{:04X}", quoted(name), u32::from(c))
                });
            }
        }
        Err(error) => report.add(&rules::NOT_UTF8, offset, line, || {
            let at = error.valid_up_to();
            format!("the name {} is not UTF-8 from its byte {at} on", quoted(name))
        }),
    }
}

fn check_range<'a>(report: &mut Report, owners: &mut Owners<'a>, entry: &Entry<'a>) {
    let (offset, line) = (entry.offset, entry.line);
    if entry.size == 0 {
        report.add(&rules::ZERO_SIZE, offset, line, || {
            format!("{} at {:#x} has size 0", quoted(entry.name), entry.address)
        });
    }
    if entry.address < FIRST_MAPPABLE {
        report.add(&rules::UNMAPPABLE_ADDRESS, offset, line, || {
            format!("{} is at {:#x}", quoted(entry.name), entry.address)
        });
    }
    let Some(older) = owners.claim(*entry) else { return };
    if older.address == entry.address && older.size == entry.size && older.name == entry.name {
        report.add(&rules::DUPLICATE, offset, line, || {
            format!("{} is already in line {}", quoted(entry.name), older.line)
        });
    } else {
        report.add(&rules::OVERLAP, offset, line, || {
            format!(
                "{} [{:#x}, {:#x}) overlaps {} [{:#x}, {:#x}) of line {}",
                quoted(entry.name),
                entry.address,
                entry.end(),
                quoted(older.name),
                older.address,
                older.end(),
                older.line
            )
        });
    }
}

fn check_end(report: &mut Report, placed: &PlacedLine<'_>) {
    if !placed.terminated && placed.parsed.is_some() {
        report.add(&rules::NO_FINAL_NEWLINE, placed.offset, placed.line, || {
            "the last line has no newline".into()
        });
    }
}

/// Formats a name for display: escaped, and of a bounded length.
fn quoted(name: &[u8]) -> String {
    const SHOWN: usize = 60;
    match name.get(..SHOWN) {
        Some(start) if name.len() > SHOWN => format!("\"{}…\"", start.escape_ascii()),
        _ => format!("\"{}\"", name.escape_ascii()),
    }
}

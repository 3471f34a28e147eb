//! What is printed: tables on standard output, messages on standard error.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use printable::Escape;
use serde_json::Value;

use crate::error::{Error, Result};

/// Whether a column's cells are numbers, which stand at the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// The most characters of a cell.
const LONGEST_CELL: usize = 400;

/// Rows of text below headings.
#[derive(Debug)]
pub struct Printed {
    headings: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Printed {
    /// A table without rows.
    pub fn new(headings: &[(&'static str, Align)]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Names from the tables are foreign text: what would command a terminal is spelled out, and long ones are cut.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let escaped = |cell: String| {
            let mut shown = String::new();
            // Writing into a String cannot fail.
            let _ = write!(Escape(&mut shown), "{cell}");
            if let Some((end, _)) = shown.char_indices().nth(LONGEST_CELL) {
                shown.truncate(end);
                shown.push('…');
            }
            shown
        };
        self.rows.push(cells.into_iter().map(escaped).collect());
    }

    /// Prints it, with columns as wide as their longest cells; the last one may be of any width.
    pub fn print(&self) -> Result<()> {
        let headings = || self.headings.iter().map(|(heading, _)| (*heading).to_owned());
        let lines =
            std::iter::once(headings().collect::<Vec<_>>()).chain(self.rows.iter().cloned());
        let lines: Vec<Vec<String>> = lines.collect();
        let width = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.headings.len()).map(|column| width(column).unwrap_or_default()).collect();
        let mut text = String::new();
        for line in &lines {
            let mut row = String::new();
            for ((cell, width), (_, align)) in line.iter().zip(&widths).zip(&self.headings) {
                let cell = match align {
                    Align::Left => format!("{cell:<width$}  "),
                    Align::Right => format!("{cell:>width$}  "),
                };
                row.push_str(&cell);
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        print(text.as_bytes())
    }
}

/// Prints a JSON value.
pub fn json(value: &Value) -> Result<()> {
    print(format!("{value:#}\n").as_bytes())
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::Stdout)
}

/// Prints a line on standard error.
pub fn say(what: impl Display) {
    let mut line = String::new();
    let _ = write!(Escape(&mut line), "{what}");
    line.push('\n');
    // There is no other place to report that standard error cannot be written to.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Prints why the command failed.
pub fn error(what: &Error) {
    say(format_args!("jitscribe fleet: error: {what}"));
}

/// What is read so far, on a terminal: the command ends with a line about it in any case.
pub fn progress(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A part of all, in percent.
pub fn percent(part: f64, all: f64) -> String {
    match all > 0.0 {
        true => format!("{:.2}", part * 100.0 / all),
        false => "0.00".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        let mut table = Printed::new(&[("NAME", Align::Left), ("SAMPLES", Align::Right)]);
        for name in ["a".repeat(LONGEST_CELL), "é".repeat(70_000)] {
            table.row([name, "1".into()]);
        }
        let lengths: Vec<_> = table.rows.iter().map(|row| row[0].chars().count()).collect();
        assert_eq!(lengths, [LONGEST_CELL, LONGEST_CELL + 1]);
        table.print().unwrap();
    }
}

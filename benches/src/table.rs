//! Tables in Markdown, and figures in them.

use std::io::{self, Write};
use std::time::Duration;

/// Prints a table; all columns but the first are figures, set to the right.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(title: &str, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count(), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = io::stdout().lock();
    let mut line = |cells: &mut dyn Iterator<Item = String>| -> io::Result<()> {
        writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let cell = |(column, text): (usize, &str)| {
        let width = widths[column];
        if column == 0 { format!("{text:<width$}") } else { format!("{text:>width$}") }
    };
    line(&mut head.iter().copied().enumerate().map(cell))?;
    line(&mut widths.iter().enumerate().map(|(column, &width)| match column {
        0 => "-".repeat(width),
        _ => format!("{}:", "-".repeat(width - 1)),
    }))?;
    for row in rows {
        line(&mut row.iter().map(String::as_str).enumerate().map(cell))?;
    }
    writeln!(out, "\n{title}\n")?;
    out.flush()
}

/// Seconds with three digits that count.
#[must_use]
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        long @ 100.0.. => format!("{long:.0} s"),
        some @ 10.0.. => format!("{some:.1} s"),
        few @ 1.0.. => format!("{few:.2} s"),
        short => format!("{short:.3} s"),
    }
}

/// Bytes in units of 10^6.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    match bytes as f64 / 1e6 {
        large @ 100.0.. => format!("{large:.0} MB"),
        small => format!("{small:.1} MB"),
    }
}

/// How many times `one` is `other`.
#[must_use]
pub fn times(one: f64, other: f64) -> String {
    match one / other {
        many @ 100.0.. => format!("{many:.0}×"),
        some @ 10.0.. => format!("{some:.1}×"),
        few => format!("{few:.2}×"),
    }
}

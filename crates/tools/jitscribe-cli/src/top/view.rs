//! What the user has chosen to see, as lines of text.

use std::fmt::Write as _;

use printable::{Escape, name};
use profile_text::activity_text;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::table::{Compiled, Counts, Function, Span, Table};
use crate::sort::Sort;
use crate::text::percent;

/// Width of the column with the tiers.
const TIERS: usize = 20;
/// No more lines are used for new code.
const COMPILED: usize = 5;

/// What is shown of a table.
#[derive(Clone, Debug)]
pub struct View {
    /// What functions are sorted by.
    pub order: Sort,
    /// Which windows are counted.
    pub span: Span,
    /// Only functions with this in their name or file, in small letters or capitals.
    pub search: String,
    /// Number of functions above those that are shown.
    pub scrolled: usize,
}

impl View {
    /// The last window in this order.
    pub fn new(order: Sort) -> Self {
        Self { order, span: Span::Last, search: String::new(), scrolled: 0 }
    }

    /// At most `height` lines of at most `width` columns. They are printable.
    pub fn lines(&self, table: &Table, width: usize, height: usize) -> Vec<String> {
        let compiled: Vec<&Compiled> = table.compiled.iter().take(table.compiled_now).collect();
        let shown = compiled.len().min(COMPILED).min(height / 5);
        let below = if shown == 0 { 0 } else { shown + 1 };
        let samples = table.samples(self.span);
        let activities = activity_text(&samples.activities, samples.all);
        let samples = samples.all;
        let mut lines = vec![self.summary(table)];
        lines.extend(activities);
        lines.push(heading());
        let rows = table.functions(self.span, self.order).into_iter();
        let search = self.search.to_lowercase();
        let rows = rows.filter(|(function, _)| matches(function, &search)).skip(self.scrolled);
        let room = height.saturating_sub(lines.len() + below);
        let shared = table.shared_lines();
        lines.extend(rows.take(room).map(|(function, counts)| {
            let shares_line = shared.is_shared(&function.name, &function.file, function.line);
            row(function, shares_line, counts, samples)
        }));
        if shown > 0 {
            lines.push(format!("compiled in this window: {}", compiled.len()));
            lines.extend(compiled.into_iter().take(shown).map(new_code));
        }
        lines.truncate(height);
        lines.iter().map(|line| cut(line, width)).collect()
    }

    fn summary(&self, table: &Table) -> String {
        let samples = table.samples(self.span);
        let windows = match self.span {
            Span::Last => format!("window {}", table.windows),
            Span::All => format!("{} windows", table.windows),
        };
        let order = match self.order {
            Sort::Own => "self",
            Sort::Total => "total",
            Sort::Name => "name",
        };
        let mut line = format!(
            "{windows}: {} samples, {} in jitted code; sorted by {order}",
            samples.all,
            percent(samples.jitted, samples.all)
        );
        if !self.search.is_empty() {
            // Writing into a String cannot fail.
            _ = write!(line, "; with {:?}", self.search);
        }
        line
    }

    /// The number of functions that can be scrolled through.
    pub fn rows(&self, table: &Table) -> usize {
        let search = self.search.to_lowercase();
        table.sampled(self.span).filter(|(function, _)| matches(function, &search)).count()
    }
}

/// Whether a function has this in its name or file. `search` is in small letters.
fn matches(function: &Function, search: &str) -> bool {
    let has = |text: &[u8]| String::from_utf8_lossy(text).to_lowercase().contains(search);
    search.is_empty() || has(&function.name) || has(&function.file)
}

fn heading() -> String {
    format!("{:>8} {:>8} {:>8}  {:TIERS$}  function", "self", "total", "samples", "tier")
}

fn row(function: &Function, shares_line: bool, counts: &Counts, samples: u64) -> String {
    let (own, total) = (percent(counts.own, samples), percent(counts.total, samples));
    let mut tiers: Vec<_> = counts.tiers.iter().collect();
    tiers.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
    let tiers: Vec<String> = tiers.into_iter().map(|(tier, _)| name(tier).to_string()).collect();
    let tiers = match tiers.as_slice() {
        [] => function.kind.name().to_owned(),
        tiers => tiers.join("+"),
    };
    let mut line = format!("{own:>8} {total:>8} {:>8}  ", counts.own);
    line.push_str(&padded(&tiers, TIERS));
    line.push_str("  ");
    line.push_str(&name(&function.name).to_string());
    if !function.file.is_empty() {
        line.push_str("  ");
        line.push_str(&name(&function.file).to_string());
        if function.line > 0 {
            // Writing into a String cannot fail.
            _ = write!(line, ":{}", function.line);
            if shares_line {
                _ = write!(line, ":{}", function.column);
            }
        }
    }
    line
}

fn new_code(code: &Compiled) -> String {
    let tier = name(&code.tier).to_string();
    let tier = if tier.is_empty() { String::new() } else { format!(" ({tier})") };
    format!("    {}{tier}, {} bytes", name(&code.name), code.size)
}

/// A text without characters that would command the terminal.
pub fn printed(text: &str) -> String {
    let mut safe = String::new();
    // Writing into a String cannot fail.
    _ = write!(Escape(&mut safe), "{text}");
    safe
}

/// The text in this many columns.
fn padded(text: &str, width: usize) -> String {
    let mut text = cut(text, width);
    let missing = width.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// The beginning of a text that fits.
fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |&character: &char| {
        used += character.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_padded_by_columns() {
        assert_eq!(cut("abc", 2), "ab");
        assert_eq!(cut("木木木", 5), "木木");
        assert_eq!(padded("木木木", 5), "木木 ");
        assert_eq!(padded("a", 3), "a  ");
        assert_eq!(printed("a\x1b[2Jb"), r"a\x1b[2Jb");
    }
}

//! Lines of text with styles.

use crate::figures::counted;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As the terminal's text.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Less important.
    Faint,
    /// A line of source code.
    Source,
    /// A name or a label that an instruction refers to.
    Target,
    /// A number with a large share of the samples.
    Hot,
    /// A number with a noticeable share.
    Warm,
    /// A number with a small share.
    Cool,
}

/// A piece of text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// How it looks.
    pub style: Style,
    /// The text, which may be foreign.
    pub text: String,
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its pieces, from left to right.
    pub spans: Vec<Span>,
}

impl Style {
    /// Of a number of samples, by its share: from 10 % and from 2 % on.
    #[must_use]
    pub fn of_share(part: u64, whole: u64) -> Self {
        let (part, whole) = (u128::from(part), u128::from(whole));
        match part.saturating_mul(100) {
            0 => Self::Plain,
            share if share >= whole.saturating_mul(10) => Self::Hot,
            share if share >= whole.saturating_mul(2) => Self::Warm,
            _ => Self::Cool,
        }
    }
}

impl Line {
    /// A line in one style.
    #[must_use]
    pub fn of(style: Style, text: impl Into<String>) -> Self {
        Self::default().with(style, text)
    }

    /// How many rows a table leaves out as they have too few samples, if there are any. `others` says what else is left out.
    pub(crate) fn left_out(rows: usize, row: &str, others: &str) -> Option<Self> {
        let rows = Some(counted(rows as u64, row)).filter(|_| rows > 0)?;
        let text =
            format!(" left out: {rows} with too few samples (--percent-limit 0 shows all){others}");
        Some(Self::of(Style::Faint, text))
    }

    /// The line with another piece of text at its end.
    #[must_use]
    pub fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.push(style, text);
        self
    }

    /// Adds a piece of text.
    pub fn push(&mut self, style: Style, text: impl Into<String>) {
        self.spans.push(Span { style, text: text.into() });
    }

    /// Its text without styles, and without spaces at the end.
    #[must_use]
    pub fn text(&self) -> String {
        let text: String = self.spans.iter().map(|span| span.text.as_str()).collect();
        text.trim_end().to_owned()
    }
}

//! What functions are sorted by, in the views that list them.

use clap::ValueEnum;

/// What functions are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Samples in the function itself
    #[default]
    #[value(name = "self")]
    Own,
    /// Samples in the function or in what it called
    Total,
    /// The function's name
    Name,
}

impl From<Sort> for profile_text::Sort {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Own => Self::Own,
            Sort::Total => Self::Total,
            Sort::Name => Self::Name,
        }
    }
}

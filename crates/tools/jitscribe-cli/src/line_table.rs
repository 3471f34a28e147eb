//! The command-line option for the lines that an image shows.

/// Which lines an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LineTable {
    /// Source lines and inlined calls
    #[default]
    Source,
    /// Lines of the bytecode or intermediate representation, if the dump has them
    Ir,
}

impl From<LineTable> for code_image::jitdump::LineTable {
    fn from(asked: LineTable) -> Self {
        match asked {
            LineTable::Source => Self::Source,
            LineTable::Ir => Self::Ir,
        }
    }
}

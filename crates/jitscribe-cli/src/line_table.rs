//! Which lines an image shows, as the command line asks for them.

/// Which lines an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LineTable {
    /// Lines of the source, and the calls inlined
    #[default]
    Source,
    /// Lines of the bytecode or intermediate representation, where the dump has them
    Ir,
}

impl From<LineTable> for dumped_code::LineTable {
    fn from(asked: LineTable) -> Self {
        match asked {
            LineTable::Source => Self::Source,
            LineTable::Ir => Self::Ir,
        }
    }
}

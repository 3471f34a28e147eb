//! What a format of sources is.

use code_timeline::{HistoryBuilder, Processes};
use jitdump::Quirks;

use crate::description::Description;
use crate::found::{Found, Place};

/// A format of sources.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    pub(crate) recognizes: fn(&[u8]) -> bool,
    pub(crate) read: fn(&[u8], &Options<'_>) -> Result<Read, jitdump::Error>,
    pub(crate) describe: for<'d> fn(&Source, &Found, &'d [u8]) -> Option<Description<'d>>,
}

/// How sources are read.
#[derive(Debug)]
pub(crate) struct Options<'p> {
    /// `None`: there is only one process.
    pub(crate) processes: Option<&'p Processes>,
    /// Whether code that was unloaded stays until other code is there.
    pub(crate) keeps_unloaded: bool,
}

/// A source that was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) format: Format,
    /// Of a jitdump.
    pub(crate) quirks: Option<Quirks>,
}

/// What was read from a source.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) quirks: Option<Quirks>,
    pub(crate) history: HistoryBuilder<Place>,
    pub(crate) damaged: u64,
}

impl Format {
    pub(crate) fn read(
        &self,
        content: &[u8],
        options: &Options<'_>,
    ) -> Result<Read, jitdump::Error> {
        (self.read)(content, options)
    }
}

impl Source {
    pub(crate) fn describe<'d>(&self, found: &Found, content: &'d [u8]) -> Option<Description<'d>> {
        (self.format.describe)(self, found, content)
    }
}

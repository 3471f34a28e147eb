//! The sections of debug info.

use crate::encode::Encoder;

/// The sections of debug info; empty if there is none.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) abbrev: Encoder,
    pub(crate) info: Encoder,
    pub(crate) aranges: Encoder,
    pub(crate) ranges: Encoder,
    pub(crate) line: Encoder,
    pub(crate) strings: Encoder,
}

impl Sections {
    /// All sections, with their names without the prefix that the format adds.
    pub(crate) fn named(self) -> [(&'static str, Encoder); 6] {
        [
            ("debug_abbrev", self.abbrev),
            ("debug_info", self.info),
            ("debug_aranges", self.aranges),
            ("debug_ranges", self.ranges),
            ("debug_line", self.line),
            ("debug_str", self.strings),
        ]
    }
}

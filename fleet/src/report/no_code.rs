//! Tables have no machine code and no sources.

use profile::{CodeId, CodeSource, Listing, Source};

/// Has nothing.
#[derive(Debug)]
pub struct NoCode;

impl CodeSource for NoCode {
    fn listing(&mut self, _: CodeId) -> Option<Listing> {
        None
    }

    fn name_at(&mut self, _: CodeId, _: u64) -> Option<(Vec<u8>, u64)> {
        None
    }

    fn source(&mut self, _: &[u8]) -> Option<Source> {
        None
    }
}

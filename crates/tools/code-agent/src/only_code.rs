//! A dump with one code, as the log answers it.

use jitdump::{CodeEvent, CodeLoad, Dump, Quirks};

/// The code of a dump that has one.
pub(crate) fn only_code(dump: &[u8]) -> Option<CodeLoad<'_>> {
    let dump = Dump::parse(dump).ok()?;
    // A log follows the format, so that there is nothing to detect.
    let mut events = dump.codes_with(Quirks::none(&dump));
    events.find_map(|event| match event {
        Ok(CodeEvent::Load(code)) => Some(code),
        _ => None,
    })
}

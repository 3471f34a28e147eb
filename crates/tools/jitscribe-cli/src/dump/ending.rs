//! How a dump ended, in words.

use jitdump::End;

/// Describes how a dump ended; `None` if it is complete.
pub fn ending(end: Option<End>) -> Option<String> {
    match end? {
        End::Complete { .. } => None,
        End::CutOff { offset, missing: Some(missing) } => Some(format!(
            "at offset {offset:#x}: the last record lacks {missing} bytes: the dump is truncated \
             or still being written"
        )),
        End::CutOff { offset, missing: None } => Some(format!(
            "at offset {offset:#x}: the file ends inside a record header: the dump is truncated \
             or still being written"
        )),
        End::Zeros { offset } => Some(format!("at offset {offset:#x}: only zeros up to the end")),
        End::Damaged { offset } => {
            Some(format!("at offset {offset:#x}: no valid record up to the end"))
        }
    }
}

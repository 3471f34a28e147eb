//! The files, grouped by what they are about.

mod close;
mod code_log;
mod damage;
mod debug_info;
mod extensions;
mod header;
mod load;
mod moves;
mod other;
mod positions;
mod quirks;
mod unwinding;

use crate::case::Case;

/// All files.
pub fn all() -> Vec<Case> {
    [
        header::cases(),
        load::cases(),
        moves::cases(),
        debug_info::cases(),
        close::cases(),
        unwinding::cases(),
        other::cases(),
        damage::cases(),
        quirks::cases(),
        positions::cases(),
        extensions::cases(),
        code_log::cases(),
    ]
    .concat()
}

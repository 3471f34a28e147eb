//! Memory for code that is a growing object file.
//!
//! perf, debuggers that attach later, `dladdr` and the unwinders in the process read from the file the code that is announced in this
//! memory, without any further step. The project's `docs/arena.md` describes when to use it.

use std::path::Path;

pub use code_arena::{CodeArena, Draft, Executable, Options};
use fallible::PathText;

use crate::Scribe;
use crate::notice::Subject;
use crate::system;

/// Creates an arena whose file is in [`Builder::dir`](crate::Builder::dir).
///
/// `None` if it could not be created, which is reported; use memory of your own in this case.
#[must_use]
pub fn open(scribe: &Scribe) -> Option<CodeArena> {
    open_with(scribe, |options| options)
}

/// [`open`] with other options; `choose` gets the defaults.
#[must_use]
pub fn open_with(scribe: &Scribe, choose: impl FnOnce(Options) -> Options) -> Option<CodeArena> {
    let host = &scribe.0.host;
    let chosen = host.settings.arena_dir.as_ref();
    let chosen = chosen.map(|dir| PathText::new(dir).ok_or(system::NoDirectory::Memory));
    // Without a directory, one may still be chosen.
    let usual = chosen.unwrap_or_else(system::private_dir);
    let dir = usual.as_ref().map_or(Path::new(""), PathText::as_path);
    let options = choose(Options::new(dir));
    if let Err(error) = &usual
        && !options.has_directory()
    {
        host.report(
            Subject::Arena,
            format_args!("no directory for the files of an arena: {error}"),
        );
        return None;
    }
    CodeArena::create(options).map_err(|error| host.report(Subject::Arena, error)).ok()
}

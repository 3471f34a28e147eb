//! The position in the profile: the object, file and function of the lines being read.

use std::rc::Rc;

use crate::context::UNKNOWN;
use crate::line::Field;
use crate::position::Positions;

/// A name as it was given: its number, if it has one, and its text.
#[derive(Debug, Clone)]
pub(super) struct ResolvedName {
    pub id: Option<u64>,
    pub name: Rc<[u8]>,
}

/// The names that apply until others replace them.
#[derive(Debug)]
pub(super) struct Cursor {
    /// Whether there was a function line at all.
    pub in_function: bool,
    pub object: ResolvedName,
    /// Whether the map says that the process announced the object's code.
    pub is_announced: bool,
    /// The file of the function.
    pub file: ResolvedName,
    /// The file of the lines, which differs where code was inlined.
    pub line_file: Rc<[u8]>,
    /// Whether the output still needs the object, and the file.
    pub object_is_due: bool,
    pub file_is_due: bool,
}

impl Cursor {
    pub fn new() -> Self {
        Self {
            in_function: false,
            object: ResolvedName { id: None, name: b"".as_slice().into() },
            is_announced: false,
            file: ResolvedName { id: None, name: UNKNOWN.into() },
            line_file: UNKNOWN.into(),
            object_is_due: false,
            file_is_due: false,
        }
    }

    /// Whether the output still needs the object or the file.
    pub fn is_due(&self) -> bool {
        self.object_is_due || self.file_is_due
    }

    /// Records that the output is in another object and file.
    pub fn mark_due(&mut self) {
        self.object_is_due = true;
        self.file_is_due = true;
    }
}

/// The names and numbers given so far for the next call's target.
#[derive(Debug, Default)]
pub(super) struct Target {
    pub object: Option<ResolvedName>,
    pub file: Option<ResolvedName>,
    pub file_field: Option<Field>,
    pub function: Option<Rc<[u8]>>,
    /// The unknown context that is called.
    pub context: Option<usize>,
    pub count: u64,
    pub address: u64,
    pub line: u64,
}

impl Target {
    /// Whether nothing was given yet.
    pub fn is_empty(&self) -> bool {
        self.object.is_none() && self.file.is_none() && self.function.is_none()
    }
}

/// The announced function that is copied.
#[derive(Debug)]
pub(super) struct AnnouncedFunction {
    /// Its name, with recursion level and callers.
    pub name: Rc<[u8]>,
    /// The file that the previous line was given in the output.
    pub file: Rc<[u8]>,
    /// The positions of that line.
    pub last: Option<Positions>,
    /// Where the lines of a call or jump begin in the output. Their position is in the last of them, and a change to another
    /// file has to precede the first.
    pub begins: Option<usize>,
    /// The file of a jump's target, if it is given.
    pub jump_file: Option<Rc<[u8]>>,
}

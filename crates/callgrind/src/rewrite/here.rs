//! Where in the profile the lines are that are read: in which object, file and function.

use std::rc::Rc;

use crate::context::UNKNOWN;
use crate::line::Field;

/// A name as it was given: its number, if it has one, and what it stands for.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub id: Option<u64>,
    pub name: Rc<[u8]>,
}

/// What holds until something else is said.
#[derive(Debug)]
pub(super) struct Here {
    /// Whether a function was said at all.
    pub in_function: bool,
    pub object: Given,
    /// The file of the function.
    pub file: Given,
    /// The file of the lines: another one where code was inlined.
    pub line_file: Rc<[u8]>,
    /// Whether the copy has yet to say the object, and the file.
    pub object_is_due: bool,
    pub file_is_due: bool,
}

impl Here {
    pub fn new() -> Self {
        Self {
            in_function: false,
            object: Given { id: None, name: b"".as_slice().into() },
            file: Given { id: None, name: UNKNOWN.into() },
            line_file: UNKNOWN.into(),
            object_is_due: false,
            file_is_due: false,
        }
    }

    /// Whether the copy has yet to say where this is.
    pub fn is_due(&self) -> bool {
        self.object_is_due || self.file_is_due
    }

    /// The copy is somewhere else.
    pub fn is_elsewhere(&mut self) {
        self.object_is_due = true;
        self.file_is_due = true;
    }
}

/// What was said of the next call's target.
#[derive(Debug, Default)]
pub(super) struct Target {
    pub object: Option<Given>,
    pub file: Option<Given>,
    pub file_field: Option<Field>,
    pub function: Option<Rc<[u8]>>,
    /// The unknown context that it is.
    pub context: Option<usize>,
    pub count: u64,
    pub address: u64,
    pub line: u64,
}

impl Target {
    /// Whether nothing was said.
    pub fn is_unsaid(&self) -> bool {
        self.object.is_none() && self.file.is_none() && self.function.is_none()
    }
}

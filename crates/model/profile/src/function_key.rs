//! What makes a function the same in two recordings.

use crate::cleaning::{clean_name, clean_path};
use crate::function::{Function, FunctionKind};
use crate::profile::Profile;

/// Identifies a function in recordings of other processes, runs, hosts and deployments: by its name, file and place, and never by an address, a
/// process or a tier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionKey {
    /// Whether it is of the kernel, native, or of a language runtime.
    pub origin: Origin,
    /// Its name, without numbers that its compiler or runtime made up ([`clean_name`]).
    pub name: Vec<u8>,
    /// Its file, without versions and hashes of deployments ([`clean_path`]).
    pub file: Vec<u8>,
    /// Its line and column.
    pub place: (u32, u32),
}

/// Where functions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A program or a library.
    Native,
    /// The kernel.
    Kernel,
    /// The source of a language runtime: whether a function is interpreted or compiled depends on the time.
    Runtime,
    /// Code without a name, or the end of a stack.
    Other,
}

impl From<FunctionKind> for Origin {
    fn from(kind: FunctionKind) -> Self {
        match kind {
            FunctionKind::Native => Self::Native,
            FunctionKind::Kernel => Self::Kernel,
            FunctionKind::Jitted | FunctionKind::Interpreted => Self::Runtime,
            FunctionKind::Unknown | FunctionKind::End => Self::Other,
        }
    }
}

impl FunctionKey {
    /// Of a function of a profile.
    #[must_use]
    pub fn of(profile: &Profile, function: &Function) -> Self {
        Self {
            origin: function.kind.into(),
            name: clean_name(profile.text(function.name)),
            file: clean_path(profile.text(function.file)),
            place: (function.line, function.column),
        }
    }

    /// The key without the place: lines move when other parts of a file change.
    #[must_use]
    pub fn without_place(&self) -> Self {
        Self { place: (0, 0), ..self.clone() }
    }

    /// The key without the file, which is known in one of two recordings only if debug information is.
    #[must_use]
    pub fn without_file(&self) -> Self {
        Self { place: (0, 0), file: Vec::new(), ..self.clone() }
    }
}

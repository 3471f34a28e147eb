//! Why a profile cannot be divided.

/// Why a profile cannot be divided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DivideError {
    /// What it claims to be is not what it is.
    #[error("the profile is malformed: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
    /// A row refers to one that is not there.
    #[error("the profile is malformed: there is no row {row} among the {table}")]
    NoRow {
        /// The table.
        table: &'static str,
        /// The number of the row.
        row: u64,
    },
    /// It has a field that this version does not know.
    #[error("the field {number} of {message} is unknown, and may refer to a table")]
    UnknownField {
        /// The message.
        message: &'static str,
        /// The number of the field.
        number: u32,
    },
}

/// For what is not as it should be.
pub(super) fn malformed<T>(what: &'static str) -> Result<T, DivideError> {
    Err(DivideError::Malformed { what })
}

//! Errors.

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The encoder refused it.
    #[error("table {table}: {source}")]
    Encoding {
        /// The table.
        table: &'static str,
        /// Why.
        source: parquet::errors::ParquetError,
    },
    /// The recording does not tell when it was made.
    #[error("the recording does not say how its times relate to UTC")]
    NoTime,
}

/// The result of writing a table.
pub type Result<T, E = Error> = std::result::Result<T, E>;

//! The destination of a [`Writer`](crate::Writer)'s records.

use alloc::vec::Vec;
use core::convert::Infallible;

/// Stores records, each in one piece.
///
/// A file that several threads or processes append to stays readable only if each record is written with one write.
pub trait Sink {
    /// Why a record could not be stored.
    type Error;

    /// Stores one record (or the file header, or all records of a code) in one piece.
    ///
    /// # Errors
    /// When the record could not be stored. It may have been stored in part.
    fn write_record(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

impl Sink for Vec<u8> {
    type Error = Infallible;

    fn write_record(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    type Error = S::Error;

    fn write_record(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        (**self).write_record(bytes)
    }
}

/// Any [`std::io::Write`] as a [`Sink`]: one `write_all` per record. This is one system call if the underlying writer
/// does not buffer.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub struct IoSink<W>(pub W);

#[cfg(feature = "std")]
impl<W: std::io::Write> Sink for IoSink<W> {
    type Error = std::io::Error;

    fn write_record(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.write_all(bytes)
    }
}

//! The attributes that say where the code logs of a process are.

use crate::{Attribute, DecodeError, Value, Values};

/// The keys of the attributes. Each is an array of numbers with one element for each log, in the same order.
pub mod keys {
    /// The addresses of the logs.
    pub const ADDRESS: &str = "code.log.address";
    /// The sizes of their mappings, in bytes.
    pub const SIZE: &str = "code.log.size";
    /// The versions of their formats.
    pub const VERSION: &str = "code.log.version";
}

/// Where a code log is in the memory of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeLog {
    /// Its address.
    pub address: u64,
    /// The size of its mapping in bytes, which is the largest size that the log may have.
    pub size: u64,
    /// The version of its format.
    pub version: u32,
}

/// The code logs of a context. It ends after the first error.
#[derive(Clone, Copy, Debug)]
pub struct CodeLogs<'a>(Result<[Option<Values<'a>>; 3], Option<DecodeError>>);

impl<'a> CodeLogs<'a> {
    pub(crate) fn of(attributes: impl Iterator<Item = Attributed<'a>>) -> Self {
        Self(arrays(attributes).map_err(Some))
    }

    fn advance(&mut self) -> Result<Option<CodeLog>, DecodeError> {
        let Ok([Some(address), Some(size), Some(version)]) = &mut self.0 else {
            return match &self.0 {
                Ok([None, None, None]) | Err(None) => Ok(None),
                Err(Some(error)) => Err(*error),
                Ok(_) => Err(DecodeError::CodeLogCount),
            };
        };
        match (number(address)?, number(size)?, number(version)?) {
            (Some(address), Some(size), Some(version)) => {
                let version = u32::try_from(version).map_err(|_| DecodeError::CodeLogType)?;
                Ok(Some(CodeLog { address, size, version }))
            }
            (None, None, None) => Ok(None),
            _ => Err(DecodeError::CodeLogCount),
        }
    }
}

/// An attribute, as the bytes of a context yield it.
type Attributed<'a> = Result<Attribute<'a>, DecodeError>;

/// The arrays of the addresses, sizes and versions.
fn arrays<'a>(
    attributes: impl Iterator<Item = Attributed<'a>>,
) -> Result<[Option<Values<'a>>; 3], DecodeError> {
    let mut arrays = [None; 3];
    for attribute in attributes {
        let attribute = attribute?;
        let keys = [keys::ADDRESS, keys::SIZE, keys::VERSION];
        let place = arrays.iter_mut().zip(keys).find(|(_, key)| *key == attribute.key);
        match (place, attribute.value) {
            (None, _) => {}
            (Some((array, _)), Value::Array(values)) => *array = Some(values),
            _ => return Err(DecodeError::CodeLogType),
        }
    }
    Ok(arrays)
}

fn number(values: &mut Values<'_>) -> Result<Option<u64>, DecodeError> {
    match values.next().transpose()? {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(number.cast_unsigned())),
        Some(_) => Err(DecodeError::CodeLogType),
    }
}

impl Iterator for CodeLogs<'_> {
    type Item = Result<CodeLog, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let log = self.advance();
        if log.is_err() {
            self.0 = Err(None);
        }
        log.transpose()
    }
}

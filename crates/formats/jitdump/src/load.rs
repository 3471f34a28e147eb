//! LOAD and MOVE: a code was loaded, and a code was moved.

use crate::endian::{Fields, to_u64};
use crate::error::ErrorKind;
use crate::extension::code::LARGEST_WITHOUT_BYTES;

/// A code was loaded, or replaced what was at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load<'a> {
    /// Process id as the writer saw it.
    pub pid: u32,
    /// Id of the thread that loaded the code.
    pub tid: u32,
    /// Should equal `code_addr`; some writers leave 0 here, and readers do not use it.
    pub vma: u64,
    /// Address of the code's first byte (on 32-bit ARM with the Thumb bit, if the writer left it set).
    pub code_addr: u64,
    /// The number by which a later [`Move`] refers to this code. Should be unique.
    pub code_index: u64,
    /// The code's name without its NUL: any bytes, mostly UTF-8.
    pub name: &'a [u8],
    /// The machine code, which begins directly behind the name.
    pub code: &'a [u8],
    /// What the record has behind the code; empty from every known writer. `perf inject` takes the *last* `code_size`
    /// bytes of the record for the code, and so gets the code wrong if there is padding.
    pub padding: &'a [u8],
    /// How many bytes of code the record claims but does not contain: none, or all of them. .NET 10 writes such
    /// records for blocks of stubs (its `perfjitdump.cpp`).
    pub missing: u64,
}

impl<'a> Load<'a> {
    /// Size of the code in bytes.
    #[must_use]
    pub fn code_size(&self) -> u64 {
        to_u64(self.code.len()).saturating_add(self.missing)
    }

    pub(crate) fn parse(mut fields: Fields<'a>, too_small: ErrorKind) -> Result<Self, ErrorKind> {
        let (mut load, code_size) = Self::fixed(&mut fields).ok_or(too_small)?;
        load.name = fields.c_str().ok_or(ErrorKind::NameNotTerminated)?;
        let available = to_u64(fields.rest.len());
        if available == 0 && code_size <= LARGEST_WITHOUT_BYTES {
            load.missing = code_size;
            return Ok(load);
        }
        load.code =
            fields.take(code_size).ok_or(ErrorKind::CodeTooLarge { code_size, available })?;
        load.padding = fields.rest;
        Ok(load)
    }

    /// The fields of fixed size, and the size of the code.
    fn fixed(fields: &mut Fields<'a>) -> Option<(Self, u64)> {
        let pid = fields.u32()?;
        let tid = fields.u32()?;
        let vma = fields.u64()?;
        let code_addr = fields.u64()?;
        let code_size = fields.u64()?;
        let code_index = fields.u64()?;
        let load = Self {
            pid,
            tid,
            vma,
            code_addr,
            code_index,
            name: &[],
            code: &[],
            padding: &[],
            missing: 0,
        };
        Some((load, code_size))
    }
}

/// A code was moved. No known writer writes these records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Process id as the writer saw it.
    pub pid: u32,
    /// Id of the thread that moved the code.
    pub tid: u32,
    /// Should equal `new_code_addr`.
    pub vma: u64,
    /// Where the code was.
    pub old_code_addr: u64,
    /// Where it is now.
    pub new_code_addr: u64,
    /// Its size in bytes.
    pub code_size: u64,
    /// Its [`Load::code_index`].
    pub code_index: u64,
}

impl Move {
    pub(crate) fn parse(mut fields: Fields<'_>) -> Option<Self> {
        Some(Self {
            pid: fields.u32()?,
            tid: fields.u32()?,
            vma: fields.u64()?,
            old_code_addr: fields.u64()?,
            new_code_addr: fields.u64()?,
            code_size: fields.u64()?,
            code_index: fields.u64()?,
        })
    }
}

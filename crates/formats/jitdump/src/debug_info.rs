//! DEBUG_INFO: the source lines of a code.

use crate::endian::{Endian, Fields, to_u64};
use crate::error::{Error, ErrorKind};
use crate::extension::{Tail, tail};

/// Offset of the first entry in the record: behind its header and two fields.
const ENTRIES_OFFSET: u64 = 32;

/// The source lines of the code whose LOAD follows. Entries are decoded lazily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugInfo<'a> {
    /// Address of the code, as in its LOAD.
    pub code_addr: u64,
    /// How many entries the record claims to have.
    pub nr_entry: u64,
    /// The entries and what follows them (padding, or an extension).
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> DebugInfo<'a> {
    /// Number of bytes of the entries and what follows them.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn parse(mut fields: Fields<'a>) -> Option<Self> {
        Some(Self {
            code_addr: fields.u64()?,
            nr_entry: fields.u64()?,
            bytes: fields.rest,
            endian: fields.endian,
        })
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// The entries in the order of the record, which is not always that of the addresses.
    #[must_use]
    pub fn entries(&self) -> DebugEntries<'a> {
        DebugEntries {
            fields: Fields::new(self.bytes, self.endian),
            len: to_u64(self.bytes.len()),
            index: 0,
            nr_entry: self.nr_entry,
        }
    }

    /// What is behind the last entry: padding, or a [`tail`](Self::tail). Walks all entries.
    #[must_use]
    pub fn behind_entries(&self) -> &'a [u8] {
        let mut entries = self.entries();
        while let Some(Ok(_)) = entries.next() {}
        entries.fields.rest
    }

    /// The tail behind the last entry, in which this project records what the format has no place for. Walks all
    /// entries.
    #[must_use]
    pub fn tail(&self) -> Option<Tail<'a>> {
        let rest = self.behind_entries().len();
        // Entries begin at a multiple of 8.
        let at = self.bytes.len().checked_sub(rest)?.checked_next_multiple_of(tail::ALIGN)?;
        Tail::parse(Fields::new(self.bytes.get(at..)?, self.endian))
    }

    /// Whether this is a filler: space in a code log that is not in use. Its content has no meaning.
    #[must_use]
    pub fn is_filler(&self) -> bool {
        self.code_addr == 0
            && self.nr_entry == 0
            && self.bytes.len().is_multiple_of(8)
            && self.tail().is_none()
    }
}

/// An entry: from `addr` on, the code comes from `line`, until the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugEntry<'a> {
    /// Address, absolute; some writers add 0x40.
    pub addr: u64,
    /// Line number from 1; 0 for code that has no line.
    pub line: u32,
    /// The specification calls it a discriminator; writers store the column here, from 1.
    pub discrim: u32,
    /// The source file.
    pub name: EntryName<'a>,
}

/// The source file of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryName<'a> {
    /// The same as in the entry before; written as the single byte `0xff`.
    Same,
    /// A path, in whatever form the writer chose; may be empty.
    Path(&'a [u8]),
}

/// The entries of a [`DebugInfo`]. Ends after the first that does not fit into the record.
#[derive(Clone, Debug)]
pub struct DebugEntries<'a> {
    fields: Fields<'a>,
    len: u64,
    index: u64,
    nr_entry: u64,
}

impl<'a> DebugEntries<'a> {
    /// The bytes not read yet.
    pub(crate) fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// Whether all entries have been read.
    pub(crate) fn is_done(&self) -> bool {
        self.index >= self.nr_entry
    }

    /// Continues at `rest`, which must be a suffix of the bytes not read yet.
    pub(crate) fn skip_to(&mut self, rest: &'a [u8]) {
        self.fields.rest = rest;
    }

    fn entry(&mut self) -> Option<DebugEntry<'a>> {
        let mut fields = self.fields;
        let entry = DebugEntry {
            addr: fields.u64()?,
            line: fields.u32()?,
            discrim: fields.u32()?,
            name: match fields.c_str()? {
                b"\xff" => EntryName::Same,
                path => EntryName::Path(path),
            },
        };
        self.fields = fields;
        Some(entry)
    }
}

impl<'a> Iterator for DebugEntries<'a> {
    /// The error's offset counts from the start of the record.
    type Item = Result<DebugEntry<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.nr_entry {
            return None;
        }
        let index = self.index;
        if let Some(entry) = self.entry() {
            self.index = index.saturating_add(1);
            return Some(Ok(entry));
        }
        let read = self.len.saturating_sub(to_u64(self.fields.rest.len()));
        let kind = ErrorKind::EntryCutOff { index, nr_entry: self.nr_entry };
        self.index = self.nr_entry;
        Some(Err(Error::new(ENTRIES_OFFSET.saturating_add(read), kind)))
    }
}

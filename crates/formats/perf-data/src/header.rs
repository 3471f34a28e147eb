//! The header of a perf.data file: `struct perf_file_header`.

use crate::endian::{Cursor, Endian};
use crate::error::{Cause, Error};
use crate::store::Store;

/// Size of the header that perf has written since 2009.
pub(crate) const HEADER_SIZE: u64 = 104;
/// A pipe's header consists of magic and size.
pub(crate) const PIPE_HEADER_SIZE: u64 = 16;
/// More than the size of any plausible header.
const HEADER_SIZE_MAX: u64 = 1 << 16;

/// Offset and size of a part of the file (`struct perf_file_section`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    pub(crate) fn read(at: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { offset: at.u64()?, size: at.u64()? })
    }

    pub(crate) fn write(self, endian: Endian, out: &mut Vec<u8>) {
        out.extend(endian.put_u64(self.offset));
        out.extend(endian.put_u64(self.size));
    }

    /// `None` if the sum overflows.
    pub(crate) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.size)
    }
}

/// What the first bytes of the input describe.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    Pipe(Endian),
    File(FileHeader),
}

/// A file's header.
#[derive(Clone, Debug)]
pub(crate) struct FileHeader {
    pub(crate) endian: Endian,
    /// Size of one attribute with the section of its ids.
    pub(crate) attr_size: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// Numbers of the features whose sections follow the data.
    pub(crate) features: Vec<u8>,
    /// What a newer header has behind the known fields.
    pub(crate) extra: Vec<u8>,
}

impl Start {
    pub(crate) fn read(store: &Store) -> Result<Self, Error> {
        let wrong = |cause| Error::malformed(0, cause);
        let mut head = vec![0; 104];
        let got = store.read_at(&mut head, 0)?;
        head.truncate(got);
        let endian = match head.first_chunk::<8>() {
            Some(b"PERFILE2") => Endian::Little,
            Some(b"2ELIFREP") => Endian::Big,
            Some(b"PERFFILE" | b"ELIFFREP") => return Err(wrong(Cause::OldFormat)),
            _ => return Err(wrong(Cause::Magic)),
        };
        let mut at = Cursor::new(&head, endian);
        at.u64();
        let size = at.u64().ok_or(wrong(Cause::SectionOutside))?;
        match size {
            PIPE_HEADER_SIZE => return Ok(Self::Pipe(endian)),
            HEADER_SIZE..=HEADER_SIZE_MAX => {}
            other => return Err(wrong(Cause::HeaderSize(other))),
        }
        let extra = store.section(HEADER_SIZE, size.saturating_sub(HEADER_SIZE))?;
        let fields = |at: &mut Cursor<'_>| {
            let attr_size = at.u64()?;
            let (attrs, data, _event_types) =
                (Section::read(at)?, Section::read(at)?, Section::read(at)?);
            let features = feature_numbers(at.array()?, endian);
            Some(FileHeader { endian, attr_size, attrs, data, features, extra })
        };
        fields(&mut at).map(Self::File).ok_or(wrong(Cause::SectionOutside))
    }
}

impl FileHeader {
    /// Encodes the header. The old event-type section is dropped: nothing has read it for a decade.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let put = |value| self.endian.put_u64(value);
        let mut out = Vec::new();
        out.extend(magic(self.endian));
        let extra = u64::try_from(self.extra.len()).unwrap_or_default();
        out.extend(put(HEADER_SIZE.saturating_add(extra)));
        out.extend(put(self.attr_size));
        self.attrs.write(self.endian, &mut out);
        self.data.write(self.endian, &mut out);
        Section::default().write(self.endian, &mut out);
        out.extend(feature_bits(&self.features, self.endian));
        out.extend_from_slice(&self.extra);
        out
    }
}

pub(crate) fn magic(endian: Endian) -> [u8; 8] {
    match endian {
        Endian::Little => *b"PERFILE2",
        Endian::Big => *b"2ELIFREP",
    }
}

const FEATURE_HOSTNAME: u8 = 3;

/// Numbers of the bits set in the feature bitmap, ascending.
///
/// The bitmap is an array of C `unsigned long`, so a big-endian 32-bit recorder writes its words in another order
/// than a 64-bit one. As in perf, the presence of a host name decides which order applies.
fn feature_numbers(bitmap: [u8; 32], endian: Endian) -> Vec<u8> {
    let numbers = |word: usize| -> Vec<u8> {
        let bytes: Vec<u8> = match endian {
            Endian::Little => bitmap.to_vec(),
            Endian::Big => {
                bitmap.chunks(word).flat_map(|chunk| chunk.iter().rev()).copied().collect()
            }
        };
        let bit = |number: u8| {
            let byte = bytes.get(usize::from(number >> 3)).copied().unwrap_or_default();
            byte & (1 << (number & 7)) != 0
        };
        (0..=u8::MAX).filter(|&number| bit(number)).collect()
    };
    let wide = numbers(8);
    if endian == Endian::Big && !wide.contains(&FEATURE_HOSTNAME) {
        let narrow = numbers(4);
        if narrow.contains(&FEATURE_HOSTNAME) {
            return narrow;
        }
    }
    wide
}

fn feature_bits(features: &[u8], endian: Endian) -> [u8; 32] {
    let mut bitmap = [0_u8; 32];
    for &number in features {
        let byte = match endian {
            Endian::Little => number >> 3,
            Endian::Big => (number >> 3) ^ 7,
        };
        if let Some(byte) = bitmap.get_mut(usize::from(byte)) {
            *byte |= 1 << (number & 7);
        }
    }
    bitmap
}

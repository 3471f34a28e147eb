//! Writing a recording, as a file or a pipe.

use std::fmt;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::attr::Attr;
use crate::attrs::Attrs;
use crate::aux_index::AuxIndex;
use crate::endian::Endian;
use crate::error::Error;
use crate::event::Event;
use crate::event_header::{Header, kind};
use crate::features::{Features, feature};
use crate::header::{FileHeader, HEADER_SIZE, Section};
use crate::input::Input;
use crate::pipe::preamble;

/// Bytes buffered before they are written.
const BUFFER: usize = 1 << 20;

/// Writes the events of a recording, with the attributes and features of the input.
///
/// The output is uncompressed, in one piece, in the byte order of the input. Every form of input can be written as a
/// file or as a pipe.
///
/// perf shows a copy like the original, except for consequences of the form. The header no longer mentions
/// compression or a directory. A pipe contains neither the time of the recording nor the list of missing features. In
/// a pipe that was made from a file, perf finds the end of the features only by the first event, because the marker
/// for this end is different in each version of perf.
pub struct Writer<'w> {
    out: Out<'w>,
    attrs: Attrs,
    features: Features,
    aux: AuxIndex,
    /// Offset in the output of the next write.
    position: u64,
}

enum Out<'w> {
    File { out: BufWriter<Box<dyn WriteSeek + 'w>>, header: FileHeader },
    Pipe { out: BufWriter<Box<dyn Write + 'w>>, begun: bool, features_end: Option<u64> },
}

/// The destination of a file. It must seek because header fields are known only at the end.
pub trait WriteSeek: Write + Seek {}

impl<T: Write + Seek> WriteSeek for T {}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("position", &self.position).finish_non_exhaustive()
    }
}

impl<'w> Writer<'w> {
    /// Begins a file. `out` must be empty and at its start.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn file(out: impl WriteSeek + 'w, input: &Input) -> Result<Self, Error> {
        let attrs = input.attrs().clone();
        let (header, front) = file_front(&attrs, input);
        let out: Box<dyn WriteSeek + 'w> = Box::new(out);
        let mut out = BufWriter::with_capacity(BUFFER, out);
        out.write_all(&front).map_err(Error::Write)?;
        Ok(Self {
            position: header.data.offset,
            out: Out::File { out, header },
            attrs,
            features: output_features(input),
            aux: AuxIndex::default(),
        })
    }

    /// Begins a pipe. The features are written with the first event.
    pub fn pipe(out: impl Write + 'w, input: &Input) -> Self {
        let out: Box<dyn Write + 'w> = Box::new(out);
        let out = BufWriter::with_capacity(BUFFER, out);
        Self {
            out: Out::Pipe { out, begun: false, features_end: input.features_end() },
            attrs: input.attrs().clone(),
            features: output_features(input),
            aux: AuxIndex::default(),
            position: 0,
        }
    }

    /// Byte order of the output.
    pub fn endian(&self) -> Endian {
        self.attrs.endian()
    }

    /// The feature sections to be written. They can be changed until a file is finished, or until a pipe's first
    /// event.
    ///
    /// # Errors
    /// [`Error::FeaturesWritten`] after that.
    pub fn features_mut(&mut self) -> Result<&mut Features, Error> {
        match self.out {
            Out::Pipe { begun: true, .. } => Err(Error::FeaturesWritten),
            _ => Ok(&mut self.features),
        }
    }

    /// Copies an event, with its payload.
    ///
    /// # Errors
    /// [`Error::Write`], and [`Error::Read`] from the payload.
    pub fn write_event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.begin()?;
        if event.payload().is_some() && event.kind() == kind::AUXTRACE {
            self.aux.moved(event.offset(), self.position);
        }
        self.put(event.bytes())?;
        if let Some(payload) = event.payload() {
            match &mut self.out {
                Out::File { out, .. } => payload.copy_to(out)?,
                Out::Pipe { out, .. } => payload.copy_to(out)?,
            }
            self.position = self.position.saturating_add(payload.len());
        }
        Ok(())
    }

    /// Writes an event that is not in the input.
    ///
    /// # Errors
    /// [`Error::NotAnEvent`] if its size differs from the one in its header; [`Error::Write`].
    pub fn insert(&mut self, event: &[u8]) -> Result<(), Error> {
        let size = usize::from(Header::of(event, self.endian()).size);
        if size != event.len() || size == 0 {
            return Err(Error::NotAnEvent(event.len()));
        }
        self.begin()?;
        self.put(event)
    }

    /// Copies all events of `input` that it has not returned yet, if they can be copied without examining each: they
    /// are in one file, uncompressed and without payloads, and were read to the end before. Otherwise does nothing
    /// and returns false. `tick` receives the position in the file.
    ///
    /// # Errors
    /// [`Error::Write`], and [`Error::Read`] from the input.
    pub fn write_rest(&mut self, input: &mut Input, tick: impl Fn(u64)) -> Result<bool, Error> {
        self.begin()?;
        let Some((store, Range { mut start, end })) = input.take_rest() else { return Ok(false) };
        let mut space = vec![0; BUFFER];
        while start < end {
            let left = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
            let piece = space.get_mut(..left.min(BUFFER)).unwrap_or_default();
            store.read_exact_at(piece, start)?;
            self.put(piece)?;
            start = start.saturating_add(length(left.min(BUFFER)));
            tick(start);
        }
        Ok(true)
    }

    /// Writes the last part, and returns the length of the output in bytes.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(mut self) -> Result<u64, Error> {
        self.begin()?;
        let (mut out, mut header) = match self.out {
            Out::Pipe { mut out, .. } => {
                out.flush().map_err(Error::Write)?;
                return Ok(self.position);
            }
            Out::File { out, header } => (out, header),
        };
        let endian = self.attrs.endian();
        if let Some(index) = self.features.remove(feature::AUXTRACE) {
            self.features.set(feature::AUXTRACE, self.aux.rewrite(&index, endian));
        }
        header.data.size = self.position.saturating_sub(header.data.offset);
        header.features = self.features.iter().map(|(number, _)| number).collect();
        let table_size = length(header.features.len()).saturating_mul(16);
        let mut at = self.position.saturating_add(table_size);
        let mut table = Vec::new();
        for (_, bytes) in self.features.iter() {
            let section = Section { offset: at, size: length(bytes.len()) };
            section.write(endian, &mut table);
            at = at.saturating_add(section.size);
        }
        let mut write = || {
            out.write_all(&table)?;
            self.features.iter().try_for_each(|(_, bytes)| out.write_all(bytes))?;
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&header.encode())?;
            out.flush()
        };
        write().map_err(Error::Write)?;
        Ok(at)
    }

    fn begin(&mut self) -> Result<(), Error> {
        if let Out::Pipe { out, begun: begun @ false, features_end } = &mut self.out {
            *begun = true;
            let front = preamble(&self.attrs, &self.features, *features_end);
            out.write_all(&front).map_err(Error::Write)?;
            self.position = length(front.len());
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.out {
            Out::File { out, .. } => out.write_all(bytes),
            Out::Pipe { out, .. } => out.write_all(bytes),
        }
        .map_err(Error::Write)?;
        self.position = self.position.saturating_add(length(bytes.len()));
        Ok(())
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The input's features except those that describe its form.
fn output_features(input: &Input) -> Features {
    let mut features = input.features().clone();
    let gone: Vec<u8> =
        features.iter().map(|(number, _)| number).filter(|&n| Input::is_about_form(n)).collect();
    for number in gone {
        features.remove(number);
    }
    features
}

/// Header, ids and attributes of a file, padded so that the data is aligned to 8 bytes.
fn file_front(attrs: &Attrs, input: &Input) -> (FileHeader, Vec<u8>) {
    let endian = attrs.endian();
    let slot = input.attr_slot();
    let extra = input.header_extra().to_vec();
    let mut at = HEADER_SIZE.saturating_add(length(extra.len()));
    let mut ids = Vec::new();
    let mut table = Vec::new();
    for attr in attrs.list() {
        let section = Section { offset: at, size: length(attr.ids().len()).saturating_mul(8) };
        ids.extend(attr.ids().iter().flat_map(|&id| endian.put_u64(id)));
        at = at.saturating_add(section.size);
        table.extend(attr_in_slot(attr, slot, endian));
        section.write(endian, &mut table);
    }
    let attrs_section = Section { offset: at, size: length(table.len()) };
    let data = at.saturating_add(attrs_section.size).next_multiple_of(8);
    let header = FileHeader {
        endian,
        attr_size: slot.saturating_add(16),
        attrs: attrs_section,
        data: Section { offset: data, size: 0 },
        features: Vec::new(),
        extra,
    };
    let mut front = header.encode();
    front.extend(ids);
    front.extend(table);
    front.resize(usize::try_from(data).unwrap_or(front.len()), 0);
    (header, front)
}

/// Encodes an attribute in the size that all share. A smaller one, which only a pipe can have, is padded with zeros,
/// and its size field is adjusted: perf expects the ids behind that size.
fn attr_in_slot(attr: &Attr, slot: u64, endian: Endian) -> Vec<u8> {
    let mut raw = attr.raw().to_vec();
    let slot = usize::try_from(slot).unwrap_or(raw.len());
    if raw.len() < slot {
        raw.resize(slot, 0);
        if let (Some(place), Ok(size)) = (raw.get_mut(4..8), u32::try_from(slot)) {
            place.copy_from_slice(&endian.put_u32(size));
        }
    }
    raw
}

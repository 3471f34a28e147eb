//! Recordings made byte by byte, in either byte order.

#![allow(dead_code, reason = "each test file uses its part")]

use perf_data::{End, Endian, Error, Event, FileIdentity, Input, Mmap, MmapDetail, Writer, misc};

/// `PERF_SAMPLE_IP | TID | TIME | CPU`.
pub const PLAIN: u64 = 1 | 2 | 4 | 1 << 7;
/// The same with the event's id first.
pub const IDENTIFIED: u64 = PLAIN | 1 << 16;

/// Builds the parts of a recording.
#[derive(Clone, Copy)]
pub struct Maker(pub Endian);

impl Maker {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self.0 == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        if self.0 == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        if self.0 == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn u64s(self, values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.u64(value)).collect()
    }

    pub fn pair(self, low: u32, high: u32) -> Vec<u8> {
        [self.u32(low), self.u32(high)].concat()
    }

    pub fn event(self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(body.len() + 8).unwrap();
        [&self.u32(kind)[..], &self.u16(misc), &self.u16(size), body].concat()
    }

    /// A software event (`cpu-clock`) of 128 bytes, with `sample_id_all`, `mmap`, `comm` and `task`.
    pub fn attr(self, sample_type: u64) -> Vec<u8> {
        let flags: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23;
        let flags = if self.0 == Endian::Little { flags } else { flags.reverse_bits() };
        let mut attr =
            [self.pair(1, 128), self.u64s(&[0, 1_000_000, sample_type, 0, flags])].concat();
        attr.resize(128, 0);
        attr
    }

    pub fn mmap(self, pid: u32, start: u64, name: &str, trailer: &[u8]) -> Vec<u8> {
        let mut body =
            [self.pair(pid, pid), self.u64s(&[start, 0x1000, 0]), self.pair(8, 1)].concat();
        body.extend([self.u64s(&[77, 1]), self.pair(5, 2)].concat());
        body.extend_from_slice(name.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        body.extend_from_slice(trailer);
        self.event(10, 2, &body)
    }

    pub fn comm(self, pid: u32, name: &str, trailer: &[u8]) -> Vec<u8> {
        let mut body = self.pair(pid, pid);
        body.extend_from_slice(name.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        body.extend_from_slice(trailer);
        self.event(3, 1 << 13, &body)
    }

    /// The trailer of a [`PLAIN`] event's records.
    pub fn trailer(self, pid: u32, time: u64) -> Vec<u8> {
        [self.pair(pid, pid), self.u64(time).to_vec(), self.pair(0, 0)].concat()
    }

    /// A [`PLAIN`] sample.
    pub fn sample(self, pid: u32, ip: u64, time: u64) -> Vec<u8> {
        let body = [self.u64(ip).to_vec(), self.pair(pid, pid), self.u64(time).to_vec()].concat();
        self.event(9, 2, &[body, self.pair(0, 0)].concat())
    }

    /// An AUXTRACE event followed by its payload.
    pub fn auxtrace(self, payload: &[u8]) -> Vec<u8> {
        let mut body = self.u64s(&[payload.len() as u64, 0, 0]);
        body.extend([self.pair(0, 0), self.pair(0, 0)].concat());
        [self.event(71, 0, &body), payload.to_vec()].concat()
    }

    /// A file of these attributes (with their ids), this data and these features.
    pub fn file(
        self,
        attrs: &[(Vec<u8>, Vec<u64>)],
        data: &[u8],
        features: &[(u8, &[u8])],
    ) -> Vec<u8> {
        let slot = attrs.first().map_or(144, |(attr, _)| attr.len() + 16);
        let ids_at = 104 + (attrs.len() * slot) as u64;
        let ids: Vec<u8> = attrs.iter().flat_map(|(_, ids)| self.u64s(ids)).collect();
        let data_at = ids_at + ids.len() as u64;
        let mut out = match self.0 {
            Endian::Little => b"PERFILE2".to_vec(),
            Endian::Big => b"2ELIFREP".to_vec(),
        };
        let attrs_size = (attrs.len() * slot) as u64;
        let data_size = data.len() as u64;
        out.extend(self.u64s(&[104, slot as u64, 104, attrs_size, data_at, data_size, 0, 0]));
        let mut bits = [0_u64; 4];
        for &(number, _) in features {
            bits[usize::from(number / 64)] |= 1 << (number % 64);
        }
        out.extend(self.u64s(&bits));
        let mut at = ids_at;
        for (attr, ids) in attrs {
            out.extend_from_slice(attr);
            out.extend(self.u64s(&[at, ids.len() as u64 * 8]));
            at += ids.len() as u64 * 8;
        }
        out.extend(ids);
        out.extend_from_slice(data);
        let mut at = out.len() as u64 + 16 * features.len() as u64;
        for (_, bytes) in features {
            out.extend(self.u64s(&[at, bytes.len() as u64]));
            at += bytes.len() as u64;
        }
        features.iter().for_each(|(_, bytes)| out.extend_from_slice(bytes));
        out
    }

    /// A file of one event ([`PLAIN`], with the id 7), this data and these features.
    pub fn plain(self, data: &[u8], features: &[(u8, &[u8])]) -> Vec<u8> {
        self.file(&[(self.attr(PLAIN), vec![7])], data, features)
    }

    /// The same, opened.
    pub fn input(self, data: &[u8], features: &[(u8, &[u8])]) -> Input {
        Input::from_bytes(self.plain(data, features)).unwrap()
    }

    /// A pipe of these events.
    pub fn pipe(self, events: &[u8]) -> Vec<u8> {
        let magic = if self.0 == Endian::Little { *b"PERFILE2" } else { *b"2ELIFREP" };
        [&magic[..], &self.u64(16), events].concat()
    }
}

/// A private executable mapping, at `[address, len, page_offset]`.
pub fn mapping(pid: u32, place: [u64; 3], file: FileIdentity, filename: &[u8]) -> Mmap<'_> {
    let [address, len, page_offset] = place;
    let detail = Some(MmapDetail { protection: 5, flags: 2, file });
    Mmap { misc: misc::USER, pid, tid: pid, address, len, page_offset, detail, filename }
}

/// Offset, bytes and payload of an event.
pub type Found = (u64, Vec<u8>, Vec<u8>);

/// Every event, and how they ended.
pub fn events(input: &mut Input) -> (Vec<Found>, End) {
    let mut all = Vec::new();
    while let Some(event) = input.next_event().unwrap() {
        let mut payload = Vec::new();
        if let Some(found) = event.payload() {
            found.copy_to(&mut payload).unwrap();
        }
        all.push((event.offset(), event.bytes().to_vec(), payload));
    }
    (all, input.end())
}

/// Copies a recording to a file, and passes each event to `see`.
pub fn copy_to_file(input: &mut Input, mut see: impl FnMut(&Event<'_>)) -> Result<Vec<u8>, Error> {
    let mut out = std::io::Cursor::new(Vec::new());
    let mut writer = Writer::file(&mut out, input)?;
    while let Some(event) = input.next_event()? {
        see(&event);
        writer.write_event(&event)?;
    }
    let length = writer.finish()?;
    let out = out.into_inner();
    assert_eq!(length, out.len() as u64);
    Ok(out)
}

/// Copies a recording to a pipe.
pub fn copy_to_pipe(input: &mut Input) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let mut writer = Writer::pipe(&mut out, input);
    while let Some(event) = input.next_event()? {
        writer.write_event(&event)?;
    }
    let length = writer.finish()?;
    assert_eq!(length, out.len() as u64);
    Ok(out)
}

/// The recording's parts that a copy must keep.
pub fn gist(input: &Input) -> (Vec<perf_data::Attr>, Vec<(u8, Vec<u8>)>) {
    let features = input.features().iter().map(|(n, bytes)| (n, bytes.to_vec())).collect();
    (input.attrs().list().to_vec(), features)
}

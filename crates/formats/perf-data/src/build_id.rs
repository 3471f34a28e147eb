//! Entries of the build-id feature (`struct perf_record_header_build_id`).

use crate::endian::{Cursor, Endian};
use crate::event_header::{EVENT_HEADER_SIZE, Header, encode_event, misc};

/// Space for the id in an entry: 20 bytes, and 4 more, of which the first may hold the length.
const ID_FIELD_SIZE: usize = 24;
/// Set in an entry's misc field if its length byte is valid.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

/// The build-id of a file that contains samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildId {
    /// CPU mode of the code, see [`misc::CPU_MODE_MASK`].
    pub misc: u16,
    /// Virtual machine; `u32::MAX` for the host.
    pub pid: u32,
    /// The id, at most 20 bytes.
    pub id: Vec<u8>,
    /// Path of the file; without NUL.
    pub filename: Vec<u8>,
}

impl BuildId {
    /// An entry for a file of user code on the host. The id is truncated to 20 bytes.
    pub fn of_user_file(filename: &[u8], id: &[u8]) -> Self {
        let id = id.get(..20).unwrap_or(id).to_vec();
        Self { misc: misc::USER, pid: u32::MAX, id, filename: filename.to_vec() }
    }

    /// All entries of a section; truncated entries are left out.
    pub(crate) fn decode_all(section: &[u8], endian: Endian) -> Vec<Self> {
        let mut entries = Vec::new();
        let mut rest = section;
        while rest.len() >= EVENT_HEADER_SIZE {
            let size = usize::from(Header::of(rest, endian).size);
            let Some((entry, behind)) = rest.split_at_checked(size) else { break };
            let Some(entry) = Self::decode(entry, endian) else { break };
            entries.push(entry);
            rest = behind;
        }
        entries
    }

    /// One entry with its event header.
    pub(crate) fn decode(entry: &[u8], endian: Endian) -> Option<Self> {
        let header = Header::of(entry, endian);
        let mut at = Cursor::new(entry.get(EVENT_HEADER_SIZE..)?, endian);
        let pid = at.u32()?;
        let field: [u8; ID_FIELD_SIZE] = at.array()?;
        let (id, length) = field.split_at_checked(20)?;
        let length = match length.first() {
            Some(&length) if header.misc & MISC_BUILD_ID_SIZE != 0 => usize::from(length),
            _ => 20,
        };
        Some(Self {
            misc: header.misc & !MISC_BUILD_ID_SIZE,
            pid,
            id: id.get(..length).unwrap_or(id).to_vec(),
            filename: at.text().to_vec(),
        })
    }

    /// Encodes the entry as perf writes it, with the name padded to 64 bytes. `event_kind` is 0 in a file and
    /// [`kind::HEADER_BUILD_ID`](crate::kind::HEADER_BUILD_ID) in a pipe.
    pub(crate) fn encode(&self, endian: Endian, event_kind: u32) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(endian.put_u32(self.pid));
        let mut field = [0; ID_FIELD_SIZE];
        let id = self.id.get(..20).unwrap_or(&self.id);
        if let (Some(place), Ok(length)) = (field.get_mut(..id.len()), u8::try_from(id.len())) {
            place.copy_from_slice(id);
            if let Some(at) = field.get_mut(20) {
                *at = length;
            }
        }
        body.extend(field);
        // A name longer than a path can be would not fit into an event.
        body.extend_from_slice(self.filename.get(..1 << 12).unwrap_or(&self.filename));
        body.push(0);
        let name_start = ID_FIELD_SIZE.saturating_add(4);
        let name = body.len().saturating_sub(name_start).next_multiple_of(64);
        body.resize(name_start.saturating_add(name), 0);
        let event_misc = self.misc | MISC_BUILD_ID_SIZE;
        encode_event(endian, event_kind, event_misc, &[&body]).unwrap_or_default()
    }
}

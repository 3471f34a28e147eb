//! The events of a pipe that take the place of a file's header and feature sections.

use crate::attr::{ATTR_SIZE_MIN, Attr};
use crate::attrs::Attrs;
use crate::build_id::BuildId;
use crate::endian::{Cursor, Endian};
use crate::error::Error;
use crate::event_header::{encode_event, kind};
use crate::features::{FEATURES_MAX, Features, feature};
use crate::header::{PIPE_HEADER_SIZE, magic};
use crate::source::Source;

/// Attributes and features collected from a whole pipe.
pub(crate) struct PipeHeader {
    pub(crate) attrs: Attrs,
    pub(crate) features: Features,
    pub(crate) features_end: Option<u64>,
}

const EVENT_UPDATE_NAME: u64 = 2;

impl PipeHeader {
    /// Reads all events once; attributes and features may be anywhere.
    pub(crate) fn scan(source: &mut Source) -> Result<Self, Error> {
        let endian = source.layout().endian;
        let none = Attrs::new(endian, Vec::new());
        let mut list = Vec::new();
        let mut names = Vec::new();
        let mut build_ids = Vec::new();
        let mut features = Features::default();
        let mut features_end = None;
        while source.advance()? {
            let Some(event) = source.event(&none) else { break };
            let mut at = Cursor::new(event.body(), endian);
            match event.kind() {
                kind::HEADER_ATTR => list.extend(read_attr(event.body(), endian)),
                kind::HEADER_FEATURE => {
                    match at.u64() {
                        // The marker behind the last feature has a number and nothing else.
                        end if at.rest().is_empty() => features_end = end,
                        Some(number) => {
                            if let Ok(number) = u8::try_from(number) {
                                features.set(number, at.rest().to_vec());
                            }
                        }
                        None => {}
                    }
                }
                kind::HEADER_BUILD_ID => build_ids.extend(BuildId::decode(event.bytes(), endian)),
                kind::HEADER_TRACING_DATA => {
                    if let Some(payload) = event.payload().filter(|data| data.len() <= FEATURES_MAX)
                    {
                        let mut bytes = Vec::new();
                        payload.copy_to(&mut bytes)?;
                        features.set(feature::TRACING_DATA, bytes);
                    }
                }
                kind::EVENT_UPDATE => {
                    if let (Some(EVENT_UPDATE_NAME), Some(id)) = (at.u64(), at.u64()) {
                        names.push((id, at.text().to_vec()));
                    }
                }
                _ => {}
            }
        }
        let mut attrs = Attrs::new(endian, list);
        attrs.name_all(features.event_names(endian).into_iter());
        for (id, name) in names {
            attrs.name_by_id(id, &name);
        }
        features.append_build_ids(&build_ids, endian);
        Ok(Self { attrs, features, features_end })
    }
}

/// Decodes the body of a HEADER_ATTR: the attribute, with the size in its own field, then ids up to the end.
fn read_attr(body: &[u8], endian: Endian) -> Option<Attr> {
    let mut at = Cursor::new(body, endian);
    let (_type, size) = at.pair()?;
    let size = if size == 0 { ATTR_SIZE_MIN } else { size };
    let (raw, ids) = body.split_at_checked(usize::try_from(size).ok()?)?;
    let mut at = Cursor::new(ids, endian);
    let ids = std::iter::from_fn(|| at.u64()).collect();
    Attr::parse(raw, ids, endian)
}

/// Features that perf does not send as HEADER_FEATURE: other events carry them, or they refer to positions in a file.
const NOT_SENT: [u8; 7] = [
    feature::TRACING_DATA,
    feature::BUILD_ID,
    feature::BRANCH_STACK,
    feature::AUXTRACE,
    feature::STAT,
    feature::CACHE,
    feature::DIR_FORMAT,
];

/// Encodes a pipe's header and the events for attributes and features, in perf's order.
///
/// A feature or id list larger than an event can be is left out, as perf does. perf marks the end of the features
/// with the number of features that it knows, and rejects any other number. Therefore the marker is only repeated
/// (`features_end`), never generated.
pub(crate) fn preamble(attrs: &Attrs, features: &Features, features_end: Option<u64>) -> Vec<u8> {
    let endian = attrs.endian();
    let mut out = Vec::new();
    out.extend(magic(endian));
    out.extend(endian.put_u64(PIPE_HEADER_SIZE));
    let mut put = |event_kind, body: &[&[u8]]| {
        out.extend(encode_event(endian, event_kind, 0, body).unwrap_or_default());
    };
    for attr in attrs.list() {
        let ids: Vec<u8> = attr.ids().iter().flat_map(|&id| endian.put_u64(id)).collect();
        put(kind::HEADER_ATTR, &[attr.raw(), &ids]);
    }
    for (number, bytes) in features.iter().filter(|(number, _)| !NOT_SENT.contains(number)) {
        put(kind::HEADER_FEATURE, &[&endian.put_u64(number.into()), bytes]);
    }
    if let Some(number) = features_end {
        put(kind::HEADER_FEATURE, &[&endian.put_u64(number)]);
    }
    if let Some(tracing) = features.get(feature::TRACING_DATA)
        && let Ok(size) = u32::try_from(tracing.len().next_multiple_of(8))
    {
        put(kind::HEADER_TRACING_DATA, &[&endian.put_u32(size)]);
        out.extend_from_slice(tracing);
        out.resize(out.len().saturating_add(tracing.len().wrapping_neg() % 8), 0);
    }
    for id in features.build_ids(endian) {
        out.extend(id.encode(endian, kind::HEADER_BUILD_ID));
    }
    out
}

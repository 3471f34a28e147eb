//! What is sent: a body, and its identity.

use std::fmt;
use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message;

use crate::divide::{DivideError, otlp_halves, pprof_halves};
use crate::message::{LabelPair, PushRequest, RawProfileSeries, RawSample};

/// In which protocol's terms a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BodyKind {
    /// An `ExportProfilesServiceRequest` of OpenTelemetry.
    Otlp,
    /// A `push.v1.PushRequest` of Pyroscope.
    Pyroscope,
}

impl BodyKind {
    /// How the names of its files end in a spool.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Otlp => "otlp",
            Self::Pyroscope => "pyroscope",
        }
    }
}

/// Identifies a body by its content: the same profile is the same body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId([u8; 16]);

impl BodyId {
    pub(crate) fn of(content: &[u8]) -> Self {
        let mut id = [0; 16];
        blake3::Hasher::new().update(content).finalize_xof().fill(&mut id);
        Self(id)
    }

    /// From its spelling in the name of a file.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 32 && text.bytes().all(is_digits))
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten()
            .map(|number| Self(number.to_be_bytes()))
    }
}

impl fmt::Display for BodyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for BodyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A profile as it is sent: one body, gzipped.
#[derive(Clone, PartialEq, Eq)]
pub struct ProfileBody {
    kind: BodyKind,
    gzipped: Vec<u8>,
}

impl fmt::Debug for ProfileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileBody")
            .field("kind", &self.kind)
            .field("bytes", &self.gzipped.len())
            .finish()
    }
}

impl ProfileBody {
    /// Of an encoded `ExportProfilesServiceRequest`.
    #[must_use]
    pub fn otlp(request: &[u8]) -> Self {
        Self { kind: BodyKind::Otlp, gzipped: gzip(request) }
    }

    /// Of a pprof file for Pyroscope, with the labels of its series. The name of the profile (`__name__`) is `process_cpu`, if no label says otherwise.
    ///
    /// The ID of the sample is made of the content, so that it stays the same however often it is sent.
    #[must_use]
    pub fn pyroscope(pprof: &[u8], labels: &[(String, String)]) -> Self {
        let has_name = labels.iter().any(|(name, _)| name == "__name__");
        let name = (!has_name).then(|| ("__name__".to_owned(), "process_cpu".to_owned()));
        let labels = name.into_iter().chain(labels.iter().cloned());
        let id = uuid(BodyId::of(pprof));
        let series = RawProfileSeries {
            labels: labels.map(|(name, value)| LabelPair { name, value }).collect(),
            samples: vec![RawSample { raw_profile: pprof.to_vec(), id }],
        };
        let request = PushRequest { series: vec![series] };
        Self { kind: BodyKind::Pyroscope, gzipped: gzip(&request.encode_to_vec()) }
    }

    pub(crate) fn from_gzipped(kind: BodyKind, gzipped: Vec<u8>) -> Self {
        Self { kind, gzipped }
    }

    /// In which protocol's terms it is.
    #[must_use]
    pub fn kind(&self) -> BodyKind {
        self.kind
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> BodyId {
        BodyId::of(&self.gzipped)
    }

    /// The body in two that carry together what it carries, each valid in itself: half of the samples each, and the same resources or labels. The IDs of their profiles are made of the ID of
    /// the whole, so that dividing it again yields the same. `None` if there is only one sample, or none.
    ///
    /// # Errors
    /// If it is malformed, or has fields that this version does not know.
    pub fn halves(&self) -> Result<Option<[Self; 2]>, DivideError> {
        let whole = Content::of(self)?;
        Ok(whole.halves()?.map(|halves| halves.map(|half| half.body())))
    }

    /// The body in as many as are needed for each to have at most `longest` bytes, in the order of their samples; those with only one sample may be longer. What counts are the bytes that receivers
    /// limit: those of the request of OTLP, or of the pprof file, before they are compressed.
    ///
    /// # Errors
    /// If it is malformed, or has fields that this version does not know.
    pub fn divided(self, longest: u64) -> Result<Vec<Self>, DivideError> {
        let whole = Content::of(&self)?;
        if whole.length() <= longest {
            return Ok(vec![self]);
        }
        let mut parts = Vec::new();
        let mut left = vec![whole];
        while let Some(content) = left.pop() {
            let halves = if content.length() > longest { content.halves()? } else { None };
            match halves {
                Some([first, second]) => left.extend([second, first]),
                None => parts.push(content.body()),
            }
        }
        Ok(parts)
    }

    /// How many bytes receivers count, which compare them with their limits.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn unpacked_length(&self) -> Result<u64, DivideError> {
        Content::of(self).map(|content| content.length())
    }

    /// The body with the content encoding `gzip`.
    #[must_use]
    pub fn gzipped(&self) -> &[u8] {
        &self.gzipped
    }
}

/// What is divided of a body, unpacked.
enum Content {
    Otlp(Vec<u8>),
    Pyroscope { pprof: Vec<u8>, labels: Vec<(String, String)> },
}

impl Content {
    fn of(body: &ProfileBody) -> Result<Self, DivideError> {
        let unpacked = |bytes: &[u8]| {
            unpack(bytes).map_err(|_| DivideError::Malformed { what: "it cannot be unpacked" })
        };
        let content = unpacked(&body.gzipped)?;
        if body.kind == BodyKind::Otlp {
            return Ok(Self::Otlp(content));
        }
        let request = PushRequest::decode(&content[..]);
        let Ok(PushRequest { series }) = request else {
            return Err(DivideError::Malformed { what: "it is no PushRequest" });
        };
        let mut series = series.into_iter();
        let (Some(RawProfileSeries { labels, samples }), None) = (series.next(), series.next())
        else {
            return Err(DivideError::Malformed { what: "it has not one series" });
        };
        let [RawSample { raw_profile, .. }] = &samples[..] else {
            return Err(DivideError::Malformed { what: "its series has not one profile" });
        };
        let labels = labels.into_iter().map(|it| (it.name, it.value)).collect();
        Ok(Self::Pyroscope { pprof: unpacked(raw_profile)?, labels })
    }

    fn length(&self) -> u64 {
        match self {
            Self::Otlp(content) | Self::Pyroscope { pprof: content, .. } => content.len() as u64,
        }
    }

    fn halves(&self) -> Result<Option<[Self; 2]>, DivideError> {
        Ok(match self {
            Self::Otlp(request) => otlp_halves(request)?.map(|halves| halves.map(Self::Otlp)),
            Self::Pyroscope { pprof, labels } => pprof_halves(pprof)?.map(|halves| {
                halves.map(|pprof| Self::Pyroscope { pprof, labels: labels.clone() })
            }),
        })
    }

    fn body(&self) -> ProfileBody {
        match self {
            Self::Otlp(request) => ProfileBody::otlp(request),
            Self::Pyroscope { pprof, labels } => ProfileBody::pyroscope(&gzip(pprof), labels),
        }
    }
}

/// The longest body that is unpacked: a file of the spool may claim any length.
const LONGEST: u64 = 1 << 30;

/// The content of a gzipped body.
pub(crate) fn unpack(gzipped: &[u8]) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    GzDecoder::new(gzipped).take(LONGEST.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "longer than 1 GiB unpacked"));
    }
    Ok(content)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing into memory cannot fail.
    let written = encoder.write_all(content);
    debug_assert!(written.is_ok(), "memory takes everything");
    encoder.finish().unwrap_or_default()
}

/// An identity in the form of a random UUID, which Pyroscope expects as an ID.
fn uuid(BodyId(mut id): BodyId) -> String {
    let [_, _, _, _, _, _, version, _, variant, ..] = &mut id;
    *version = *version & 0x0f | 0x40;
    *variant = *variant & 0x3f | 0x80;
    let text = BodyId(id).to_string();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| text.get(part).unwrap_or_default()).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_has_the_same_identity() {
        let [one, two] = [&b"one"[..], b"two"].map(ProfileBody::otlp);
        assert_ne!(one.id(), two.id());
        assert_eq!(one.id(), ProfileBody::otlp(b"one").id());
        assert_eq!(BodyId::parse(&one.id().to_string()), Some(one.id()));
        for wrong in ["", "0", "+0000000000000000000000000000000", &"A".repeat(32), &"0".repeat(33)]
        {
            assert_eq!(BodyId::parse(wrong), None, "{wrong}");
        }
        assert_eq!(unpack(one.gzipped()).expect("gzip"), b"one");
        assert!(unpack(b"no gzip").is_err());
    }

    #[test]
    fn pyroscope_gets_a_series_with_a_stable_uuid() {
        let labels = [("service_name".to_owned(), "app".to_owned())];
        let body = ProfileBody::pyroscope(b"pprof", &labels);
        assert_eq!(body, ProfileBody::pyroscope(b"pprof", &labels));
        let request =
            PushRequest::decode(&unpack(body.gzipped()).expect("gzip")[..]).expect("a request");
        let [series] = &request.series[..] else { panic!("one series") };
        let label = |it: &LabelPair| format!("{}={}", it.name, it.value);
        let labels: Vec<_> = series.labels.iter().map(label).collect();
        assert_eq!(labels, ["__name__=process_cpu", "service_name=app"]);
        assert_eq!(series.samples[0].raw_profile, b"pprof");
        let id = &series.samples[0].id;
        assert_eq!(id.len(), 36, "{id}");
        assert_eq!((&id[14..15], "89ab".contains(&id[19..20])), ("4", true), "{id}");
    }
}

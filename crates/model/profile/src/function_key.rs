//! What makes a function the same in two recordings.

use crate::cleaning::{clean_name, clean_path};
use crate::function::{Function, FunctionKind};
use crate::key_encoding::Encoding;
use crate::profile::Profile;

/// Identifies a function in recordings of other processes, runs, hosts and deployments: never by an address, a process or a tier.
///
/// `docs/design/identity.md` describes what each field is, and [`Self::id`] byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionKey {
    /// Whether it is of the kernel, native, or of a language runtime.
    pub origin: Origin,
    /// Its name, without numbers that its compiler or runtime made up ([`clean_name`]).
    pub name: Vec<u8>,
    /// Its file, without versions and hashes of deployments ([`clean_path`]).
    pub file: Vec<u8>,
    /// Its line and column.
    pub place: (u32, u32),
    /// The runtime that compiles it, and the source that it is compiled from.
    pub version: Version,
}

/// Where functions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A program or a library.
    Native,
    /// The kernel.
    Kernel,
    /// The source of a language runtime: whether a function is interpreted or compiled depends on the time.
    Runtime,
    /// Code without a name, or the end of a stack.
    Other,
}

/// Which version of a function it is. What is not known is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The name of the file that the runtime is in: `node`, `libjvm.so`.
    pub runtime: Vec<u8>,
    /// The build-id of that file: at most 20 bytes, without zeros at the end.
    pub build_id: Vec<u8>,
    /// The hash of the source's content, as the recording has it, or else the runtime's hash of the function's source.
    pub source: Vec<u8>,
}

impl From<FunctionKind> for Origin {
    fn from(kind: FunctionKind) -> Self {
        match kind {
            FunctionKind::Native => Self::Native,
            FunctionKind::Kernel => Self::Kernel,
            FunctionKind::Jitted | FunctionKind::Interpreted => Self::Runtime,
            FunctionKind::Unknown | FunctionKind::End => Self::Other,
        }
    }
}

impl Origin {
    /// Its number in the encoding of keys: never changed, never used again for another.
    const fn number(self) -> u8 {
        match self {
            Self::Native => 0,
            Self::Kernel => 1,
            Self::Runtime => 2,
            Self::Other => 3,
        }
    }
}

impl Version {
    fn of(profile: &Profile, function: &Function) -> Self {
        let runtime = function.runtime.map(|runtime| profile.module(runtime));
        let path = runtime.map(|runtime| profile.text(runtime.path)).unwrap_or_default();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let build_id = runtime.map(|runtime| runtime.build_id.as_slice()).unwrap_or_default();
        let source = profile.source(function.file);
        Self {
            runtime: name.to_vec(),
            build_id: significant(build_id).to_vec(),
            source: source
                .map_or_else(|| profile.text(function.source_hash).to_vec(), |all| all.0.to_vec()),
        }
    }
}

/// The name, without the hash that tells it apart from others in its profile.
fn without_hash<'p>(profile: &'p Profile, function: &Function) -> &'p [u8] {
    let (name, hash) = (profile.text(function.name), profile.text(function.source_hash));
    let without = Some(hash).filter(|hash| !hash.is_empty());
    let without = without.and_then(|hash| name.strip_suffix(hash)?.strip_suffix(b"#"));
    without.unwrap_or(name)
}

/// A build-id as perf records it: no more than 20 bytes, and it does not always say where they end.
pub fn significant(build_id: &[u8]) -> &[u8] {
    let build_id = build_id.get(..20).unwrap_or(build_id);
    let zeros = build_id.iter().rev().take_while(|&&byte| byte == 0).count();
    build_id.get(..build_id.len().saturating_sub(zeros)).unwrap_or_default()
}

impl FunctionKey {
    /// Of a function of a profile.
    #[must_use]
    pub fn of(profile: &Profile, function: &Function) -> Self {
        Self {
            origin: function.kind.into(),
            name: clean_name(without_hash(profile, function)),
            file: clean_path(profile.text(function.file)),
            place: (function.line, function.column),
            version: Version::of(profile, function),
        }
    }

    /// The key as a number of fixed width. It is the same on every machine; equal keys have equal numbers, and two of a million keys have the same one by
    /// chance with a probability of 1 in 37 million.
    ///
    /// Written as text, it has 16 hexadecimal digits: `format!("{id:016x}")`.
    #[must_use]
    pub fn id(&self) -> u64 {
        let mut encoding = Encoding::new();
        encoding.byte(self.origin.number());
        let Version { runtime, build_id, source } = &self.version;
        for text in [runtime, build_id, &self.name, &self.file, source] {
            encoding.text(text);
        }
        let (line, column) = self.place;
        encoding.u32(line).u32(column);
        encoding.id()
    }

    /// The key without the version: of the same function in other versions of its source and its runtime, as far as its place did not change.
    #[must_use]
    pub fn without_version(&self) -> Self {
        Self { version: Version::default(), ..self.clone() }
    }

    /// The key without version and place: lines move when other parts of a file change.
    #[must_use]
    pub fn without_place(&self) -> Self {
        Self { place: (0, 0), ..self.without_version() }
    }

    /// The key without version, place and file, which is known in one of two recordings only if debug information is.
    #[must_use]
    pub fn without_file(&self) -> Self {
        Self { file: Vec::new(), ..self.without_place() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> FunctionKey {
        FunctionKey {
            origin: Origin::Runtime,
            name: b"render".to_vec(),
            file: b"/srv/app/view.js".to_vec(),
            place: (12, 5),
            version: Version {
                runtime: b"node".to_vec(),
                build_id: vec![0xab, 0xcd],
                source: Vec::new(),
            },
        }
    }

    /// Against the description in `docs/design/identity.md`, spelled out.
    #[test]
    fn ids_are_as_documented() {
        let encoded = [
            &b"\x01\x02"[..],
            b"\x04\0\0\0node",
            b"\x02\0\0\0\xab\xcd",
            b"\x06\0\0\0render",
            b"\x10\0\0\0/srv/app/view.js",
            b"\0\0\0\0",
            b"\x0c\0\0\0\x05\0\0\0",
        ];
        let hash = blake3::hash(&encoded.concat());
        assert_eq!(format!("{:016x}", key().id()), hash.to_hex()[..16]);
        // As the Python of the same page computes it.
        assert_eq!(key().id(), 0x12c4_9885_c2e5_feab);
    }

    #[test]
    fn each_field_counts() {
        let mut keys = vec![key(), key().without_version(), key().without_place()];
        keys.extend([key().without_file(), FunctionKey { origin: Origin::Native, ..key() }]);
        keys.push(FunctionKey { place: (5, 12), ..key() });
        // The same bytes, divided otherwise.
        let version = Version { runtime: b"nod".to_vec(), ..key().version };
        keys.push(FunctionKey { name: b"erender".to_vec(), version, ..key() });
        let mut ids: Vec<u64> = keys.iter().map(FunctionKey::id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), keys.len());
    }

    proptest! {
        #[test]
        fn ids_are_equal_where_keys_are(
            names in proptest::collection::vec(("[a-c]{0,2}", "[a-c]{0,2}", 0u32..2, 0u32..2), 0..30)
        ) {
            let keys = names.into_iter().map(|(name, file, line, column)| FunctionKey {
                name: name.into_bytes(),
                file: file.into_bytes(),
                place: (line, column),
                ..key()
            });
            let keys: Vec<FunctionKey> = keys.collect();
            for a in &keys {
                for b in &keys {
                    prop_assert_eq!(a == b, a.id() == b.id());
                }
            }
        }
    }
}

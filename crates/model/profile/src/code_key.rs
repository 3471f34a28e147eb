//! What makes machine code the same in two recordings.

use crate::cleaning::clean_path;
use crate::code::Code;
use crate::content_hash::ContentHash;
use crate::function_key::{FunctionKey, significant};
use crate::key_encoding::Encoding;
use crate::profile::Profile;

/// Identifies the machine code of a function in recordings of other processes, runs, hosts and deployments.
///
/// `docs/design/identity.md` describes what each field is, and [`Self::id`] byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeKey {
    /// The function.
    pub function: FunctionKey,
    /// The tier of the compiler; empty if there is only one, or none is known.
    pub tier: Vec<u8>,
    /// The size in bytes.
    pub size: u64,
    /// The hash of the bytes without addresses or, of code in a file, of its place in the file. `None` if the bytes are not known.
    pub content: Option<ContentHash>,
}

impl CodeKey {
    /// Of a code of a profile. `masked` are its bytes, without addresses and distances that depend on where the code is; they are not needed for code in
    /// files.
    #[must_use]
    pub fn of(profile: &Profile, code: &Code, masked: Option<&[u8]>) -> Self {
        let content = match code.process {
            Some(_) => masked.map(ContentHash::of),
            None => code.module.map(|module| {
                let module = profile.module(module);
                let mut place = match significant(&module.build_id) {
                    [] => clean_path(profile.text(module.path)),
                    id => id.to_vec(),
                };
                place.extend(code.module_address.to_le_bytes());
                ContentHash::of(&place)
            }),
        };
        Self {
            function: FunctionKey::of(profile, profile.function(code.function)),
            tier: profile.text(code.tier).to_vec(),
            size: code.size,
            content,
        }
    }

    /// The key as a number of fixed width, as for functions: [`FunctionKey::id`].
    #[must_use]
    pub fn id(&self) -> u64 {
        let mut encoding = Encoding::new();
        encoding.u64(self.function.id()).text(&self.tier).u64(self.size);
        encoding.text(self.content.as_ref().map(|content| &content.0[..]).unwrap_or_default());
        encoding.id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Function, FunctionKind, Module, ModuleKind};

    /// A profile with one code of the function `f`.
    fn made(change: impl FnOnce(&mut Builder, &mut Code)) -> (Profile, Code) {
        let mut builder = Builder::new();
        let name = builder.string(b"f");
        let function = builder.function(Function::new(name, FunctionKind::Jitted));
        let mut code = Code::new(function, 16);
        code.process = Some(builder.process(1, b"a"));
        change(&mut builder, &mut code);
        builder.code(code.clone());
        (builder.finish(), code)
    }

    fn id(masked: Option<&[u8]>, change: impl FnOnce(&mut Builder, &mut Code)) -> u64 {
        let (profile, code) = made(change);
        CodeKey::of(&profile, &code, masked).id()
    }

    /// Against the description in `docs/design/identity.md`, spelled out.
    #[test]
    fn ids_are_as_documented() {
        let (profile, code) = made(|builder, code| code.tier = builder.string(b"maglev"));
        let key = CodeKey::of(&profile, &code, Some(b"\x90\xc3"));
        let mut encoded = b"\x01".to_vec();
        encoded.extend(key.function.id().to_le_bytes());
        encoded.extend(b"\x06\0\0\0maglev\x10\0\0\0\0\0\0\0\x10\0\0\0");
        encoded.extend(&blake3::hash(b"\x90\xc3").as_bytes()[..16]);
        let hash = blake3::hash(&encoded);
        assert_eq!(format!("{:016x}", key.id()), hash.to_hex()[..16]);
    }

    #[test]
    fn places_count_in_files_only() {
        let at = |address| move |_: &mut Builder, code: &mut Code| code.address = address;
        assert_eq!(id(Some(b"a"), at(1)), id(Some(b"a"), at(2)));
        assert_ne!(id(Some(b"a"), at(1)), id(Some(b"b"), at(1)));
        assert_ne!(id(Some(b"a"), at(1)), id(None, at(1)));
        let in_file = |build_id: Vec<u8>, path: &'static [u8], address| {
            id(Some(b"never read"), move |builder, code| {
                let path = builder.string(path);
                let module = Module { kind: ModuleKind::File, path, build_id };
                (code.process, code.module) = (None, Some(builder.module(module)));
                code.module_address = address;
            })
        };
        let known = in_file(vec![1, 2], b"/srv/a-1.2.3/lib.so", 64);
        assert_eq!(known, in_file(vec![1, 2, 0, 0], b"/elsewhere/lib.so", 64));
        assert_ne!(known, in_file(vec![1, 3], b"/srv/a-1.2.3/lib.so", 64));
        assert_ne!(known, in_file(vec![1, 2], b"/srv/a-1.2.3/lib.so", 65));
        assert_eq!(
            in_file(vec![], b"/srv/a-1.2.3/lib.so", 64),
            in_file(vec![], b"/srv/a-1.2.4/lib.so", 64)
        );
    }
}

//! From the fields of a key to a number: `docs/design/identity.md` describes it byte for byte.

/// The version of the encoding. Another one gives other ids.
const VERSION: u8 = 1;

/// The encoded fields of a key so far.
#[derive(Clone, Debug)]
pub struct Encoding(blake3::Hasher);

impl Encoding {
    /// No field yet.
    pub fn new() -> Self {
        let mut encoding = Self(blake3::Hasher::new());
        encoding.byte(VERSION);
        encoding
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.update(&[byte]);
        self
    }

    /// A number.
    pub fn u32(&mut self, number: u32) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    /// Any bytes, with their length before them.
    pub fn text(&mut self, text: &[u8]) -> &mut Self {
        // No file that is read has names of 4 GiB.
        self.u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.0.update(text);
        self
    }

    /// The first eight bytes of the hash, the first one as the most significant.
    pub fn id(&self) -> u64 {
        let hash = self.0.finalize();
        let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(first)
    }
}

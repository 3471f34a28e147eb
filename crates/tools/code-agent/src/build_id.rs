//! The build-id of an image.

use std::fmt;

/// The build-id of an image: a hash of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(pub [u8; 20]);

/// The end of the name of a file with debug info, where debuggers look for one by build-id.
const EXTENSION: &str = ".debug";

impl BuildId {
    /// Where the image is, below a folder that debuggers search by build-id: `ab/cdef….debug`.
    #[must_use]
    pub fn path(self) -> String {
        let digits = self.to_string();
        let (folder, name) = digits.split_at(2);
        format!("{folder}/{name}{EXTENSION}")
    }

    /// The build-id that the names of a folder and of a file in it have; the inverse of [`Self::path`].
    #[must_use]
    pub fn from_path(folder: &str, file: &str) -> Option<Self> {
        let name = file.strip_suffix(EXTENSION)?;
        let mut id = [0; 20];
        let digits = [folder, name].concat();
        if folder.len() != 2 || digits.len() != 2 * id.len() {
            return None;
        }
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        for (byte, pair) in id.iter_mut().zip(digits.as_bytes().as_chunks::<2>().0) {
            let [high, low] = *pair;
            *byte = digit(high)? << 4 | digit(low)?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_what_is_none() {
        let id = BuildId(std::array::from_fn(|n| n as u8 * 13));
        let path = id.path();
        assert_eq!(path, "00/0d1a2734414e5b6875828f9ca9b6c3d0ddeaf7.debug");
        let (folder, file) = path.split_once('/').unwrap();
        assert_eq!(BuildId::from_path(folder, file), Some(id));
        for (folder, file) in [
            ("00", "0d1a2734414e5b6875828f9ca9b6c3d0ddeaf7"),
            ("00", "0D1a2734414e5b6875828f9ca9b6c3d0ddeaf7.debug"),
            ("00", "0d1a2734414e5b6875828f9ca9b6c3d0ddeaf.debug"),
            ("000", "d1a2734414e5b6875828f9ca9b6c3d0ddeaf7.debug"),
            ("", "000d1a2734414e5b6875828f9ca9b6c3d0ddeaf7.debug"),
            ("é", "0d1a2734414e5b6875828f9ca9b6c3d0ddeaf7.debug"),
        ] {
            assert_eq!(BuildId::from_path(folder, file), None, "{folder}/{file}");
        }
    }
}

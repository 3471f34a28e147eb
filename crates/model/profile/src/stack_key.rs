//! What makes a call stack the same in two recordings.

use crate::key_encoding::Encoding;

/// The number of fixed width for a call stack of functions with these ids ([`FunctionKey::id`](crate::FunctionKey::id)), the outermost first.
/// `docs/design/identity.md` describes it byte for byte.
#[must_use]
pub fn stack_id(functions: &[u64]) -> u64 {
    let mut encoding = Encoding::new();
    encoding.u64(functions.len() as u64);
    for &function in functions {
        encoding.u64(function);
    }
    encoding.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_documented() {
        let mut encoded = b"\x01\x02\0\0\0\0\0\0\0".to_vec();
        encoded.extend([7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        let hash = blake3::hash(&encoded);
        assert_eq!(format!("{:016x}", stack_id(&[7, 9])), hash.to_hex()[..16]);
        assert_ne!(stack_id(&[7, 9]), stack_id(&[9, 7]));
    }
}

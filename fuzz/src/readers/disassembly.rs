//! Machine code of any kind: decoded to its end, and masked, whatever the bytes are.

use disassembly::{Syntax, disassemble, mask_addresses};

/// Decodes the bytes behind the first nine, which say how: the syntax and the address.
pub fn run(bytes: &[u8]) {
    let Some((head, code)) = bytes.split_first_chunk::<9>() else { return };
    let [syntax, address @ ..] = *head;
    let address = u64::from_le_bytes(address);
    let syntax = if syntax & 1 == 0 { Syntax::Intel } else { Syntax::Att };
    for (machine, size) in [(3, 4), (62, 8), (183, 8)] {
        let decoded = disassemble(machine, address, code, syntax);
        let mut end = 0;
        for instruction in decoded.expect("a machine that is decoded") {
            assert_eq!(instruction.offset, end);
            end += u64::from(instruction.length);
            if let Some(place) = instruction.reference.and_then(|reference| reference.place) {
                assert!(instruction.text.get(place).is_some());
            }
        }
        assert_eq!(end, code.len() as u64);
        let mut masked = code.to_vec();
        assert!(mask_addresses(machine, address, &mut masked));
        for (place, (before, after)) in code.iter().zip(&masked).enumerate() {
            let is_masked = before & after == *after;
            assert!(is_masked || is_in_distance(code, &masked, address, size, place), "{place}");
        }
    }
}

/// Whether the byte at `place` is in a word of `size` bytes that was an address of the code, and is the distance from its beginning.
fn is_in_distance(code: &[u8], masked: &[u8], address: u64, size: usize, place: usize) -> bool {
    let word = |bytes: &[u8], start: usize| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes.get(start..start + size)?);
        Some(u64::from_le_bytes(word))
    };
    (place.saturating_sub(size - 1)..=place).any(|start| {
        let distance = word(code, start).and_then(|target| target.checked_sub(address));
        distance.is_some_and(|distance| {
            distance < code.len() as u64 && word(masked, start) == Some(distance)
        })
    })
}

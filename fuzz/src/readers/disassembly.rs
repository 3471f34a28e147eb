//! Machine code of any kind: decoded to its end, and masked, whatever the bytes are.

use disassembly::{Syntax, disassemble, mask_addresses};

/// Decodes the bytes behind the first nine, which say how: the syntax and the address.
pub fn run(bytes: &[u8]) {
    let Some((head, code)) = bytes.split_first_chunk::<9>() else { return };
    let [syntax, address @ ..] = *head;
    let syntax = if syntax & 1 == 0 { Syntax::Intel } else { Syntax::Att };
    for machine in [3, 62, 183] {
        let decoded = disassemble(machine, u64::from_le_bytes(address), code, syntax);
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
        assert!(mask_addresses(machine, u64::from_le_bytes(address), &mut masked));
        assert!(code.iter().zip(&masked).all(|(before, after)| before & after == *after));
    }
}

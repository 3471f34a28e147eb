//! Foreign strings in a form that object files and tools can hold.

/// Bytes that end a string, or that tools would put into lines of text.
fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// Appends `text` with control characters, NUL among them, as `\xNN`.
pub(crate) fn push_printable(text: &[u8], out: &mut Vec<u8>) {
    if !text.iter().any(|&byte| is_control(byte)) {
        out.extend_from_slice(text);
        return;
    }
    for &byte in text {
        if is_control(byte) {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        } else {
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push_printable;

    #[test]
    fn control_characters_are_spelled_out_and_nothing_else_changes() {
        let mut out = b"<".to_vec();
        push_printable(b"a\tb\0c\n\x7f\\\xc3\xa9 ", &mut out);
        assert_eq!(out, b"<a\\x09b\\x00c\\x0a\\x7f\\\xc3\xa9 ");
    }
}

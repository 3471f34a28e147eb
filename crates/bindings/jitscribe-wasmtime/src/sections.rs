//! The sections of a WebAssembly binary.

/// A section: the offset of its content in the binary, and the content. Custom sections have a
/// name.
pub(crate) struct Section<'a> {
    pub(crate) id: u8,
    pub(crate) name: &'a [u8],
    pub(crate) start: usize,
    pub(crate) content: &'a [u8],
}

/// Id of the section with the functions' bodies.
pub(crate) const CODE: u8 = 10;

const CUSTOM: u8 = 0;
const PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";

/// How a component begins, and the ids of its sections with a module and with another component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const CORE_MODULE: u8 = 1;
const NESTED: u8 = 4;

/// The modules in a binary, which is a module or a component, and their offsets in it. In ascending order.
pub(crate) fn modules(binary: &[u8]) -> Vec<(usize, &[u8])> {
    let mut modules = Vec::new();
    let mut rest = vec![(0, binary)];
    while let Some((at, part)) = rest.pop() {
        if part.starts_with(PREAMBLE) {
            modules.push((at, part));
        }
        // Each section is looked at once: the content of most is skipped.
        for section in of_kind(part, COMPONENT) {
            if section.id == CORE_MODULE || section.id == NESTED {
                rest.push((at + section.start, section.content));
            }
        }
    }
    modules.sort_unstable_by_key(|&(at, _)| at);
    modules
}

/// The sections of a module up to the first incomplete one. Empty if this is not a module.
pub(crate) fn of(binary: &[u8]) -> impl Iterator<Item = Section<'_>> {
    of_kind(binary, PREAMBLE)
}

fn of_kind<'a>(binary: &'a [u8], preamble: &[u8]) -> impl Iterator<Item = Section<'a>> {
    let mut rest = binary.strip_prefix(preamble).unwrap_or_default();
    std::iter::from_fn(move || {
        let (&id, after) = rest.split_first()?;
        let (size, after) = number(after)?;
        let (content, after) = after.split_at_checked(size)?;
        let start = binary.len() - after.len() - content.len();
        rest = after;
        if id != CUSTOM {
            return Some(Section { id, name: b"", start, content });
        }
        let (length, named) = number(content)?;
        let (name, named) = named.split_at_checked(length)?;
        Some(Section { id, name, start: start + content.len() - named.len(), content: named })
    })
}

/// An unsigned LEB128 of at most 32 bits.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()? as usize, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(binary: &[u8]) -> Vec<(u8, &[u8], usize, &[u8])> {
        of(binary).map(|s| (s.id, s.name, s.start, s.content)).collect()
    }

    #[test]
    fn sections_stand_where_they_are() {
        let binary = b"\0asm\x01\0\0\0\x00\x05\x03abcd\x0a\x81\x80\x00\x00\x01\x00";
        let all: [(u8, &[u8], usize, &[u8]); 3] =
            [(0, b"abc", 14, b"d"), (CODE, b"", 19, b"\0"), (1, b"", 22, b"")];
        assert_eq!(told(binary), all);
        for end in 0..binary.len() {
            let whole = told(&binary[..end]);
            assert_eq!(whole, all[..whole.len()], "cut off at {end}");
        }
    }

    #[test]
    fn modules_are_found_in_components() {
        let module = b"\0asm\x01\0\0\0\x01\0";
        assert_eq!(modules(module), [(0, &module[..])]);
        let component = |sections: &[(u8, &[u8])]| {
            let mut made = COMPONENT.to_vec();
            for (id, content) in sections {
                made.extend([*id, u8::try_from(content.len()).unwrap()]);
                made.extend_from_slice(content);
            }
            made
        };
        let inner = component(&[(CORE_MODULE, module)]);
        let outer = component(&[(CORE_MODULE, module), (7, module), (NESTED, &inner)]);
        let found = modules(&outer);
        assert_eq!(found, [(10, &module[..]), (outer.len() - module.len(), &module[..])]);
        for end in 0..outer.len() {
            assert!(modules(&outer[..end]).len() < 2, "cut off at {end}");
        }
    }

    #[test]
    fn damage_ends_the_list() {
        for damaged in [
            &b"\0asm\x0d\0\x01\0\x00\x01\x00"[..],
            b"(module)",
            b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\xff\x00",
            b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\x7f",
            b"\0asm\x01\0\0\0\x00\x01\x05",
        ] {
            assert!(told(damaged).is_empty(), "{damaged:?}");
        }
    }
}

//! Which mappings may be contexts.

/// The name that the writer gives to its memfd and to its mapping.
pub const MAPPING_NAME: &core::ffi::CStr = c"OTEL_CTX";

/// Whether a mapping with this name in `/proc/PID/maps` may begin with a context.
///
/// The name depends on what the system supports: a memfd, names for anonymous memory, or both. As the OTEP requires, this compares
/// only the beginning of the name; the signature in memory decides.
#[must_use]
pub fn may_be_context(name: &[u8]) -> bool {
    let names: [&[u8]; 3] = [b"[anon_shmem:OTEL_CTX]", b"[anon:OTEL_CTX]", b"/memfd:OTEL_CTX"];
    names.iter().any(|known| name.starts_with(known))
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'l> {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Whether its content may be executed. Readers ignore such a mapping.
    pub is_executable: bool,
    /// The name, which may be cut off at the end of the line's bytes.
    pub name: &'l [u8],
}

impl<'l> Mapping<'l> {
    /// Parses a line; `None` if it is not one. The end may be missing.
    #[must_use]
    pub fn parse(line: &'l [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // Addresses, permissions, offset, device and inode, each followed by one space, and then the name after more.
        let mut rest = line;
        let mut fields: [&[u8]; 5] = [&[]; 5];
        for field in &mut fields {
            let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            let (text, behind) = rest.split_at_checked(end)?;
            *field = text;
            rest = behind.strip_prefix(b" ").unwrap_or(behind);
        }
        let [range, permissions, ..] = fields;
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = range.split_at_checked(dash)?;
        Some(Self {
            start: hexadecimal(start)?,
            end: hexadecimal(end.strip_prefix(b"-")?)?,
            is_executable: permissions.get(2) == Some(&b'x'),
            name: rest.trim_ascii_start(),
        })
    }

    /// Whether it [may be a context](may_be_context).
    #[must_use]
    pub fn may_be_context(&self) -> bool {
        !self.is_executable && may_be_context(self.name)
    }
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::Mapping;

    #[test]
    fn lines_of_linux() {
        for (line, expected) in [
            (
                "7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 00:01 12345                      /memfd:OTEL_CTX (deleted)\n",
                true,
            ),
            (
                "7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 00:01 12345                      [anon_shmem:OTEL_CTX]\n",
                true,
            ),
            (
                "7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 00:00 0                          [anon:OTEL_CTX]",
                true,
            ),
            (
                "7f3c1a2b4000-7f3c1a2b5000 r-xp 00000000 00:00 0                          [anon:OTEL_CTX]",
                false,
            ),
            ("7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 00:00 0 ", false),
            ("7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 08:01 99 /tmp/a /memfd:OTEL_CTX", false),
            ("7f3c1a2b4000-7f3c1a2b5000 rw-p 00000000 08:01 99 /tmp/OTEL_CTX", false),
        ] {
            let mapping = Mapping::parse(line.as_bytes()).unwrap();
            assert_eq!((mapping.start, mapping.end), (0x7f3c_1a2b_4000, 0x7f3c_1a2b_5000));
            assert_eq!(mapping.may_be_context(), expected, "{line}");
        }
        for line in ["", "\n", "7f", "7f-", "7g-80 rw-p", "-80 rw-p", "10000000000000000-0 rw-p"] {
            assert_eq!(Mapping::parse(line.as_bytes()), None, "{line}");
        }
    }
}

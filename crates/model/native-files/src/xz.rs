//! Decompresses what `xz` wrote: the container around LZMA2 (<https://tukaani.org/xz/xz-file-format.txt>).
//!
//! Checksums are not verified: damaged symbols are as harmless as those of a damaged file. Filters other than LZMA2 are for machine code, and
//! not in use for symbols.

use std::io::Read;

use lzma_rust2::Lzma2Reader;

const MAGIC: &[u8] = b"\xfd7zXZ\0";
/// The filter LZMA2.
const LZMA2: u64 = 0x21;
/// Dictionaries of more KiB are not decompressed. `xz -9` has one of 64 MiB.
const LARGEST_DICTIONARY: u32 = 1 << 17;

/// Decompresses a stream; `None` if it is damaged, or has more than `largest` bytes.
pub fn decompress(stream: &[u8], largest: usize) -> Option<Vec<u8>> {
    let (flags, mut rest) = stream.strip_prefix(MAGIC)?.split_first_chunk::<6>()?;
    let check = check_size(flags.get(1)? & 0xf);
    let mut content = Vec::new();
    // Behind the blocks is an index, which begins with 0.
    while let Some(&size @ 1..) = rest.first() {
        let size = usize::from(size).checked_add(1)?.checked_mul(4)?;
        let (header, behind) = rest.split_at_checked(size)?;
        let dictionary = dictionary_size(header)?;
        let reader = Lzma2Reader::new_mem_limit(behind, dictionary, LARGEST_DICTIONARY, None);
        let mut reader = reader.ok()?;
        let left = u64::try_from(largest.checked_sub(content.len())?).ok()?;
        // One more, so that it is seen whether it ends.
        reader.by_ref().take(left.saturating_add(1)).read_to_end(&mut content).ok()?;
        if content.len() > largest {
            return None;
        }
        let after = reader.into_inner();
        let read = behind.len().checked_sub(after.len())?;
        let padding = read.checked_next_multiple_of(4)?.checked_sub(read)?;
        rest = after.get(padding.checked_add(check)?..)?;
    }
    Some(content)
}

/// The size of the checksum behind each block.
fn check_size(kind: u8) -> usize {
    match kind {
        0 => 0,
        1..=3 => 4,
        4..=6 => 8,
        7..=9 => 16,
        10..=12 => 32,
        _ => 64,
    }
}

/// The size of the dictionary in a block's header; `None` if the block is not compressed by LZMA2 alone.
fn dictionary_size(header: &[u8]) -> Option<u32> {
    let (&flags, mut rest) = header.get(1..)?.split_first()?;
    let is_one_filter = flags & 3 == 0;
    for flag in [0x40, 0x80] {
        if flags & flag != 0 {
            number(&mut rest)?;
        }
    }
    let is_known = is_one_filter && number(&mut rest)? == LZMA2 && number(&mut rest)? == 1;
    let bits = u32::from(*rest.first().filter(|_| is_known)?);
    match bits {
        // Two sizes for each power of two.
        0..40 => (2 | (bits & 1)).checked_shl(bits.checked_div(2)?.checked_add(11)?),
        40 => Some(u32::MAX),
        _ => None,
    }
}

/// A number of one to nine bytes with seven bits each.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    /// What `xz` makes of this.
    fn compressed(content: &[u8], options: &[&str]) -> Vec<u8> {
        let mut command = Command::new("xz");
        let command = command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut xz = command.spawn().expect("xz");
        let mut input = xz.stdin.take().expect("a pipe");
        let content = content.to_vec();
        let writer = std::thread::spawn(move || input.write_all(&content));
        let output = xz.wait_with_output().expect("xz");
        writer.join().expect("the writer").expect("it is written");
        assert!(output.status.success());
        output.stdout
    }

    fn text() -> Vec<u8> {
        (0..40_000_u32).flat_map(|number| (number * number).to_le_bytes()).collect()
    }

    #[test]
    fn what_xz_writes_is_read() {
        let text = text();
        for options in [
            &["-c"][..],
            &["-c", "-9", "--check=crc32"],
            &["-c", "-0", "--check=none"],
            &["-c", "--check=sha256", "--block-size=50001"],
            &["-c", "-T2", "--block-size=30000"],
        ] {
            let stream = compressed(&text, options);
            assert_eq!(decompress(&stream, text.len()).as_ref(), Some(&text), "{options:?}");
            assert_eq!(decompress(&stream, text.len() - 1), None);
        }
        assert_eq!(decompress(&compressed(b"", &["-c"]), 0), Some(Vec::new()));
        assert_eq!(decompress(&compressed(&text, &["-c", "--x86", "--lzma2"]), text.len()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_stream_is_read_or_refused(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
            kept in any::<prop::sample::Index>(),
        ) {
            static STREAM: std::sync::LazyLock<Vec<u8>> =
                std::sync::LazyLock::new(|| compressed(&text(), &["-c", "--block-size=50001"]));
            let mut stream = STREAM.clone();
            for (at, byte) in damage {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
            stream.truncate(kept.index(stream.len()) + 1);
            decompress(&stream, 1 << 20);
        }
    }
}

//! Damaged programs and libraries: the same bytes for all readers of ELF files.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::elf::c_library;
use super::{FileFrames, FileSymbols};

/// A library with exported functions and unwind tables.
static LIBRARY: LazyLock<Vec<u8>> = LazyLock::new(c_library);

fn read_all(bytes: &[u8]) {
    if let Ok(symbols) = FileSymbols::read(bytes) {
        for offset in (0..bytes.len() as u64 + 97).step_by(997).chain([u64::MAX]) {
            symbols.has_name(offset);
            symbols.name(offset);
            symbols.name_of_start(offset);
            let range = offset / 2..offset;
            let filled = symbols.filled(&range, offset / 3);
            assert!(range.start <= filled.start && filled.end <= range.end, "{filled:x?}");
        }
    }
    if let Ok(frames) = FileFrames::read(&bytes) {
        frames.is_bottom(0x1000);
        frames.above_offset(0x1000);
        frames.php_frame();
    }
}

#[test]
fn a_whole_library_is_read() {
    let symbols = FileSymbols::read(&LIBRARY[..]).expect("an ELF file");
    let mut offsets = (0..LIBRARY.len() as u64).step_by(997);
    assert!(offsets.any(|offset| symbols.has_name(offset)));
    assert!(FileFrames::read(&&LIBRARY[..]).expect("an ELF file").tables.is_some());
    read_all(&LIBRARY);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes are replaced in the headers of segments at the beginning, in the headers of sections at the end, and in between.
    #[test]
    fn any_bytes_are_read_or_refused(
        changes in prop::collection::vec((0_usize..3, any::<usize>(), any::<u8>()), 0..8),
        kept in prop::option::weighted(0.25, 0_usize..(1 << 21)),
    ) {
        let mut bytes = LIBRARY.clone();
        let len = bytes.len();
        for (part, at, byte) in changes {
            let at = match part {
                0 => at % 4096,
                1 => len - 1 - at % 4096,
                _ => at % len,
            };
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(kept.unwrap_or(len));
        read_all(&bytes);
    }

    #[test]
    fn heads_of_any_content(head in prop::collection::vec(any::<u8>(), 0..256), class in 1u8..3) {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        bytes.extend(head);
        read_all(&bytes);
    }
}

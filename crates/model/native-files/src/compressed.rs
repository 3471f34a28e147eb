//! Sections with debug info, which may be compressed.

use std::io::Read;

use jitdump::ReadAt;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::elf::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};
use object::endian::Endian as _;
use zstd::stream::read::Decoder;

use crate::elf::Elf;

/// How a section is compressed.
enum Method {
    Zlib,
    Zstd,
}

/// The content of a section with this name, of at most `largest` bytes, decompressed if need be. `None` if there is none, or it is damaged.
pub fn debug_section(elf: &Elf<impl ReadAt>, name: &str, largest: u64) -> Option<Vec<u8>> {
    if let Some(section) = elf.section(name.as_bytes()) {
        let content = elf.content(section, largest)?;
        return match section.is_compressed() {
            true => with_header(elf, &content, largest),
            false => Some(content),
        };
    }
    // As GNU tools compressed sections before there was a flag for it.
    let name = format!(".z{}", name.strip_prefix('.')?);
    let content = elf.content(elf.section(name.as_bytes())?, largest)?;
    let (size, compressed) = content.strip_prefix(b"ZLIB")?.split_first_chunk()?;
    decompressed(&Method::Zlib, compressed, u64::from_be_bytes(*size), largest)
}

/// Decompresses a section that begins with a header (`Elf64_Chdr`, `Elf32_Chdr`).
fn with_header(elf: &Elf<impl ReadAt>, content: &[u8], largest: u64) -> Option<Vec<u8>> {
    let endian = elf.endian();
    let word = |at: usize| Some(endian.read_u32(*content.get(at..)?.first_chunk()?));
    let (size, compressed) = match elf.is_64() {
        true => (endian.read_u64(*content.get(8..)?.first_chunk()?), content.get(24..)?),
        false => (word(4)?.into(), content.get(12..)?),
    };
    let method = match word(0)? {
        kind if kind == ELFCOMPRESS_ZLIB.0 => Method::Zlib,
        kind if kind == ELFCOMPRESS_ZSTD.0 => Method::Zstd,
        _ => return None,
    };
    decompressed(&method, compressed, size, largest)
}

/// Decompresses `size` bytes, no more than `largest`.
fn decompressed(method: &Method, compressed: &[u8], size: u64, largest: u64) -> Option<Vec<u8>> {
    if size > largest {
        return None;
    }
    let wanted = usize::try_from(size).ok()?;
    let content = match method {
        Method::Zlib => decompress_to_vec_zlib_with_limit(compressed, wanted).ok()?,
        Method::Zstd => {
            let mut content = Vec::new();
            let decoder = Decoder::with_buffer(compressed).ok()?;
            decoder.take(size).read_to_end(&mut content).ok()?;
            content
        }
    };
    (content.len() == wanted).then_some(content)
}

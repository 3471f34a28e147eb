//! The code that the kernel maps into each process (`[vdso]`). It is no file, but the same in this process.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;

use jitscribe_inject::files::SourceFile;

/// The name of its mapping.
pub const NAME: &[u8] = b"[vdso]";
/// It has two or three pages.
const LARGEST: u64 = 1 << 20;

/// The one of this process, as a file.
///
/// # Errors
/// If this process has none, or it cannot be read.
pub fn read() -> io::Result<SourceFile> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let range = maps.lines().find_map(|line| {
        let (range, _) = line.strip_suffix("[vdso]")?.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(start)?..number(end)?)
    });
    let range = range.ok_or(io::ErrorKind::NotFound)?;
    let size = range.end.saturating_sub(range.start).min(LARGEST);
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    File::open("/proc/self/mem")?.read_exact_at(&mut bytes, range.start)?;
    let mut file = tempfile::tempfile()?;
    file.write_all(&bytes)?;
    file.rewind()?;
    Ok(SourceFile::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use native_files::{Elf, NativeFile};

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_clock_is_in_it() {
        let file = NativeFile::alone(Elf::read(read().expect("a vdso")).expect("an ELF file"));
        let mut has_clock = false;
        file.each_name(|name| has_clock |= name == b"__vdso_clock_gettime");
        assert!(has_clock);
    }
}

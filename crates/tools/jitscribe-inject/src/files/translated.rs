//! Logs of runtimes in formats of their own, which are opened as the jitdumps that say the same.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use code_index::LogTranslator;

use super::SourceFile;
use super::content::{Stretch, stretches};

/// How many bytes are read at a time.
const PART: usize = 1 << 20;

/// The file, or if it is a [log](code_index::LOG_FORMATS) of process `pid`, a jitdump that says the same, in a file without a name.
///
/// # Errors
/// If it cannot be read, or the jitdump cannot be written.
pub fn as_jitdump(file: impl Into<SourceFile>, pid: u32) -> io::Result<SourceFile> {
    let file = file.into();
    let mut head = [0; jitdump::HEADER_SIZE as usize];
    let count = file.read_at(&mut head, 0)?;
    let Some(mut translator) = head.get(..count).and_then(|head| LogTranslator::of(head, pid))
    else {
        return Ok(file);
    };
    let mut dump = BufWriter::new(tempfile::tempfile()?);
    dump.write_all(&translator.header())?;
    let (mut part, mut records) = (vec![0; PART], Vec::new());
    let mut all = stretches(&file)?;
    while let Some(stretch) = all.next()? {
        let Stretch::Data { mut from, mut len } = stretch else { continue };
        while len > 0 {
            let wanted = part.len().min(usize::try_from(len).unwrap_or(usize::MAX));
            let count = read_at(&file, part.get_mut(..wanted).unwrap_or_default(), from)?;
            // It was truncated.
            if count == 0 {
                break;
            }
            (from, len) = (from + count as u64, len - count as u64);
            translator.take(part.get(..count).unwrap_or_default(), &mut records);
            dump.write_all(&records)?;
            records.clear();
        }
    }
    translator.finish(&mut records);
    dump.write_all(&records)?;
    let dump = dump.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(match file.owner() {
        Some(owner) => SourceFile::with(dump, owner, ()),
        None => SourceFile::new(dump),
    })
}

fn read_at(file: &File, part: &mut [u8], from: u64) -> io::Result<usize> {
    loop {
        match file.read_at(part, from) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

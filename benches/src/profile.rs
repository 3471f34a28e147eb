//! Makes a long profile of a short one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Copies the profile `input`, and then its only part again and again until there are `bytes` of it: as callgrind writes
/// several parts into one file, where names are but numbers from the second part on.
///
/// # Errors
/// When it cannot be read or written, or is not of one part.
pub fn grow(input: &Path, output: &Path, bytes: u64) -> io::Result<()> {
    let first = fs::read_to_string(input)?;
    let body = first.find("\ndesc: Timerange").zip(first.find("\nob="));
    let Some((header, body)) = body.filter(|_| first.matches("\ntotals:").count() == 1) else {
        return Err(io::Error::other("no profile of one part"));
    };
    let mut later = first[header..body].to_owned();
    for line in first[body..].lines() {
        let name = line.split_once('=').filter(|(key, rest)| {
            rest.starts_with('(') && key.bytes().all(|byte| byte.is_ascii_lowercase())
        });
        let number = name.and_then(|(_, rest)| rest.find(") "));
        match name.zip(number) {
            Some(((key, rest), end)) => later.extend([key, "=", &rest[..=end], "\n"]),
            None => later.extend([line, "\n"]),
        }
    }
    let mut file = BufWriter::new(File::create(output)?);
    file.write_all(first.as_bytes())?;
    let (mut written, mut part) = (first.len() as u64, 1);
    while written < bytes {
        part += 1;
        let head = format!("\npart: {part}\n\n");
        file.write_all(head.as_bytes())?;
        file.write_all(later.as_bytes())?;
        written += (head.len() + later.len()) as u64;
    }
    file.flush()
}

//! Files with the tables of a profile.

use std::path::PathBuf;

use profile::{CodeSource, ContentHash, Profile};

use crate::error::Result;
use crate::gather::{self, Part};
use crate::keys::Keys;
use crate::options::Options;
use crate::path::part as path_part;
use crate::{calendar::Utc, tables};

/// What a profile becomes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Exported {
    /// The files.
    pub files: Vec<OutputFile>,
    /// Number of rows in the table of samples.
    pub rows: u64,
    /// Number of samples.
    pub samples: u64,
}

/// A file.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// Its path, below the folder of the fleet.
    pub path: PathBuf,
    /// Its content.
    pub content: Vec<u8>,
}

/// The tables of a profile. There are no files if there are no samples.
///
/// # Errors
/// If neither the recording nor the options tell UTC, or if the encoder fails.
pub fn files(profile: &Profile, code: &mut dyn CodeSource, options: &Options) -> Result<Exported> {
    let mut keys = Keys::new(profile, code);
    let parts = gather::parts(profile, &mut keys, options)?;
    let mut exported = Exported::default();
    let recording = recording(profile, options);
    for ((service, day), part) in &parts {
        let name = name(options, part, &recording);
        for table in tables::tables(profile, &mut keys, options, service, part) {
            let folder =
                format!("{}/date={}/service={}", table.name, day.date(), path_part(service));
            let path = PathBuf::from(folder).join(&name);
            exported.files.push(OutputFile { path, content: table.encode()? });
        }
        exported.rows = exported.rows.saturating_add(part.samples.len() as u64);
        let samples = part.samples.values().map(|row| row.count.cast_unsigned());
        exported.samples = samples.fold(exported.samples, u64::saturating_add);
    }
    Ok(exported)
}

/// Of the host, the first window and the recording, so that recordings of one window have files of their own, and a recording that is exported twice has the
/// same ones.
fn name(options: &Options, part: &Part, recording: &str) -> String {
    let first = part.samples.keys().next().map_or(0, |key| key.window);
    format!("{}-{}-{recording}.parquet", path_part(&options.host), Utc::new(first).compact())
}

/// A short text that tells recordings of one host apart.
fn recording(profile: &Profile, options: &Options) -> String {
    let times = profile.samples().times();
    let mut content = Vec::new();
    for time in [times.first(), times.last()] {
        content.extend(time.copied().unwrap_or_default().to_le_bytes());
    }
    content.extend((times.len() as u64).to_le_bytes());
    content.extend(options.selection.of(profile).count().to_le_bytes());
    for process in profile.processes() {
        content.extend(process.pid.to_le_bytes());
    }
    let ContentHash([a, b, c, d, ..]) = ContentHash::of(&content);
    format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
}

//! `jitscribe export --parquet`: tables of a recording, beside those of other hosts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use std::{env, fs};

use jitscribe_inject::output::Folder;
use profile::Profile;
use profile_parquet::{Error as TableError, Options};

use crate::selection::SelectionArgs;
use crate::text::{self, shell_word};
use crate::view::Target;
use crate::{Error, Result, note, recorded};

/// The options of tables.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Parquet")]
pub struct ParquetArgs {
    /// Tables for DuckDB, DataFusion, ClickHouse and Spark, below this folder, beside those of other recordings
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "tiers", "lines"])]
    parquet: Option<PathBuf>,
    /// The host's name [default: as recorded]
    #[arg(long, value_name = "NAME", requires = "parquet")]
    host: Option<String>,
    /// The service's name [default: OTEL_SERVICE_NAME, service.name of OTEL_RESOURCE_ATTRIBUTES, or the name of each process]
    #[arg(long, value_name = "NAME", requires = "parquet")]
    service: Option<String>,
    /// The version of the service [default: service.version of OTEL_RESOURCE_ATTRIBUTES, or none]
    #[arg(long, value_name = "VERSION", requires = "parquet")]
    service_version: Option<String>,
    /// Seconds in a window, for which samples are counted together [default: 600]
    #[arg(long, value_name = "SECONDS", requires = "parquet",
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    window: Option<u32>,
}

impl ParquetArgs {
    /// Where the tables are written, if they are asked for.
    pub fn folder(&self) -> Option<&Path> {
        self.parquet.as_deref()
    }

    /// The first option that says something of tables.
    pub fn first_option(&self) -> Option<&'static str> {
        let Self { parquet: _, host, service, service_version, window } = self;
        let options = [
            ("--host", host.is_some()),
            ("--service", service.is_some()),
            ("--service-version", service_version.is_some()),
            ("--window", window.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// Which recording is exported, and how.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// The recording.
    pub input: &'a Path,
    /// Its samples.
    pub selection: &'a SelectionArgs,
    /// What it does not say itself.
    pub given: &'a ParquetArgs,
    /// Whether files that exist are replaced.
    pub force: bool,
}

/// Writes the tables below `folder`.
pub fn run(args: Export<'_>, folder: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(Error::Refused(format!(
            "{} is not a folder: name one that the tables are written below",
            text::path(folder)
        )));
    }
    let believed = recorded::believed(args.input);
    let mut recorded = recorded::read(args.input, &believed)?;
    let options = options(args, &recorded.profile)?;
    let (profile, code) = (&recorded.profile, &mut recorded.code);
    let exported = profile_parquet::files(profile, code, &options).map_err(|error| match error {
        TableError::NoTime => Error::Refused(format!(
            "{}: the recording does not say how its times relate to UTC: record with jitscribe record, or with perf record -k mono",
            text::path(args.input)
        )),
        other => Error::Refused(other.to_string()),
    })?;
    // All of them can be written before the first one is.
    let top = Arc::new(Folder::create(folder)?);
    let mut targets = Vec::new();
    let mut bytes = 0_u64;
    for file in &exported.files {
        bytes = bytes.saturating_add(file.content.len() as u64);
        targets.push((target(&top, &file.path, args.force)?, file));
    }
    for (target, file) in targets {
        target.write(|out| out.write_all(&file.content))?;
    }
    say(args, profile, &exported, folder, bytes);
    Ok(())
}

/// A file below the folder, for whose path the folders are created. Links in it are refused.
fn target(top: &Arc<Folder>, path: &Path, force: bool) -> Result<Target> {
    let above = path.parent().unwrap_or(Path::new(""));
    let folder = top.below(above).map_err(Error::file(top.path().join(above)))?;
    Target::within(&folder, path.file_name().unwrap_or_default(), force)
}

fn options(args: Export<'_>, profile: &Profile) -> Result<Options> {
    let given = args.given;
    let recorded = String::from_utf8_lossy(&profile.about.host).into_owned();
    let this = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = given.host.clone().unwrap_or_else(|| match recorded.is_empty() {
        false => recorded,
        true => this(),
    });
    let mut options = Options::new(&host);
    options.selection = args.selection.of(profile)?;
    options.service = given.service.clone().or_else(|| {
        let named = env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
        named.or_else(|| resource_attribute("service.name"))
    });
    let version = given.service_version.clone();
    options.version = version.or_else(|| resource_attribute("service.version")).unwrap_or_default();
    options.window = given.window.unwrap_or(options.window);
    options.to_utc = match profile.about.to_utc {
        Some(_) => None,
        None => by_modification(args, profile),
    };
    Ok(options)
}

/// The value of an attribute of `OTEL_RESOURCE_ATTRIBUTES`, which is a list as in `service.name=shop,service.version=1.4`.
fn resource_attribute(name: &str) -> Option<String> {
    attribute(&env::var("OTEL_RESOURCE_ATTRIBUTES").ok()?, name)
}

fn attribute(list: &str, name: &str) -> Option<String> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    let value =
        pairs.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim()).next()?;
    let mut decoded = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let digits = others.first_chunk::<2>().filter(|_| first == b'%');
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = others.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(first);
                rest = others;
            }
        }
    }
    let value = String::from_utf8_lossy(&decoded).into_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// Takes the time at which the recording's file was last changed for that of the last sample.
fn by_modification(args: Export<'_>, profile: &Profile) -> Option<i64> {
    let path = text::named_file(args.input)?;
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let last = profile.samples().times().last().copied()?;
    note::warning(format_args!(
        "{}: does not say how its times relate to UTC; taken for recorded until the file was last changed. To record them: jitscribe record, or perf record -k mono",
        text::path(path)
    ));
    i64::try_from(i128::try_from(since.as_nanos()).ok()?.checked_sub(last.into())?).ok()
}

fn say(
    args: Export<'_>,
    profile: &Profile,
    exported: &profile_parquet::Exported,
    folder: &Path,
    bytes: u64,
) {
    let input = text::path(args.input);
    let (samples, rows, files) = (exported.samples, exported.rows, exported.files.len());
    let missing = recorded::missing(profile);
    note::say(format_args!("{input}: {samples} samples in {rows} rows{missing}"));
    let folder = shell_word(folder);
    note::say(format_args!(
        "written: {files} files ({bytes} bytes) below {folder}; docs/fleet.md has queries, for example: duckdb -c \"SELECT tier, sum(sample_count) FROM '{folder}/samples/**/*.parquet' GROUP BY tier\""
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_and_decoded() {
        let list = "service.name=sh%20op, service.version = 1.4.2,empty=,odd=%zz";
        for (name, value) in [
            ("service.name", Some("sh op")),
            ("service.version", Some("1.4.2")),
            ("empty", None),
            ("odd", Some("%zz")),
            ("service", None),
        ] {
            assert_eq!(attribute(list, name).as_deref(), value);
        }
    }
}

//! The recording that comes with the command, for machines on which perf cannot record. It is shown without perf and binutils.
//!
//! `scripts/demo-recording.sh` makes it.

mod addresses;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use disassembly::Syntax;
use flate2::read::GzDecoder;
use jitscribe_inject::output::Output;
use profile::{Direction, Totals};
use profile_text::{Annotated, Line, Parts, Sort, Style, Top, Tree, Wanted, hottest};

use super::printed::excerpt_around;
use crate::files::Named;
use crate::inject;
use crate::line_table::LineTable;
use crate::sample_summary::SampleSummary;
use crate::source_lines::SourceLineArgs;
use crate::text::{self, Out, shell_word};
use crate::{Error, Result, note, record, recorded, report};

/// The recording as perf wrote it.
const RECORDING: &[u8] = include_bytes!("perf.data.gz");
/// What the demo's compiler wrote during the recording.
const DUMP: &[u8] = include_bytes!("jit.dump.gz");
/// The program that was compiled.
const SOURCE: &[u8] = include_bytes!("demo.scribe.gz");

/// Larger content is not unpacked: it is not what the command was built with.
const LARGEST: u64 = 1 << 24;

/// Functions with less than this part of the samples are not listed, in percent.
const LEAST: f64 = 1.0;
/// Addresses that are listed without names.
const MOST_ADDRESSES: usize = 10;
/// Lines of machine code, and of the call tree: how many, and how many calls below each other.
const MOST_CODE: usize = 24;
const MOST_CALLS: usize = 16;
const DEEPEST_CALL: usize = 6;

/// Puts the recording into a folder, and shows it. With `force`, an earlier one is replaced.
pub fn show(folder: &Path, force: bool) -> Result<()> {
    let raw_folder = folder.join("perf.data.raw");
    let [raw, data, dump] =
        [raw_folder.join("perf.data"), folder.join("perf.data"), folder.join("jit.dump")];
    match DirBuilder::new().mode(0o700).create(&raw_folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(Error::file(&raw_folder)(error));
        }
        _ => {}
    }
    unpack(RECORDING, &raw, force)?;
    unpack(SOURCE, &folder.join("demo.scribe"), force)?;
    unpack(DUMP, &dump, force)?;
    let report = inject::inject(&inject::Args {
        input: raw.clone(),
        output: Some(data.clone()),
        jitdump: vec![Named { pid: None, path: dump }],
        perf_map: Vec::new(),
        v8_log: Vec::new(),
        memory: Vec::new(),
        no_inferred_names: false,
        aux_dir: Vec::new(),
        image_dir: None,
        force,
        allow_empty: true,
        keep_old: None,
        // It was compiled elsewhere.
        sources: SourceLineArgs { source_dir: vec![folder.to_owned()], ..Default::default() },
        buildid_cache: false,
        lines: LineTable::default(),
        json: false,
        users: BTreeMap::new(),
        processes: BTreeMap::new(),
        gone: std::sync::Arc::default(),
        logs: Vec::new(),
    })?;
    let sources = [folder.to_owned()];
    let summary = present(&raw, &data, &sources)?;
    report::write(&data, &sources, &folder.join("report.html"), force)?;
    record::summary::print_samples(&report, &summary);
    note::say(format_args!(
        "written: {}, {}",
        text::path(&data),
        text::path(&folder.join("report.html"))
    ));
    note::say(format_args!("next: jitscribe report --stdio -i {}", shell_word(&data)));
    if let Some(top) = record::summary::to_annotate(&summary) {
        let name = shell_word(String::from_utf8_lossy(&top.symbol).as_ref());
        // The recording is another machine's, so that nothing is known of what its users may read.
        note::say(format_args!(
            "      jitscribe annotate -i {} --source-dir {} {name}",
            shell_word(&data),
            shell_word(folder)
        ));
    }
    Ok(())
}

/// Writes a file that is compiled into the command.
fn unpack(compressed: &[u8], path: &Path, force: bool) -> Result<()> {
    let mut content = Vec::new();
    let decoder = GzDecoder::new(compressed);
    decoder.take(LARGEST).read_to_end(&mut content).map_err(Error::file(path))?;
    let mut output = Output::create(path, force)?;
    output.file().write_all(&content).map_err(Error::file(path))?;
    Ok(output.finish()?)
}

/// Prints what is in the recording before and after. Returns the summary of the latter.
fn present(raw: &Path, data: &Path, sources: &[PathBuf]) -> Result<SampleSummary> {
    let mut out = Out::by_lines();
    section(&mut out, "before: what perf recorded")?;
    for line in addresses::most_sampled(raw, MOST_ADDRESSES)? {
        out.styled(&line)?;
    }
    let files = recorded::believed(data);
    let mut recorded = recorded::read_with_sources(data, &files, sources)?;
    let profile = &recorded.profile;
    let selection = profile::Selection::default();
    let totals = Totals::of(profile, selection.of(profile));
    section(&mut out, "after: jitscribe report --stdio")?;
    for line in Top::of(profile, &totals, Sort::Own, LEAST).lines() {
        out.styled(&line)?;
    }
    let Some(function) = hottest(profile, &totals) else {
        return Err(Error::Refused("no sample of the recording has a name".into()));
    };
    let wanted = Wanted { syntax: Syntax::Intel, ..Wanted::default() };
    let annotated = Annotated::of(profile, &selection, function, &mut recorded.code, &wanted);
    let start = profile.samples().times().first().copied().unwrap_or(0);
    let name = text::name(profile.function_name(function)).to_string();
    section(&mut out, &format!("jitscribe annotate {name}"))?;
    let lines = annotated.lines(Parts::Mixed, start);
    for line in excerpt_around(&lines, MOST_CODE, |line| share(&line.text())) {
        out.styled(line)?;
    }
    section(&mut out, "the call tree, jitscribe report --stdio")?;
    let tree =
        Tree::of(profile, selection.of(profile), Direction::Callees, LEAST, Some(DEEPEST_CALL));
    let lines = tree.lines();
    for line in lines.iter().take(MOST_CALLS) {
        out.styled(line)?;
    }
    if let Some(more) = lines.len().checked_sub(MOST_CALLS).filter(|&more| more > 0) {
        out.styled(&Line::of(Style::Faint, format!("        ... {more} lines more ...")))?;
    }
    out.line("")?;
    out.finish()?;
    // Stacks are not counted: the libraries in which they begin are those of another machine.
    Ok(SampleSummary::of(&mut recorded))
}

fn section(out: &mut Out, title: &str) -> Result<()> {
    out.line("")?;
    out.line(format_args!("── {title} ──"))
}

/// The samples of a line of machine code, by which the hottest one is found: their percentage in hundredths, which begins the line. Of other lines 0.
fn share(line: &str) -> u64 {
    let mut words = line.split_whitespace();
    let percentage =
        words.next().and_then(|word| word.strip_suffix('%').unwrap_or(word).parse::<f64>().ok());
    // Behind it stand the number of samples and the offset, and the list of compilations has other columns.
    let has_samples = words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    match percentage {
        Some(percentage) if has_samples && line.starts_with(' ') => (percentage * 100.0) as u64,
        _ => 0,
    }
}

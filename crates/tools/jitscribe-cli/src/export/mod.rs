//! `jitscribe export`: writes a recording in the formats of other viewers.

#[cfg(feature = "parquet")]
mod parquet;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use profile::{Profile, Selection};
use profile_export::{Format, Options};

use crate::selection::SelectionArgs;
use crate::text::{self, shell_word};
use crate::view::Target;
use crate::{Error, Result, firefox_server, note, recorded};

/// The options that choose a format.
const FORMATS: &[&str] = &[
    "firefox",
    "speedscope",
    "pprof",
    "folded",
    "cpuprofile",
    "otlp",
    "chrome",
    #[cfg(feature = "parquet")]
    "parquet",
];

/// Write a recording in the format of another viewer, with inlined calls, tiers and source lines
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("format").required(true).args(FORMATS),
    after_help = "EXAMPLES:
  jitscribe record -o run.data -- node app.js
  jitscribe export --pprof -i run.data && go tool pprof -http=: run.data.pb.gz
  jitscribe export --folded -i run.data -o - | inferno-flamegraph > flame.svg

  # source and assembly of jitted code in the Firefox Profiler
  jitscribe export --firefox --serve -i run.data

  # one thread of several, functions of different tiers apart
  jitscribe export --speedscope --tid 4712 --tiers -i run.data

  # tables for DuckDB, DataFusion, ClickHouse or Spark, beside those of other hosts
  jitscribe export --parquet fleet -i run.data --service-version 1.4.2

docs/export.md has a table of what each viewer shows, docs/fleet.md describes the tables and has queries."
)]
pub struct Args {
    #[command(flatten)]
    format: FormatArgs,
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    input: PathBuf,
    /// Where to write; - for standard output [default: INPUT with the format's ending]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Put tiers into the names of functions, for formats that have no other place for them
    #[arg(long)]
    tiers: bool,
    /// Put lines into the names of functions: --folded and --speedscope
    #[arg(long)]
    lines: bool,
    /// Replace the output if it exists
    #[arg(short, long)]
    force: bool,
    /// Serve the profile to the Firefox Profiler instead, with source and assembly, until Ctrl-C
    #[arg(long, requires = "firefox", conflicts_with_all = ["output", "force"])]
    serve: bool,
    /// The port to serve at, on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT", requires = "serve")]
    port: Option<u16>,
    #[cfg(feature = "parquet")]
    #[command(flatten)]
    parquet: parquet::ParquetArgs,
    // The last one: its heading is for all options behind it.
    #[command(flatten)]
    selection: SelectionArgs,
}

#[derive(Clone, Copy, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one option for each format")]
struct FormatArgs {
    /// For the Firefox Profiler (profiler.firefox.com)
    #[arg(long)]
    firefox: bool,
    /// For speedscope (speedscope.app)
    #[arg(long)]
    speedscope: bool,
    /// For pprof, Pyroscope and others that read its format
    #[arg(long)]
    pprof: bool,
    /// Folded stacks, for flame graphs: FlameGraph, inferno
    #[arg(long)]
    folded: bool,
    /// V8's .cpuprofile, for Chrome's DevTools and VS Code: the selected thread with the most samples
    #[arg(long)]
    cpuprofile: bool,
    /// OpenTelemetry's profiles (v1development): a request, as protobuf
    #[arg(long)]
    otlp: bool,
    /// Chrome's trace events, for DevTools, Perfetto and speedscope
    #[arg(long)]
    chrome: bool,
}

impl FormatArgs {
    fn format(self) -> Format {
        match self {
            Self { firefox: true, .. } => Format::Firefox,
            Self { speedscope: true, .. } => Format::Speedscope,
            Self { pprof: true, .. } => Format::Pprof,
            Self { cpuprofile: true, .. } => Format::Cpuprofile,
            Self { otlp: true, .. } => Format::Otlp,
            Self { chrome: true, .. } => Format::Chrome,
            // The parser asks for one of them.
            _ => Format::Folded,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    #[cfg(feature = "parquet")]
    if let Some(folder) = args.parquet.folder() {
        let export = parquet::Export {
            input: &args.input,
            selection: &args.selection,
            given: &args.parquet,
            force: args.force,
        };
        return parquet::run(export, folder);
    }
    // The parser lets this pass, as options of a group exclude each other.
    #[cfg(feature = "parquet")]
    if let Some(option) = args.parquet.first_option() {
        return Err(Error::Usage(format!("{option} needs --parquet DIR")));
    }
    let format = args.format.format();
    if args.serve {
        // The parser lets this pass, as options of a group exclude each other.
        if format != Format::Firefox {
            return Err(Error::Usage("--serve needs --firefox".into()));
        }
        return serve(args);
    }
    let output = output_path(args, format);
    let output = output.as_deref();
    if output.is_none() && format != Format::Folded {
        text::refuse_terminal("profile")?;
    }
    let target = Target::open(output, args.force)?;
    let believed = recorded::believed(&args.input);
    let recorded = recorded::read(&args.input, &believed)?;
    let options = options(args, &recorded.profile, format)?;
    target.write(|out| format.write(&recorded.profile, &options, out))?;
    say(args, &recorded.profile, &options, output, format);
    Ok(())
}

fn serve(args: &Args) -> Result<()> {
    let believed = recorded::believed(&args.input);
    let recorded = recorded::read(&args.input, &believed)?;
    let options = options(args, &recorded.profile, Format::Firefox)?;
    firefox_server::serve(recorded, &options, args.port.unwrap_or(0))
}

/// Serves all threads of a recording to the Firefox Profiler, by the event with the most samples.
pub fn serve_all(input: &Path, source_dirs: &[PathBuf], port: Option<u16>) -> Result<()> {
    let believed = recorded::believed(input);
    let recorded = recorded::read_with_sources(input, &believed, source_dirs)?;
    let mut options = Options::default();
    options.selection = SelectionArgs::default().of(&recorded.profile)?;
    firefox_server::serve(recorded, &options, port.unwrap_or(0))
}

/// The file to write; `None` for standard output.
fn output_path(args: &Args, format: Format) -> Option<PathBuf> {
    match &args.output {
        Some(path) => text::named_file(path).map(Path::to_owned),
        None => {
            // A recording may be a directory, whose name was typed with a slash.
            let mut name: OsString = text::named_file(&args.input)?.components().as_path().into();
            name.push(".");
            name.push(format.extension());
            Some(name.into())
        }
    }
}

fn options(args: &Args, profile: &Profile, format: Format) -> Result<Options> {
    let mut options = Options::default();
    options.selection = match format.has_events() {
        true => args.selection.of_all_events(profile)?,
        false => args.selection.of(profile)?,
    };
    if format.has_one_thread() {
        warn_of_threads(profile, &options.selection);
    }
    (options.tiers, options.lines) = (args.tiers, args.lines);
    Ok(options)
}

fn warn_of_threads(profile: &Profile, selection: &Selection) {
    let threads = selection.threads_with_samples(profile);
    let all: u64 = threads.iter().map(|(_, count)| count).sum();
    if let [(thread, count), _, ..] = threads[..] {
        let tid = profile.thread(thread).tid;
        note::warning(format_args!(
            "the format has one thread: exported {tid}, {count} of {all} samples; choose another with --tid"
        ));
    }
}

fn say(args: &Args, profile: &Profile, options: &Options, output: Option<&Path>, format: Format) {
    let input = text::path(&args.input);
    let samples = options.selection.of(profile).count();
    let of_all = match profile.samples().len() {
        all if all == samples => String::new(),
        all => format!(" of {all}"),
    };
    let missing = recorded::missing(profile);
    let functions = profile.functions().len();
    note::say(format_args!("{input}: {samples}{of_all} samples, {functions} functions{missing}"));
    let Some(output) = output else { return };
    let file = shell_word(output);
    let next = match format {
        Format::Firefox => format!(
            "load it at https://profiler.firefox.com, or see source and assembly with: jitscribe export --firefox --serve -i {}",
            shell_word(&args.input)
        ),
        Format::Speedscope => "load it at https://www.speedscope.app".into(),
        Format::Pprof => format!("go tool pprof -http=: {file}"),
        Format::Folded => format!("inferno-flamegraph --colors java {file} > flame.svg"),
        Format::Cpuprofile => {
            "load it in the Performance panel of Chrome's DevTools, or open it in VS Code".into()
        }
        Format::Otlp => format!(
            "curl --data-binary @{file} -H 'Content-Type: application/x-protobuf' http://COLLECTOR:4318/v1development/profiles"
        ),
        Format::Chrome => "load it at https://ui.perfetto.dev, or in Chrome's DevTools".into(),
    };
    note::say(format_args!("written: {file}; next: {next}"));
}

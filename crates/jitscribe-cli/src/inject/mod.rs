//! `jitscribe inject`: brings what JITs wrote into what perf recorded.
//!
//! Data flows one way. [`survey`] reads the recording for processes, mappings and the clock;
//! [`locate`] finds the files that tell of code, [`sources`] reads them into the book of [`codes`],
//! each time said in the recording's [`clock`]; [`weigh`] reads the recording again for which code
//! was seen running; [`plan`] decides on arenas, epochs and mappings; [`images`] writes the object
//! files; [`rewrite`] copies the recording with the mappings put in; [`report`] tells what was done.

mod address_space;
mod answers;
mod cache;
mod clock;
mod codes;
mod huge;
mod image;
mod images;
mod interner;
mod locate;
mod plan;
mod report;
mod rewrite;
mod seen;
mod sources;
mod survey;
mod top;
mod turns;
mod weigh;

use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use perf_data::{BuildId, End, Features, Input, Writer, feature};

use crate::files::Named;
use crate::line_table::LineTable;
use crate::output::Output;
use crate::{Error, Result, note};

use address_space::AddressSpaces;
use images::{Images, Wanted};
use locate::{Located, Places, Source};
use plan::{Grounds, Plan};
use report::ImageReport;
pub use report::{Report, shell_word};
use sources::{Contents, Sources};
use survey::Survey;
use top::Hits;
use turns::beside;
use weigh::Weights;

/// Bring what JITs wrote into a recording of perf's
///
/// Finds the jitdumps and perf maps of the recorded processes, writes their code as object files
/// (one for each stretch of memory and span of time, not one for each function), and copies the
/// recording with these mapped where the code ran. perf report, annotate and script then show
/// names, source lines, assembly and call stacks.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  perf record -k mono -g -- node --perf-prof app.js
  jitscribe inject -i perf.data -o out.data
  perf report -i out.data

  # the dump moved here from another machine
  jitscribe inject -i perf.data -o out.data --aux-dir ./from-production

  # a process of a container, whose dump says another pid
  jitscribe inject -i perf.data -o out.data --jitdump 4711=/srv/app/jit-1.dump

  perf record -o - -- node --perf-prof app.js | jitscribe inject -i - -o out.data")]
pub struct Args {
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub input: PathBuf,
    /// Where to write the new recording; - for standard output [default: INPUT.jitted]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A jitdump to apply, and whose it is [default: as its marker, header or name says]
    #[arg(long, value_name = "[PID=]FILE")]
    pub jitdump: Vec<Named>,
    /// A perf map to apply, and whose it is [default: as its name says]
    #[arg(long, value_name = "[PID=]FILE")]
    pub perf_map: Vec<Named>,
    /// A folder with jitdumps and perf maps that moved here from another machine
    #[arg(long, value_name = "DIR")]
    pub aux_dir: Vec<PathBuf>,
    /// Where to write the object files; perf will look for them there [default: OUTPUT.jit]
    #[arg(long, value_name = "DIR")]
    pub image_dir: Option<PathBuf>,
    /// Which lines to show, where a dump has both
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub lines: LineTable,
    /// Replace the output and the object files if they exist
    #[arg(short, long)]
    pub force: bool,
    /// Add the object files to perf's build-id cache (~/.debug) as well
    #[arg(long)]
    pub buildid_cache: bool,
    /// Print what was done as JSON (sizes in bytes, times in nanoseconds) on standard output
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let report = inject(args)?;
    report.say();
    if args.json {
        report.print_json()?;
    }
    Ok(())
}

/// Injects, and tells what was done.
pub fn inject(args: &Args) -> Result<Report> {
    let output = args.output.clone().unwrap_or_else(|| with_suffix(&args.input, ".jitted"));
    let to_stdout = output.as_os_str() == "-";
    if to_stdout && args.json {
        return Err(Error::Refused("--json and -o - cannot share standard output".into()));
    }
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Error::Refused(
            "standard output is a terminal; a recording would garble it: -o FILE".into(),
        ));
    }
    let reading = |error: perf_data::Error| match error {
        perf_data::Error::Read(source) => Error::File { path: args.input.clone(), source },
        other => Error::format(&args.input)(other),
    };
    let mut input = Input::open(&args.input).map_err(reading)?;
    // Refused early, before work is spent on what may not be written.
    let target = if to_stdout { None } else { Some(Output::create(&output, args.force)?) };

    let size = fs::metadata(&args.input).map_or(0, |file| file.len());
    let bar = note::progress("reading the recording", size);
    let survey = Survey::of(&mut input, |at| bar.set_position(at)).map_err(reading)?;
    let mut warnings = Vec::new();
    match input.end() {
        End::CutOff { offset, .. } => warnings.push(format!(
            "{}: cut off at offset {offset:#x}; the {} events before that are kept",
            args.input.display(),
            survey.events
        )),
        End::Damaged { offset, cause, .. } => warnings.push(format!(
            "{}: {cause} at offset {offset:#x}; the {} events before that are kept",
            args.input.display(),
            survey.events
        )),
        _ => {}
    }

    let recorded_here = recorded_here(input.features());
    let Located { sources: found, warnings: missing, markers } =
        locate::locate(&survey, &places(args, recorded_here));
    warnings.extend(missing);
    let contents = Contents::read(&found, &mut warnings);
    let spaces = AddressSpaces::of(&survey);
    let mut sources = Sources::of(&found, &contents, &survey, &spaces, &mut warnings);
    let book = &sources.book;

    bar.set_message("looking for the code");
    input.restart();
    let known_to_perf = |pid| {
        let mut of_pid = found.iter().filter(|source| survey.processes.pid(source.life) == pid);
        of_pid.any(|source| source.known_to_perf)
    };
    let (grounds, weights) = beside(
        || Grounds::of(&survey, &spaces, book),
        || {
            Weights::of(&mut input, &survey, &spaces, book, &known_to_perf, |at| {
                bar.set_position(at)
            })
        },
    );
    let weights = weights.map_err(reading)?;
    if book.len() == 0 {
        warnings.push(nothing_found(&found, markers));
    }

    bar.set_message("writing object files");
    let plan = Plan::of(&survey, &spaces, book, &weights, grounds);
    // What is not needed any more makes room for the images' tables.
    sources.book.forget_timelines();
    if plan.crowded > 0 {
        warnings.push(
            "code was replaced too often to show each state in an object file of its own; call \
             stacks that perf unwinds from copies may end at replaced code"
                .into(),
        );
    }
    if plan.torn > 0 {
        warnings.push(format!(
            "code that lies without a gap is more than one object file can show, and {} of its \
             functions are shown in parts; offsets count from the beginning of each part",
            plan.torn
        ));
    }
    let folder = image_folder(args, &output, to_stdout)?;
    if !plan.arenas.is_empty() {
        fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    }
    // perf looks the images up by this path, from wherever it is started.
    let folder = if plan.arenas.is_empty() {
        folder
    } else {
        fs::canonicalize(&folder).map_err(Error::file(&folder))?
    };
    let hits = Hits::of(&weights, sources.book.len());
    let images = Images::write(
        &plan,
        &survey,
        &spaces,
        &sources.book,
        input.attrs(),
        &|life| sources.targets.of(&survey, life, input.features()),
        Wanted { folder: &folder, force: args.force, lines: args.lines.into(), hits: &hits },
    )?;

    bar.set_message("writing the recording");
    input.restart();
    let writing = |error: perf_data::Error| match error {
        perf_data::Error::Write(source) => Error::File { path: output.clone(), source },
        other => reading(other),
    };
    let mut target = target;
    let mut writer = match &mut target {
        Some(file) => Writer::file(file.file(), &input),
        None => Ok(Writer::pipe(std::io::stdout().lock(), &input)),
    }
    .map_err(writing)?;
    add_build_ids(&mut writer, &images, input.endian()).map_err(writing)?;
    rewrite::rewrite(&mut input, &mut writer, &survey, &spaces, &plan, &images.events, |at| {
        bar.set_position(at);
    })
    .map_err(writing)?;
    writer.finish().map_err(writing)?;
    if let Some(file) = target {
        file.finish()?;
    }
    bar.finish_and_clear();
    let lives = plan.arenas.iter().flat_map(|arena| arena.images.iter().map(|_| arena.life));
    let owners = lives.map(|life| survey.processes.pid(life));
    let paths: Vec<&Path> = images.written.iter().map(|image| image.path.as_path()).collect();
    if args.buildid_cache {
        cache::add(&paths, &mut warnings);
    } else if recorded_here {
        cache::add_unreachable(paths.into_iter().zip(owners), &mut warnings);
    }

    Ok(Report {
        input: args.input.clone(),
        output: (!to_stdout).then_some(output),
        events: survey.events,
        samples: weights.counts,
        top: images.top.finish(&hits, &sources.book)?,
        sources: sources.reports,
        images: images
            .written
            .iter()
            .map(|image| ImageReport {
                path: image.path.clone(),
                size: image.finished.file_size,
                build_id: image
                    .finished
                    .build_id
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            })
            .collect(),
        warnings,
    })
}

fn places(args: &Args, recorded_here: bool) -> Places {
    let beside = match args.input.parent() {
        _ if args.input.as_os_str() == "-" => None,
        Some(folder) if !folder.as_os_str().is_empty() => Some(folder.to_owned()),
        _ => Some(PathBuf::from(".")),
    };
    Places {
        jitdumps: args.jitdump.clone(),
        perf_maps: args.perf_map.clone(),
        folders: args.aux_dir.clone(),
        beside,
        recorded_here,
    }
}

/// Whether the recording was made on this machine, as far as names tell. One without a name may
/// have been.
fn recorded_here(features: &Features) -> bool {
    let system = rustix::system::uname();
    // A length, and the name with a NUL.
    let recorded = features.get(feature::HOSTNAME).and_then(|bytes| bytes.get(4..));
    recorded.is_none_or(|name| {
        name.split(|&byte| byte == 0).next() == Some(system.nodename().to_bytes())
    })
}

/// Why there is nothing to apply, and what to type instead.
fn nothing_found(found: &[Source], markers: usize) -> String {
    if !found.is_empty() {
        return "none of the files tells of any code; jitscribe check FILE says what is wrong"
            .into();
    }
    if markers > 0 {
        return "nothing was applied: none of the recorded dumps is there".into();
    }
    "nothing was applied: the recording shows no jitdump and no perf map was found. Does the runtime \
     write one (node --perf-prof, php -d opcache.jit_debug=32, erl +JPperf true)? `jitscribe record \
     -- CMD` sets what is needed; --jitdump FILE or --perf-map FILE say where one lies"
        .into()
}

fn image_folder(args: &Args, output: &Path, to_stdout: bool) -> Result<PathBuf> {
    match &args.image_dir {
        Some(folder) => Ok(folder.clone()),
        None if to_stdout => Err(Error::Refused(
            "-o - needs --image-dir DIR: the object files must lie where perf finds them".into(),
        )),
        None => Ok(with_suffix(output, ".jit")),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Says the images' build-ids, so that perf archive and debuginfod know them.
fn add_build_ids(
    writer: &mut Writer<'_>,
    images: &Images,
    endian: perf_data::Endian,
) -> Result<(), perf_data::Error> {
    let ids: Vec<BuildId> = images
        .written
        .iter()
        .map(|image| {
            BuildId::of_user_file(image.path.as_os_str().as_bytes(), &image.finished.build_id)
        })
        .collect();
    if !ids.is_empty() {
        writer.features_mut()?.append_build_ids(ids.iter(), endian);
    }
    Ok(())
}

//! `jitscribe demo`: runs `demo-jit` under perf, and prints what perf shows before and after `inject`. Where perf cannot record, it shows a
//! recording that comes with the command.

mod inlined;
mod printed;
mod shipped;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use crate::inject;
use crate::line_table::LineTable;
use crate::perf_access::{Obstacle, Recorded};
use crate::sample_summary::SampleSummary;
use crate::source_lines::SourceLineArgs;
use crate::text::Out;
use crate::text::shell_word;
use crate::unnamed::Started;
use crate::{Error, Result, companion, note, record, report, text};
use jitscribe_inject::output::Folder;
use printed::{excerpt_around, perf};

/// The program that is recorded: `examples/demo-jit`.
const PROGRAM: &str = "demo-jit";

/// Record a small JIT and show what perf says of it, before and after
///
/// The program compiles functions of a small language while it runs them: one is compiled three times
/// at the same address, one is moved, one is freed and its place taken. It is recorded by jitscribe
/// record; perf then shows its functions, its source lines and its call stacks, addr2line the calls that the JIT
/// inlined, and perf once more the lines of the JIT's intermediate representation. At the end stands an HTML report of it all.
///
/// Where perf is not installed or not allowed to record, the command says what forbids it and how to allow it, and shows a recording
/// of the same program that comes with it: functions before and after, assembly, calls, and the HTML report.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe demo

  # code without frame pointers, unwound by the tables that the JIT announced
  jitscribe demo --dwarf

  # without perf
  jitscribe demo --shipped")]
pub struct Args {
    /// Take call chains from stack copies, by the announced unwind tables; the generated code then
    /// has no frame pointers
    #[arg(long)]
    pub dwarf: bool,
    /// Let the generated code keep frame pointers also with --dwarf
    #[arg(long)]
    pub frame_pointers: bool,
    /// Where to put the recording and all that belongs to it [default: a new folder in the temporary
    /// one]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace the recordings of an earlier demo in DIR
    #[arg(short, long, requires = "output")]
    pub force: bool,
    /// Milliseconds for each of the program's phases
    #[arg(long, value_name = "MS", default_value_t = 350)]
    pub phase: u64,
    /// Show the recording that comes with this command instead of making one; needs no perf
    #[arg(long, conflicts_with_all = ["dwarf", "frame_pointers", "phase"])]
    pub shipped: bool,
}

/// Runs the command: records the demo JIT, and shows what perf makes of the recording, or shows the one that comes with the command.
pub fn run(args: &Args) -> Result<()> {
    if args.shipped {
        return show_shipped(args);
    }
    if let Some(obstacle) = Obstacle::find(Recorded::Own) {
        return show_instead(args, &obstacle);
    }
    match record_and_show(args) {
        // perf is refused something that it asks for and we do not know.
        Err(Error::NothingRecorded(why)) => show_instead(args, &why),
        done => done,
    }
}

/// Says why there is no new recording, and shows the one that comes with the command.
fn show_instead(args: &Args, why: &dyn Display) -> Result<()> {
    note::warning(format_args!("perf cannot record here: {why}"));
    if args.dwarf {
        note::say("--dwarf has no effect: the call stacks below were recorded by frame pointers");
    }
    show_shipped(args)
}

fn show_shipped(args: &Args) -> Result<()> {
    let folder = folder(args)?;
    note::say(format_args!(
        "showing the recording of {PROGRAM} that comes with jitscribe, in {}",
        text::path(&folder)
    ));
    shipped::show(&folder, args.force)?;
    print_rest(&folder);
    Ok(())
}

fn record_and_show(args: &Args) -> Result<()> {
    let program = companion::program(PROGRAM).ok_or_else(|| {
        Error::Refused(format!(
            "there is no {PROGRAM} beside {} or on the PATH: build it with `cargo build --release -p {PROGRAM}`, or install it with \
             `cargo install --locked --path examples/{PROGRAM}`",
            text::path(&companion::own())
        ))
    })?;
    let folder = folder(args)?;
    let data = folder.join("perf.data");
    let mut command = vec![program.into(), "--quiet".into()];
    for option in ["--dump-dir", "--source-dir", "--ir-dir"] {
        command.extend([option.into(), folder.clone().into()]);
    }
    command.extend(["--phase".into(), args.phase.to_string().into()]);
    command.extend((args.dwarf && !args.frame_pointers).then(|| "--no-frame-pointers".into()));
    note::say("recording a small JIT under perf...");
    let recorded = record::record(&record::Args {
        tool: None,
        output: data.clone(),
        pid: None,
        inspect: false,
        duration: None,
        jitdump: Vec::new(),
        perf_map: Vec::new(),
        call_graph: Some(if args.dwarf { "dwarf" } else { "fp" }.into()),
        no_env: true,
        no_memory: true,
        exact_times: false,
        bridge: false,
        keep_raw: true,
        held: false,
        image_dir: None,
        force: args.force,
        allow_empty: true,
        sources: SourceLineArgs::default(),
        buildid_cache: false,
        json: false,
        perf_option: vec!["-F".into(), "999".into()],
        command,
    })?;
    match recorded.ended.code() {
        0 => {}
        code => return Err(Error::Child(code)),
    }
    let raw = folder.join("perf.data.raw").join("perf.data");
    let with_ir = folder.join("perf.ir.data");
    inject::inject(&inject::Args {
        input: raw.clone(),
        output: Some(with_ir.clone()),
        jitdump: Vec::new(),
        perf_map: Vec::new(),
        v8_log: Vec::new(),
        memory: Vec::new(),
        no_inferred_names: false,
        aux_dir: vec![folder.clone()],
        image_dir: None,
        force: args.force,
        allow_empty: true,
        keep_old: None,
        sources: SourceLineArgs::default(),
        buildid_cache: false,
        lines: LineTable::Ir,
        json: false,
        users: BTreeMap::new(),
        processes: BTreeMap::new(),
        gone: std::sync::Arc::default(),
        logs: Vec::new(),
    })?;
    present(&recorded.summary, &raw, &data, &with_ir)?;
    report::write(&data, &[], &folder.join("report.html"), args.force)?;
    record::summary::print(&recorded.report, &recorded.summary, &data, Started::default());
    note::say(format_args!("     perf script -i {} -F +srcline", shell_word(&data)));
    print_rest(&folder);
    Ok(())
}

/// Says what else is in the folder.
fn print_rest(folder: &Path) {
    note::say(format_args!("the source that ran: {}", text::path(&folder.join("demo.scribe"))));
    note::say(format_args!("to remove all of it: rm -r {}", shell_word(folder)));
}

/// The folder for all that the demo makes. It stays.
fn folder(args: &Args) -> Result<PathBuf> {
    let folder = match &args.output {
        Some(folder) => {
            Folder::create(folder)?;
            folder.clone()
        }
        None => {
            let temporary = std::env::temp_dir();
            let mut builder = tempfile::Builder::new();
            let made = builder.prefix("jitscribe-demo-").tempdir_in(&temporary);
            made.map_err(Error::file(&temporary))?.keep()
        }
    };
    fs::canonicalize(&folder).map_err(Error::file(&folder))
}

/// Prints what perf shows.
fn present(summary: &SampleSummary, raw: &Path, data: &Path, with_ir: &Path) -> Result<()> {
    let mut out = Out::by_lines();
    let flat = ["report", "--stdio", "--no-children", "-g", "none", "--sort", "dso,symbol"];
    for (when, recording) in [("before", raw), ("after", data)] {
        out.line("")?;
        out.line(format_args!("── perf report, {when} ──"))?;
        for line in perf(recording, &flat).iter().filter(|line| !is_comment(line)).take(10) {
            out.line(line)?;
        }
    }
    if let Some(top) = summary.top.first() {
        out.line("")?;
        out.line(format_args!("── perf annotate {} ──", text::name(&top.symbol)))?;
        let annotated = perf(data, &["annotate", "--stdio", "--symbol", &top.symbol_text]);
        for line in excerpt(&annotated, 20) {
            out.line(line)?;
        }
        out.line("")?;
        out.line(format_args!("── the same with jitscribe inject --lines ir ──"))?;
        let annotated = perf(with_ir, &["annotate", "--stdio", "--symbol", &top.symbol_text]);
        for line in excerpt(&annotated, 12) {
            out.line(line)?;
        }
    }
    if let Some((at, calls)) = inlined::deepest(data) {
        out.line("")?;
        out.line(format_args!("── addr2line -i, the calls inlined at {at} ──"))?;
        for call in calls {
            out.line(call)?;
        }
    }
    out.line("")?;
    out.line(format_args!("── perf script, a call stack through jitted code ──"))?;
    // Source lines are slow to be had: of one sample they are enough.
    let stacks = perf(data, &["script", "--ns", "--no-inline", "-F", "time,ip,sym,dso"]);
    let time = deepest(&stacks);
    let span = format!("{time},{time}");
    let fields = "comm,time,ip,sym,symoff,dso,srcline";
    let stack = perf(data, &["script", "--ns", "--no-inline", "--time", &span, "-F", fields]);
    for line in shortened(stack.split(|line| line.is_empty()).next().unwrap_or_default()) {
        out.line(line)?;
    }
    out.line("")?;
    out.finish()
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// So many lines of perf's around the hottest instruction.
fn excerpt(annotated: &[String], lines: usize) -> &[String] {
    excerpt_around(annotated, lines, |line| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first.parse::<f64>().map_or(0, |percent| (percent * 100.0) as u64)
    })
}

/// When the sample was taken that has the most different jitted functions in its stack.
fn deepest(stacks: &[String]) -> &str {
    let jitted = |sample: &&[String]| {
        let of_jit = sample.iter().filter(|line| line.contains(".jit/"));
        let symbols = of_jit.filter_map(|line| line.split_whitespace().nth(1));
        symbols.collect::<BTreeSet<_>>().len()
    };
    let best = stacks.split(|line| line.is_empty()).max_by_key(jitted);
    let first = best.and_then(|sample| sample.first());
    first.map_or("0", |line| line.trim().trim_end_matches(':'))
}

/// A stack with the middle of a long one left out.
fn shortened(stack: &[String]) -> Vec<String> {
    const ENDS: usize = 10;
    if stack.len() <= 2 * ENDS {
        return stack.to_vec();
    }
    let mut lines = stack[..ENDS].to_vec();
    lines.push(format!("        ... {} lines more ...", stack.len() - 2 * ENDS));
    lines.extend_from_slice(&stack[stack.len() - ENDS..]);
    lines
}

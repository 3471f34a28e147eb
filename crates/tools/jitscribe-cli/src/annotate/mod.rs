//! `jitscribe annotate`: shows the source and the assembly of a function, with its samples.

use std::path::PathBuf;

use disassembly::Syntax;
use profile::{FunctionId, Profile, Totals};
use profile_text::{
    Annotated, Found, FunctionInfo, Generations, Line, Parts, Style, Wanted, find, hottest,
};

use crate::selection::SelectionArgs;
use crate::{Error, Result, note, recorded, text, view};

/// Show the source and the assembly of a function with its samples
///
/// All compilations of the function are listed, with their tiers, sizes and samples; the one with the most samples is shown. Calls that a
/// compiler inlined appear where they are, with their own source lines, and branches and calls have labels and names. A function that runs only
/// where it was inlined is shown there. Percentages are parts of the samples in the function's code, in all its compilations together.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "EXAMPLES:
  jitscribe annotate                       the function with the most samples
  jitscribe annotate fib                   by its name, or a part of it
  jitscribe annotate 'run src/app.js:12'   by name and place, if several have the name
  jitscribe annotate fib --generation all  every compilation
  jitscribe annotate fib --tier baseline --asm
  jitscribe annotate fib --source          source lines, with the time in what they called
  jitscribe annotate fib --json | jq '.codes[0].instructions[] | select(.samples > 0)'

The pager is $JITSCRIBE_PAGER, $PAGER or less; it is used on a terminal only.")]
pub struct Args {
    /// The function [default: that with the most samples, of those with code, or inlined into code]
    name: Option<String>,
    /// The recording: a file, a directory of perf record --threads, or - for standard input
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    input: PathBuf,
    /// Show assembly without source
    #[arg(long)]
    asm: bool,
    /// Show source without assembly
    #[arg(long)]
    source: bool,
    /// Write x86 instructions in the syntax of AT&T instead of Intel's
    #[arg(long)]
    att: bool,
    /// Show this compilation of the function, counted from 1 in each process, or all [default: that with the most samples]
    #[arg(long, value_name = "N|all", value_parser = generation)]
    generation: Option<Generations>,
    /// Show only compilations by this tier of the compiler
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Print JSON: docs/look.md describes its fields
    #[arg(long)]
    json: bool,
    /// Do not use a pager
    #[arg(long)]
    no_pager: bool,
    /// A folder with sources to show that the recorded process is not known to be allowed to read
    #[arg(long, value_name = "DIR")]
    source_dir: Vec<PathBuf>,
    // The last one: its heading is for all options behind it.
    #[command(flatten)]
    selection: SelectionArgs,
}

fn generation(typed: &str) -> Result<Generations, String> {
    match typed {
        "all" => Ok(Generations::All),
        number => match number.parse() {
            Ok(number @ 1..) => Ok(Generations::Number(number)),
            _ => Err("a number from 1 on, or all".into()),
        },
    }
}

/// Most functions in a list to choose from.
const MOST_CHOICES: usize = 40;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let files = recorded::believed(&args.input);
    let mut recorded = recorded::read_with_sources(&args.input, &files, &args.source_dir)?;
    let profile = &recorded.profile;
    let selection = args.selection.of(profile)?;
    let totals = Totals::of(profile, selection.of(profile));
    let function = match &args.name {
        Some(name) => named(profile, &totals, name)?,
        None => hottest(profile, &totals)
            .ok_or_else(|| Error::Refused("no sample is in a function with a name".into()))?,
    };
    let wanted = Wanted {
        generations: args.generation.unwrap_or_default(),
        tier: args.tier.clone(),
        syntax: if args.att { Syntax::Att } else { Syntax::Intel },
    };
    let annotated = Annotated::of(profile, &selection, function, &mut recorded.code, &wanted);
    recorded::warn_of_withheld(&recorded.code);
    check_shown(args, &annotated)?;
    if args.json {
        return view::print_json("annotate", &[&args.input], annotated);
    }
    let parts = match (args.asm, args.source) {
        (true, false) => Parts::Assembly,
        (false, true) => Parts::Source,
        _ => Parts::Mixed,
    };
    let start = profile.samples().times().first().copied().unwrap_or(0);
    view::print(&annotated.lines(parts, start), !args.no_pager)
}

/// Fails if a compilation was asked for that the function does not have.
fn check_shown(args: &Args, annotated: &Annotated) -> Result<()> {
    let mut codes = annotated.codes.iter().chain(&annotated.inlined_into);
    if (args.generation.is_none() && args.tier.is_none()) || codes.any(|code| code.is_shown) {
        return Ok(());
    }
    let there: Vec<String> = annotated
        .codes
        .iter()
        .take(MOST_CHOICES)
        .map(|code| format!("{} {}", code.generation, code.tier).trim_end().to_owned())
        .collect();
    Err(Error::Refused(format!(
        "{} has no such compilation; there are: {}",
        annotated.function.full(),
        there.join(", ")
    )))
}

/// The function that a user means.
fn named(profile: &Profile, totals: &Totals, name: &str) -> Result<FunctionId> {
    let shown = text::name(name.as_bytes());
    match find(profile, totals, name) {
        Found::Function(function, others) => {
            if let [first, ..] = others.as_slice() {
                note::say(format_args!(
                    "{} functions have this name; this is {:?}, another is {:?}",
                    others.len() + 1,
                    FunctionInfo::of(profile, function).exact(),
                    FunctionInfo::of(profile, *first).exact(),
                ));
            }
            Ok(function)
        }
        Found::Several(functions) => {
            let mut lines = vec![Line::of(Style::Heading, format!("{:>11}  function", "samples"))];
            for (function, count) in functions.iter().take(MOST_CHOICES) {
                let full = FunctionInfo::of(profile, *function).exact();
                lines.push(Line::of(Style::Plain, format!("{:>11}  {full}", count.own)));
            }
            view::print(&lines, false)?;
            Err(Error::Refused(format!(
                "{} functions have {shown} in their names: choose one",
                functions.len()
            )))
        }
        Found::Nothing => Err(Error::Refused(format!(
            "no function is called {shown}; jitscribe report --stdio lists those with samples"
        ))),
    }
}

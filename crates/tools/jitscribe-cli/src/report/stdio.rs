//! The report as text: a list of functions and a call tree.

use std::path::Path;

use profile::{Activities, Direction, Totals};
use profile_text::{Line, Style, Top, Tree, activity_text};
use serde::Serialize;

use crate::selection::SelectionArgs;
use crate::sort::Sort;
use crate::{Result, recorded, view};

/// The options of the report as text.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Text")]
pub struct TextArgs {
    /// By what functions are sorted
    #[arg(long, value_enum, default_value_t, value_name = "KEY", requires = "stdio")]
    sort: Sort,
    /// Show the callers of each function instead of what it called
    #[arg(long, requires = "stdio")]
    callers: bool,
    /// Leave out functions and calls with fewer samples than this part of all, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5, requires = "stdio")]
    percent_limit: f64,
    /// Show no more than this number of functions below each other in the call tree
    #[arg(long, value_name = "N", requires = "stdio")]
    max_depth: Option<usize>,
    /// Print JSON: docs/look.md describes its fields
    #[arg(long, requires = "stdio")]
    json: bool,
    /// Do not use a pager
    #[arg(long, requires = "stdio")]
    no_pager: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
}

#[derive(Serialize)]
struct Json {
    activities: Activities,
    top: Top,
    callees: Option<Tree>,
    callers: Option<Tree>,
}

/// Prints the report.
pub fn run(input: &Path, args: &TextArgs) -> Result<()> {
    let files = recorded::believed(input);
    let recorded = recorded::read(input, &files)?;
    let profile = &recorded.profile;
    let selection = args.selection.of(profile)?;
    let totals = Totals::of(profile, selection.of(profile));
    let limit = args.percent_limit;
    let top = Top::of(profile, &totals, args.sort.into(), limit);
    let direction = if args.callers { Direction::Callers } else { Direction::Callees };
    let tree = Tree::of(profile, selection.of(profile), direction, limit, args.max_depth);
    let activities = Activities::of(profile, selection.of(profile));
    if args.json {
        let (callees, callers) = match args.callers {
            true => (None, Some(tree)),
            false => (Some(tree), None),
        };
        return view::print_json("report", &[input], Json { activities, top, callees, callers });
    }
    let event = selection.event.map(|event| profile.text(profile.event(event).name));
    let event = String::from_utf8_lossy(event.unwrap_or_default());
    let samples = totals.samples();
    let mut lines = vec![Line::of(Style::Plain, format!("{samples} samples of {event}"))];
    lines.extend(activity_text(&activities, samples).map(|text| Line::of(Style::Plain, text)));
    lines.push(Line::default());
    lines.extend(top.lines());
    lines.push(Line::default());
    let title = if args.callers { "callers" } else { "call tree" };
    lines.push(Line::of(Style::Heading, title));
    lines.extend(tree.lines());
    view::print(&lines, !args.no_pager)
}

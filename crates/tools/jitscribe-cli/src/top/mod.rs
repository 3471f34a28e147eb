//! `jitscribe top`: the functions that run now.
//!
//! - [`window`] records processes for a short time, again and again, and makes a profile of each recording.
//! - [`table`] counts their samples by function.
//! - [`view`] is what the user has chosen to see of it, as lines of text; [`screen`] shows them on the terminal, and [`json`] prints
//!   the counts for programs.

mod args;
mod json;
mod screen;
mod table;
mod view;
mod window;

use crate::{Error, Result, text};

pub use args::Args;

use table::Table;
use window::Windows;

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    if args.freq == 0 || args.count == Some(0) {
        return Err(Error::Usage("-F and -n must be at least 1".into()));
    }
    let windows = Windows::begin(args)?;
    if args.json {
        json::print(windows, args.count)
    } else if text::is_terminal() {
        screen::show(windows, args)
    } else {
        print(windows, args)
    }
}

/// Prints each window as text.
fn print(windows: Windows, args: &Args) -> Result<()> {
    let view = view::View::new(args.sort);
    Table::of_each(windows, args.count, |table| {
        let mut out = text::Out::new();
        for line in view.lines(table, usize::MAX, LINES) {
            out.line(line)?;
        }
        out.line("")?;
        out.finish()
    })
}

/// Number of lines of a window that is printed.
const LINES: usize = 32;

//! `jitscribe fleet report`: one HTML page of all hosts.

mod dictionary;
mod draw;
mod drawn;
mod gather;
mod no_code;

use std::path::PathBuf;

use crate::error::Result;
use crate::html::Html;
use crate::location::Location;
use crate::selection::Selection;
use crate::tables::Tables;

pub use drawn::Drawn;
use no_code::NoCode;

/// The most samples of a page, which shows as many without delay.
pub const MOST_SAMPLES: u64 = 400_000;

/// Write an HTML report of all hosts: a page that needs no network
///
/// It is the page of `jitscribe report`: a process is a version of a service, a thread is a host, and the time is that of the windows. Generations are the compilations of a
/// function in the order in which any host was first seen in them. If there are more samples than --max-samples, each is drawn with the same probability.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where the tables are: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR|URL", value_parser = Location::parse)]
    tables: Location,
    /// Where to write. A report of jitscribe that is there is replaced
    #[arg(short, long, value_name = "FILE", default_value = "fleet.html")]
    output: PathBuf,
    /// The most samples of the page, approximately
    #[arg(long, value_name = "NUMBER", default_value_t = MOST_SAMPLES, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    max_samples: u64,
    /// Replace the output if it exists, whatever it is
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    selection: Selection,
}

/// Runs the command.
pub async fn run(args: &Args) -> Result<()> {
    let html = Html::create(&args.output, args.force)?;
    let tables = Tables::open(args.tables.clone(), &args.selection)?;
    let drawn = Drawn::of(&tables, args.max_samples).await?;
    html.write(
        |mut out| {
            let options = profile_report::Options::default();
            profile_report::write(&drawn.profile, &mut NoCode, &options, &mut out)
        },
        |summary| (format!("{}: {}", tables.location, drawn.described()), summary.bytes),
    )
}

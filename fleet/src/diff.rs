//! `jitscribe fleet diff`: two versions of a service.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use futures::StreamExt as _;
use profile::significance::{SIGNIFICANT, holm};
use profile::{Activities, Measure, Selection as OfProfile};
use profile_report::Difference;
use serde_json::{Value, json};

use crate::batch::Rows;
use crate::error::{Error, Result};
use crate::html::Html;
use crate::location::Location;
use crate::printed::{self, Align, Printed};
use crate::queries::{BY_HOST, Deployments, REGRESSIONS, limited};
use crate::report::{Drawn, MOST_SAMPLES};
use crate::selection::Selection;
use crate::tables::Tables;

/// Compare two versions of a service, function by function
///
/// Functions are the same in both versions if their names and files are. A change is shown if it is unlikely (below 5 %) to be chance, by a test that takes into account
/// how many functions were compared, and by how much the hosts of one version differ from each other.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where the tables are: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR|URL", value_parser = Location::parse)]
    tables: Location,
    /// The first version. Without both, the two that there are
    #[arg(long, value_name = "VERSION", requires = "after")]
    before: Option<String>,
    /// The second version
    #[arg(long, value_name = "VERSION", requires = "before")]
    after: Option<String>,
    /// Show functions too whose change may be chance
    #[arg(long)]
    all: bool,
    /// Print JSON with all functions
    #[arg(long)]
    json: bool,
    /// Write one HTML file that needs no network: a flame graph of both versions in the colours of the difference, and the table of functions
    #[arg(long, conflicts_with_all = ["all", "json"])]
    html: bool,
    /// Where to write the HTML file. One of jitscribe that is there is replaced
    #[arg(short, long, value_name = "FILE", default_value = "fleet-diff.html", requires = "html")]
    output: PathBuf,
    /// Replace the output if it exists, whatever it is
    #[arg(short, long, requires = "html")]
    force: bool,
    #[command(flatten)]
    selection: Selection,
}

/// A function in both versions.
#[derive(Debug)]
struct Changed {
    name: String,
    file: String,
    samples: [i64; 2],
    change: f64,
    lineage: i64,
    by_chance: f64,
}

/// Samples by host, before and after.
type ByHost = [BTreeMap<String, u64>; 2];

/// Runs the command.
pub async fn run(args: &Args) -> Result<()> {
    let html = args.html.then(|| Html::create(&args.output, args.force)).transpose()?;
    let service = args.selection.service.as_slice();
    let service = match service {
        [] => None,
        [service] => Some(service.as_str()),
        _ => return Err(Error::Usage("--service: one service is compared".into())),
    };
    if !args.selection.service_version.is_empty() {
        return Err(Error::Usage("--service-version: say --before and --after".into()));
    }
    let tables = Tables::open(args.tables.clone(), &args.selection)?;
    let versions = [args.before.as_deref(), args.after.as_deref()];
    let there = deployments(&tables).await?;
    let deployments = Deployments::choose(service, versions, &there)?;
    if let Some(html) = html {
        return write(args, &deployments, html).await;
    }
    let mut rows = changes(&tables, &deployments).await?;
    let hosts = test(&tables, &deployments, &mut rows).await?;
    let all = [0, 1].map(|side| rows.iter().map(|row| row.samples[side]).sum::<i64>());
    rows.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    let Deployments { service, versions: [before, after] } = &deployments;
    if args.json {
        let functions: Vec<Value> = rows.iter().map(Changed::json).collect();
        return printed::json(&json!({
            "schema_version": 1,
            "verb": "fleet diff",
            "tables": tables.location.to_string(),
            "service": service,
            "versions": [before, after],
            "samples": all,
            "hosts": hosts,
            "functions": functions,
        }));
    }
    let share = |part: i64, all: i64| match all > 0 {
        true => format!("{:.2} %", part as f64 * 100.0 / all as f64),
        false => "-".into(),
    };
    let mut table = Printed::new(&[
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
        ("by chance", Align::Right),
        ("function", Align::Left),
        ("file", Align::Left),
    ]);
    let is_shown = |row: &&Changed| args.all || row.by_chance < SIGNIFICANT;
    let shown: Vec<&Changed> = rows.iter().filter(is_shown).collect();
    for row in &shown {
        let [before, after] = row.samples;
        table.row([
            share(before, all[0]),
            share(after, all[1]),
            format!("{:+.2} %", row.change * 100.0),
            format!("{:.2}", row.by_chance),
            row.name.clone(),
            row.file.clone(),
        ]);
    }
    table.print()?;
    let left_out = rows.len() - shown.len();
    printed::say(format_args!(
        "{service}: {before} ({} samples of {} hosts), {after} ({} of {}): {} functions, {left_out} left out whose change may be chance{}",
        all[0],
        hosts[0],
        all[1],
        hosts[1],
        rows.len(),
        if left_out > 0 { " (--all shows them)" } else { "" }
    ));
    Ok(())
}

impl Changed {
    fn json(&self) -> Value {
        let Self { name, file, samples, change, lineage, by_chance } = self;
        let verdict = match *by_chance < SIGNIFICANT {
            false => "unchanged",
            true if *change > 0.0 => "more",
            true => "less",
        };
        json!({
            "name": name,
            "file": file,
            "lineage_key": lineage,
            "samples": samples,
            "share_change": change,
            "by_chance": by_chance,
            "verdict": verdict,
        })
    }
}

/// The services and their versions, in the order of their first samples.
async fn deployments(tables: &Tables) -> Result<Vec<(String, String)>> {
    let sql = "SELECT service, version FROM samples GROUP BY service, version \
               ORDER BY MIN(window_start), service, version";
    let batches = tables.ask(sql).await?.collect().await.map_err(tables.failed())?;
    let mut there = Vec::new();
    for batch in &batches {
        let rows = Rows(batch);
        let (services, versions) = (rows.texts("service")?, rows.texts("version")?);
        let names = (0..batch.num_rows()).map(|row| (services.get(row), versions.get(row)));
        there.extend(names.map(|(service, version)| (service.into(), version.into())));
    }
    Ok(there)
}

async fn changes(tables: &Tables, deployments: &Deployments) -> Result<Vec<Changed>> {
    let sql = limited(&deployments.asked(REGRESSIONS), None);
    let batches = tables.ask(&sql).await?.collect().await.map_err(tables.failed())?;
    let mut changes = Vec::new();
    for batch in &batches {
        let rows = Rows(batch);
        let (names, files) = (rows.texts("name")?, rows.texts("file")?);
        let (before, after) = (rows.numbers("own_before")?, rows.numbers("own_after")?);
        let (change, lineage) = (rows.reals("share_change")?, rows.numbers("lineage_key")?);
        for (row, change) in change.iter().enumerate() {
            changes.push(Changed {
                name: names.get(row).into(),
                file: files.get(row).into(),
                samples: [before.value(row), after.value(row)],
                change: *change,
                lineage: lineage.value(row),
                by_chance: 1.0,
            });
        }
    }
    Ok(changes)
}

/// Fills in how likely each change is by chance; answers the number of hosts of each version.
async fn test(
    tables: &Tables,
    deployments: &Deployments,
    rows: &mut [Changed],
) -> Result<[usize; 2]> {
    let mut of_lineage: HashMap<i64, ByHost> = HashMap::new();
    let mut all = ByHost::default();
    let frame = tables.ask(&deployments.asked(BY_HOST)).await?;
    let mut stream = frame.execute_stream().await.map_err(tables.failed())?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(tables.failed())?;
        let rows = Rows(&batch);
        let (lineages, hosts) = (rows.numbers("lineage_key")?, rows.texts("host")?);
        let (sides, samples) = (rows.numbers("is_after")?, rows.numbers("own_samples")?);
        for row in 0..batch.num_rows() {
            let side = usize::from(sides.value(row) != 0);
            let samples = u64::try_from(samples.value(row)).unwrap_or_default();
            let host = hosts.get(row);
            let by_host = of_lineage.entry(lineages.value(row)).or_default();
            for hosts in [by_host, &mut all] {
                let number = hosts[side].entry(host.into()).or_default();
                *number = number.saturating_add(samples);
            }
        }
    }
    let all_numbers = all.each_ref().map(|hosts| hosts.values().copied().collect::<Vec<u64>>());
    let [all_before, all_after] = &all_numbers;
    let nowhere = ByHost::default();
    let probabilities: Vec<f64> = rows
        .iter()
        .map(|row| {
            let by_host = of_lineage.get(&row.lineage).unwrap_or(&nowhere);
            let numbers = |side: usize| -> Vec<u64> {
                let of = |host| by_host[side].get(host).copied().unwrap_or_default();
                all[side].keys().map(of).collect()
            };
            Measure::Share.by_chance_of_runs([&numbers(0), &numbers(1)], [all_before, all_after])
        })
        .collect();
    for (row, by_chance) in rows.iter_mut().zip(holm(&probabilities)) {
        row.by_chance = by_chance;
    }
    Ok(all.map(|hosts| hosts.len()))
}

/// Writes the HTML file.
async fn write(args: &Args, deployments: &Deployments, html: Html<'_>) -> Result<()> {
    let mut profiles = Vec::new();
    for version in &deployments.versions {
        let selection = Selection {
            service: vec![deployments.service.clone()],
            service_version: vec![version.clone()],
            ..args.selection.clone()
        };
        let tables = Tables::open(args.tables.clone(), &selection)?;
        let mut drawn = Drawn::of(&tables, MOST_SAMPLES / 2).await?;
        drawn.profile.about.recording = format!("{} {version}", deployments.service).into_bytes();
        profiles.push(drawn);
    }
    let [before, after] = profiles.as_slice() else {
        unreachable!("there are two versions");
    };
    let everything = OfProfile::default();
    let difference = Difference {
        profiles: [&before.profile, &after.profile],
        selections: [&everything; 2],
        activities: [before, after].map(|of| {
            let profile = &of.profile;
            Activities::of(profile, profile.samples().iter())
        }),
        runs: [1, 1],
        measure: Measure::Share,
    };
    html.write(
        |mut out| profile_report::write_difference(&difference, &mut out),
        |summary| {
            let said = format!(
                "{}: {} functions with samples of their own, {} of them changed by more than chance{}",
                deployments.service,
                summary.functions,
                summary.changed,
                before.described_with(after)
            );
            (said, summary.bytes)
        },
    )
}

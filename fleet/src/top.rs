//! `jitscribe fleet top`, and the other tables that are one query each.

use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::batch::Rows;
use crate::error::Result;
use crate::location::Location;
use crate::printed::{self, Align, Printed, percent};
use crate::queries::{self, limited};
use crate::selection::Selection;
use crate::tables::Tables;

/// A table of an answer.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where the tables are: a folder, or s3://BUCKET/PREFIX
    #[arg(value_name = "DIR|URL", value_parser = Location::parse)]
    tables: Location,
    /// The most rows; 0 for all
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 50)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: Selection,
}

/// A column of an answer, and what it is called in the table.
type Column = (&'static str, &'static str, Align);

/// A query whose answer is printed as it is.
#[derive(Debug)]
pub struct Query {
    verb: &'static str,
    sql: &'static str,
    /// The name of the rows in JSON.
    rows: &'static str,
    columns: &'static [Column],
    /// The column that is also shown as a part of all samples.
    share: Option<&'static str>,
}

/// The functions of runtimes that cost most.
pub const TOP: Query = Query {
    verb: "top",
    sql: queries::TOP,
    rows: "functions",
    columns: &[
        ("own_samples", "samples", Align::Right),
        ("hosts", "hosts", Align::Right),
        ("tier", "tier", Align::Left),
        ("generation", "generation", Align::Right),
        ("name", "function", Align::Left),
        ("file", "file", Align::Left),
    ],
    share: Some("own_samples"),
};

/// The functions that a tier compiles again and again.
pub const CHURN: Query = Query {
    verb: "churn",
    sql: queries::CHURN,
    rows: "functions",
    columns: &[
        ("compiled", "compiled", Align::Right),
        ("hosts", "hosts", Align::Right),
        ("different_codes", "codes", Align::Right),
        ("tier", "tier", Align::Left),
        ("name", "function", Align::Left),
        ("file", "file", Align::Left),
    ],
    share: None,
};

/// How many samples have a name.
pub const COVERAGE: Query = Query {
    verb: "coverage",
    sql: queries::COVERAGE,
    rows: "services",
    columns: &[
        ("all_samples", "samples", Align::Right),
        ("named", "named", Align::Right),
        ("in_runtime_code", "in runtimes' code", Align::Right),
        ("with_file", "with file", Align::Right),
        ("hosts", "hosts", Align::Right),
        ("service", "service", Align::Left),
    ],
    share: None,
};

impl Query {
    /// Asks, and prints.
    pub async fn run(&self, args: &Args) -> Result<()> {
        let tables = Tables::open(args.tables.clone(), &args.selection)?;
        let most = (args.limit > 0).then_some(args.limit);
        let all = tables.all_samples().await?;
        let rows = self.ask(&tables, &limited(self.sql, most)).await?;
        if args.json {
            return printed::json(&json!({
                "schema_version": 1,
                "verb": format!("fleet {}", self.verb),
                "tables": tables.location.to_string(),
                "samples": all,
                (self.rows): rows,
            }));
        }
        let mut headings: Vec<(&str, Align)> =
            self.columns.iter().map(|(_, heading, align)| (*heading, *align)).collect();
        if self.share.is_some() {
            headings.insert(0, ("%", Align::Right));
        }
        let mut table = Printed::new(&headings);
        for row in &rows {
            let share = self.share.and_then(|column| row.get(column)?.as_f64());
            let cells = self.columns.iter().map(|(column, ..)| shown(row.get(column)));
            table.row(share.map(|part| percent(part, all as f64)).into_iter().chain(cells));
        }
        table.print()?;
        if rows.is_empty() {
            printed::say(format_args!(
                "{}: nothing is selected, of {all} samples",
                tables.location
            ));
        }
        Ok(())
    }

    /// The rows of an answer, as objects.
    async fn ask(&self, tables: &Tables, sql: &str) -> Result<Vec<Value>> {
        let mut stream = tables.ask(sql).await?.execute_stream().await.map_err(tables.failed())?;
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(tables.failed())?;
            let columns = self.columns.iter().map(|(column, _, align)| {
                let texts = Rows(&batch).shown(column)?;
                Ok((*column, texts, *align))
            });
            let columns: Vec<_> = columns.collect::<Result<_>>()?;
            for row in 0..batch.num_rows() {
                let cells = columns.iter().map(|(column, texts, align)| {
                    let text = texts.value(row);
                    let number = text.parse::<i64>().ok().filter(|_| *align == Align::Right);
                    ((*column).to_owned(), number.map_or_else(|| text.into(), Value::from))
                });
                rows.push(Value::Object(cells.collect()));
            }
        }
        Ok(rows)
    }
}

fn shown(cell: Option<&Value>) -> String {
    match cell {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

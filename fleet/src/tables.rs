//! The four tables, for DataFusion. `docs/fleet.md` describes their columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::common::DataFusionError;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{DataFrame, Expr, SessionConfig, SessionContext};

use crate::batch::Rows;
use crate::error::{Error, Result};
use crate::location::Location;
use crate::selection::Selection;

/// What the engine may use before it writes intermediate rows to disk.
const MEMORY: usize = 512 << 20;

/// The tables, of which the engine sees what is selected.
pub struct Tables {
    /// Where they are.
    pub location: Location,
    context: SessionContext,
}

impl Tables {
    /// Opens the tables. The engine sees the selected rows of `samples` and `codes`, and all of `stacks` and `functions`.
    pub fn open(location: Location, selection: &Selection) -> Result<Self> {
        // `date` and `service` in the paths are for choosing files; the columns are in the files, too.
        let config = SessionConfig::new()
            .set_bool("datafusion.execution.listing_table_ignore_subdirectory", false)
            // They would be read of each file before the first row.
            .set_bool("datafusion.execution.collect_statistics", false);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(MEMORY)))
            .build_arc()
            .map_err(Error::engine(&location))?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        location.register(&context)?;
        let tables = Self { location, context };
        tables.register("samples", samples(), selection.of_samples())?;
        tables.register("stacks", stacks(), None)?;
        tables.register("functions", functions(), None)?;
        tables.register("codes", codes(), selection.of_origin())?;
        Ok(tables)
    }

    fn register(&self, name: &str, columns: Vec<Field>, condition: Option<Expr>) -> Result<()> {
        let url = self.location.table(name)?;
        let options =
            ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
        let config = ListingTableConfig::new(url)
            .with_listing_options(options)
            .with_schema(Arc::new(Schema::new(columns)));
        let view = || -> std::result::Result<(), DataFusionError> {
            let rows = self.context.read_table(Arc::new(ListingTable::try_new(config)?))?;
            let rows = match condition {
                Some(condition) => rows.filter(condition)?,
                None => rows,
            };
            self.context.register_table(name, rows.into_view())?;
            Ok(())
        };
        view().map_err(self.failed())
    }

    /// The rows that a query answers, which are not computed yet.
    pub async fn ask(&self, sql: &str) -> Result<DataFrame> {
        self.context.sql(sql).await.map_err(self.failed())
    }

    /// The number of selected samples.
    pub async fn all_samples(&self) -> Result<i64> {
        let sql = "SELECT COALESCE(SUM(sample_count), 0) AS all_samples FROM samples";
        let batches = self.ask(sql).await?.collect().await.map_err(self.failed())?;
        let first = batches.first().map(|batch| Rows(batch).numbers("all_samples")).transpose()?;
        Ok(first.and_then(|numbers| numbers.values().first().copied()).unwrap_or_default())
    }

    /// What the engine says, as an error about these tables.
    pub fn failed(&self) -> impl Fn(DataFusionError) -> Error {
        Error::engine(&self.location)
    }
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8View, true)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn small(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

fn samples() -> Vec<Field> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    vec![
        text("host"),
        text("service"),
        text("version"),
        Field::new("window_start", time, true),
        text("event"),
        number("function_key"),
        number("code_key"),
        text("tier"),
        small("generation"),
        number("stack_key"),
        number("sample_count"),
        number("weight"),
    ]
}

fn stacks() -> Vec<Field> {
    let keys = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    vec![number("stack_key"), Field::new("function_keys", keys, true)]
}

fn functions() -> Vec<Field> {
    vec![
        number("function_key"),
        number("lineage_key"),
        text("origin"),
        text("name"),
        text("file"),
        small("start_line"),
        small("start_column"),
        text("runtime"),
        text("runtime_build_id"),
        text("source_hash"),
    ]
}

fn codes() -> Vec<Field> {
    vec![
        text("host"),
        text("service"),
        text("version"),
        number("code_key"),
        number("function_key"),
        text("tier"),
        number("size"),
        number("compilations"),
        text("module"),
        text("build_id"),
        number("module_address"),
    ]
}

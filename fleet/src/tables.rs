//! The four tables, for DataFusion. `docs/fleet.md` describes their columns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use datafusion::common::DataFusionError;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::prelude::{DataFrame, Expr, SessionConfig, SessionContext, col};

use crate::batch::Rows;
use crate::error::{Error, Result};
use crate::location::Location;
use crate::printed;
use crate::selection::Selection;

/// What the engine may use before it writes intermediate rows to disk.
const MEMORY: usize = 512 << 20;

/// The tables, of which the engine sees what is selected.
pub struct Tables {
    /// Where they are.
    pub location: Location,
    context: SessionContext,
    /// Makes counts that are impossible 0.
    possible: ScalarUDF,
    /// Whether there were any.
    were_impossible: Arc<AtomicBool>,
}

/// No window of a host has more samples of one kind, or compilations. With at most this in each row, no sum of them overflows.
const MOST_COUNTED: i64 = 1 << 32;

impl Drop for Tables {
    fn drop(&mut self) {
        if self.were_impossible.load(Relaxed) {
            printed::say(format_args!(
                "jitscribe fleet: warning: {}: rows with counts below 0 or above {MOST_COUNTED} were left out: the tables are \
                 damaged or forged",
                self.location
            ));
        }
    }
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
        let were_impossible = Arc::<AtomicBool>::default();
        let possible = possible(Arc::clone(&were_impossible));
        let tables = Self { location, context, possible, were_impossible };
        tables.register("samples", samples(), Some("sample_count"), selection.of_samples())?;
        tables.register("stacks", stacks(), None, None)?;
        tables.register("functions", functions(), None, None)?;
        tables.register("codes", codes(), Some("compilations"), selection.of_origin())?;
        Ok(tables)
    }

    /// Makes a table known to the engine: the rows for which the condition holds. Its column of counts is checked.
    fn register(
        &self,
        name: &str,
        columns: Vec<Field>,
        counts: Option<&str>,
        condition: Option<Expr>,
    ) -> Result<()> {
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
            let rows = match counts {
                Some(counts) => rows.with_column(counts, self.possible.call(vec![col(counts)]))?,
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

/// A function of a column of counts: those that no host can have are 0, and noted.
fn possible(were_impossible: Arc<AtomicBool>) -> ScalarUDF {
    let check = move |count: i64| {
        if (0..=MOST_COUNTED).contains(&count) {
            return count;
        }
        were_impossible.store(true, Relaxed);
        0
    };
    let of_column = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let counts = arrays.first().and_then(|array| array.as_primitive_opt::<Int64Type>());
        let counts =
            counts.ok_or_else(|| DataFusionError::Internal("a column of counts".into()))?;
        Ok(ColumnarValue::Array(Arc::new(counts.unary::<_, Int64Type>(&check))))
    };
    let number = DataType::Int64;
    create_udf("possible", vec![number.clone()], number, Volatility::Immutable, Arc::new(of_column))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_no_window_can_have_are_left_out() {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(check());
    }

    async fn check() {
        let were_impossible = Arc::<AtomicBool>::default();
        let context = SessionContext::new();
        context.register_udf(possible(Arc::clone(&were_impossible)));
        let sum = async |counts: &str| {
            let sql = format!("SELECT SUM(possible(column1)) AS sum FROM (VALUES {counts}) AS t");
            let batches = context.sql(&sql).await.unwrap().collect().await.unwrap();
            Rows(&batches[0]).numbers("sum").unwrap().value(0)
        };
        assert_eq!(sum("(1), (4294967296)").await, 1 + MOST_COUNTED);
        assert!(!were_impossible.load(Relaxed));
        for impossible in ["-1", "4294967297", "9223372036854775807"] {
            were_impossible.store(false, Relaxed);
            assert_eq!(sum(&format!("(2), ({impossible}), (3)")).await, 5, "{impossible}");
            assert!(were_impossible.load(Relaxed));
        }
    }
}

//! The engines that answer the queries of `fleet/sql`, and what a report says of the same recordings.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;

use crate::jitscribe::jitscribe;
use crate::tool::{crate_dir, installed, run, tool};

/// An engine.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Its name, as `fleet/query.py` has it.
    pub name: &'static str,
    /// The folder in the cache of the Python that has it.
    python: &'static str,
}

/// Those that setup.sh installs.
pub const DUCKDB: Engine = Engine { name: "duckdb", python: "engines-2.0.1-55.0.0-26.9.0" };
/// See [`DUCKDB`].
pub const DATAFUSION: Engine = Engine { name: "datafusion", ..DUCKDB };
/// See [`DUCKDB`].
pub const CLICKHOUSE: Engine = Engine { name: "clickhouse", ..DUCKDB };
/// See [`DUCKDB`].
pub const SPARK: Engine = Engine { name: "spark", python: "spark-4.3.0" };

impl Engine {
    /// Its answers to queries: the names of the columns, and the rows.
    pub fn ask<Q: AsRef<OsStr>>(
        self,
        tables: &Path,
        queries: impl IntoIterator<Item = Q>,
    ) -> Vec<(Vec<String>, Vec<Vec<Value>>)> {
        let script = crate_dir().parent().expect("the workspace").join("fleet/query.py");
        let mut command = tool(installed(&format!("{}/bin/python3", self.python)));
        command.arg(script).arg(self.name).arg(tables).args(queries);
        let printed = run(&mut command).stdout;
        let answers = printed.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            let columns = answer["columns"].as_array().expect("columns").iter();
            let rows = answer["rows"].as_array().expect("rows").iter();
            (
                columns.map(|name| name.as_str().expect("a name").to_owned()).collect(),
                rows.map(|row| row.as_array().expect("a row").iter().map(as_number).collect())
                    .collect(),
            )
        });
        answers.collect()
    }
}

/// A value as all engines write it: ClickHouse writes 0.0 as 0.
fn as_number(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) if value.is_f64() && number == 0.0 => Value::from(0),
        _ => value.clone(),
    }
}

/// The functions of a recording, as `jitscribe report` has them.
pub fn reported_functions(data: &Path) -> Vec<Value> {
    let mut report = jitscribe();
    report.args(["report", "--stdio", "--json", "--percent-limit", "0", "-i"]).arg(data);
    let report: Value = serde_json::from_str(&run(&mut report).stdout).expect("JSON");
    report["top"]["functions"].as_array().expect("functions").clone()
}

/// Whether a function of a report belongs to a runtime.
pub fn is_of_runtime(function: &Value) -> bool {
    ["jitted", "interpreted"].contains(&function["kind"].as_str().expect("a kind"))
}

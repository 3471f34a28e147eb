//! What the keys of rows mean: stacks, functions, codes.

use std::collections::{HashMap, HashSet};

use futures::StreamExt as _;
use rustc_hash::FxBuildHasher;

use super::gather::Gathered;
use crate::batch::{Rows, list};
use crate::error::Result;
use crate::tables::Tables;

/// The most functions of a stack: the innermost ones.
const MOST_FRAMES: usize = 1024;

/// A map by key.
pub type ByKey<T> = HashMap<i64, T, FxBuildHasher>;
type Keys = HashSet<i64, FxBuildHasher>;

/// A row of `functions`. If hosts have different ones of a key, the smallest counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    pub name: String,
    pub file: String,
    pub line: i32,
    pub column: i32,
    pub origin: String,
}

/// A row of `codes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code {
    pub function: i64,
    pub size: i64,
}

/// What the keys of rows mean, as far as the tables say.
#[derive(Debug, Default)]
pub struct Dictionary {
    /// The functions of each stack, the outermost first.
    pub stacks: ByKey<Vec<i64>>,
    pub functions: ByKey<Function>,
    pub codes: ByKey<Code>,
}

impl Dictionary {
    /// Reads what these rows refer to.
    pub async fn read(tables: &Tables, gathered: &Gathered) -> Result<Self> {
        let mut read = Self::default();
        read.stacks(tables, gathered.rows.iter().map(|row| row.stack).collect()).await?;
        read.codes(tables, gathered.rows.iter().map(|row| row.code).collect()).await?;
        let of_stacks = read.stacks.values().flatten().copied();
        let of_codes = read.codes.values().map(|code| code.function);
        let of_rows = gathered.rows.iter().map(|row| row.function);
        let keys = of_stacks.chain(of_codes).chain(of_rows).collect();
        read.functions(tables, keys).await?;
        Ok(read)
    }

    async fn stacks(&mut self, tables: &Tables, mut needed: Keys) -> Result<()> {
        let sql = "SELECT stack_key, function_keys FROM stacks";
        let mut stream = tables.ask(sql).await?.execute_stream().await.map_err(tables.failed())?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(tables.failed())?;
            let rows = Rows(&batch);
            let (keys, lists) = (rows.numbers("stack_key")?, rows.lists("function_keys")?);
            for (row, key) in keys.values().iter().enumerate() {
                // Its key is a hash of it, so that all hosts have the same one.
                if needed.remove(key)
                    && let Some(mut functions) = list(lists, row)
                {
                    functions.drain(..functions.len().saturating_sub(MOST_FRAMES));
                    self.stacks.insert(*key, functions);
                }
            }
        }
        Ok(())
    }

    async fn codes(&mut self, tables: &Tables, needed: Keys) -> Result<()> {
        let sql = "SELECT code_key, function_key, size FROM codes";
        let mut stream = tables.ask(sql).await?.execute_stream().await.map_err(tables.failed())?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(tables.failed())?;
            let rows = Rows(&batch);
            let [keys, functions, sizes] =
                ["code_key", "function_key", "size"].map(|name| rows.numbers(name));
            let (keys, functions, sizes) = (keys?, functions?, sizes?);
            for (row, key) in keys.values().iter().enumerate() {
                if needed.contains(key) {
                    let code = Code { function: functions.value(row), size: sizes.value(row) };
                    insert(&mut self.codes, *key, code);
                }
            }
        }
        Ok(())
    }

    async fn functions(&mut self, tables: &Tables, needed: Keys) -> Result<()> {
        let sql =
            "SELECT function_key, name, file, start_line, start_column, origin FROM functions";
        let mut stream = tables.ask(sql).await?.execute_stream().await.map_err(tables.failed())?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(tables.failed())?;
            let rows = Rows(&batch);
            let keys = rows.numbers("function_key")?;
            let (names, files) = (rows.texts("name")?, rows.texts("file")?);
            let (lines, columns) = (rows.small("start_line")?, rows.small("start_column")?);
            let origins = rows.texts("origin")?;
            for (row, key) in keys.values().iter().enumerate() {
                if needed.contains(key) {
                    let function = Function {
                        name: names.get(row).into(),
                        file: files.get(row).into(),
                        line: lines.value(row),
                        column: columns.value(row),
                        origin: origins.get(row).into(),
                    };
                    insert(&mut self.functions, *key, function);
                }
            }
        }
        Ok(())
    }
}

/// The smallest of a key, so that the order in which files are read does not matter.
fn insert<T: Ord>(map: &mut ByKey<T>, key: i64, value: T) {
    match map.entry(key) {
        std::collections::hash_map::Entry::Vacant(entry) => {
            entry.insert(value);
        }
        std::collections::hash_map::Entry::Occupied(mut entry) => {
            if value < *entry.get() {
                entry.insert(value);
            }
        }
    }
}

//! The columns of an answer, by name.

use datafusion::arrow::array::{
    Array, AsArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};

use crate::error::{Error, Result};

/// Some rows of an answer. The columns that are asked for are there, and have no null.
pub struct Rows<'a>(pub &'a RecordBatch);

impl<'a> Rows<'a> {
    fn column(&self, name: &str) -> Result<&'a dyn Array> {
        let column = self.0.column_by_name(name).map(AsRef::as_ref);
        let column: &dyn Array = column.ok_or_else(|| unusable(name, "is not there"))?;
        match column.null_count() {
            0 => Ok(column),
            _ => Err(unusable(name, "is missing in a file, or has no value in some row")),
        }
    }

    /// A column of numbers.
    pub fn numbers(&self, name: &str) -> Result<&'a Int64Array> {
        let column = self.column(name)?.as_primitive_opt::<Int64Type>();
        column.ok_or_else(|| unusable(name, "has no numbers of 64 bits"))
    }

    /// A column of small numbers.
    pub fn small(&self, name: &str) -> Result<&'a Int32Array> {
        let column = self.column(name)?.as_primitive_opt::<Int32Type>();
        column.ok_or_else(|| unusable(name, "has no numbers of 32 bits"))
    }

    /// A column of parts of 1.
    pub fn reals(&self, name: &str) -> Result<&'a [f64]> {
        let column = self.column(name)?.as_primitive_opt::<Float64Type>();
        Ok(column.ok_or_else(|| unusable(name, "has no real numbers"))?.values())
    }

    /// A column of times, in microseconds since 1970.
    pub fn times(&self, name: &str) -> Result<&'a [i64]> {
        let column = self.column(name)?.as_primitive_opt::<TimestampMicrosecondType>();
        Ok(column.ok_or_else(|| unusable(name, "has no times"))?.values())
    }

    /// A column of texts.
    pub fn texts(&self, name: &str) -> Result<Texts<'a>> {
        let column = self.column(name)?;
        let texts = match column.data_type() {
            DataType::Utf8View => column.as_string_view_opt().map(Texts::Views),
            _ => column.as_string_opt().map(Texts::Strings),
        };
        texts.ok_or_else(|| unusable(name, "has no text"))
    }

    /// A column of lists of numbers.
    pub fn lists(&self, name: &str) -> Result<&'a ListArray> {
        let lists = self.column(name)?.as_list_opt();
        lists.ok_or_else(|| unusable(name, "has no lists"))
    }

    /// A column, whatever it has, as texts.
    pub fn shown(&self, name: &str) -> Result<StringArray> {
        let column = cast(self.column(name)?, &DataType::Utf8);
        let column = column.map_err(|error| unusable(name, &error.to_string()))?;
        Ok(column.as_string().clone())
    }
}

/// The numbers of a list; `None` if it has others, or none in some place.
pub fn list(lists: &ListArray, row: usize) -> Option<Vec<i64>> {
    let values = lists.value(row);
    let numbers = values.as_primitive_opt::<Int64Type>()?;
    (numbers.null_count() == 0).then(|| numbers.values().to_vec())
}

/// Texts.
pub enum Texts<'a> {
    /// In one buffer.
    Strings(&'a StringArray),
    /// Each with its place.
    Views(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    /// The text in a row that exists.
    pub fn get(&self, row: usize) -> &'a str {
        match self {
            Self::Strings(array) => array.value(row),
            Self::Views(array) => array.value(row),
        }
    }
}

fn unusable(column: &str, why: &str) -> Error {
    Error::Tables(format!(
        "the column {column} {why}: the tables are not those that `jitscribe export --parquet` writes"
    ))
}

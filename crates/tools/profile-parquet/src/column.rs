//! Tables of columns, and how they are encoded.
//!
//! Every engine that `docs/fleet.md` names reads what is used here: signed numbers, strings, times in microseconds, lists; no optional values. Strings are
//! written with a dictionary by the encoder, which is not a type of its own.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::Error;

/// The values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Texts.
    Text(Vec<Arc<str>>),
    /// Numbers below 2^31.
    Small(Vec<i32>),
    /// Numbers.
    Number(Vec<i64>),
    /// Microseconds since 1970, UTC.
    Time(Vec<i64>),
    /// Lists of numbers.
    List(Vec<Vec<i64>>),
}

/// Columns of equal length.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The columns with their names.
    pub columns: Vec<(&'static str, Column)>,
}

impl Column {
    fn schema(&self, name: &str) -> String {
        match self {
            Self::Text(_) => format!("required binary {name} (STRING);"),
            Self::Small(_) => format!("required int32 {name};"),
            Self::Number(_) => format!("required int64 {name};"),
            Self::Time(_) => format!("required int64 {name} (TIMESTAMP(MICROS, true));"),
            Self::List(_) => format!(
                "required group {name} (LIST) {{ repeated group list {{ required int64 element; }} }}"
            ),
        }
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Text(values) => {
                let values: Vec<ByteArray> =
                    values.iter().map(|text| &**text).map(ByteArray::from).collect();
                writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            }
            Self::Small(values) => {
                writer.typed::<Int32Type>().write_batch(values, None, None)?;
            }
            Self::Number(values) | Self::Time(values) => {
                writer.typed::<Int64Type>().write_batch(values, None, None)?;
            }
            Self::List(lists) => {
                let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
                for list in lists {
                    // An empty list has one entry, which says that there is no element.
                    let length = list.len().max(1);
                    defined.extend(std::iter::repeat_n(i16::from(!list.is_empty()), length));
                    repeated.extend((0..length).map(|place| i16::from(place > 0)));
                    values.extend_from_slice(list);
                }
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(&values, Some(&defined), Some(&repeated))?;
            }
        }
        Ok(())
    }
}

impl Table {
    /// The table as a Parquet file with one row group.
    ///
    /// # Errors
    /// If the columns do not have the same length.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        self.try_encode().map_err(|source| Error::Encoding { table: self.name, source })
    }

    fn try_encode(&self) -> Result<Vec<u8>> {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, column)| column.schema(name)).collect();
        let schema = format!("message {} {{ {} }}", self.name, columns.concat());
        let schema = Arc::new(parse_message_type(&schema)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("jitscribe ", env!("CARGO_PKG_VERSION")).to_owned());
        let mut file = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut file, schema, Arc::new(properties.build()))?;
        let mut group = writer.next_row_group()?;
        for (name, column) in &self.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(ParquetError::General(format!("no column {name}")));
            };
            column.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tables_are_read_back(
            rows in proptest::collection::vec(
                (any::<String>(), any::<i32>(), any::<i64>(), proptest::collection::vec(any::<i64>(), 0..4)),
                0..40,
            )
        ) {
            let table = Table {
                name: "made",
                columns: vec![
                    ("text", Column::Text(rows.iter().map(|row| row.0.as_str().into()).collect())),
                    ("small", Column::Small(rows.iter().map(|row| row.1).collect())),
                    ("number", Column::Number(rows.iter().map(|row| row.2).collect())),
                    ("time", Column::Time(rows.iter().map(|row| row.2).collect())),
                    ("list", Column::List(rows.iter().map(|row| row.3.clone()).collect())),
                ],
            };
            let file = table.encode().expect("a file");
            let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a Parquet file");
            prop_assert_eq!(reader.num_row_groups(), 1);
            let read: Vec<_> = reader.get_row_iter(None).expect("rows").map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), rows.len());
            for (read, row) in read.iter().zip(&rows) {
                prop_assert_eq!(read.get_string(0).unwrap(), &row.0);
                prop_assert_eq!(read.get_int(1).unwrap(), row.1);
                prop_assert_eq!(read.get_long(2).unwrap(), row.2);
                prop_assert_eq!(read.get_timestamp_micros(3).unwrap(), row.2);
                let list = read.get_list(4).unwrap();
                let list: Vec<i64> = list.elements().iter().map(|field| match field {
                    parquet::record::Field::Long(number) => *number,
                    other => panic!("{other:?}"),
                }).collect();
                prop_assert_eq!(&list, &row.3);
            }
        }
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let table = Table {
            name: "made",
            columns: vec![("a", Column::Small(vec![1])), ("b", Column::Small(vec![]))],
        };
        let error = table.encode().expect_err("an error").to_string();
        assert!(error.starts_with("table made: "), "{error}");
    }
}

//! Columns of numbers and texts, as bytes.

use serde_json::{Map, Value, json};

/// Tables as columns, and what the directory says of them.
#[derive(Debug, Default)]
pub struct Columns {
    bytes: Vec<u8>,
    directory: Vec<Value>,
}

impl Columns {
    /// Numbers below 2^32.
    pub fn u32(&mut self, name: &str, rows: impl Iterator<Item = u32>) {
        self.column(name, "u32", rows, |bytes, row| leb128(bytes, u64::from(row)));
    }

    /// Numbers.
    pub fn u64(&mut self, name: &str, rows: impl Iterator<Item = u64>) {
        self.column(name, "u64", rows, leb128);
    }

    /// Numbers that differ little from those before them.
    pub fn delta(&mut self, name: &str, rows: impl Iterator<Item = u64>) {
        let mut last = 0;
        self.column(name, "delta", rows, |bytes, row| {
            let difference = row.wrapping_sub(last).cast_signed();
            last = row;
            leb128(bytes, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
        });
    }

    /// Numbers that may not be known.
    pub fn f64(&mut self, name: &str, rows: impl Iterator<Item = f64>) {
        self.column(name, "f64", rows, |bytes, row| bytes.extend(row.to_le_bytes()));
    }

    /// Texts without line feeds.
    pub fn text<'t>(&mut self, name: &str, rows: impl Iterator<Item = &'t str>) {
        self.column(name, "text", rows, |bytes, row| {
            bytes.extend(row.as_bytes());
            bytes.push(b'\n');
        });
    }

    /// Bytes.
    pub fn bytes(&mut self, name: &str, rows: &[u8]) {
        self.bytes.extend(rows);
        self.directory.push(json!([name, "bytes", rows.len(), rows.len()]));
    }

    fn column<Row>(
        &mut self,
        name: &str,
        encoding: &str,
        rows: impl Iterator<Item = Row>,
        mut write: impl FnMut(&mut Vec<u8>, Row),
    ) {
        let before = self.bytes.len();
        let mut count = 0_usize;
        for row in rows {
            write(&mut self.bytes, row);
            count = count.saturating_add(1);
        }
        let length = self.bytes.len().saturating_sub(before);
        self.directory.push(json!([name, encoding, count, length]));
    }

    /// The directory, with `about` in it, and the columns.
    pub fn finish(self, mut about: Map<String, Value>) -> Vec<u8> {
        about.insert("version".to_owned(), json!(1));
        about.insert("columns".to_owned(), Value::Array(self.directory));
        let directory = Value::Object(about).to_string();
        let length = u32::try_from(directory.len()).unwrap_or(u32::MAX);
        let mut all = Vec::with_capacity(self.bytes.len().saturating_add(directory.len()));
        all.extend(length.to_le_bytes());
        all.extend(directory.as_bytes());
        all.extend(&self.bytes);
        all
    }
}

fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if *first < 0x80 {
                break;
            }
        }
        number
    }

    proptest! {
        #[test]
        fn numbers_are_read_back(rows in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut columns = Columns::default();
            columns.u64("a.plain", rows.iter().copied());
            columns.delta("a.delta", rows.iter().copied());
            columns.text("a.text", ["x", ""].into_iter());
            let bytes = columns.finish(Map::new());
            let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
            let (directory, mut rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            let directory: Value = serde_json::from_slice(directory).expect("JSON");
            prop_assert_eq!(&directory["version"], 1);
            prop_assert_eq!(&directory["columns"][0][2], rows.len());
            let plain: Vec<u64> = rows.iter().map(|_| read(&mut rest)).collect();
            prop_assert_eq!(&plain, &rows);
            let mut last = 0_u64;
            for row in &rows {
                let coded = read(&mut rest);
                last = last.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg());
                prop_assert_eq!(last, *row);
            }
            prop_assert_eq!(rest, b"x\n\n");
        }
    }
}

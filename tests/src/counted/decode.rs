//! The encodings of views: columns of pages, and messages of protobuf.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::{GzDecoder, ZlibDecoder};
use serde_json::Value;

/// The content of a gzipped file.
pub fn gunzip(file: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(file).read_to_end(&mut content).expect("a gzipped file");
    content
}

/// The columns of a page's element: `profile_report` describes them.
#[derive(Debug)]
pub struct Columns {
    /// What the directory says of the whole.
    pub about: Value,
    numbers: BTreeMap<String, Vec<usize>>,
}

impl Columns {
    /// The numbers in an element with data.
    pub fn of_page(html: &[u8], element: &str) -> Self {
        let html = std::str::from_utf8(html).expect("UTF-8");
        let begin = format!("id=\"{element}-data\">");
        let (_, data) = html.split_once(&begin).expect("the element");
        let (data, _) = data.split_once("</script>").expect("its end");
        let mut content = Vec::new();
        let compressed = base64(data);
        ZlibDecoder::new(&*compressed).read_to_end(&mut content).expect("a zlib stream");
        let (length, rest) = content.split_first_chunk::<4>().expect("a length");
        let (directory, mut rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let directory: Value = serde_json::from_slice(directory).expect("JSON");
        let mut columns = BTreeMap::new();
        for column in directory["columns"].as_array().expect("a list") {
            let length = column[3].as_u64().expect("a length") as usize;
            let (mut bytes, behind) = rest.split_at(length);
            rest = behind;
            if column[1] == "u32" {
                let mut numbers = Vec::new();
                while !bytes.is_empty() {
                    numbers.push(leb128(&mut bytes) as usize);
                }
                columns.insert(column[0].as_str().expect("a name").to_owned(), numbers);
            }
        }
        Self { about: directory, numbers: columns }
    }

    /// A column of numbers.
    pub fn numbers(&self, name: &str) -> Vec<usize> {
        self.numbers[name].clone()
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} is no digit"),
    };
    let text = text.trim_end_matches('=').as_bytes();
    let decode = |digits: &[u8]| {
        let number =
            (0..4).fold(0, |all, at| (all << 6) | digits.get(at).map_or(0, |it| digit(*it)));
        number.to_be_bytes()[1..digits.len()].to_vec()
    };
    text.chunks(4).flat_map(decode).collect()
}

/// A number as LEB128, which protobuf has too.
fn leb128(bytes: &mut &[u8]) -> u64 {
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

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub enum Field<'m> {
    /// A number.
    Number(u64),
    /// A text, a message, or several numbers.
    Bytes(&'m [u8]),
}

impl Field<'_> {
    /// The number, or the packed numbers.
    pub fn numbers(self) -> Vec<u64> {
        let mut bytes = match self {
            Self::Number(number) => return vec![number],
            Self::Bytes(bytes) => bytes,
        };
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            numbers.push(leb128(&mut bytes));
        }
        numbers
    }
}

/// The fields of a message, with their numbers.
pub fn fields(mut message: &[u8]) -> impl Iterator<Item = (u32, Field<'_>)> {
    std::iter::from_fn(move || {
        if message.is_empty() {
            return None;
        }
        let tag = leb128(&mut message);
        let mut bytes = |length: usize| {
            let (bytes, rest) = message.split_at(length);
            message = rest;
            bytes
        };
        let field = match tag & 7 {
            1 => Field::Number(u64::from_le_bytes(bytes(8).try_into().expect("8 bytes"))),
            5 => Field::Number(u32::from_le_bytes(bytes(4).try_into().expect("4 bytes")).into()),
            2 => {
                let length = leb128(&mut message) as usize;
                let (bytes, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(bytes)
            }
            _ => Field::Number(leb128(&mut message)),
        };
        Some(((tag >> 3) as u32, field))
    })
}

//! What formats that are no JSON say of a function, read without what wrote them.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::{GzDecoder, ZlibDecoder};
use serde_json::Value;

/// A function in a file, and the lines of its frames.
#[derive(Debug)]
pub struct Function {
    pub file: String,
    pub line: u64,
    /// Those that are known.
    pub lines: Vec<u64>,
}

/// A message of protobuf: its fields by their numbers.
struct Message<'m>(Vec<(u64, Field<'m>)>);

#[derive(Clone, Copy)]
enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
}

impl<'m> Message<'m> {
    fn of(mut bytes: &'m [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Bytes(take(&mut bytes, 8)),
                2 => {
                    let length = varint(&mut bytes);
                    Field::Bytes(take(&mut bytes, length))
                }
                other => panic!("a field of type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    fn number(&self, wanted: u64) -> u64 {
        let number = self.0.iter().find_map(|(at, field)| match field {
            Field::Number(number) if *at == wanted => Some(*number),
            _ => None,
        });
        number.unwrap_or(0)
    }

    fn all(&self, wanted: u64) -> Vec<&'m [u8]> {
        let bytes = self.0.iter().filter_map(|(at, field)| match field {
            Field::Bytes(bytes) if *at == wanted => Some(*bytes),
            _ => None,
        });
        bytes.collect()
    }

    fn messages(&self, wanted: u64) -> Vec<Self> {
        self.all(wanted).into_iter().map(Self::of).collect()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (&first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            break;
        }
    }
    number
}

fn take<'b>(bytes: &mut &'b [u8], count: u64) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(usize::try_from(count).expect("a length"));
    *bytes = rest;
    taken
}

/// The numbers of the fields that both formats have under several ones.
struct Fields {
    location: u64,
    lines: u64,
    function: u64,
    /// Those of a function: its name, its file, and the line that it begins at.
    of_function: [u64; 3],
    text: u64,
}

/// The functions of this name in a profile for pprof.
pub fn pprof(bytes: &[u8], name: &str) -> Vec<Function> {
    let mut inflated = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut inflated).expect("a gzip file");
    let message = Message::of(&inflated);
    let fields = Fields { location: 4, lines: 4, function: 5, of_function: [2, 4, 5], text: 6 };
    // Functions have numbers of their own.
    located(&message, &fields, |_, function| function.number(1), name)
}

/// The functions of this name in OTLP's profiles.
pub fn otlp(bytes: &[u8], name: &str) -> Vec<Function> {
    let message = Message::of(bytes);
    let [dictionary] = &message.messages(2)[..] else { panic!("no dictionary") };
    let fields = Fields { location: 2, lines: 3, function: 3, of_function: [1, 3, 4], text: 5 };
    located(dictionary, &fields, |place, _| place, name)
}

fn located(
    message: &Message<'_>,
    fields: &Fields,
    number_of: impl Fn(u64, &Message<'_>) -> u64,
    name: &str,
) -> Vec<Function> {
    let texts = message.all(fields.text);
    let text = |number: u64| {
        let text = texts[usize::try_from(number).expect("a number")];
        String::from_utf8(text.to_vec()).expect("UTF-8")
    };
    let mut lines: HashMap<u64, Vec<u64>> = HashMap::new();
    for location in message.messages(fields.location) {
        for line in location.messages(fields.lines) {
            lines.entry(line.number(1)).or_default().push(line.number(2));
        }
    }
    let functions = (0..).zip(message.messages(fields.function));
    let [of_name, file, line] = fields.of_function;
    let named = functions.filter(|(_, function)| text(function.number(of_name)) == name);
    let named = named.map(|(place, function)| Function {
        file: text(function.number(file)),
        line: function.number(line),
        lines: known(lines.remove(&number_of(place, &function)).unwrap_or_default()),
    });
    named.collect()
}

fn known(lines: Vec<u64>) -> Vec<u64> {
    lines.into_iter().filter(|line| *line > 0).collect()
}

/// The columns of one part of the page's data.
struct Columns(HashMap<String, Vec<u8>>);

impl Columns {
    fn of(page: &str, part: &str) -> Self {
        let begin = format!("id=\"{part}-data\">");
        let (_, rest) = page.split_once(&begin).expect("data");
        let (encoded, _) = rest.split_once("</script>").expect("an end");
        let mut bytes = Vec::new();
        ZlibDecoder::new(&*base64(encoded)).read_to_end(&mut bytes).expect("compressed data");
        let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
        let (directory, mut rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let directory: Value = serde_json::from_slice(directory).expect("JSON");
        let mut columns = HashMap::new();
        for column in directory["columns"].as_array().expect("columns") {
            let bytes = take(&mut rest, column[3].as_u64().expect("a length"));
            columns.insert(column[0].as_str().expect("a name").to_owned(), bytes.to_vec());
        }
        Self(columns)
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        let mut bytes = &self.0[name][..];
        std::iter::from_fn(|| (!bytes.is_empty()).then(|| varint(&mut bytes))).collect()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let text = std::str::from_utf8(&self.0[name]).expect("UTF-8");
        text.split_terminator('\n').map(str::to_owned).collect()
    }
}

fn base64(text: &str) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} is no digit"),
    };
    let digits: Vec<u8> = text.trim().trim_end_matches('=').bytes().map(value).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, &digit| bits << 6 | u32::from(digit));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// What the page says of code without a name.
pub fn unnamed_of_page(page: &str) -> Vec<String> {
    Columns::of(page, "profile").texts("unnamed.line")
}

/// What the page of a report has of the functions of a name.
pub struct OfPage {
    pub functions: Vec<Function>,
    /// The file and line of each place in the machine code of functions of the name.
    pub places: Vec<(String, u64)>,
    /// The lines of each source file.
    pub sources: HashMap<String, Vec<String>>,
}

/// What the page of a report has of the functions of this name.
pub fn page(page: &str, name: &str) -> OfPage {
    let (profile, code) = (Columns::of(page, "profile"), Columns::of(page, "code"));
    let text = |columns: &Columns, numbers: &str| -> Vec<String> {
        let texts = columns.texts("string.text");
        let numbers = columns.numbers(numbers).into_iter();
        numbers.map(|number| texts[usize::try_from(number).expect("a number")].clone()).collect()
    };
    let (names, files) = (text(&profile, "function.name"), text(&profile, "function.file"));
    let mut lines: HashMap<u64, Vec<u64>> = HashMap::new();
    let frames = profile.numbers("frame.function");
    for (function, line) in frames.into_iter().zip(profile.numbers("frame.line")) {
        lines.entry(function).or_default().push(line);
    }
    let rows = (0..).zip(names.iter().zip(files).zip(profile.numbers("function.line")));
    let named = rows.filter(|(_, ((of, _), _))| *of == name);
    let functions = named.map(|(number, ((_, file), line))| Function {
        file,
        line,
        lines: known(lines.remove(&number).unwrap_or_default()),
    });
    let of_places = text(&code, "place.function");
    let places = text(&code, "place.file").into_iter().zip(code.numbers("place.line"));
    let places = of_places.into_iter().zip(places).filter(|(of, _)| of == name);
    let mut texts = code.texts("line.text").into_iter();
    let counts = code.numbers("source.lines").into_iter();
    let counts = counts.map(|count| usize::try_from(count).expect("a number"));
    let sources = text(&code, "source.file").into_iter().zip(counts);
    OfPage {
        functions: functions.collect(),
        places: places.map(|(_, place)| place).collect(),
        sources: sources
            .map(|(file, count)| (file, texts.by_ref().take(count).collect()))
            .collect(),
    }
}

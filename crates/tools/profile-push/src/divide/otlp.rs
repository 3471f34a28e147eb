//! Divides a request of OTLP. A sample with several times counts as several samples.

use std::ops::Range;

use super::error::{DivideError, malformed};
use super::rows::{Numbers, Tables};
use super::schema::{Schema, Table, otlp as schema};
use super::share::ranges;
use super::wire::{Field, Value, fields, fixed64s, number, put_bytes, put_number};

/// Fields of the messages that lead to samples.
mod field {
    pub const RESOURCE_PROFILES: u32 = 1;
    pub const DICTIONARY: u32 = 2;
    pub const SCOPE_PROFILES: u32 = 2;
    pub const PROFILE: u32 = 2;
    pub const SAMPLE: u32 = 2;
    pub const PROFILE_ID: u32 = 7;
    pub const VALUES: u32 = 4;
    pub const TIMES: u32 = 5;
}

/// The tables of the dictionary, in an order in which each refers only to those behind it.
const TABLES: [(Table, u32, Option<&Schema>); 7] = [
    (Table::Stacks, 7, Some(&schema::STACK)),
    (Table::Locations, 2, Some(&schema::LOCATION)),
    (Table::Mappings, 1, Some(&schema::MAPPING)),
    (Table::Functions, 3, Some(&schema::FUNCTION)),
    (Table::Links, 4, Some(&schema::LINK)),
    (Table::Attributes, 6, Some(&schema::ATTRIBUTE)),
    (Table::Strings, 5, None),
];

/// The two halves of a request; `None` if it has one sample.
///
/// # Errors
/// If it is malformed.
pub(crate) fn halves(request: &[u8]) -> Result<Option<[Vec<u8>; 2]>, DivideError> {
    let mut tables = Tables::default();
    for (table, ..) in TABLES {
        tables.add_table(table, Numbers::Places);
    }
    let mut samples = 0_u64;
    for field in fields(request) {
        let field = field?;
        match field.number {
            field::RESOURCE_PROFILES => {
                samples = samples.saturating_add(samples_below(&field, 2)?);
            }
            field::DICTIONARY => {
                for row in fields(field.bytes()?) {
                    let row = row?;
                    let Some((table, ..)) = TABLES.iter().find(|(_, it, _)| *it == row.number)
                    else {
                        let message = "ProfilesDictionary";
                        return Err(DivideError::UnknownField { message, number: row.number });
                    };
                    tables.add(*table, row.bytes()?)?;
                }
            }
            number => {
                let message = "ExportProfilesServiceRequest";
                return Err(DivideError::UnknownField { message, number });
            }
        }
    }
    let Some([first, second]) = ranges(samples) else { return Ok(None) };
    let second = Half { tables: tables.clone(), wanted: second, at: 0 }.request(request)?;
    Ok(Some([Half { tables, wanted: first, at: 0 }.request(request)?, second]))
}

/// How many samples are in a message that is so many levels above a profile. At each of them, messages below are in the same field.
fn samples_below(field: &Field<'_>, levels: u32) -> Result<u64, DivideError> {
    let mut samples = 0_u64;
    for field in fields(field.bytes()?) {
        let field = field?;
        if field.number == field::SAMPLE {
            let more = match levels.checked_sub(1) {
                Some(levels) => samples_below(&field, levels)?,
                None => Sample::read(field.bytes()?)?.count(),
            };
            samples = samples.saturating_add(more);
        }
    }
    Ok(samples)
}

/// What is divided of a sample.
#[derive(Debug, Default)]
struct Sample {
    values: Vec<u64>,
    times: Vec<u64>,
}

impl Sample {
    fn read(message: &[u8]) -> Result<Self, DivideError> {
        let mut sample = Self::default();
        for field in fields(message) {
            let field = field?;
            match (field.number, field.value) {
                (field::VALUES, Value::Number(value)) => sample.values.push(value),
                (field::VALUES, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        sample.values.push(number(&mut packed)?);
                    }
                }
                (field::TIMES, Value::Fixed64(time)) => sample.times.push(time),
                (field::TIMES, Value::Bytes(packed)) => sample.times.extend(fixed64s(packed)?),
                (field::VALUES | field::TIMES, _) => {
                    return malformed("a sample has no such numbers");
                }
                _ => {}
            }
        }
        Ok(sample)
    }

    /// As how many samples it counts: a value without a time is a sum.
    fn count(&self) -> u64 {
        let (values, times) = (self.values.len(), self.times.len());
        if times > 0 && (values == 0 || values == times) { times as u64 } else { 1 }
    }
}

/// Writes one half.
struct Half<'a> {
    tables: Tables<'a>,
    /// Which samples it has.
    wanted: Range<u64>,
    /// The number of the next sample.
    at: u64,
}

impl Half<'_> {
    fn request(mut self, request: &[u8]) -> Result<Vec<u8>, DivideError> {
        let mut out = Vec::new();
        for field in fields(request) {
            let field = field?;
            if field.number == field::RESOURCE_PROFILES
                && let Some(resource) = self.resource(field.bytes()?)?
            {
                put_bytes(&mut out, field::RESOURCE_PROFILES, &resource);
            }
        }
        let mut dictionary = Vec::new();
        for (table, number, schema) in TABLES {
            self.tables.write(table, number, schema, &mut dictionary)?;
        }
        put_bytes(&mut out, field::DICTIONARY, &dictionary);
        Ok(out)
    }

    fn resource(&mut self, message: &[u8]) -> Result<Option<Vec<u8>>, DivideError> {
        self.level(&schema::RESOURCE_PROFILES, field::SCOPE_PROFILES, message, Self::scope)
    }

    fn scope(&mut self, message: &[u8]) -> Result<Option<Vec<u8>>, DivideError> {
        self.level(&schema::SCOPE_PROFILES, field::PROFILE, message, Self::profile)
    }

    /// A message with those messages below it that have a sample of this half; `None` if there is none. What has no samples at all is in the first half.
    fn level(
        &mut self,
        schema: &Schema,
        below: u32,
        message: &[u8],
        write: impl Fn(&mut Self, &[u8]) -> Result<Option<Vec<u8>>, DivideError>,
    ) -> Result<Option<Vec<u8>>, DivideError> {
        let mut out = Vec::new();
        let (mut has_any, mut is_wanted) = (false, false);
        for field in fields(message) {
            let field = field?;
            if field.number != below {
                continue;
            }
            has_any = true;
            if let Some(message) = write(self, field.bytes()?)? {
                is_wanted = true;
                put_bytes(&mut out, below, &message);
            }
        }
        if !is_wanted && (has_any || self.wanted.start > 0) {
            return Ok(None);
        }
        for field in fields(message) {
            let field = field?;
            if field.number != below {
                self.tables.rewrite_field(schema, &field, &mut out)?;
            }
        }
        Ok(Some(out))
    }

    fn profile(&mut self, message: &[u8]) -> Result<Option<Vec<u8>>, DivideError> {
        let start = self.at;
        let mut out = Vec::new();
        for field in fields(message) {
            let field = field?;
            if field.number == field::SAMPLE {
                self.sample(field.bytes()?, &mut out)?;
            }
        }
        let all = start..self.at;
        let wanted = self.wanted.start.max(all.start)..self.wanted.end.min(all.end);
        if wanted.is_empty() && !(all.is_empty() && self.wanted.start == 0) {
            return Ok(None);
        }
        for field in fields(message) {
            let field = field?;
            match field.number {
                field::SAMPLE => {}
                // A profile that is whole keeps its ID.
                field::PROFILE_ID if wanted == all => out.extend_from_slice(field.raw),
                field::PROFILE_ID => {
                    let [from, to] = [wanted.start, wanted.end].map(|it| it.saturating_sub(start));
                    put_bytes(&mut out, field::PROFILE_ID, &part_id(field.bytes()?, from, to));
                }
                _ => self.tables.rewrite_field(&schema::PROFILE, &field, &mut out)?,
            }
        }
        Ok(Some(out))
    }

    /// Appends what this half has of a sample.
    fn sample(&mut self, message: &[u8], profile: &mut Vec<u8>) -> Result<(), DivideError> {
        let sample = Sample::read(message)?;
        let start = self.at;
        let count = sample.count();
        self.at = self.at.saturating_add(count);
        let part = self.wanted.start.clamp(start, self.at)..self.wanted.end.clamp(start, self.at);
        if part.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        if part == (start..self.at) {
            self.tables.rewrite(&schema::SAMPLE, message, &mut out)?;
        } else {
            for field in fields(message) {
                let field = field?;
                if !matches!(field.number, field::VALUES | field::TIMES) {
                    self.tables.rewrite_field(&schema::SAMPLE, &field, &mut out)?;
                }
            }
            let place = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX);
            let part = place(part.start)..place(part.end);
            let mut packed = Vec::new();
            for value in sample.values.get(part.clone()).unwrap_or_default() {
                put_number(&mut packed, *value);
            }
            if !packed.is_empty() {
                put_bytes(&mut out, field::VALUES, &packed);
            }
            let times = sample.times.get(part).unwrap_or_default();
            let packed: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
            put_bytes(&mut out, field::TIMES, &packed);
        }
        put_bytes(profile, field::SAMPLE, &out);
        Ok(())
    }
}

/// Identifies a part of a profile. The same profile divided again has the same parts.
fn part_id(whole: &[u8], from: u64, to: u64) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"part").update(&from.to_le_bytes()).update(&to.to_le_bytes()).update(whole);
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    id
}

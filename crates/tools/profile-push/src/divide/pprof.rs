//! Divides a profile of pprof. Its samples are stacks with sums, which are not divided.

use std::ops::Range;

use super::error::DivideError;
use super::rows::{Numbers, Tables};
use super::schema::{Table, pprof as schema};
use super::share::ranges;
use super::wire::{fields, put_bytes};

/// The fields of the outermost message.
mod field {
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING: u32 = 6;
}

/// The two halves of a profile that is not compressed; `None` if it has one sample.
///
/// # Errors
/// If it is malformed.
pub(crate) fn halves(profile: &[u8]) -> Result<Option<[Vec<u8>; 2]>, DivideError> {
    let mut tables = Tables::default();
    tables.add_table(Table::Strings, Numbers::Places);
    for table in [Table::Mappings, Table::Locations, Table::Functions] {
        tables.add_table(table, Numbers::Ids);
    }
    let mut samples = 0_u64;
    for field in fields(profile) {
        let field = field?;
        let table = match field.number {
            field::SAMPLE => {
                samples = samples.saturating_add(1);
                continue;
            }
            field::MAPPING => Table::Mappings,
            field::LOCATION => Table::Locations,
            field::FUNCTION => Table::Functions,
            field::STRING => Table::Strings,
            _ => continue,
        };
        tables.add(table, field.bytes()?)?;
    }
    // Viewers take its name for that of the program.
    tables.need_first(Table::Mappings)?;
    let Some([first, second]) = ranges(samples) else { return Ok(None) };
    let second = half(profile, tables.clone(), &second)?;
    Ok(Some([half(profile, tables, &first)?, second]))
}

fn half(
    profile: &[u8],
    mut tables: Tables<'_>,
    wanted: &Range<u64>,
) -> Result<Vec<u8>, DivideError> {
    let mut out = Vec::new();
    let mut place = 0_u64;
    for field in fields(profile) {
        let field = field?;
        match field.number {
            field::SAMPLE => {
                if wanted.contains(&place) {
                    let mut sample = Vec::new();
                    tables.rewrite(&schema::SAMPLE, field.bytes()?, &mut sample)?;
                    put_bytes(&mut out, field::SAMPLE, &sample);
                }
                place = place.saturating_add(1);
            }
            field::MAPPING | field::LOCATION | field::FUNCTION | field::STRING => {}
            _ => tables.rewrite_field(&schema::PROFILE, &field, &mut out)?,
        }
    }
    tables.write(Table::Locations, field::LOCATION, Some(&schema::LOCATION), &mut out)?;
    tables.write(Table::Mappings, field::MAPPING, Some(&schema::MAPPING), &mut out)?;
    tables.write(Table::Functions, field::FUNCTION, Some(&schema::FUNCTION), &mut out)?;
    tables.write(Table::Strings, field::STRING, None, &mut out)?;
    Ok(out)
}

//! Tables of which only the rows that are referred to are written, under new numbers.

use std::collections::HashMap;

use super::error::{DivideError, malformed};
use super::schema::{Role, Schema, Table};
use super::wire::{Field, Value, fields, number, put_bytes, put_number, put_number_field};

/// The most rows that a table may have: each takes memory beyond its bytes.
const MOST_ROWS: usize = 1 << 24;

/// Messages in messages, as deep as readers of protocol buffers go.
const DEEPEST: u32 = 100;

/// What refers to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Its place. The first row means "none", and is always there.
    Places,
    /// An ID in its first field; 0 means "none".
    Ids,
}

/// The rows of a table.
#[derive(Clone, Debug)]
struct Rows<'a> {
    table: Table,
    numbers: Numbers,
    rows: Vec<&'a [u8]>,
    /// The places of rows by their IDs.
    by_id: HashMap<u64, u32>,
    /// The new number of each row; 0 for those that are not needed.
    new: Vec<u32>,
    /// The places of needed rows, in the order of their new numbers.
    needed: Vec<u32>,
}

impl<'a> Rows<'a> {
    fn add(&mut self, row: &'a [u8]) -> Result<(), DivideError> {
        if self.rows.len() >= MOST_ROWS {
            return malformed("a table has more than 16 million rows");
        }
        if self.numbers == Numbers::Ids {
            let place = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            for field in fields(row) {
                if let Field { number: 1, value: Value::Number(id), .. } = field? {
                    self.by_id.insert(id, place);
                }
            }
        }
        self.rows.push(row);
        self.new.push(0);
        Ok(())
    }

    /// The new number of a row, which is needed from now on.
    fn number(&mut self, old: u64) -> Result<u64, DivideError> {
        if old == 0 {
            return Ok(0);
        }
        let missing = DivideError::NoRow { table: self.table.name(), row: old };
        let place = match self.numbers {
            Numbers::Places => u32::try_from(old).ok(),
            Numbers::Ids => self.by_id.get(&old).copied(),
        };
        let place = place.ok_or_else(|| missing.clone())?;
        let new = self.new.get_mut(place as usize).ok_or(missing)?;
        if *new == 0 {
            self.needed.push(place);
            *new = u32::try_from(self.needed.len()).unwrap_or(u32::MAX);
        }
        Ok(u64::from(*new))
    }
}

/// The tables of a profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables<'a> {
    all: Vec<Rows<'a>>,
}

impl<'a> Tables<'a> {
    /// A table without rows.
    pub fn add_table(&mut self, table: Table, numbers: Numbers) {
        self.all.push(Rows {
            table,
            numbers,
            rows: Vec::new(),
            by_id: HashMap::new(),
            new: Vec::new(),
            needed: Vec::new(),
        });
    }

    fn table(&mut self, table: Table) -> Result<&mut Rows<'a>, DivideError> {
        let found = self.all.iter_mut().find(|rows| rows.table == table);
        found.ok_or(DivideError::NoRow { table: table.name(), row: 0 })
    }

    /// Adds a row.
    pub fn add(&mut self, table: Table, row: &'a [u8]) -> Result<(), DivideError> {
        self.table(table)?.add(row)
    }

    /// The first row is needed, whether or not anything refers to it.
    pub fn need_first(&mut self, table: Table) -> Result<(), DivideError> {
        let rows = self.table(table)?;
        let first = rows.by_id.iter().find(|(_, place)| **place == 0).map(|(id, _)| *id);
        first.map_or(Ok(()), |id| rows.number(id).map(|_| ()))
    }

    /// Appends a message with new numbers of rows.
    pub fn rewrite(
        &mut self,
        schema: &Schema,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DivideError> {
        self.rewrite_at(DEEPEST, schema, message, out)
    }

    fn rewrite_at(
        &mut self,
        depth: u32,
        schema: &Schema,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DivideError> {
        fields(message).try_for_each(|field| self.field_at(depth, schema, &field?, out))
    }

    /// Appends a field of a message with new numbers of rows.
    pub fn rewrite_field(
        &mut self,
        schema: &Schema,
        field: &Field<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), DivideError> {
        self.field_at(DEEPEST, schema, field, out)
    }

    fn field_at(
        &mut self,
        depth: u32,
        schema: &Schema,
        field: &Field<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), DivideError> {
        let role = schema.role(field.number);
        match role
            .ok_or(DivideError::UnknownField { message: schema.name, number: field.number })?
        {
            Role::Plain => out.extend_from_slice(field.raw),
            Role::Row(table) => match field.value {
                Value::Number(old) => {
                    let new = self.table(table)?.number(old)?;
                    put_number_field(out, field.number, new);
                }
                Value::Bytes(mut packed) => {
                    let mut list = Vec::with_capacity(packed.len());
                    while !packed.is_empty() {
                        let new = self.table(table)?.number(number(&mut packed)?)?;
                        put_number(&mut list, new);
                    }
                    put_bytes(out, field.number, &list);
                }
                Value::Fixed32 | Value::Fixed64(_) => return malformed("a row has no such number"),
            },
            Role::Message(inner) => {
                let Some(depth) = depth.checked_sub(1) else {
                    return malformed("messages are nested too deeply");
                };
                let mut message = Vec::new();
                self.rewrite_at(depth, inner, field.bytes()?, &mut message)?;
                put_bytes(out, field.number, &message);
            }
        }
        Ok(())
    }

    /// Appends the needed rows of a table as fields with this number; `None` is for texts. No table behind it may refer to it.
    pub fn write(
        &mut self,
        table: Table,
        field: u32,
        schema: Option<&Schema>,
        out: &mut Vec<u8>,
    ) -> Result<(), DivideError> {
        let rows = self.table(table)?;
        let mut places = std::mem::take(&mut rows.needed);
        match rows.numbers {
            Numbers::Places if !rows.rows.is_empty() => places.insert(0, 0),
            Numbers::Places => {}
            // Their order is free, and the first mapping is that of the program.
            Numbers::Ids => places.sort_unstable(),
        }
        for place in places {
            let row = self.table(table)?.rows.get(place as usize).copied().unwrap_or_default();
            match schema {
                None => put_bytes(out, field, row),
                Some(schema) => {
                    let mut message = Vec::new();
                    self.rewrite(schema, row, &mut message)?;
                    put_bytes(out, field, &message);
                }
            }
        }
        Ok(())
    }
}

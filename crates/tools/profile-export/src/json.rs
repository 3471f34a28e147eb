//! JSON that is written piece by piece.
//!
//! An export of a million samples is never in memory: tables are written column by column, from iterators.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

/// Text of any bytes; U+FFFD replaces what is not UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

/// An object that is being written.
pub struct Object<'o> {
    out: &'o mut dyn Write,
    is_empty: bool,
}

/// Writes an object.
pub fn object(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut Object<'_>) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(b"{")?;
    let mut object = Object { out, is_empty: true };
    fill(&mut object)?;
    object.out.write_all(b"}")
}

fn value(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(out, value)?)
}

impl Object<'_> {
    fn name(&mut self, name: &str) -> io::Result<()> {
        if !self.is_empty {
            self.out.write_all(b",")?;
        }
        self.is_empty = false;
        value(self.out, &name)?;
        self.out.write_all(b":")
    }

    /// A field.
    pub fn field(&mut self, name: &str, content: impl Serialize) -> io::Result<()> {
        self.name(name)?;
        value(self.out, &content)
    }

    /// A field that is an array.
    pub fn list<T: Serialize>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        self.items(name, items, |out, item| value(out, &item))
    }

    /// A field that is an object.
    pub fn object(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut Object<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.name(name)?;
        object(self.out, fill)
    }

    /// A field that is an array of objects.
    pub fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(&mut Object<'_>, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.items(name, items, |out, item| object(out, |object| fill(object, item)))
    }

    /// A field that is an array. `write` writes each of its items.
    pub fn items<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.name(name)?;
        self.out.write_all(b"[")?;
        for (place, item) in items.into_iter().enumerate() {
            if place > 0 {
                self.out.write_all(b",")?;
            }
            write(self.out, item)?;
        }
        self.out.write_all(b"]")
    }
}

//! The parts of a pattern that match a character.

use super::class::{Map, push_range};
use super::decoder::{DOT_ALL, Decoder, MOST, UCP};
use super::opcodes::Op;
use super::pattern::{Times, character, in_class};
use super::property::{LEFT_OUT, Property, property};

impl Decoder<'_> {
    /// Adds an item that is repeated. `a{2,3}` is compiled as `a{2}a?`.
    pub fn item(&mut self, item: String, times: Times) {
        let (times, start) = match self.exact.take() {
            Some((before, exact, start)) if before == item => {
                self.text.truncate(start);
                (exact.then(times), start)
            }
            _ => (times, self.text.len()),
        };
        self.push(&format!("{item}{}", times.text()));
        if times.most == Some(times.least) && self.text.len() < MOST {
            self.exact = Some((item, times, start));
        }
    }

    pub fn dot(&self, op: Op) -> &'static str {
        match (op, self.code.options & DOT_ALL != 0) {
            (Op::Dot { is_all: true }, false) => "(?s:.)",
            (Op::Dot { is_all: false }, true) => "\\N",
            _ => ".",
        }
    }

    /// A character.
    pub fn character(&mut self, is_not: bool, is_caseless: bool) -> Option<String> {
        let character = self.reader.wide_character()?;
        Some(self.written(character, is_not, is_caseless))
    }

    /// A character, as it is written here.
    pub fn written(&mut self, unit: u32, is_not: bool, is_caseless: bool) -> String {
        let is_letter = char::from_u32(unit).is_some_and(char::is_alphabetic);
        let is_utf = self.is_utf();
        if is_letter && is_caseless != self.is_caseless {
            self.is_caseless = is_caseless;
            self.push(if is_caseless { "(?i)" } else { "(?-i)" });
        }
        match is_not {
            true => format!("[^{}]", in_class(unit, is_utf)),
            false => character(unit, is_utf),
        }
    }

    /// A property of characters.
    pub fn property(&mut self, is_not: bool) -> Option<String> {
        let (kind, value) = (self.reader.unit()?, self.reader.unit()?);
        Some(match property(self.layout, kind, value, self.code.options & UCP != 0) {
            Property::Named(name) => format!("\\{}{name}", if is_not { 'P' } else { 'p' }),
            Property::Class(letter) if is_not => format!("\\{}", letter.to_ascii_uppercase()),
            Property::Class(letter) => format!("\\{letter}"),
            Property::Letter(letter) => self.written(letter.into(), is_not, true),
            Property::Other => LEFT_OUT.to_owned(),
        })
    }

    pub fn map_text(&self, map: Map) -> String {
        map.text(self.is_utf(), self.is_caseless)
    }

    /// A class with more than a map of the characters below 256.
    pub fn wide_class(&mut self, start: usize) -> Option<()> {
        const NOT: u32 = 1;
        const MAP: u32 = 2;
        const PROPERTIES: u32 = 4;
        let size = self.reader.link()?;
        let flags = self.reader.unit()?;
        let mut map = None;
        if flags & MAP != 0 {
            let read = self.reader.map()?;
            // The map says what matches; before 10.45, except with properties.
            let is_inverted = flags & NOT != 0 && (self.layout >= 45 || flags & PROPERTIES == 0);
            map = Some(if is_inverted { read.inverted() } else { read });
        }
        let mut text = String::new();
        while text.len() < MOST {
            match self.reader.unit()? {
                0 => break,
                1 => {
                    let character = self.reader.wide_character()?;
                    // Long s and the Kelvin sign are said by the letters of which they are another case.
                    if !(self.is_caseless && matches!(character, 0x17f | 0x212a)) {
                        push_range(&mut text, character, character, self.is_utf());
                    }
                }
                2 => {
                    let (first, last) =
                        (self.reader.wide_character()?, self.reader.wide_character()?);
                    push_range(&mut text, first, last, self.is_utf());
                }
                kind @ 3..=4 => {
                    let property = self.property(kind == 4)?;
                    // Since 10.45, the map has them, too.
                    if let ("\\w" | "\\d" | "\\s", Some(class)) =
                        (&*property, property.chars().last())
                    {
                        map = map.map(|map| map.without(class));
                    }
                    text.push_str(&property);
                }
                // A list that is elsewhere.
                _ => {
                    text.push_str(LEFT_OUT);
                    break;
                }
            }
        }
        self.reader.go_to(start, size)?;
        let map = map.map_or(String::new(), |map| self.map_text(map));
        self.push(&format!("[{}{map}{text}]", if flags & NOT != 0 { "^" } else { "" }));
        Some(())
    }
}

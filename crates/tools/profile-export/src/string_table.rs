//! The table of strings of pprof and OTLP.

use std::borrow::Cow;

use profile::{Profile, StringId};
use rustc_hash::FxHashMap;

use crate::protobuf::Message;

/// Strings, each once; the first is empty.
#[derive(Debug)]
pub struct StringTable<'p> {
    profile: &'p Profile,
    /// By the number in the profile, plus one; 0 for those that are not in the table.
    numbers: Vec<u64>,
    others: FxHashMap<String, u64>,
    texts: Vec<Cow<'p, str>>,
}

impl<'p> StringTable<'p> {
    /// A table of the empty string.
    pub fn new(profile: &'p Profile) -> Self {
        let numbers = vec![0; profile.strings().iter().len()];
        Self { profile, numbers, others: FxHashMap::default(), texts: vec![Cow::Borrowed("")] }
    }

    fn push(texts: &mut Vec<Cow<'p, str>>, text: Cow<'p, str>) -> u64 {
        texts.push(text);
        texts.len().saturating_sub(1) as u64
    }

    /// The number of a string of the profile.
    pub fn id(&mut self, id: StringId) -> u64 {
        let profile = self.profile;
        let text = profile.text(id);
        if text.is_empty() {
            return 0;
        }
        let Some(number) = self.numbers.get_mut(id.index()) else { return 0 };
        if *number == 0 {
            *number = Self::push(&mut self.texts, String::from_utf8_lossy(text));
        }
        *number
    }

    /// The number of another string.
    pub fn text(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&number) = self.others.get(text) {
            return number;
        }
        let number = Self::push(&mut self.texts, Cow::Owned(text.to_owned()));
        self.others.insert(text.to_owned(), number);
        number
    }

    /// The message `ValueType`, which both formats have.
    pub fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::new();
        message.number(1, self.text(kind)).number(2, self.text(unit));
        message
    }

    /// The string with this number.
    pub fn get(&self, number: u64) -> &str {
        let place = usize::try_from(number).ok();
        place.and_then(|place| self.texts.get(place)).map(AsRef::as_ref).unwrap_or_default()
    }

    /// All strings, in the order of their numbers.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(AsRef::as_ref)
    }
}

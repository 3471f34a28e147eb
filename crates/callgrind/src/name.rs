//! Names by number, and what callgrind calls code that it does not know.

use std::collections::HashMap;
use std::rc::Rc;

use crate::error::Cause;
use crate::line::{Kind, NameRef, decimal, hexadecimal};

/// The names that the lines so far gave numbers to.
#[derive(Debug, Default)]
pub(crate) struct Names {
    objects: Numbered,
    files: Numbered,
    functions: Numbered,
}

impl Names {
    fn of(&mut self, kind: Kind) -> &mut Numbered {
        match kind {
            Kind::Object => &mut self.objects,
            Kind::File => &mut self.files,
            Kind::Function => &mut self.functions,
        }
    }

    /// The name that is meant.
    pub(crate) fn resolve(&mut self, kind: Kind, name: NameRef<'_>) -> Result<Rc<[u8]>, Cause> {
        let Some(id) = name.id else { return Ok(name.text.into()) };
        if name.text.is_empty() {
            return self.of(kind).get(id).cloned().ok_or(Cause::UnknownName(id));
        }
        let text: Rc<[u8]> = match kind {
            Kind::Function => self.expanded(name.text)?.into(),
            _ => name.text.into(),
        };
        self.of(kind).insert(id, Rc::clone(&text));
        Ok(text)
    }

    /// `(3)'2'(7)`, as `--compress-mangled=yes` writes contexts, with the names in it.
    fn expanded(&self, text: &[u8]) -> Result<Vec<u8>, Cause> {
        let is_compressed = NameRef::parse(text).id.is_some();
        if !is_compressed {
            return Ok(text.to_vec());
        }
        let mut whole = Vec::new();
        for (index, part) in text.split(|&byte| byte == b'\'').enumerate() {
            if index > 0 {
                whole.push(b'\'');
            }
            match NameRef::parse(part) {
                NameRef { id: Some(id), text: b"" } => {
                    let name = self.functions.get(id).ok_or(Cause::UnknownName(id))?;
                    whole.extend_from_slice(name);
                }
                _ => whole.extend_from_slice(part),
            }
        }
        Ok(whole)
    }

    /// A line that gives a name its number is left out of the output.
    pub(crate) fn leave_out(&mut self, kind: Kind, name: NameRef<'_>) {
        if let Some(id) = name.id.filter(|_| !name.text.is_empty())
            && let Some(entry) = self.of(kind).get_mut(id)
        {
            entry.is_unsaid = true;
        }
    }

    /// The name to add to a line that refers to it, as the output has not said it yet.
    pub(crate) fn say(&mut self, kind: Kind, name: NameRef<'_>) -> Option<Rc<[u8]>> {
        let entry = self.of(kind).get_mut(name.id?)?;
        let was_unsaid = std::mem::replace(&mut entry.is_unsaid, false);
        (was_unsaid && name.text.is_empty()).then(|| Rc::clone(&entry.name))
    }
}

/// Names by number.
#[derive(Debug, Default)]
struct Numbered {
    /// Those with small numbers: all that callgrind gives.
    small: Vec<Option<Entry>>,
    large: HashMap<u64, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: Rc<[u8]>,
    /// The output has not said it: the line that did was left out.
    is_unsaid: bool,
}

/// From here on a number is large.
const LARGE: u64 = 1 << 18;

impl Numbered {
    fn get(&self, id: u64) -> Option<&Rc<[u8]>> {
        let entry =
            if id < LARGE { self.small.get(id as usize)?.as_ref() } else { self.large.get(&id) };
        entry.map(|entry| &entry.name)
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        if id < LARGE { self.small.get_mut(id as usize)?.as_mut() } else { self.large.get_mut(&id) }
    }

    fn insert(&mut self, id: u64, name: Rc<[u8]>) {
        let entry = Entry { name, is_unsaid: false };
        if id >= LARGE {
            self.large.insert(id, entry);
            return;
        }
        let index = id as usize;
        if index >= self.small.len() {
            self.small.resize(index.saturating_add(1), None);
        }
        if let Some(place) = self.small.get_mut(index) {
            *place = Some(entry);
        }
    }
}

/// What callgrind calls objects and files that it does not know.
pub(crate) const UNKNOWN: &[u8] = b"???";

/// The name of a context whose function callgrind did not know: `0x0000000004a3c010'2'caller'…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    /// The address at which it is entered.
    pub(crate) address: u64,
    /// Its level of recursion, from 1.
    pub(crate) level: u32,
    /// The callers, each with a `'` before it.
    pub(crate) callers: Box<[u8]>,
}

impl Context {
    /// Reads a name; `None` if it is no address.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let (own, rest) = split_part(name);
        let address = hexadecimal(own.strip_prefix(b"0x")?)?;
        let (level, callers) = match rest.strip_prefix(b"'").map(split_part) {
            Some((digits, callers)) if decimal(digits).is_some_and(|level| level <= 9999) => {
                (decimal(digits).map_or(1, |level| level as u32), callers)
            }
            _ => (1, rest),
        };
        Some(Self { address, level, callers: callers.into() })
    }
}

/// The first part of a name with callers, and the rest.
pub(crate) fn split_part(name: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\'', name).unwrap_or(name.len());
    name.split_at_checked(end).unwrap_or((name, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_said_once_and_referred_to() {
        let mut names = Names::default();
        let mut resolve = |kind, text: &[u8]| names.resolve(kind, NameRef::parse(text));
        assert_eq!(resolve(Kind::Function, b"(1) a").as_deref(), Ok(&b"a"[..]));
        assert_eq!(resolve(Kind::Function, b"(1)").as_deref(), Ok(&b"a"[..]));
        assert_eq!(resolve(Kind::File, b"(1)"), Err(Cause::UnknownName(1)));
        assert_eq!(resolve(Kind::Function, b"(2) 0x10").as_deref(), Ok(&b"0x10"[..]));
        assert_eq!(resolve(Kind::Function, b"(3) (2)'2'(1)").as_deref(), Ok(&b"0x10'2'a"[..]));
        assert_eq!(resolve(Kind::Function, b"(4) (9)"), Err(Cause::UnknownName(9)));
        assert_eq!(resolve(Kind::Function, b"(below main)").as_deref(), Ok(&b"(below main)"[..]));
    }

    #[test]
    fn names_that_were_left_out_are_said_later() {
        let mut names = Names::default();
        let said = NameRef::parse(b"(7) f");
        names.resolve(Kind::Function, said).expect("a name");
        names.leave_out(Kind::Function, said);
        let referred = NameRef::parse(b"(7)");
        assert_eq!(names.say(Kind::File, referred), None);
        assert_eq!(names.say(Kind::Function, referred).as_deref(), Some(&b"f"[..]));
        assert_eq!(names.say(Kind::Function, referred), None);
    }

    #[test]
    fn unknown_code_is_known_by_its_name() {
        let parse = |name: &[u8]| {
            Context::parse(name).map(|context| {
                (
                    context.address,
                    context.level,
                    String::from_utf8_lossy(&context.callers).into_owned(),
                )
            })
        };
        assert_eq!(parse(b"0x0000000004a3c010"), Some((0x4a3_c010, 1, String::new())));
        assert_eq!(parse(b"0x10'2"), Some((0x10, 2, String::new())));
        assert_eq!(parse(b"0x10'2'main'0x20"), Some((0x10, 2, "'main'0x20".into())));
        assert_eq!(parse(b"0x10'main"), Some((0x10, 1, "'main".into())));
        for other in [&b"main"[..], b"0x", b"0xg", b"0x11112222333344445", b""] {
            assert_eq!(parse(other), None);
        }
    }
}

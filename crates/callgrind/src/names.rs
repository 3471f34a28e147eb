//! Names by number: what the profile calls them, and what the copy has called them so far.

use std::collections::HashMap;
use std::rc::Rc;

use crate::context::{Context, UNKNOWN};
use crate::error::Cause;
use crate::line::{Kind, NameRef};

/// The names that the lines so far gave numbers to.
///
/// The copy leaves lines out and says others later, so that a number may stand for nothing in it yet, or for
/// another name than in the profile, where that gives a number anew.
#[derive(Debug, Default)]
pub(crate) struct Names {
    objects: Numbered,
    files: Numbered,
    functions: Numbered,
}

/// A name that the copy has said by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub(crate) name: &'a Rc<[u8]>,
    /// Whether it may be that of unknown code: `???` of an object, an address of a function.
    pub(crate) may_be_unknown: bool,
}

impl Names {
    fn of(&self, kind: Kind) -> &Numbered {
        match kind {
            Kind::Object => &self.objects,
            Kind::File => &self.files,
            Kind::Function => &self.functions,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut Numbered {
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
            let entry = self.of(kind).get(id).ok_or(Cause::UnknownName(id))?;
            return Ok(Rc::clone(&entry.name));
        }
        if kind == Kind::Function && is_compressed(name.text) {
            let text = self.expanded(name.text)?;
            return Ok(self.functions.insert(kind, id, &text));
        }
        Ok(self.of_mut(kind).insert(kind, id, name.text))
    }

    /// `(3)'2'(7)`, as `--compress-mangled=yes` writes contexts, with the names in it.
    fn expanded(&self, text: &[u8]) -> Result<Vec<u8>, Cause> {
        let mut whole = Vec::new();
        for (index, part) in text.split(|&byte| byte == b'\'').enumerate() {
            if index > 0 {
                whole.push(b'\'');
            }
            match NameRef::parse(part) {
                NameRef { id: Some(id), text: b"" } => {
                    let entry = self.functions.get(id).ok_or(Cause::UnknownName(id))?;
                    whole.extend_from_slice(&entry.name);
                }
                _ => whole.extend_from_slice(part),
            }
        }
        Ok(whole)
    }

    /// Whether a function's name has numbers in it that do not say the same in the copy.
    pub(crate) fn refers_to_unsaid(&self, text: &[u8]) -> bool {
        is_compressed(text)
            && text.split(|&byte| byte == b'\'').any(|part| match NameRef::parse(part) {
                NameRef { id: Some(id), text: b"" } => self.said(Kind::Function, id).is_none(),
                _ => false,
            })
    }

    /// What the profile calls by this number.
    pub(crate) fn given(&self, kind: Kind, id: u64) -> Option<&Rc<[u8]>> {
        Some(&self.of(kind).get(id)?.name)
    }

    /// The name with this number, if the copy calls it so as well.
    #[inline]
    pub(crate) fn said(&self, kind: Kind, id: u64) -> Option<Said<'_>> {
        let Entry { name, said, may_be_unknown } = self.of(kind).get(id)?;
        let is_said = said.as_ref().is_some_and(|said| Rc::ptr_eq(said, name));
        is_said.then_some(Said { name, may_be_unknown: *may_be_unknown })
    }

    /// The copy says `name` by its number. Whether the number alone does, as it was given before; else it
    /// is now.
    pub(crate) fn say(&mut self, kind: Kind, id: u64, name: &Rc<[u8]>) -> bool {
        let Some(entry) = self.of_mut(kind).get_mut(id) else { return false };
        let said = entry.said.replace(Rc::clone(name));
        said.is_some_and(|said| said == *name)
    }
}

/// Whether a function's name has numbers for its parts.
fn is_compressed(text: &[u8]) -> bool {
    NameRef::parse(text).id.is_some()
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
    /// What the profile means by the number.
    name: Rc<[u8]>,
    /// What the copy means by it, once it has said it.
    said: Option<Rc<[u8]>>,
    may_be_unknown: bool,
}

/// From here on a number is large.
const LARGE: u64 = 1 << 18;

impl Numbered {
    #[inline]
    fn get(&self, id: u64) -> Option<&Entry> {
        if id < LARGE { self.small.get(id as usize)?.as_ref() } else { self.large.get(&id) }
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        if id < LARGE { self.small.get_mut(id as usize)?.as_mut() } else { self.large.get_mut(&id) }
    }

    fn insert(&mut self, kind: Kind, id: u64, name: &[u8]) -> Rc<[u8]> {
        let may_be_unknown = match kind {
            Kind::Object => name == UNKNOWN,
            Kind::File => false,
            Kind::Function => Context::is_one(name),
        };
        if let Some(entry) = self.get_mut(id) {
            if *entry.name != *name {
                entry.name = name.into();
                entry.may_be_unknown = may_be_unknown;
            }
            return Rc::clone(&entry.name);
        }
        let name: Rc<[u8]> = name.into();
        let entry = Entry { name: Rc::clone(&name), said: None, may_be_unknown };
        if id >= LARGE {
            self.large.insert(id, entry);
            return name;
        }
        let index = id as usize;
        if index >= self.small.len() {
            self.small.resize(index.saturating_add(1), None);
        }
        if let Some(place) = self.small.get_mut(index) {
            *place = Some(entry);
        }
        name
    }
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
    fn a_number_is_what_the_copy_said_last() {
        let mut names = Names::default();
        let a = names.resolve(Kind::Function, NameRef::parse(b"(7) a")).expect("a name");
        assert!(names.said(Kind::Function, 7).is_none(), "only the profile said it");
        assert!(names.refers_to_unsaid(b"(7)'2"));
        assert!(!names.say(Kind::Function, 7, &a));
        assert!(names.said(Kind::Function, 7).is_some());
        assert!(names.say(Kind::Function, 7, &a));
        assert!(!names.refers_to_unsaid(b"(7)'2"));
        assert!(names.said(Kind::File, 7).is_none());
        // Given anew, while somebody still means the name before.
        let b = names.resolve(Kind::Function, NameRef::parse(b"(7) b")).expect("a name");
        assert!(names.say(Kind::Function, 7, &a));
        assert!(names.said(Kind::Function, 7).is_none());
        assert!(!names.say(Kind::Function, 7, &b));
        assert!(!names.say(Kind::Function, 7, &a));
    }
}

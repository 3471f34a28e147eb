//! Names by number: what they mean in the profile, and what they mean so far in the copy.

use std::collections::HashMap;
use std::rc::Rc;

use crate::context::{Context, UNKNOWN};
use crate::error::Cause;
use crate::line::{Kind, NameRef};

/// The names that the lines so far defined numbers for.
///
/// The copy omits some lines and writes others later. So a number may not have a meaning in it yet, or it may mean
/// another name than in the profile, if the profile redefines the number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    objects: Numbered,
    files: Numbered,
    functions: Numbered,
    /// Total bytes of the names that were composed of other names.
    composed_bytes: usize,
    /// Total bytes of the text that defined them.
    defining_bytes: usize,
}

/// Maximum length of a name. A hundred callers with names of 2 KiB stay below it. Names composed of names could each
/// be twice as long as the one before.
const LONGEST: usize = 1 << 18;

/// Limit on the total size of composed names: this many bytes, plus `COMPOSED_PER_BYTE` for each byte of the text that
/// defines them. `(12)'(7)` stands for two names.
const COMPOSED_BYTES: usize = 1 << 28;
const COMPOSED_PER_BYTE: usize = 256;

/// A name whose number the copy has defined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefinedName<'a> {
    pub(crate) name: &'a Rc<[u8]>,
    /// Whether it may be the name of unknown code: for an object `???`, for a function an address.
    pub(crate) may_be_unknown: bool,
    /// For an object: whether its code was announced.
    pub(crate) is_announced: bool,
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

    /// Returns the name that is referred to.
    pub(crate) fn resolve(&mut self, kind: Kind, name: NameRef<'_>) -> Result<Rc<[u8]>, Cause> {
        if name.text.len() > LONGEST {
            return Err(Cause::NameTooLong);
        }
        let Some(id) = name.id else { return Ok(name.text.into()) };
        if name.text.is_empty() {
            let entry = self.of(kind).get(id).ok_or(Cause::UnknownName(id))?;
            return Ok(Rc::clone(&entry.name));
        }
        if kind == Kind::Function && is_compressed(name.text) {
            let text = self.expand(name.text)?;
            return Ok(self.functions.insert(kind, id, &text));
        }
        Ok(self.of_mut(kind).insert(kind, id, name.text))
    }

    /// Expands the names in `(3)'2'(7)`, the form in which `--compress-mangled=yes` writes contexts.
    fn expand(&mut self, text: &[u8]) -> Result<Vec<u8>, Cause> {
        self.defining_bytes = self.defining_bytes.saturating_add(text.len());
        let left =
            COMPOSED_BYTES.saturating_add(self.defining_bytes.saturating_mul(COMPOSED_PER_BYTE));
        let left = left.saturating_sub(self.composed_bytes);
        let mut whole: Vec<u8> = Vec::new();
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
            if whole.len() > LONGEST {
                return Err(Cause::NameTooLong);
            }
            if whole.len() > left {
                return Err(Cause::NamesTooLong);
            }
        }
        self.composed_bytes = self.composed_bytes.saturating_add(whole.len());
        Ok(whole)
    }

    /// Whether a function's name contains numbers that do not have the same meaning in the copy.
    pub(crate) fn refers_to_undefined(&self, text: &[u8]) -> bool {
        is_compressed(text)
            && text.split(|&byte| byte == b'\'').any(|part| match NameRef::parse(part) {
                NameRef { id: Some(id), text: b"" } => self.defined(Kind::Function, id).is_none(),
                _ => false,
            })
    }

    /// The name that this number has in the profile.
    pub(crate) fn given(&self, kind: Kind, id: u64) -> Option<&Rc<[u8]>> {
        Some(&self.of(kind).get(id)?.name)
    }

    /// The name with this number, if it has the same meaning in the copy.
    #[inline]
    pub(crate) fn defined(&self, kind: Kind, id: u64) -> Option<DefinedName<'_>> {
        let Entry { name, defined, may_be_unknown, is_announced } = self.of(kind).get(id)?;
        let is_defined = defined.as_ref().is_some_and(|defined| Rc::ptr_eq(defined, name));
        is_defined.then_some(DefinedName {
            name,
            may_be_unknown: *may_be_unknown,
            is_announced: *is_announced,
        })
    }

    /// Records that the code of the object with this number was announced.
    pub(crate) fn mark_announced(&mut self, id: u64) {
        if let Some(entry) = self.objects.get_mut(id) {
            entry.is_announced = true;
        }
    }

    /// Records that the copy writes `name` with its number. Returns whether the number alone suffices, because it was
    /// defined as this name before; otherwise it is defined now.
    pub(crate) fn define(&mut self, kind: Kind, id: u64, name: &Rc<[u8]>) -> bool {
        let Some(entry) = self.of_mut(kind).get_mut(id) else { return false };
        let defined = entry.defined.replace(Rc::clone(name));
        defined.is_some_and(|defined| defined == *name)
    }
}

/// Whether a function's name contains numbers for its parts.
fn is_compressed(text: &[u8]) -> bool {
    NameRef::parse(text).id.is_some()
}

/// Names by number.
#[derive(Debug, Default)]
struct Numbered {
    /// Those with small numbers, which are all that callgrind assigns.
    small: Vec<Option<Entry>>,
    large: HashMap<u64, Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The meaning of the number in the profile.
    name: Rc<[u8]>,
    /// The meaning of the number in the copy, once the copy has defined it.
    defined: Option<Rc<[u8]>>,
    may_be_unknown: bool,
    is_announced: bool,
}

/// The first number that is stored as large.
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
                entry.is_announced = false;
            }
            return Rc::clone(&entry.name);
        }
        let name: Rc<[u8]> = name.into();
        let entry =
            Entry { name: Rc::clone(&name), defined: None, may_be_unknown, is_announced: false };
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
    fn names_are_defined_once_and_referred_to() {
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

    /// Without the limits, a kilobyte of lines would produce a gigabyte of names.
    #[test]
    fn names_that_double_end_at_a_limit() {
        let mut names = Names::default();
        let mut resolve = |text: String| {
            names.resolve(Kind::Function, NameRef::parse(text.as_bytes())).map(|name| name.len())
        };
        assert_eq!(resolve("(1) a".into()), Ok(1));
        let mut last = 1;
        for number in 2..=18 {
            last = 2 * last + 1;
            assert_eq!(resolve(format!("({number}) ({0})'({0})", number - 1)), Ok(last));
        }
        assert_eq!(resolve("(19) (18)'(18)".into()), Err(Cause::NameTooLong));
        assert_eq!(resolve("(18)".into()), Ok(last), "what was defined before stays");
        // Many names that are shorter than that.
        let mut all = 0;
        let error = loop {
            match resolve(format!("({}) (17)'1", 20 + all)) {
                Ok(_) => all += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, Cause::NamesTooLong);
        assert!(
            (2 * COMPOSED_BYTES / LONGEST - 8..3 * COMPOSED_BYTES / LONGEST).contains(&all),
            "{all}"
        );
        let long = format!("(9) {}", "x".repeat(LONGEST + 1));
        assert_eq!(resolve(long), Err(Cause::NameTooLong));
    }

    #[test]
    fn a_number_is_what_the_copy_said_last() {
        let mut names = Names::default();
        let a = names.resolve(Kind::Function, NameRef::parse(b"(7) a")).expect("a name");
        assert!(names.defined(Kind::Function, 7).is_none(), "only the profile defined it");
        assert!(names.refers_to_undefined(b"(7)'2"));
        assert!(!names.define(Kind::Function, 7, &a));
        assert!(names.defined(Kind::Function, 7).is_some());
        assert!(names.define(Kind::Function, 7, &a));
        assert!(!names.refers_to_undefined(b"(7)'2"));
        assert!(names.defined(Kind::File, 7).is_none());
        // The number is redefined while the earlier name is still in use.
        let b = names.resolve(Kind::Function, NameRef::parse(b"(7) b")).expect("a name");
        assert!(names.define(Kind::Function, 7, &a));
        assert!(names.defined(Kind::Function, 7).is_none());
        assert!(!names.define(Kind::Function, 7, &b));
        assert!(!names.define(Kind::Function, 7, &a));
    }
}

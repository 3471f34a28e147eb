//! The methods of all classes that are loaded.
//!
//! HotSpot has a list of class loaders, and each has a list of its classes. Both grow at the front, so a later scan ends where
//! the last one began. Other threads change all this at any time, and free it. So everything is copied by the kernel, which
//! reports what is not there ([`Pages`]); and a class counts only if what it leads to leads back to it.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::memory::Pages;
use super::structs::{Field, Library};

/// The classes of HotSpot.
#[derive(Debug)]
pub(crate) struct Classes {
    fields: Fields,
    /// Size of what precedes an array's elements.
    array_header: usize,
    /// Sizes of the fixed parts; what belongs to a method or a pool follows them.
    constants_size: usize,
    pool_size: usize,
    method_size: usize,
}

/// The fields that are read.
#[derive(Debug)]
struct Fields {
    loaders: Field,
    next_loader: Field,
    classes: Field,
    next_class: Field,
    layout: Field,
    class_name: Field,
    methods: Field,
    array_length: Field,
    constants: Field,
    access: Field,
    pool: Field,
    pool_holder: Field,
    code_size: Field,
    name: Field,
    descriptor: Field,
    symbol_length: Field,
    symbol_body: Field,
}

/// A method of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassMethod<'a> {
    /// The address of its bytecode; of a native method, that of the method itself (`Method`).
    pub(crate) address: u64,
    /// The size of what is there.
    pub(crate) size: u64,
    /// `java/lang/String`.
    pub(crate) class: &'a [u8],
    pub(crate) name: &'a [u8],
    /// `(I)V`.
    pub(crate) descriptor: &'a [u8],
}

/// The classes that scans have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By class loader: the class that was the first of its list.
    first: HashMap<usize, usize, FxBuildHasher>,
    /// Classes without methods so far: they are being loaded. How often each was looked at.
    incomplete: Vec<(usize, u8)>,
}

/// More class loaders or classes than this are not expected: then the lists were changed while they were read.
const MANY: usize = 1 << 21;
/// A class that still has no methods after so many scans will never have any.
const ATTEMPTS: u8 = 50;
/// A class has at most 65,535 methods.
const MOST_METHODS: usize = 1 << 16;
/// `JVM_ACC_NATIVE`.
const NATIVE: usize = 0x100;

impl Classes {
    pub(crate) fn of(library: &Library, field: impl Fn(&str) -> Option<Field>) -> Option<Self> {
        let fields = Fields {
            loaders: field("ClassLoaderDataGraph::_head")?,
            next_loader: field("ClassLoaderData::_next")?,
            classes: field("ClassLoaderData::_klasses")?,
            next_class: field("Klass::_next_link")?,
            layout: field("Klass::_layout_helper")?,
            class_name: field("Klass::_name")?,
            methods: field("InstanceKlass::_methods")?,
            array_length: field("Array<int>::_length")?,
            constants: field("Method::_constMethod")?,
            access: field("Method::_access_flags")?,
            pool: field("ConstMethod::_constants")?,
            pool_holder: field("ConstantPool::_pool_holder")?,
            code_size: field("ConstMethod::_code_size")?,
            name: field("ConstMethod::_name_index")?,
            descriptor: field("ConstMethod::_signature_index")?,
            symbol_length: field("Symbol::_length")?,
            symbol_body: field("Symbol::_body[0]")?,
        };
        Some(Self {
            fields,
            // Its size includes one element.
            array_header: library.size_of(b"Array<Method*>")?.checked_sub(8)?,
            constants_size: library.size_of(b"ConstMethod")?,
            pool_size: library.size_of(b"ConstantPool")?,
            method_size: library.size_of(b"Method")?,
        })
    }

    /// Calls `see` with the methods of each class that no earlier scan has `seen`. Abstract methods are left out.
    pub(crate) fn scan(&self, seen: &mut Seen, mut see: impl FnMut(ClassMethod<'_>)) {
        let fields = &self.fields;
        let mut scan = Scan { classes: self, pages: Pages::default(), text: Vec::new() };
        for (class, attempts) in std::mem::take(&mut seen.incomplete) {
            if scan.class(class, &mut see).is_none() && attempts < ATTEMPTS {
                seen.incomplete.push((class, attempts + 1));
            }
        }
        let mut loader = scan.value(0, fields.loaders).unwrap_or(0);
        for _ in 0..MANY {
            if loader == 0 {
                break;
            }
            let (Some(next), Some(first)) =
                (scan.value(loader, fields.next_loader), scan.value(loader, fields.classes))
            else {
                break;
            };
            let before = seen.first.insert(loader, first);
            scan.classes(first, before, &mut seen.incomplete, &mut see);
            loader = next;
        }
    }
}

/// One scan, in which each page of memory is read once.
struct Scan<'a> {
    classes: &'a Classes,
    pages: Pages,
    text: Vec<u8>,
}

impl Scan<'_> {
    /// The classes of a loader, up to the one that was the first before.
    fn classes(
        &mut self,
        first: usize,
        before: Option<usize>,
        incomplete: &mut Vec<(usize, u8)>,
        see: &mut impl FnMut(ClassMethod<'_>),
    ) {
        let fields = &self.classes.fields;
        let mut class = first;
        for _ in 0..MANY {
            if class == 0 || Some(class) == before {
                return;
            }
            let (Some(next), Some(layout)) =
                (self.value(class, fields.next_class), self.value(class, fields.layout))
            else {
                return;
            };
            // Those of arrays are negative.
            if (layout as i32) >= 0 && self.class(class, see).is_none() {
                incomplete.push((class, 0));
            }
            class = next;
        }
    }

    /// The methods of a class; `None` if it is not complete yet.
    fn class(&mut self, class: usize, see: &mut impl FnMut(ClassMethod<'_>)) -> Option<()> {
        let classes = self.classes;
        let fields = &classes.fields;
        let methods = self.value(class, fields.methods).filter(|methods| *methods != 0)?;
        let count = self.value(methods, fields.array_length)?;
        if count > MOST_METHODS {
            return None;
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let class_name = self.value(class, fields.class_name)?;
        self.symbol(class_name, &mut text)?;
        let of_class = text.len();
        for index in 0..count {
            let method =
                self.pages.number(methods.wrapping_add(classes.array_header + 8 * index), 8)?;
            let constants = self.value(method, fields.constants)?;
            let pool = self.value(constants, fields.pool)?;
            if self.value(pool, fields.pool_holder)? != class {
                return None;
            }
            let code_size = self.value(constants, fields.code_size)?;
            let is_native = self.value(method, fields.access)? & NATIVE != 0;
            let (address, size) = match code_size {
                0 if is_native => (method, classes.method_size),
                0 => continue,
                size => (constants.wrapping_add(classes.constants_size), size),
            };
            text.truncate(of_class);
            let mut symbol = |field| {
                let index = self.value(constants, field)?;
                let symbol =
                    self.pages.number(pool.wrapping_add(classes.pool_size + 8 * index), 8)?;
                self.symbol(symbol, &mut text)?;
                Some(text.len())
            };
            let of_name = symbol(fields.name)?;
            symbol(fields.descriptor)?;
            see(ClassMethod {
                address: address as u64,
                size: size as u64,
                class: &text[..of_class],
                name: &text[of_class..of_name],
                descriptor: &text[of_name..],
            });
        }
        self.text = text;
        Some(())
    }

    /// Appends a symbol's text.
    fn symbol(&mut self, symbol: usize, text: &mut Vec<u8>) -> Option<()> {
        let fields = &self.classes.fields;
        let length = self.value(symbol, fields.symbol_length)?;
        self.pages.append(symbol.checked_add(fields.symbol_body.at)?, length, text)
    }

    /// The value of a field of the structure at an address, or of a static field if that is 0.
    fn value(&mut self, structure: usize, field: Field) -> Option<usize> {
        self.pages.number(structure.checked_add(field.at)?, field.size)
    }
}

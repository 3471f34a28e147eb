//! The methods of all classes that are loaded.
//!
//! HotSpot has a list of class loaders, and each has a list of its classes. Both grow at the front, so a later scan ends where
//! the last one began. Other threads change all this at any time, and free it. So everything is copied by the kernel, which
//! reports what is not there ([`Pages`]); and a class counts only if what it leads to leads back to it.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::line_numbers::{Compression, ascending};
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
    /// How line tables are compressed; `None` if they are not known.
    lines: Option<LineFields>,
}

/// Where the lines of a method are, and its source file.
#[derive(Debug)]
struct LineFields {
    source: SourceField,
    flags: Field,
    /// Size of a method's constant part in words. The line table follows the bytecode in it.
    size: Field,
    compression: Compression,
}

/// The field with the number of the source file's name in the pool.
#[derive(Clone, Copy, Debug)]
enum SourceField {
    InPool(Field),
    /// Up to version 14.
    InClass(Field),
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
    /// The name of its source file, without folders; empty if it is not known.
    pub(crate) source: &'a [u8],
    /// Bytecode indices, and the line from each one on, ascending.
    pub(crate) lines: &'a [(u16, u16)],
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
/// `ConstMethod::_has_linenumber_table`, in all versions.
const HAS_LINES: usize = 1;
/// No line table is larger, in bytes: a method has up to 65,535 bytes of bytecode, and few have more lines than bytes.
const LARGEST_TABLE: usize = 1 << 18;

impl LineFields {
    fn of(field: impl Fn(&str) -> Option<Field>) -> Option<Self> {
        let in_class = || field("InstanceKlass::_source_file_name_index");
        Some(Self {
            source: field("ConstantPool::_source_file_name_index")
                .map(SourceField::InPool)
                .or_else(|| in_class().map(SourceField::InClass))?,
            // Since version 21, they are a structure.
            flags: field("ConstMethod::_flags._flags").or_else(|| field("ConstMethod::_flags"))?,
            size: field("ConstMethod::_constMethod_size")?,
            compression: Compression::of(field)?,
        })
    }
}

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
            lines: LineFields::of(&field),
        })
    }

    /// Calls `see` with the methods of each class that no earlier scan has `seen`. Abstract methods are left out. At most
    /// `lines_left` methods have lines: those of the others are not read.
    pub(crate) fn scan(
        &self,
        seen: &mut Seen,
        lines_left: usize,
        mut see: impl FnMut(ClassMethod<'_>),
    ) {
        let fields = &self.fields;
        let mut scan = Scan {
            classes: self,
            pages: Pages::default(),
            text: Vec::new(),
            lines_left,
            table: Vec::new(),
            lines: Vec::new(),
        };
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
            // Of classes that were added since, there may be parts in memory that was copied before.
            scan.pages.as_new_as(loader.wrapping_add(fields.classes.at));
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
    /// How many more methods may have lines.
    lines_left: usize,
    /// A compressed line table, and what it says.
    table: Vec<u8>,
    lines: Vec<(u16, u16)>,
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
        let mut of_source = None;
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
            // All methods of a class are from one file.
            let of_source = match of_source {
                Some(end) => end,
                None => {
                    self.source(class, pool, &mut text);
                    *of_source.insert(text.len())
                }
            };
            text.truncate(of_source);
            let mut symbol = |field| {
                let index = self.value(constants, field)?;
                self.symbol_of_pool(pool, index, &mut text)?;
                Some(text.len())
            };
            let of_name = symbol(fields.name)?;
            symbol(fields.descriptor)?;
            self.lines.clear();
            if code_size > 0 && self.lines_left > 0 && self.lines(constants, code_size).is_some() {
                self.lines_left -= 1;
            }
            see(ClassMethod {
                address: address as u64,
                size: size as u64,
                class: &text[..of_class],
                source: &text[of_class..of_source],
                name: &text[of_source..of_name],
                descriptor: &text[of_name..],
                lines: &self.lines,
            });
        }
        self.text = text;
        Some(())
    }

    /// Appends the name of a class's source file, if it is known.
    fn source(&mut self, class: usize, pool: usize, text: &mut Vec<u8>) -> Option<()> {
        let index = match self.classes.lines.as_ref()?.source {
            SourceField::InPool(field) => self.value(pool, field)?,
            SourceField::InClass(field) => self.value(class, field)?,
        };
        let before = text.len();
        // Number 0 is no entry.
        let found = (index != 0).then(|| self.symbol_of_pool(pool, index, text)).flatten();
        if found.is_none() {
            text.truncate(before);
        }
        found
    }

    /// Reads the line table of a method into `self.lines`, which stays empty if there is none.
    fn lines(&mut self, constants: usize, code_size: usize) -> Option<()> {
        let fields = self.classes.lines.as_ref()?;
        if self.value(constants, fields.flags)? & HAS_LINES == 0 {
            return None;
        }
        let behind_code = self.classes.constants_size.checked_add(code_size)?;
        let size = self.value(constants, fields.size)?.checked_mul(8)?.checked_sub(behind_code)?;
        self.table.clear();
        let table = constants.checked_add(behind_code)?;
        self.pages.append(table, size.min(LARGEST_TABLE), &mut self.table)?;
        if fields.compression.lines(&self.table, &mut self.lines).is_none() {
            self.lines.clear();
            return None;
        }
        ascending(&mut self.lines);
        Some(())
    }

    /// Appends the text of the symbol with this number in a class's pool.
    fn symbol_of_pool(&mut self, pool: usize, index: usize, text: &mut Vec<u8>) -> Option<()> {
        let entry = pool.checked_add(self.classes.pool_size.checked_add(8 * index)?)?;
        let symbol = self.pages.number(entry, 8)?;
        self.symbol(symbol, text)
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

//! The methods of all classes that are loaded.
//!
//! HotSpot has a list of class loaders, and each has a list of its classes. Both grow at the front, so a later scan ends where
//! the last one began. Other threads change all this at any time, and free it. So everything is copied by the kernel, which
//! reports what is not there; and a class counts only if what it leads to leads back to it.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::memory::copy;
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
        let mut buffer = Buffer::default();
        let mut retried = std::mem::take(&mut seen.incomplete);
        for (class, attempts) in &mut retried {
            *attempts += 1;
            if self.class(*class, &mut buffer, &mut see) == Some(false) && *attempts < ATTEMPTS {
                seen.incomplete.push((*class, *attempts));
            }
        }
        let mut loader = self.fields.loaders.value(0, &mut buffer).unwrap_or(0);
        for _ in 0..MANY {
            if loader == 0 {
                break;
            }
            let Some([next, first]) =
                buffer.words(loader, [self.fields.next_loader, self.fields.classes])
            else {
                break;
            };
            let before = seen.first.insert(loader, first);
            self.classes(first, before, seen, &mut buffer, &mut see);
            loader = next;
        }
    }

    /// The classes of a loader, up to the one that was the first before.
    fn classes(
        &self,
        first: usize,
        before: Option<usize>,
        seen: &mut Seen,
        buffer: &mut Buffer,
        see: &mut impl FnMut(ClassMethod<'_>),
    ) {
        let fields = &self.fields;
        let mut class = first;
        for _ in 0..MANY {
            if class == 0 || Some(class) == before {
                return;
            }
            let Some([next, layout]) = buffer.words(class, [fields.next_class, fields.layout])
            else {
                return;
            };
            // Those of arrays are negative.
            if (layout as i32) >= 0 && self.class(class, buffer, see) == Some(false) {
                seen.incomplete.push((class, 0));
            }
            class = next;
        }
    }

    /// The methods of a class; false if it has none yet.
    fn class(
        &self,
        class: usize,
        buffer: &mut Buffer,
        see: &mut impl FnMut(ClassMethod<'_>),
    ) -> Option<bool> {
        let fields = &self.fields;
        let [methods, class_name] = buffer.words(class, [fields.methods, fields.class_name])?;
        if methods == 0 {
            return Some(false);
        }
        let [count] = buffer.words(methods, [fields.array_length])?;
        if count == 0 || count > MOST_METHODS {
            return Some(true);
        }
        let methods = buffer.pointers([(methods + self.array_header, 8 * count)])?;
        let constants =
            buffer.pointers(methods.iter().map(|method| (method + fields.constants.at, 8)))?;
        let access = buffer.copy(methods.iter().map(|method| (method + fields.access.at, 2)))?;
        let access: Vec<usize> = access.chunks_exact(2).map(number).collect();
        let constant = buffer.copy(constants.iter().map(|at| (*at, self.constants_size)))?.to_vec();
        let each = || constant.chunks_exact(self.constants_size);
        let mut pools: Vec<usize> = each().map(|part| fields.pool.within(part)).collect();
        let entries = each().zip(&pools).flat_map(|(part, pool)| {
            let entry = |index: Field| (pool + self.pool_size + 8 * index.within(part), 8);
            [entry(fields.name), entry(fields.descriptor)]
        });
        let mut symbols = buffer.pointers(entries)?;
        pools.dedup();
        let holders =
            buffer.pointers(pools.iter().map(|pool| (pool + fields.pool_holder.at, 8)))?;
        if holders.iter().any(|holder| *holder != class) {
            return None;
        }
        symbols.push(class_name);
        let lengths = buffer.copy(symbols.iter().map(|at| (at + fields.symbol_length.at, 2)))?;
        let lengths: Vec<usize> = lengths.chunks_exact(2).map(number).collect();
        let bodies = symbols.iter().map(|at| at + fields.symbol_body.at);
        let mut texts = buffer.copy(bodies.zip(lengths.iter().copied()))?;
        let (of_class, of_methods) = lengths.split_last()?;
        let (names, class_name) = texts.split_at_checked(texts.len().checked_sub(*of_class)?)?;
        texts = names;
        for (index, part) in each().enumerate() {
            let mut text = |number: usize| {
                let (text, rest) = texts.split_at_checked(*of_methods.get(number)?)?;
                texts = rest;
                Some(text)
            };
            let (name, descriptor) = (text(2 * index)?, text(2 * index + 1)?);
            let code_size = fields.code_size.within(part);
            let (address, size) = match (code_size, access.get(index)? & NATIVE) {
                (0, 0) => continue,
                (0, _) => (*methods.get(index)?, self.method_size),
                (size, _) => (constants.get(index)? + self.constants_size, size),
            };
            let (address, size) = (address as u64, size as u64);
            see(ClassMethod { address, size, class: class_name, name, descriptor });
        }
        Some(true)
    }
}

impl Field {
    /// Its value in the copy of a structure.
    fn within(self, structure: &[u8]) -> usize {
        structure.get(self.at..self.at + self.size).map_or(0, number)
    }

    /// Its value in the structure at an address.
    fn value(self, structure: usize, buffer: &mut Buffer) -> Option<usize> {
        buffer.words(structure, [self]).map(|[value]| value)
    }
}

/// A number of up to eight bytes, as the processor stores it.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// What was copied last.
#[derive(Default)]
struct Buffer(Vec<u8>);

impl Buffer {
    fn copy(&mut self, ranges: impl IntoIterator<Item = (usize, usize)>) -> Option<&[u8]> {
        self.0.clear();
        copy(ranges, &mut self.0)?;
        Some(&self.0)
    }

    fn pointers(&mut self, ranges: impl IntoIterator<Item = (usize, usize)>) -> Option<Vec<usize>> {
        Some(self.copy(ranges)?.chunks_exact(8).map(number).collect())
    }

    /// The values of fields of a structure.
    fn words<const N: usize>(
        &mut self,
        structure: usize,
        fields: [Field; N],
    ) -> Option<[usize; N]> {
        let ranges = fields.map(|field| (structure.wrapping_add(field.at), field.size));
        let mut rest = self.copy(ranges)?;
        let mut values = [0; N];
        for (value, field) in values.iter_mut().zip(fields) {
            let (bytes, behind) = rest.split_at_checked(field.size)?;
            *value = number(bytes);
            rest = behind;
        }
        Some(values)
    }
}

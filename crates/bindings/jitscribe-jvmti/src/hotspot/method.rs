//! The name of a method, from HotSpot's own structures.
#![allow(unsafe_code, reason = "reads HotSpot's structures where it says that they are")]

use super::structs::{Field, Library, bytes, value};

/// The fields that lead from an `nmethod` to its method's name.
#[derive(Debug)]
pub(crate) struct MethodFields {
    method: Field,
    constants_of_method: Field,
    pool: Field,
    name: Field,
    descriptor: Field,
    length: Field,
    body: Field,
    /// Size of a constant pool's header; the entries follow it.
    pool_size: usize,
}

impl MethodFields {
    pub(crate) fn of(library: &Library, field: impl Fn(&str) -> Option<Field>) -> Option<Self> {
        let method = field("CompiledMethod::_method").or_else(|| field("nmethod::_method"));
        Some(Self {
            method: method?,
            constants_of_method: field("Method::_constMethod")?,
            pool: field("ConstMethod::_constants")?,
            name: field("ConstMethod::_name_index")?,
            descriptor: field("ConstMethod::_signature_index")?,
            length: field("Symbol::_length")?,
            body: field("Symbol::_body[0]")?,
            pool_size: library.size_of(b"ConstantPool")?,
        })
    }

    /// Name and descriptor of the method of an `nmethod`.
    ///
    /// # Safety
    /// A live `nmethod` is there, and its method is never unloaded.
    pub(crate) unsafe fn name(&self, nmethod: usize) -> Option<(&'static [u8], &'static [u8])> {
        // SAFETY: as required above. A method has its constant part, which has its pool. Two entries of the pool are
        // the symbols of name and descriptor, which live as long. HotSpot does the same (`Method::name`).
        unsafe {
            let method = value(nmethod, self.method) as usize;
            if method == 0 {
                return None;
            }
            let constants = value(method, self.constants_of_method) as usize;
            let pool = value(constants, self.pool) as usize;
            let symbol = |index| {
                let entry =
                    Field { at: self.pool_size + 8 * value(constants, index) as usize, size: 8 };
                let symbol = value(pool, entry) as usize;
                let length = || value(symbol, self.length) as usize;
                (symbol != 0).then(|| bytes(symbol + self.body.at, length()))
            };
            Some((symbol(self.name)?, symbol(self.descriptor)?))
        }
    }
}

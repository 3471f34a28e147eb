//! The name of a method, from HotSpot's own structures.
#![allow(unsafe_code, reason = "reads HotSpot's structures where it says that they are")]

use super::structs::{Field, Library, bytes, value};

/// The fields on the way from an `nmethod` to its method's name.
#[derive(Debug)]
pub(crate) struct MethodFields {
    method: Field,
    constants_of_method: Field,
    pool: Field,
    name: Field,
    descriptor: Field,
    length: Field,
    body: Field,
    /// Behind which a pool's entries lie.
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
    /// An `nmethod` that is alive lies there, and its method is never unloaded.
    pub(crate) unsafe fn name(&self, nmethod: usize) -> Option<(&'static [u8], &'static [u8])> {
        // SAFETY: as required above; a method has its constant part, and that its pool, of which two entries are the
        // symbols of name and descriptor, and live as long. HotSpot goes the same way (`Method::name`).
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

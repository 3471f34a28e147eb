//! Functions outside jitted code.

use profile::{Builder, Function, FunctionId, FunctionKind};

use crate::demangle::demangled;

/// A function in a program, a library or the kernel.
pub fn native(builder: &mut Builder, symbol: &[u8], kind: FunctionKind) -> FunctionId {
    named(builder, &demangled(symbol), kind)
}

/// A function of which only the name is known.
pub fn named(builder: &mut Builder, name: &[u8], kind: FunctionKind) -> FunctionId {
    let name = builder.string(name);
    builder.function(Function::new(name, kind))
}

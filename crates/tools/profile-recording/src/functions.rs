//! Functions outside jitted code.

use jitscribe_inject::demangled_symbol;
use profile::{Builder, Function, FunctionId, FunctionKind};

/// A function in a program, a library or the kernel.
pub fn native(builder: &mut Builder, symbol: &[u8], kind: FunctionKind) -> FunctionId {
    named(builder, &demangled_symbol(symbol), kind)
}

/// A function of which only the name is known.
pub fn named(builder: &mut Builder, name: &[u8], kind: FunctionKind) -> FunctionId {
    let name = builder.string(name);
    builder.function(Function::new(name, kind))
}

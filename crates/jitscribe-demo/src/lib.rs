//! A small language compiled by Cranelift, which announces its code: the demo JIT.

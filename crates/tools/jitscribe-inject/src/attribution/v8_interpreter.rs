//! Which functions V8's interpreter is made of, by their names.
//!
//! A handler executes one bytecode and jumps to the next one's. Most have no frame: their return address, which is on top of the stack, is in the
//! entry of the interpreted function. With `--interpreted-frames-native-stack`, each function has an entry of its own, which has its name.

use code_index::FunctionName;

/// A part of V8's interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Executes a bytecode.
    Handler,
    /// Enters a function.
    Entry,
}

impl Part {
    /// What a function with this name is: in node's symbols, or in V8's dump.
    pub fn of(name: &[u8]) -> Option<Self> {
        let builtin = name.strip_prefix(b"Builtins_").or_else(|| name.strip_prefix(b"Builtin:"));
        let is_handler = builtin.is_some_and(|name| name.ends_with(b"Handler"))
            || name.starts_with(b"BytecodeHandler:");
        let is_entry = builtin == Some(b"InterpreterEntryTrampoline")
            || FunctionName::of(name).tier == Some(b"interpreted");
        match (is_handler, is_entry) {
            (true, _) => Some(Self::Handler),
            (false, true) => Some(Self::Entry),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_and_entries() {
        for name in ["Builtins_AddSmiHandler", "BytecodeHandler:LdaZero"] {
            assert_eq!(Part::of(name.as_bytes()), Some(Part::Handler), "{name}");
        }
        for name in ["Builtins_InterpreterEntryTrampoline", "JS:~f /a.js:1:2"] {
            assert_eq!(Part::of(name.as_bytes()), Some(Part::Entry), "{name}");
        }
        for name in ["Builtins_ArrayMap", "JS:*f /a.js:1:2", "SignalHandler", ""] {
            assert_eq!(Part::of(name.as_bytes()), None, "{name}");
        }
    }
}

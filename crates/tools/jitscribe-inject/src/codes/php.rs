//! The frame of code that PHP compiles.
//!
//! PHP's JIT compiler writes no unwind info. Its traces and functions are jumped to from the interpreter's main loop, `execute_ex`, and
//! leave the stack pointer as it is: they run in that function's frame, which is described in the program or library that PHP is. (PHP
//! itself reads the size of the frame from the machine code, where it tells a debugger of its code.) Stubs, whose names begin with
//! `JIT$$`, may be called, and have frames of their own then.

use jit_code::Row;
use native_files::FileFrames;

/// The DWARF number of the return address, which is where the call has put it.
const RETURN_ADDRESS: u16 = 16;

/// The frame of an interpreter's main loop.
#[derive(Clone, Debug)]
pub struct InterpreterFrame {
    cfa: (u16, i32),
    saved: Vec<(u16, i32)>,
}

impl InterpreterFrame {
    /// That in a file, if it is PHP's.
    pub fn in_file(file: &FileFrames) -> Option<Self> {
        let body = file.php_frame()?;
        let (register, offset) = body.cfa;
        let saved = body.saved.into_iter().filter(|(number, _)| *number != RETURN_ADDRESS);
        let saved = saved.map(|(number, offset)| Some((number, offset.try_into().ok()?)));
        let saved = saved.collect::<Option<_>>()?;
        Some(Self { cfa: (register, offset.try_into().ok()?), saved })
    }

    /// The frame of the code with this name, if it is one that runs in the interpreter's.
    pub fn of_code(&self, name: &[u8]) -> Option<Row<'_>> {
        let is_compiled =
            name.starts_with(b"TRACE-") || name.starts_with(b"JIT$") && !name.starts_with(b"JIT$$");
        is_compiled.then(|| Row::new(0, self.cfa.0, self.cfa.1).saved(&self.saved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_and_functions_run_in_the_interpreters_frame() {
        let frame = InterpreterFrame { cfa: (7, 160), saved: vec![(3, -40), (6, -32)] };
        let is_known = |name: &[u8]| frame.of_code(name).is_some();
        assert!(is_known(b"TRACE-1$fib$4") && is_known(b"JIT$fib"));
        assert!(!is_known(b"JIT$$exception_handler") && !is_known(b"fib"));
    }
}

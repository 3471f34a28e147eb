//! The frame of code that PHP compiles.
//!
//! PHP's JIT compiler writes no unwind info. Its traces and functions are jumped to from the interpreter's main loop, `execute_ex`, and
//! leave the stack pointer as it is: they run in that function's frame, which is described in the program or library that PHP is. (PHP
//! itself reads the size of the frame from the machine code, where it tells a debugger of its code.) Stubs, whose names begin with
//! `JIT$$`, may be called, and have frames of their own then.

use code_image::VisibleCode;
use jit_code::{Row, Unwind};
use native_files::FileFrames;
use unwind_info::Machine;

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

    /// Passes `take` the code with its frame, if it is one that runs in the interpreter's.
    pub fn describe<T>(
        &self,
        shown: &VisibleCode<'_>,
        take: impl FnOnce(&VisibleCode<'_>) -> T,
    ) -> T {
        let code = &shown.code;
        let is_compiled = code.name.starts_with(b"TRACE-")
            || code.name.starts_with(b"JIT$") && !code.name.starts_with(b"JIT$$");
        let mut tables = Vec::new();
        if code.unwind.is_none()
            && is_compiled
            && let Some(behind) = unwind_info::offset_behind(code.size)
            && let Ok(behind) = i64::try_from(behind)
        {
            let rows = [Row::new(0, self.cfa.0, self.cfa.1).saved(&self.saved)];
            let unwind = Unwind::Rows(&rows);
            let machine = Machine::X86_64;
            if unwind_info::eh_frame(machine, code.size, behind, &unwind, &mut tables).is_ok() {
                let mut described = shown.clone();
                described.code.unwind = Some(Unwind::EhFrame(&tables));
                return take(&described);
            }
        }
        take(shown)
    }
}

#[cfg(test)]
mod tests {
    use jit_code::Code;

    use super::*;

    #[test]
    fn traces_and_functions_run_in_the_interpreters_frame() {
        let frame = InterpreterFrame { cfa: (7, 160), saved: vec![(3, -40), (6, -32)] };
        let is_described = |name: &[u8], unwind| {
            let mut code = Code::at(0x1000, 100).named_bytes(name);
            code.unwind = unwind;
            frame.describe(&VisibleCode::whole(code), |shown| {
                matches!(shown.code.unwind, Some(Unwind::EhFrame(tables)) if !tables.is_empty())
            })
        };
        assert!(is_described(b"TRACE-1$fib$4", None) && is_described(b"JIT$fib", None));
        assert!(!is_described(b"JIT$$exception_handler", None) && !is_described(b"fib", None));
        assert!(!is_described(b"TRACE-1$fib$4", Some(Unwind::EhFrame(b""))));
    }
}

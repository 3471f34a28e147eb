//! A piece of code, as a runtime describes it.

use core::ops::Range;

use crate::{Kind, Unwind};

/// One contiguous piece of machine code, and what is known about it.
///
/// Everything except address and size is optional. No value makes an announcement fail: readers ignore what
/// is invalid, such as a line behind the code's end.
///
/// ```
/// use jit_code::{Code, Kind, Line};
/// # let memory = [0x6a_u8, 42, 0x58, 0xc3];
/// let lines = [Line::new(0, "answer.lang", 3).column(9)];
/// let code = Code::new(&memory)
///     .named("answer")
///     .kind(Kind::Function)
///     .tier("baseline")
///     .lines(&lines)
///     .frame_pointer();
/// assert_eq!(code.size, 4);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[must_use = "a code is known only when it is announced"]
pub struct Code<'a> {
    /// Address of its first byte, where it runs.
    pub address: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its instructions; `None`: tools read them where it runs, while it is there.
    pub bytes: Option<&'a [u8]>,
    /// Its name, in any bytes.
    pub name: &'a [u8],
    /// The function's name alone, for tools that show file and line beside it; empty if it is `name`.
    pub function: &'a [u8],
    /// What it is to its runtime.
    pub kind: Kind,
    /// Name of the compiler's tier; empty if there is none.
    pub tier: &'a str,
    /// The source lines.
    pub lines: &'a [Line<'a>],
    /// Lines of the bytecode or the intermediate representation.
    pub ir_lines: &'a [Line<'a>],
    /// The calls that were inlined.
    pub inlined: &'a [Inlined<'a>],
    /// How to find the caller's frame.
    pub unwind: Option<Unwind<'a>>,
    /// The runtime's own symfile, for debuggers.
    pub symfile: Option<&'a [u8]>,
}

/// A source position. It applies from `offset` to the next line's offset, or to the end of the code.
///
/// ```
/// use jit_code::Line;
///
/// let lines = [Line::new(0, "answer.lang", 3).column(9), Line::new(8, "answer.lang", 4)];
/// assert_eq!(lines[0].file, b"answer.lang");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// In bytes from the code's first byte. Lines must ascend.
    pub offset: u32,
    /// Path of the source file, as a debugger should open it, in any bytes.
    pub file: &'a [u8],
    /// From 1; 0 for code that comes from no line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
}

impl<'a> Line<'a> {
    /// A line of `file`, from 1; 0 for code that comes from no line.
    #[must_use]
    pub const fn new(offset: u32, file: &'a str, line: u32) -> Self {
        Self::new_bytes(offset, file.as_bytes(), line)
    }

    /// [`Self::new`] for paths that may not be UTF-8.
    #[must_use]
    pub const fn new_bytes(offset: u32, file: &'a [u8], line: u32) -> Self {
        Self { offset, file, line, column: 0 }
    }

    /// Sets the column, from 1; 0 if unknown.
    #[must_use]
    pub const fn column(mut self, column: u32) -> Self {
        self.column = column;
        self
    }
}

/// A call whose callee was compiled into the code in place of the call.
///
/// ```
/// use jit_code::Inlined;
///
/// // `main` calls `outer` in line 7, and `outer` calls `inner` in line 3.
/// let calls = [
///     Inlined::new("outer", &[4..16, 20..24]).called_from("main.lang", 7),
///     Inlined::new("inner", &[8..12, 20..24]).called_from("lib.lang", 3).column(5).within(0),
/// ];
/// assert_eq!(calls[1].parent, Some(0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inlined<'a> {
    /// Name of the callee, in any bytes.
    pub name: &'a [u8],
    /// The call into whose callee this one was inlined: its index in the list, which is less than
    /// this one's own. `None`: into the code itself.
    pub parent: Option<u32>,
    /// File of the call, in any bytes; empty if unknown. The lines of the callee are those of the code's line table.
    pub file: &'a [u8],
    /// Line of the call, from 1; 0 if unknown.
    pub line: u32,
    /// Column of the call, from 1; 0 if unknown.
    pub column: u32,
    /// Where in the code the callee lies, in bytes from the code's first byte.
    pub ranges: &'a [Range<u32>],
}

impl<'a> Inlined<'a> {
    /// A call of the function `name`, whose code is in `ranges`, inlined into the code itself.
    #[must_use]
    pub const fn new(name: &'a str, ranges: &'a [Range<u32>]) -> Self {
        Self::new_bytes(name.as_bytes(), ranges)
    }

    /// [`Self::new`] for names that may not be UTF-8.
    #[must_use]
    pub const fn new_bytes(name: &'a [u8], ranges: &'a [Range<u32>]) -> Self {
        Self { name, parent: None, file: b"", line: 0, column: 0, ranges }
    }

    /// Sets the place of the call: file, and line from 1 or 0 if unknown.
    #[must_use]
    pub const fn called_from(self, file: &'a str, line: u32) -> Self {
        self.called_from_bytes(file.as_bytes(), line)
    }

    /// [`Self::called_from`] for paths that may not be UTF-8.
    #[must_use]
    pub const fn called_from_bytes(mut self, file: &'a [u8], line: u32) -> Self {
        self.file = file;
        self.line = line;
        self
    }

    /// Sets the column of the call, from 1; 0 if unknown.
    #[must_use]
    pub const fn column(mut self, column: u32) -> Self {
        self.column = column;
        self
    }

    /// Sets the call into whose callee this one was inlined: its index in the list; `None` for the code itself.
    #[must_use]
    pub fn within(mut self, parent: impl Into<Option<u32>>) -> Self {
        self.parent = parent.into();
        self
    }
}

impl<'a> Code<'a> {
    /// Code that runs where `bytes` is.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: Some(bytes), ..Self::at(bytes.as_ptr().addr() as u64, bytes.len() as u64) }
    }

    /// Code at an address of this process, without its bytes. Tools that show assembly read them from the process while it
    /// lives.
    pub fn at(address: u64, size: u64) -> Self {
        Self {
            address,
            size,
            bytes: None,
            name: b"",
            function: b"",
            kind: Kind::Function,
            tier: "",
            lines: &[],
            ir_lines: &[],
            inlined: &[],
            unwind: None,
            symfile: None,
        }
    }

    /// Sets the address where the code runs, if that is not where its bytes are: memory that is mapped twice, once
    /// writable and once executable.
    pub fn runs_at(mut self, address: u64) -> Self {
        self.address = address;
        self
    }

    /// Sets the name, as tools should show it. Control characters become spaces.
    pub fn named(mut self, name: &'a str) -> Self {
        self.name = name.as_bytes();
        self
    }

    /// [`Self::named`] for names that may not be UTF-8.
    pub fn named_bytes(mut self, name: &'a [u8]) -> Self {
        self.name = name;
        self
    }

    /// Sets the function's name for tools that show its file and line beside it (Valgrind's), if the name has more than that: the place, as some runtimes
    /// write it into a perf map.
    pub fn function(mut self, name: &'a [u8]) -> Self {
        self.function = name;
        self
    }

    /// Sets what the code is to its runtime; [`Kind::Function`] by default.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the name of the compiler's tier: "baseline", "optimised".
    pub fn tier(mut self, tier: &'a str) -> Self {
        self.tier = tier;
        self
    }

    /// Sets the source lines.
    pub fn lines(mut self, lines: &'a [Line<'a>]) -> Self {
        self.lines = lines;
        self
    }

    /// Sets a second line table: lines of the bytecode or the intermediate representation that the code
    /// was compiled from, in a listing that the runtime wrote.
    pub fn ir_lines(mut self, lines: &'a [Line<'a>]) -> Self {
        self.ir_lines = lines;
        self
    }

    /// Sets the calls that were inlined.
    pub fn inlined(mut self, calls: &'a [Inlined<'a>]) -> Self {
        self.inlined = calls;
        self
    }

    /// Sets how to find the caller's frame from within the code. Without it, only profilers that walk frame
    /// pointers may get past the code.
    pub fn unwind(mut self, unwind: Unwind<'a>) -> Self {
        self.unwind = Some(unwind);
        self
    }

    /// Sets an object file that the runtime made of the code, with DWARF that has more than can be said here: arguments, variables,
    /// types. Its sections have the addresses at which the code runs. Debuggers get it in place of what is announced, if code is
    /// shown to them when it is loaded; a debugger that comes later gets what is announced. Each such file costs a debugger time, so
    /// that this is for some thousands of them at the most.
    pub fn symfile(mut self, object: &'a [u8]) -> Self {
        self.symfile = Some(object);
        self
    }

    /// Sets [`Unwind::FRAME_POINTER`]: the usual prologue at the very start, and a frame pointer up to the end. The code changes no
    /// other register that a call must preserve, or [says where it saves them](Self::frame_pointer_saving).
    pub fn frame_pointer(self) -> Self {
        self.unwind(Unwind::FRAME_POINTER)
    }

    /// Sets [`Unwind::FramePointerSaving`]: the usual prologue at the very start, and from the offset `saved_from` on, these
    /// registers are saved at these distances from the CFA.
    pub fn frame_pointer_saving(self, saved_from: u32, saved: &'a [(u16, i32)]) -> Self {
        let (prologue, signed) = (0, false);
        self.unwind(Unwind::FramePointerSaving { prologue, signed, saved_from, saved })
    }
}

//! A piece of code, as a runtime tells of it.

use core::ops::Range;

pub use jitdump::extension::Kind;
pub use unwind_info::{Row, Unwind};

/// One contiguous piece of machine code, and what is known of it.
///
/// Everything but the address is optional, and nothing can be set such that announcing fails: what
/// makes no sense (a line behind the code's end) is for readers to leave out.
///
/// ```
/// use jitscribe::{Code, Kind, Line};
/// # let memory = [0x6a_u8, 42, 0x58, 0xc3];
/// let code = Code::new(&memory)
///     .named("answer")
///     .kind(Kind::Function)
///     .tier("baseline")
///     .lines(&[Line { offset: 0, file: "answer.lang", line: 3, column: 9 }])
///     .frame_pointer();
/// assert_eq!(code.size(), 4);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "nobody knows of this code until it is given to `Scribe::load`"]
pub struct Code<'a> {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) bytes: Option<&'a [u8]>,
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) tier: &'a str,
    pub(crate) lines: &'a [Line<'a>],
    pub(crate) ir_lines: &'a [Line<'a>],
    pub(crate) inlined: &'a [Inlined<'a>],
    pub(crate) unwind: Option<Unwind<'a>>,
}

/// From `offset` on, up to the next line or the code's end, code comes from this place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// In bytes from the code's first byte. Lines must ascend.
    pub offset: u32,
    /// Path of the source file, as a debugger should open it.
    pub file: &'a str,
    /// From 1; 0 for code that comes from no line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
}

/// A call whose callee was compiled into the code in place of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Name of the callee.
    pub name: &'a str,
    /// The call into whose callee this one was inlined: its index in the list, which is less than
    /// this one's own. `None`: into the code itself.
    pub parent: Option<u32>,
    /// File of the call. The lines of the callee are those of the code's line table.
    pub file: &'a str,
    /// Line of the call, from 1; 0 if unknown.
    pub line: u32,
    /// Column of the call, from 1; 0 if unknown.
    pub column: u32,
    /// Where in the code the callee lies, in bytes from the code's first byte.
    pub ranges: &'a [Range<u32>],
}

impl<'a> Code<'a> {
    /// The code that lies where `bytes` does.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: Some(bytes), ..Self::at(bytes.as_ptr().addr() as u64, bytes.len() as u64) }
    }

    /// Code at an address of this process, of which only place and size are told. Tools that show
    /// assembly fetch the bytes from the process while it lives.
    pub fn at(address: u64, size: u64) -> Self {
        Self {
            address,
            size,
            bytes: None,
            name: b"",
            kind: Kind::Function,
            tier: "",
            lines: &[],
            ir_lines: &[],
            inlined: &[],
            unwind: None,
        }
    }

    /// The code runs at `address`, and not where its bytes lie: memory that is mapped twice, once
    /// to write it and once to run it.
    pub fn runs_at(mut self, address: u64) -> Self {
        self.address = address;
        self
    }

    /// Its name, as tools should show it. Control characters come out as spaces.
    pub fn named(mut self, name: &'a str) -> Self {
        self.name = name.as_bytes();
        self
    }

    /// [`Self::named`] for names that may not be UTF-8.
    pub fn named_bytes(mut self, name: &'a [u8]) -> Self {
        self.name = name;
        self
    }

    /// What sort of code it is. [`Kind::Function`] unless told.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Name of the compiler's tier: "baseline", "optimised".
    pub fn tier(mut self, tier: &'a str) -> Self {
        self.tier = tier;
        self
    }

    /// The source lines.
    pub fn lines(mut self, lines: &'a [Line<'a>]) -> Self {
        self.lines = lines;
        self
    }

    /// A second line table: lines of the bytecode or the intermediate representation that the code
    /// was compiled from, in a listing that the runtime wrote.
    pub fn ir_lines(mut self, lines: &'a [Line<'a>]) -> Self {
        self.ir_lines = lines;
        self
    }

    /// The calls that were inlined.
    pub fn inlined(mut self, calls: &'a [Inlined<'a>]) -> Self {
        self.inlined = calls;
        self
    }

    /// How to find the caller's frame from within the code. Unless told, only profilers that walk frame
    /// pointers may come through.
    pub fn unwind(mut self, unwind: Unwind<'a>) -> Self {
        self.unwind = Some(unwind);
        self
    }

    /// [`Unwind::FRAME_POINTER`]: the usual prologue at the very start, and a frame pointer to the end.
    pub fn frame_pointer(self) -> Self {
        self.unwind(Unwind::FRAME_POINTER)
    }

    /// Address of its first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

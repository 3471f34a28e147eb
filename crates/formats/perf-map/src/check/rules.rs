//! The rules by name, with what a violation costs.
//!
//! The behaviour of perf was tested with perf 6.1 and 6.12. The parsers of the other tools named here are described
//! in their own bug reports (ddprof#560, magic-trace#298).

use super::severity::Severity;

/// A rule that perf maps should follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, stable between versions.
    pub name: &'static str,
    /// How severe a violation is.
    pub severity: Severity,
    /// What a violation costs, and in which tool.
    pub cost: &'static str,
    /// How the writer can fix it.
    pub fix: &'static str,
}

/// All rules, in the order in which a line is checked.
pub const RULES: &[Rule] = &[
    UNREADABLE_LINE,
    ADDRESS_OVERFLOW,
    HEX_PREFIX,
    SEPARATOR,
    CARRIAGE_RETURN,
    EMPTY_NAME,
    SHORT_NAME,
    CONTROL_CHARACTER,
    NOT_UTF8,
    ZERO_SIZE,
    UNMAPPABLE_ADDRESS,
    DUPLICATE,
    OVERLAP,
    NO_FINAL_NEWLINE,
    NO_ENTRIES,
];

pub(super) const UNREADABLE_LINE: Rule = Rule {
    name: "unreadable-line",
    severity: Severity::Error,
    cost: "the code has no symbol; perf may even read other numbers from the line and put a wrong \
           symbol elsewhere",
    fix: "write `ADDRESS SIZE NAME\\n`, both numbers in hexadecimal, each line in one write() on \
           a descriptor opened with O_APPEND, so that threads do not tear each other's lines",
};

pub(super) const ADDRESS_OVERFLOW: Rule = Rule {
    name: "address-overflow",
    severity: Severity::Error,
    cost: "no address can be in the code; perf's numbers saturate or wrap, which may hide other \
           symbols",
    fix: "write the address and the size in bytes of the code as unsigned 64-bit numbers (%lx of \
           a negative or sign-extended value is the usual cause)",
};

pub(super) const HEX_PREFIX: Rule = Rule {
    name: "hex-prefix",
    severity: Severity::Error,
    cost: "ddprof and magic-trace reject the line, so its frames are lost without a message; perf \
           reads it",
    fix: "print the numbers without 0x: %lx, not %#lx nor %p",
};

pub(super) const SEPARATOR: Rule = Rule {
    name: "separator",
    severity: Severity::Warning,
    cost: "readers that split at single blanks lose the line; perf treats the blanks before the \
           name as part of it",
    fix: "separate the fields by exactly one blank (0x20), and begin the line with the address",
};

pub(super) const CARRIAGE_RETURN: Rule = Rule {
    name: "carriage-return",
    severity: Severity::Warning,
    cost: "perf keeps the carriage return as part of the name, which garbles its output",
    fix: "end lines with \\n alone (open the file in binary mode)",
};

pub(super) const EMPTY_NAME: Rule = Rule {
    name: "empty-name",
    severity: Severity::Error,
    cost: "perf drops the line: the code's frames are shown as addresses",
    fix: "name every code, including stubs and trampolines, at least by its kind",
};

pub(super) const SHORT_NAME: Rule = Rule {
    name: "short-name",
    severity: Severity::Error,
    cost: "perf drops names of one or two bytes: the code's frames are shown as addresses",
    fix: "make the name at least three bytes long, for instance with the module or the tier: \
           `main::f`, `f [jit]`",
};

pub(super) const CONTROL_CHARACTER: Rule = Rule {
    name: "control-character",
    severity: Severity::Warning,
    cost: "perf cuts the name at a NUL; an escape sequence reaches the terminal of the user who \
           reads the report; a newline in another name would split its line in two",
    fix: "replace control characters in names before writing them",
};

pub(super) const NOT_UTF8: Rule = Rule {
    name: "not-utf8",
    severity: Severity::Warning,
    cost: "readers that expect UTF-8 text lose the line, or all lines from it on",
    fix: "write names in UTF-8",
};

pub(super) const ZERO_SIZE: Rule = Rule {
    name: "zero-size",
    severity: Severity::Warning,
    cost: "the entry covers no address, so no sample ever gets this name",
    fix: "write the size of the code in bytes, or omit entries without code",
};

pub(super) const UNMAPPABLE_ADDRESS: Rule = Rule {
    name: "unmappable-address",
    severity: Severity::Warning,
    cost: "no code can run in the first page, so no sample ever gets this name",
    fix: "write the address at which the code runs, not its offset in a buffer",
};

pub(super) const DUPLICATE: Rule = Rule {
    name: "duplicate",
    severity: Severity::Note,
    cost: "nothing is named wrongly, but every reader loads and stores the line again",
    fix: "write each code once",
};

pub(super) const OVERLAP: Rule = Rule {
    name: "overlap",
    severity: Severity::Warning,
    cost: "perf maps have no timestamps: perf usually names samples after the earliest of \
           overlapping entries, so frames of the newer code get the old name",
    fix: "if code memory is reused, write a jitdump, whose records have timestamps; otherwise \
           check that the size is that of the code and not of its memory block",
};

pub(super) const NO_FINAL_NEWLINE: Rule = Rule {
    name: "no-final-newline",
    severity: Severity::Error,
    cost: "perf cuts off the last character of the name; text that is appended later becomes part \
           of this line",
    fix: "end every line with \\n, in the same write() as the line",
};

pub(super) const NO_ENTRIES: Rule = Rule {
    name: "no-entries",
    severity: Severity::Warning,
    cost: "every tool succeeds, but names nothing",
    fix: "flush the file when code is added, not only at exit; check that the runtime was \
           configured to write its map before it compiled code",
};

//! The opcodes of compiled expressions.
//!
//! From `pcre2_internal.h` of PCRE2 10.32 to 10.47. New opcodes came in between: all others have kept their order.

/// What an opcode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    End,
    /// One unit, and a text that says it.
    Text(&'static str),
    /// A dot, as it is without `(?s)`; with it, as it is with that.
    Dot {
        is_all: bool,
    },
    /// A line's beginning or end, as it is with `(?m)` or without.
    Line {
        text: &'static str,
        is_multiline: bool,
    },
    Property {
        is_not: bool,
    },
    Character {
        is_not: bool,
        is_caseless: bool,
    },
    /// A character that is repeated.
    Characters {
        is_not: bool,
        is_caseless: bool,
        repeat: Repeat,
    },
    /// A class such as `\d` that is repeated.
    Type(Repeat),
    /// How often the class or reference before is repeated.
    Last(Repeat),
    Class {
        is_not: bool,
    },
    WideClass,
    NestedClass,
    Reference {
        is_caseless: bool,
    },
    NamedReference {
        is_caseless: bool,
    },
    Recursion,
    Callout,
    CalloutText,
    Alternative,
    /// The end of a group, and how often it is repeated.
    Close {
        once: &'static str,
        any: &'static str,
    },
    /// Units that say nothing of the pattern: this many links and numbers.
    Skip {
        links: usize,
        numbers: usize,
    },
    /// The beginning of a group.
    Open(&'static str),
    Capture,
    /// A condition: the text before and behind its number.
    Condition(&'static str),
    NamedCondition,
    /// A condition without number.
    Fixed(&'static str),
    /// How often the group that follows may be there.
    Optional(&'static str),
    Verb(&'static str),
    VerbText(&'static str),
}

/// A repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// From `least` on, once at most if `is_one`; and what comes behind.
    Simple {
        least: u32,
        is_one: bool,
        behind: &'static str,
    },
    /// Up to a number.
    UpTo(&'static str),
    Exactly,
    /// From a number to another one; 0 for none.
    Range(&'static str),
}

const fn simple(least: u32, is_one: bool, behind: &'static str) -> Repeat {
    Repeat::Simple { least, is_one, behind }
}

/// What is possessive matches as what is greedy: PCRE2 makes it so where that changes nothing.
const REPEATS: [Repeat; 13] = [
    simple(0, false, ""),
    simple(0, false, "?"),
    simple(1, false, ""),
    simple(1, false, "?"),
    simple(0, true, ""),
    simple(0, true, "?"),
    Repeat::UpTo(""),
    Repeat::UpTo("?"),
    Repeat::Exactly,
    simple(0, false, ""),
    simple(1, false, ""),
    simple(0, true, ""),
    Repeat::UpTo(""),
];

const LAST_REPEATS: [Repeat; 12] = [
    simple(0, false, ""),
    simple(0, false, "?"),
    simple(1, false, ""),
    simple(1, false, "?"),
    simple(0, true, ""),
    simple(0, true, "?"),
    Repeat::Range(""),
    Repeat::Range("?"),
    simple(0, false, ""),
    simple(1, false, ""),
    simple(0, true, ""),
    Repeat::Range(""),
];

const SIMPLE: [Op; 15] = [
    Op::End,
    Op::Text("\\A"),
    Op::Text("\\G"),
    Op::Text("\\K"),
    Op::Text("\\B"),
    Op::Text("\\b"),
    Op::Text("\\D"),
    Op::Text("\\d"),
    Op::Text("\\S"),
    Op::Text("\\s"),
    Op::Text("\\W"),
    Op::Text("\\w"),
    Op::Dot { is_all: false },
    Op::Dot { is_all: true },
    Op::Text("\\C"),
];

const MORE: [Op; 18] = [
    Op::Property { is_not: true },
    Op::Property { is_not: false },
    Op::Text("\\R"),
    Op::Text("\\H"),
    Op::Text("\\h"),
    Op::Text("\\V"),
    Op::Text("\\v"),
    Op::Text("\\X"),
    Op::Text("\\Z"),
    Op::Text("\\z"),
    Op::Line { text: "$", is_multiline: false },
    Op::Line { text: "$", is_multiline: true },
    Op::Line { text: "^", is_multiline: false },
    Op::Line { text: "^", is_multiline: true },
    Op::Character { is_not: false, is_caseless: false },
    Op::Character { is_not: false, is_caseless: true },
    Op::Character { is_not: true, is_caseless: false },
    Op::Character { is_not: true, is_caseless: true },
];

/// What follows the repetitions, and the minor version since which it is there, if it is newer than 10.32.
const OTHERS: [(u8, Op); 63] = [
    (0, Op::Class { is_not: false }),
    (0, Op::Class { is_not: true }),
    (0, Op::WideClass),
    (45, Op::NestedClass),
    (0, Op::Reference { is_caseless: false }),
    (0, Op::Reference { is_caseless: true }),
    (0, Op::NamedReference { is_caseless: false }),
    (0, Op::NamedReference { is_caseless: true }),
    (0, Op::Recursion),
    (0, Op::Callout),
    (0, Op::CalloutText),
    (0, Op::Alternative),
    (0, Op::Close { once: "", any: "" }),
    (0, Op::Close { once: "+", any: "*" }),
    (0, Op::Close { once: "+?", any: "*?" }),
    (0, Op::Close { once: "++", any: "*+" }),
    (0, Op::Skip { links: 1, numbers: 0 }),
    (43, Op::Skip { links: 0, numbers: 2 }),
    (0, Op::Open("(?=")),
    (0, Op::Open("(?!")),
    (0, Op::Open("(?<=")),
    (0, Op::Open("(?<!")),
    (34, Op::Open("(*napla:")),
    (34, Op::Open("(*naplb:")),
    (45, Op::Open("(*scs:")),
    (0, Op::Open("(?>")),
    (33, Op::Open("(*sr:")),
    (0, Op::Open("(?:")),
    (0, Op::Open("(?:")),
    (0, Op::Capture),
    (0, Op::Capture),
    (0, Op::Open("(?")),
    (0, Op::Open("(?:")),
    (0, Op::Open("(?:")),
    (0, Op::Capture),
    (0, Op::Capture),
    (0, Op::Open("(?")),
    (0, Op::Condition("")),
    (0, Op::NamedCondition),
    (0, Op::Condition("R")),
    (0, Op::NamedCondition),
    (0, Op::Fixed("(DEFINE)")),
    (0, Op::Fixed("(VERSION)")),
    (0, Op::Optional("?")),
    (0, Op::Optional("??")),
    (0, Op::Optional("?+")),
    (0, Op::VerbText("MARK")),
    (0, Op::Verb("(*PRUNE)")),
    (0, Op::VerbText("PRUNE")),
    (0, Op::Verb("(*SKIP)")),
    (0, Op::VerbText("SKIP")),
    (0, Op::Verb("(*THEN)")),
    (0, Op::VerbText("THEN")),
    (0, Op::Verb("(*COMMIT)")),
    (0, Op::VerbText("COMMIT")),
    (0, Op::Verb("(*FAIL)")),
    (0, Op::Verb("(*ACCEPT)")),
    (0, Op::Verb("(*ACCEPT)")),
    (0, Op::Skip { links: 0, numbers: 1 }),
    (0, Op::Optional("{0}")),
    // Never in an expression.
    (0, Op::Verb("")),
    (43, Op::Text("\\B")),
    (43, Op::Text("\\b")),
];

/// The first minor versions of those that have the same opcodes, properties and classes.
const LAYOUTS: [u8; 6] = [32, 33, 34, 40, 43, 45];

/// The first minor version that has the same opcodes as this one.
pub fn layout_of(minor: u8) -> u8 {
    LAYOUTS.into_iter().rfind(|first| *first <= minor).unwrap_or_default()
}

/// The opcodes of a minor version, by number.
pub fn opcodes(minor: u8) -> Vec<Op> {
    let mut all: Vec<Op> = SIMPLE.into_iter().chain(MORE).collect();
    for (is_not, is_caseless) in [(false, false), (false, true), (true, false), (true, true)] {
        all.extend(REPEATS.map(|repeat| Op::Characters { is_not, is_caseless, repeat }));
    }
    all.extend(REPEATS.map(Op::Type));
    all.extend(LAST_REPEATS.map(Op::Last));
    all.extend(OTHERS.into_iter().filter(|(since, _)| *since <= minor).map(|(_, op)| op));
    all
}

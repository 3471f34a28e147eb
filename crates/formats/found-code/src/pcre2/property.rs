//! Properties of Unicode's characters.
//!
//! From `pcre2_internal.h` and `pcre2_ucp.h` of PCRE2 10.32 to 10.47. In 10.40, script extensions came in between; in 10.45, what was at the beginning went.

/// What stands for a part that is not spelled out.
pub const LEFT_OUT: &str = "…";

const GENERAL: [&str; 7] = ["C", "L", "M", "N", "P", "S", "Z"];
const PARTICULAR: [&str; 30] = [
    "Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No",
    "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs",
];

/// A property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// The text after `\p` or `\P`.
    Named(String),
    /// A class whose characters are those of Unicode, as with `(*UCP)`: its letter.
    Class(char),
    /// A letter of ASCII, and all that are the same letter regardless of case: others than ASCII's, too.
    Letter(char),
    /// One that is not spelled out.
    Other,
}

/// What a property is in this layout of opcodes.
pub fn property(layout: u8, kind: u32, value: u32, is_ucp: bool) -> Property {
    let kind = match (layout, kind) {
        (45.., 13) | (..45, 0) => return Property::Named("{Any}".to_owned()),
        (45.., kind) => kind,
        (40.., kind) => kind.wrapping_sub(1),
        // Without script extensions.
        (_, kind @ ..5) => kind.wrapping_sub(1),
        (_, kind) => kind,
    };
    let value_of = |names: &[&str]| {
        let name = usize::try_from(value).ok().and_then(|value| names.get(value).copied());
        name.map_or(Property::Other, |name| Property::Named(format!("{{{name}}}")))
    };
    let named = |name: &str| Property::Named(name.to_owned());
    match (kind, value) {
        (0, _) => named("{L&}"),
        (1, _) => value_of(&GENERAL),
        // Where a decimal number is in the list.
        (2, 13) if is_ucp => Property::Class('d'),
        (2, _) => value_of(&PARTICULAR),
        (5, _) => named("{Xan}"),
        (6, _) if is_ucp => Property::Class('s'),
        (6, _) => named("{Xsp}"),
        (7, _) => named("{Xps}"),
        (8, _) if is_ucp => Property::Class('w'),
        (8, _) => named("{Xwd}"),
        // Where these are in the list of such letters.
        (9, 1) => Property::Letter('s'),
        (9, 100) => Property::Letter('k'),
        (10, _) => named("{Xuc}"),
        _ => Property::Other,
    }
}

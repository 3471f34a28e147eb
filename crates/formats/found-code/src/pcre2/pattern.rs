//! How patterns are written.

use super::opcodes::Repeat;

/// The most characters that a name shows.
const SHOWN: usize = 80;

/// What has a meaning in a pattern.
const SPECIAL: &str = "\\^$.[|()?*+{";
/// What has a meaning in a class.
const SPECIAL_IN_CLASS: &str = "\\]^-";

/// The name of an expression. Without a pattern, or if that is cut, a hash tells it from others.
pub fn shown(pattern: Option<&str>, hash: u32) -> String {
    let Some(pattern) = pattern else { return format!("regex #{hash:08x}") };
    match pattern.char_indices().nth(SHOWN) {
        Some((end, _)) => {
            format!("regex \"{}…\" #{hash:08x}", pattern.get(..end).unwrap_or_default())
        }
        None => format!("regex \"{pattern}\""),
    }
}

/// A hash (FNV-1a) that is the same in each process.
pub fn hash(bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

/// A character outside of a class.
pub fn character(unit: u32, is_utf: bool) -> String {
    escaped(unit, is_utf, SPECIAL)
}

/// A character in a class.
pub fn in_class(unit: u32, is_utf: bool) -> String {
    escaped(unit, is_utf, SPECIAL_IN_CLASS)
}

fn escaped(unit: u32, is_utf: bool, special: &str) -> String {
    match char::from_u32(unit) {
        Some('\n') => "\\n".to_owned(),
        Some('\r') => "\\r".to_owned(),
        Some('\t') => "\\t".to_owned(),
        Some(it) if special.contains(it) => format!("\\{it}"),
        Some(it) if it == ' ' || it.is_ascii_graphic() => it.to_string(),
        Some(it) if is_utf && !it.is_ascii() && it.is_alphanumeric() => it.to_string(),
        _ if unit < 0x100 => format!("\\x{unit:02x}"),
        _ => format!("\\x{{{unit:x}}}"),
    }
}

/// How often something may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    pub least: u32,
    /// `None`: any number.
    pub most: Option<u32>,
    pub behind: &'static str,
}

impl Times {
    /// Those of a repetition with these numbers.
    pub fn of(repeat: Repeat, first: u32, second: u32) -> Self {
        match repeat {
            Repeat::Simple { least, is_one, behind } => {
                Self { least, most: is_one.then_some(1), behind }
            }
            Repeat::UpTo(behind) => Self { least: 0, most: Some(first), behind },
            Repeat::Exactly => Self { least: first, most: Some(first), behind: "" },
            Repeat::Range(behind) => {
                Self { least: first, most: Some(second).filter(|most| *most > 0), behind }
            }
        }
    }

    /// Those of the same item twice: first exactly so often as `self` says, then as `next` says.
    pub fn then(self, next: Self) -> Self {
        let most = self.most.zip(next.most).map(|(most, more)| most.saturating_add(more));
        Self { least: self.least.saturating_add(next.least), most, behind: next.behind }
    }

    /// As it is written.
    pub fn text(self) -> String {
        let Self { least, most, behind } = self;
        let times = match (least, most) {
            (0, None) => "*".to_owned(),
            (1, None) => "+".to_owned(),
            (0, Some(1)) => "?".to_owned(),
            (least, None) => format!("{{{least},}}"),
            (least, Some(most)) if least == most => format!("{{{least}}}"),
            (least, Some(most)) => format!("{{{least},{most}}}"),
        };
        format!("{times}{behind}")
    }
}

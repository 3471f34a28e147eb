//! Names with what callgrind adds to them: recursion levels, and callers.

use crate::code_map::CodeMap;
use crate::context::{Context, split_part};
use crate::line::decimal;

/// `--separate-recs=2`, unless the profile has deeper levels.
const LEVELS: u32 = 2;

/// The map of names, and the decorations that occur in the profile's names.
pub(super) struct Naming<'m, M> {
    pub map: &'m mut M,
    /// The largest number of callers in a name (`--separate-callers`).
    pub callers: usize,
    /// The deepest recursion level.
    pub levels: u32,
}

impl<'m, M: CodeMap> Naming<'m, M> {
    pub fn new(map: &'m mut M) -> Self {
        Self { map, callers: 0, levels: LEVELS }
    }

    /// Records the decorations of a name in the profile.
    pub fn record(&mut self, name: &[u8]) {
        let mut parts = name.split(|&byte| byte == b'\'').skip(1).peekable();
        if let Some(level) = parts.peek().and_then(|part| decimal(part)) {
            parts.next();
            self.levels = self.levels.max(u32::try_from(level).unwrap_or(LEVELS).min(99));
        }
        self.callers = self.callers.max(parts.count());
    }

    /// Replaces the callers in a name that are unknown code by their names.
    pub fn with_callers_named(&mut self, name: &[u8]) -> Vec<u8> {
        let (own, callers) = split_part(name);
        let mut whole = own.to_vec();
        self.push_callers(&mut whole, callers);
        whole
    }

    /// A name with its recursion level and its callers, each preceded by `'`.
    pub fn decorated(&mut self, name: &[u8], level: u32, callers: &[u8]) -> Vec<u8> {
        let mut whole = name.to_vec();
        if level > 1 {
            whole.extend_from_slice(format!("'{level}").as_bytes());
        }
        self.push_callers(&mut whole, callers);
        whole
    }

    fn push_callers(&mut self, whole: &mut Vec<u8>, callers: &[u8]) {
        for part in callers.split(|&byte| byte == b'\'').skip(1) {
            whole.push(b'\'');
            let owner = Context::parse(part).and_then(|context| self.map.at(context.address));
            match owner {
                Some(owner) => whole.extend_from_slice(&self.map.function(owner.function).name),
                None => whole.extend_from_slice(part),
            }
        }
    }
}

/// Whether a function's name contains callers that may be unknown.
pub(super) fn has_unknown_callers(name: &[u8]) -> bool {
    memchr::memmem::find(name, b"'0x").is_some()
}

//! The keys of functions, which are the same in other processes and on other hosts.

use profile::{FunctionId, FunctionKey, Profile};

use crate::string_table::StringTable;

/// The keys of a profile's functions, as far as they are needed.
#[derive(Debug)]
pub struct Keys(Vec<Option<u64>>);

impl Keys {
    /// None yet.
    pub fn of(profile: &Profile) -> Self {
        Self(vec![None; profile.functions().len()])
    }

    /// A function's key with 16 hexadecimal digits, as the number of a string.
    pub fn number(
        &mut self,
        profile: &Profile,
        strings: &mut StringTable<'_>,
        id: FunctionId,
    ) -> u64 {
        if let Some(number) = self.0.get(id.index()).copied().flatten() {
            return number;
        }
        let key = FunctionKey::of(profile, profile.function(id)).id();
        let number = strings.text(&format!("{key:016x}"));
        if let Some(slot) = self.0.get_mut(id.index()) {
            *slot = Some(number);
        }
        number
    }
}

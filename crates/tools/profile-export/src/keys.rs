//! The keys of functions, which are the same in other processes and on other hosts.

use profile::{FunctionId, FunctionKey, Profile};

/// The keys of a profile's functions.
#[derive(Debug)]
pub struct Keys(Vec<u64>);

impl Keys {
    /// Of all functions.
    pub fn of(profile: &Profile) -> Self {
        let keys = profile.functions().iter().map(|it| FunctionKey::of(profile, it).id());
        Self(keys.collect())
    }

    /// The key of a function, with 16 hexadecimal digits.
    pub fn text(&self, id: FunctionId) -> String {
        format!("{:016x}", self.0.get(id.index()).copied().unwrap_or(0))
    }
}

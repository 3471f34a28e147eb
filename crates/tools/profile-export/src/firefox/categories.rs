//! Categories, by which the Firefox Profiler colours frames. Tiers are subcategories.

use profile::{Frame, FunctionKind, Profile, StringId};
use rustc_hash::FxHashMap;

use crate::options::{is_jitted, tier};

/// A category.
#[derive(Debug)]
pub struct Category {
    /// Its name.
    pub name: &'static str,
    /// Its colour, of those that the Firefox Profiler has.
    pub color: &'static str,
    /// Its subcategories; the first one is of what has no other.
    pub subcategories: Vec<Vec<u8>>,
}

/// All categories, and the places of tiers among the subcategories of jitted code.
#[derive(Debug)]
pub struct Categories {
    all: Vec<Category>,
    tiers: FxHashMap<StringId, u32>,
}

const OTHER: u32 = 0;
const JIT: u32 = 1;
const INTERPRETER: u32 = 2;
const NATIVE: u32 = 3;
const KERNEL: u32 = 4;

impl Categories {
    /// With the tiers of a profile.
    pub fn of(profile: &Profile) -> Self {
        // The first category that is grey is the default.
        let names = [
            ("Other", "grey"),
            ("JIT", "green"),
            ("Interpreter", "magenta"),
            ("Native", "blue"),
            ("Kernel", "orange"),
        ];
        let category =
            |(name, color)| Category { name, color, subcategories: vec![b"Other".into()] };
        let mut all: Vec<Category> = names.map(category).into();
        let mut tiers = FxHashMap::default();
        if let Some(jit) = all.get_mut(JIT as usize) {
            for tier in profile.codes().iter().map(|code| code.tier).filter(|it| !it.is_empty()) {
                tiers.entry(tier).or_insert_with(|| {
                    jit.subcategories.push(profile.text(tier).to_vec());
                    u32::try_from(jit.subcategories.len())
                        .map_or(0, |count| count.saturating_sub(1))
                });
            }
        }
        Self { all, tiers }
    }

    /// All categories.
    pub fn all(&self) -> &[Category] {
        &self.all
    }

    /// The category and the subcategory of a frame.
    pub fn of_frame(&self, profile: &Profile, frame: &Frame) -> (u32, u32) {
        let category = match profile.function(frame.function).kind {
            FunctionKind::Interpreted => INTERPRETER,
            FunctionKind::Unknown | FunctionKind::End => OTHER,
            FunctionKind::Kernel => KERNEL,
            _ if is_jitted(profile, frame) => JIT,
            FunctionKind::Native => NATIVE,
            _ => OTHER,
        };
        let tier = self.tiers.get(&tier(profile, frame)).copied().filter(|_| category == JIT);
        (category, tier.unwrap_or(0))
    }
}

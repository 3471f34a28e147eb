//! Categories, by which the Firefox Profiler colours samples: what was done ([`profile::StackWork`]). Tiers are subcategories.
//!
//! A frame has the category of samples that end in it. What a garbage collector calls is a part of it, so that a frame may have several categories, and
//! is as many frames in the file.

use profile::activity::Activity;
use profile::{FunctionKind, Profile, StackId, StackWork, StringId, Work};
use rustc_hash::FxHashMap;

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
    work: StackWork,
}

const OTHER: u32 = 0;
const JIT: u32 = 1;
const INTERPRETER: u32 = 2;
const NATIVE: u32 = 3;
const KERNEL: u32 = 4;
const GARBAGE_COLLECTOR: u32 = 5;
const COMPILER: u32 = 6;

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
            ("Garbage collector", "yellow"),
            ("Compiler", "purple"),
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
        Self { all, tiers, work: StackWork::of(profile) }
    }

    /// All categories.
    pub fn all(&self) -> &[Category] {
        &self.all
    }

    /// The category and the subcategory of a stack's innermost frame.
    pub fn of_stack(&self, profile: &Profile, stack: StackId) -> (u32, u32) {
        let frame = profile.frame(profile.stack(stack).frame);
        let category = match self.work.at(stack) {
            Some(Work::Kernel) => KERNEL,
            Some(Work::Jitted) => JIT,
            Some(Work::Runtime(Activity::Interpreter)) => INTERPRETER,
            Some(Work::Runtime(Activity::GarbageCollector)) => GARBAGE_COLLECTOR,
            Some(Work::Runtime(Activity::Compiler)) => COMPILER,
            Some(Work::Native) | None => match profile.function(frame.function).kind {
                FunctionKind::Native => NATIVE,
                _ => OTHER,
            },
        };
        let tier = self.tiers.get(&profile.tier_of(frame)).copied().filter(|_| category == JIT);
        (category, tier.unwrap_or(0))
    }
}

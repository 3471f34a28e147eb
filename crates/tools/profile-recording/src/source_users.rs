//! Which users' code names a source file.
//!
//! Any process can name any file as the source of its code, and what a view shows of it may be passed on. So a file is shown only
//! if a user whose code names it may read it: the user of the process, or the owner of the program or library.

use std::collections::BTreeSet;

use jitscribe_inject::files::may_read_what_we_may;
use profile::{ModuleId, ModuleKind, Profile};
use rustc_hash::FxHashMap;

use crate::modules::Modules;

/// The users whose code names source files.
#[derive(Debug, Default)]
pub struct SourceUsers {
    /// By number of the module. `None` stands for a user who is not known.
    of_modules: Vec<Option<u32>>,
    by_file: FxHashMap<Vec<u8>, BTreeSet<Option<u32>>>,
}

impl SourceUsers {
    /// The users of all modules. `of_image` is that of the process whose code an image has.
    pub fn new(modules: &Modules<'_>, of_image: impl Fn(&[u8]) -> Option<u32>) -> Self {
        let users = modules.iter().map(|(_, module)| match module.kind {
            // Users of another machine are others.
            _ if !modules.are_here() => None,
            // One that was written by this user, or by root.
            ModuleKind::Image if may_read_what_we_may(module.owner()) => of_image(&module.path),
            _ => module.owner(),
        });
        Self { of_modules: users.collect(), by_file: FxHashMap::default() }
    }

    /// Adds the files of a profile's functions. `numbers` has the modules' numbers.
    pub fn add_functions(&mut self, profile: &Profile, numbers: &FxHashMap<ModuleId, usize>) {
        let mut seen = rustc_hash::FxHashSet::default();
        for frame in profile.frames() {
            let number = frame.module.and_then(|module| numbers.get(&module)).copied();
            let file = profile.file_of(frame.function);
            if seen.insert((file, number)) {
                self.add(profile.text(file), number);
            }
        }
    }

    /// Adds a file that code of a module names.
    pub fn add(&mut self, file: &[u8], module: Option<usize>) {
        let user = module.and_then(|number| self.of_modules.get(number).copied().flatten());
        match self.by_file.get_mut(file) {
            Some(users) => _ = users.insert(user),
            None => _ = self.by_file.insert(file.to_vec(), BTreeSet::from([user])),
        }
    }

    /// The users whose code names a file.
    pub fn of(&self, file: &[u8]) -> impl Iterator<Item = Option<u32>> {
        let named = self.by_file.get(file).into_iter().flatten().copied();
        // What all may read, this process may read, too.
        std::iter::once(None).chain(named.flatten().map(Some))
    }
}

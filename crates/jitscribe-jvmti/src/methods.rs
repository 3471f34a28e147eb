//! What is known of methods, asked once: most are inlined in many places.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::env::{Env, Vm};
use crate::jvmti::MethodId;
use crate::names::{self, Format};

/// A method.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) name: String,
    /// Path of the source file; empty if there is none.
    pub(crate) file: String,
    lines: Lines,
}

/// Indices of bytecodes and the lines from there on, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines(Vec<(i64, u32)>);

impl Method {
    /// The line of a bytecode, 0 if it has none. HotSpot gives -1 for what comes before a method's first bytecode, as
    /// the taking of its lock.
    pub(crate) fn line(&self, bci: i64) -> u32 {
        let behind = self.lines.0.partition_point(|(start, _)| *start <= bci.max(0));
        behind.checked_sub(1).and_then(|index| self.lines.0.get(index)).map_or(0, |entry| entry.1)
    }
}

#[cfg(test)]
impl Method {
    /// One with a name of one letter, for tests.
    pub(crate) fn made(name: char, lines: &[(i64, u32)]) -> Self {
        Self { name: name.into(), file: format!("{name}.java"), lines: Lines(lines.to_vec()) }
    }
}

/// How methods are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    pub(crate) format: Format,
    /// Where source files may lie.
    pub(crate) sources: Vec<PathBuf>,
}

/// Maps keyed by what the JVM made out of addresses.
pub(crate) type ById<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// Nobody chooses the ids for harm; this mixes them in a few instructions.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_i32(&mut self, word: i32) {
        self.write_u64(u64::from(word as u32));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// How many are kept that were asked for lately; of those before, as many.
const LATELY: usize = 16 << 10;

/// All that were asked for lately.
#[derive(Debug, Default)]
pub(crate) struct Methods(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    lately: ById<MethodId, Arc<Method>>,
    before: ById<MethodId, Arc<Method>>,
}

impl Kept {
    fn get(&mut self, id: MethodId) -> Option<Arc<Method>> {
        if let Some(method) = self.lately.get(&id) {
            return Some(Arc::clone(method));
        }
        let method = self.before.remove(&id)?;
        self.put(id, Arc::clone(&method));
        Some(method)
    }

    fn put(&mut self, id: MethodId, method: Arc<Method>) {
        if self.lately.len() >= LATELY {
            self.before = take(&mut self.lately);
        }
        self.lately.insert(id, method);
    }
}

impl Methods {
    /// A method that was inlined; one without a name if its class is gone.
    pub(crate) fn inlined(&self, vm: Vm, env: Env, style: &Style, id: MethodId) -> Arc<Method> {
        if let Some(method) = self.kept(|kept| kept.get(id)) {
            return method;
        }
        let method = Arc::new(ask(vm, env, style, id).unwrap_or_default());
        self.kept(|kept| kept.put(id, Arc::clone(&method)));
        method
    }

    /// A method that was compiled. Its lines are asked for each time: where they are not as they were, classes have been
    /// redefined, and all that was known is forgotten. (What is inlined was compiled by itself first, as a rule.)
    pub(crate) fn compiled(&self, vm: Vm, env: Env, style: &Style, id: MethodId) -> Arc<Method> {
        if let Some(method) = self.kept(|kept| kept.get(id)) {
            if lines(env, id) == method.lines {
                return method;
            }
            self.forget();
        }
        self.inlined(vm, env, style, id)
    }

    /// Forgets all, as names may look otherwise from now on.
    pub(crate) fn forget(&self) {
        self.kept(take);
    }

    fn kept<T>(&self, then: impl FnOnce(&mut Kept) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn ask(vm: Vm, env: Env, style: &Style, id: MethodId) -> Option<Method> {
    let (name, descriptor) = env.name(id)?;
    let (class, file) = env.class_of(vm, id, |class| {
        Some((names::text(class.signature()?.bytes()), class.source()))
    })?;
    let file = file.map(|file| names::source_path(&class, &names::text(file.bytes())));
    let name =
        style.format.name(&class, &names::text(name.bytes()), &names::text(descriptor.bytes()));
    Some(Method { name, file: place(style, file.unwrap_or_default()), lines: lines(env, id) })
}

/// The file where it lies, if that is known.
fn place(style: &Style, file: String) -> String {
    let candidates = style.sources.iter().map(|folder| folder.join(&file));
    let there = candidates.filter(|_| !file.is_empty()).find(|path| path.is_file());
    there.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or(file)
}

fn lines(env: Env, id: MethodId) -> Lines {
    let read = env.lines(id, |table| {
        let entries = table.iter();
        entries.map(|entry| (entry.start, u32::try_from(entry.line).unwrap_or(0))).collect()
    });
    let mut lines: Vec<(i64, u32)> = read.unwrap_or_default();
    // A class file may have them in any order; of two for one bytecode the first holds, as for the JVM.
    lines.sort_by_key(|(start, _)| *start);
    lines.dedup_by_key(|(start, _)| *start);
    Lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_up_to_the_next() {
        let method = Method { lines: Lines(vec![(2, 7), (5, 3)]), ..Method::default() };
        let lines: Vec<u32> = [-1, 0, 1, 2, 4, 5, 99].map(|bci| method.line(bci)).into();
        assert_eq!(lines, [0, 0, 0, 7, 7, 3, 3]);
        assert_eq!(Method::default().line(0), 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_used_stays() {
        let id = |number: usize| MethodId(number * 8);
        let mut kept = Kept::default();
        for number in 0..10 * LATELY {
            kept.put(id(number), Arc::default());
            assert!(kept.get(id(0)).is_some(), "{number}");
        }
        assert!(kept.lately.len() <= LATELY && kept.before.len() <= LATELY);
        assert!(kept.get(id(7)).is_none());
    }
}

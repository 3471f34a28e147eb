//! A cache of the properties of methods: most are inlined in many places.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustc_hash::FxBuildHasher;

use crate::env::{Env, Vm};
use crate::hotspot::ascending;
use crate::jvmti::MethodId;
use crate::names::{self, Format};

/// A method.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) name: String,
    /// Path of the source file; empty if there is none. Shared by all methods of a file.
    pub(crate) file: Arc<str>,
    /// Whether HotSpot generates code for it by signature and kind of call, all under the id of the first such method
    /// (`linkToStatic`, `invokeBasic`…).
    pub(crate) is_intrinsic: bool,
    lines: Lines,
}

/// Bytecode indices, and the line from each one on, ascending. Both have two bytes in a class file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines(Vec<(u16, u16)>);

impl Method {
    /// The line of a bytecode, 0 if it has none. HotSpot uses -1 for what precedes a method's first bytecode, such as
    /// taking its lock.
    pub(crate) fn line(&self, bci: i32) -> u32 {
        let lines = &self.lines.0;
        let behind = lines.partition_point(|(start, _)| i32::from(*start) <= bci.max(0));
        let entry = behind.checked_sub(1).and_then(|index| lines.get(index));
        entry.map_or(0, |(_, line)| u32::from(*line))
    }
}

#[cfg(test)]
impl Method {
    /// A method with a name of one letter, for tests.
    pub(crate) fn for_test(name: char, lines: &[(u16, u16)]) -> Self {
        let (name, file) = (name.into(), format!("{name}.java").into());
        Self { name, file, lines: Lines(lines.to_vec()), ..Self::default() }
    }
}

/// How methods are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Style {
    pub(crate) format: Format,
    /// Directories of source files.
    pub(crate) sources: Vec<PathBuf>,
}

impl Style {
    /// The path of a source file in one of the directories, if it exists there.
    pub(crate) fn place(&self, file: &str) -> String {
        let candidates = self.sources.iter().map(|folder| folder.join(file));
        let there = candidates.filter(|_| !file.is_empty()).find(|path| path.is_file());
        there
            .and_then(|path| path.into_os_string().into_string().ok())
            .unwrap_or_else(|| file.to_owned())
    }
}

/// Maps whose keys the JVM made from addresses, so no one can choose them to cause collisions.
pub(crate) type ById<K, V> = HashMap<K, V, FxBuildHasher>;

/// Whether the cached properties are valid.
#[derive(Debug, Default)]
pub(crate) struct Methods {
    version: AtomicU64,
}

/// Maximum number of cached methods before all are dropped: then most are out of use.
const MANY: usize = 8 << 10;

/// The cache of methods, which one thread at a time uses.
#[derive(Debug, Default)]
pub(crate) struct MethodCache {
    version: u64,
    numbers: ById<MethodId, u32>,
    methods: Vec<Method>,
    files: Files,
}

/// Source files that exist, by their paths from the root of their packages.
#[derive(Debug, Default)]
pub(crate) struct Files(HashMap<String, Arc<str>>);

impl Files {
    fn file(&mut self, style: &Style, path: String) -> Arc<str> {
        let placed = |path: &String| style.place(path).into();
        Arc::clone(self.0.entry(path).or_insert_with_key(placed))
    }
}

impl MethodCache {
    /// Number of cached methods.
    pub(crate) fn len(&self) -> usize {
        self.methods.len()
    }

    fn begin(&mut self, version: u64) {
        if self.version != version || self.methods.len() > MANY {
            *self = Self { version, ..Self::default() };
        }
    }

    /// The number of a method. `query` describes the method if it is not cached.
    pub(crate) fn number(&mut self, id: MethodId, query: impl FnOnce(&mut Files) -> Method) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.methods.push(query(&mut self.files));
            (self.methods.len() - 1) as u32
        })
    }

    /// A method by its number, which is valid while one code is processed.
    pub(crate) fn method(&self, number: u32) -> &Method {
        &self.methods[number as usize]
    }
}

impl Methods {
    /// An inlined method; one without a name if its class is gone.
    pub(crate) fn inlined(
        cache: &mut MethodCache,
        vm: Vm,
        env: Env,
        style: &Style,
        id: MethodId,
    ) -> u32 {
        cache.number(id, |files| query(vm, env, style, files, id).unwrap_or_default())
    }

    /// Makes `cache` valid for the next code.
    pub(crate) fn begin(&self, cache: &mut MethodCache) {
        cache.begin(self.version.load(Acquire));
    }

    /// A compiled method. Its lines are queried each time: if they have changed, classes were redefined, and all that
    /// was cached is dropped. (A method that is inlined usually was compiled by itself before.)
    pub(crate) fn compiled(
        &self,
        cache: &mut MethodCache,
        vm: Vm,
        env: Env,
        style: &Style,
        id: MethodId,
    ) -> u32 {
        if let Some(number) = cache.numbers.get(&id).copied() {
            if lines(env, id) == cache.method(number).lines {
                return number;
            }
            self.forget();
            self.begin(cache);
        }
        Self::inlined(cache, vm, env, style, id)
    }

    /// Makes all methods be queried again, because the style of names may change.
    pub(crate) fn forget(&self) {
        self.version.fetch_add(1, Release);
    }
}

/// The class whose methods are intrinsics. It is never unloaded.
pub(crate) const METHOD_HANDLE: &str = "Ljava/lang/invoke/MethodHandle;";

fn query(vm: Vm, env: Env, style: &Style, files: &mut Files, id: MethodId) -> Option<Method> {
    let name = env.name(id)?;
    let (class, file) = env.class_of(vm, id, |class| Some((class.signature()?, class.source())))?;
    let is_intrinsic = class.bytes() == METHOD_HANDLE.as_bytes()
        && [&b"linkTo"[..], b"invokeBasic"].iter().any(|start| name.bytes().starts_with(start));
    let class = names::text(class.bytes());
    let file = file.map(|file| names::source_path(&class, &names::text(file.bytes())));
    let descriptor = if style.format.has_types() { Some(env.descriptor(id)?) } else { None };
    let types = descriptor.as_ref().map_or(Cow::Borrowed(""), |it| names::text(it.bytes()));
    let name = style.format.name(&class, &names::text(name.bytes()), &types);
    let file = files.file(style, file.unwrap_or_default());
    Some(Method { name, file, is_intrinsic, lines: lines(env, id) })
}

fn lines(env: Env, id: MethodId) -> Lines {
    let read = env.lines(id, |table| {
        let entries = table.iter();
        entries
            .filter_map(|entry| Some((entry.start.try_into().ok()?, entry.line.try_into().ok()?)))
            .collect()
    });
    let mut lines: Vec<(u16, u16)> = read.unwrap_or_default();
    ascending(&mut lines);
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
    fn methods_are_queried_once_until_the_cache_is_full_or_invalid() {
        let (methods, mut cache, mut queried) = (Methods::default(), MethodCache::default(), 0);
        let mut number = |cache: &mut MethodCache, number: usize| {
            cache.number(MethodId(number * 8), |_| {
                queried += 1;
                Method::for_test('a', &[])
            });
            queried
        };
        cache.begin(0);
        assert_eq!([1, 2, 1].map(|id| number(&mut cache, id)), [1, 2, 2]);
        cache.begin(0);
        assert_eq!(number(&mut cache, 2), 2);
        methods.forget();
        methods.begin(&mut cache);
        assert_eq!(number(&mut cache, 2), 3);
        for id in 0..10 * MANY {
            cache.begin(1);
            number(&mut cache, id);
            assert!(cache.len() <= MANY + 1);
        }
    }
}

//! The publisher, which a runtime calls.

use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Mutex, PoisonError};

use fallible::{Map, Refused, Vec};
use jit_code::Code;

use crate::calls::{Calls, Frame};
use crate::collector::{Collector, Region};
use crate::error::{Cause, Error};
use crate::ids::{IDS, Ids};
use crate::layout::TableLine;
use crate::lines::Lines;
use crate::options::Options;
use crate::text::Text;

/// Reports code to the collector of the tool that runs the process. See the [crate's documentation](crate).
///
/// Every method may be called from any thread at any time, except from signal handlers. None fails: at the first error the
/// publisher gives up, which is reported to the [reporter](Options::reporter), and from then on every method does nothing.
#[derive(Debug)]
pub struct Vtune {
    collector: Collector,
    options: Options,
    /// Whether the publisher has given up.
    off: AtomicBool,
    /// The codes that were reported, by address. `None` only while the publisher is being dropped.
    loaded: Option<Box<Mutex<Map<u64, Loaded>>>>,
    /// Threads that are in a method, and may hold a lock of the collector.
    working: AtomicU32,
    /// Whether a fork left the list with a thread that does not exist in this process: it is never touched again, not even to
    /// drop it.
    lost: AtomicBool,
    ids: &'static Ids,
}

/// A code that was reported.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    size: u64,
    methods: Methods,
}

/// The method ids of a code.
#[derive(Clone, Copy, Debug)]
struct Methods {
    /// That of the code. Those of its inlined calls follow, in the order of the list.
    first: u32,
    count: u32,
}

impl Methods {
    fn of(self, frame: Frame) -> u32 {
        frame.map_or(self.first, |call| self.first.wrapping_add(call).wrapping_add(1))
    }
}

impl Vtune {
    /// Loads the collector that the environment names, and starts it. If there is none, this looks up one variable, and does
    /// nothing else.
    ///
    /// # Errors
    /// No collector is named, or it cannot be loaded, lacks a function, or is not recording; or an allocation failed. These
    /// errors are not passed to the reporter.
    pub fn create(options: Options) -> Result<Vtune, Error> {
        let collector = Collector::load()?;
        Self::with_collector(collector, options, &IDS).map_err(|Refused| Error(Cause::Memory))
    }

    fn with_collector(
        collector: Collector,
        options: Options,
        ids: &'static Ids,
    ) -> Result<Self, Refused> {
        if options.is_refused {
            return Err(Refused);
        }
        let loaded = Some(fallible::boxed(Mutex::new(Map::new()))?);
        let [off, lost] = [const { AtomicBool::new(false) }; 2];
        Ok(Self { collector, options, off, loaded, working: AtomicU32::new(0), lost, ids })
    }

    /// Announces a code load, with source lines and inlined calls. Call it before the code runs. The tool takes code that was
    /// reported earlier, and that overlaps this one, as unloaded.
    ///
    /// Code of size 0 or at address 0 is skipped. Of code that is larger than 4 GiB, the first 4 GiB are reported.
    pub fn load(&self, code: &Code<'_>) {
        self.with(|| self.report(code, None));
    }

    /// Announces the unload of the code that was loaded with this address and size. Does nothing if there is no such code.
    pub fn unload(&self, address: u64, size: u64) {
        self.with(|| {
            self.forget(address, size);
            Ok(())
        });
    }

    /// Announces that the code that was loaded at the address `from` now runs at `code.address`, where it already is. It is the
    /// same method to the tool. `code` says again all that is known about it.
    pub fn moved(&self, from: u64, code: &Code<'_>) {
        self.with(|| {
            let methods = self.forget(from, code.size);
            self.report(code, methods)
        });
    }

    /// Stops reporting, because an allocation failed that the caller made for this publisher.
    pub fn give_up(&self) {
        self.with(|| Err(Cause::Memory));
    }

    /// Call this in the child of a fork, on its only thread, before anything else. The child has a copy of the parent's
    /// collector, and goes on reporting to it.
    ///
    /// If another thread of the parent was in a method of this publisher at the fork, the publisher gives up: that thread may
    /// hold locks of the collector, which nothing releases in the child.
    pub fn forked(&self) {
        if !self.is_off() && self.working.load(SeqCst) > 0 {
            self.lost.store(true, Relaxed);
            self.stop(Cause::ForkedAmidWork);
        }
    }

    /// Whether the publisher has given up.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Relaxed)
    }

    /// Runs `act`, unless the publisher has given up.
    fn with(&self, act: impl FnOnce() -> Result<(), Cause>) {
        if self.is_off() {
            return;
        }
        self.working.fetch_add(1, SeqCst);
        let result = fallible::attempt(act).unwrap_or(Err(Cause::Memory));
        self.working.fetch_sub(1, SeqCst);
        if let Err(cause) = result {
            self.stop(cause);
        }
    }

    /// Gives up.
    fn stop(&self, cause: Cause) {
        if !self.off.swap(true, Relaxed)
            && let Some(reporter) = &self.options.reporter
        {
            match fallible::attempt(|| fallible::text!("{}", Error(cause))) {
                Ok(text) => reporter(&text),
                Err(Refused) => reporter("VTune is passed no code: out of memory"),
            }
        }
    }

    /// Passes a code to the collector. No lock is held during the call, which runs code of others. Its calls are in order all the same, as
    /// the runtime announces an unload before other code is at the address.
    fn report(&self, code: &Code<'_>, methods: Option<Methods>) -> Result<(), Cause> {
        let address = usize::try_from(code.address).unwrap_or(0);
        if address == 0 || code.size == 0 {
            return Ok(());
        }
        let count = u32::try_from(code.inlined.len()).ok().and_then(|calls| calls.checked_add(1));
        let count = count.ok_or(Cause::NoIds)?;
        // A code that moved keeps its ids, unless it is described in another way.
        let methods = match methods.filter(|methods| methods.count == count) {
            Some(methods) => methods,
            None => Methods { first: self.ids.take(count).ok_or(Cause::NoIds)?, count },
        };
        self.remember(code, methods);
        let size = u32::try_from(code.size).unwrap_or(u32::MAX);
        let calls = Calls::of(code.inlined, size);
        let lines = Lines::of(code.lines, code.inlined, size);
        let mut memory = Memory::default();
        let mut report = |frame: Frame, name: &[u8], send: &dyn Fn(&Region<'_>)| {
            let source = lines.source(&calls, frame);
            let (name, path) = (memory.name.name(name), memory.path.path(source));
            for part in calls.parts_of(frame) {
                lines.table(&mut memory.table, &calls, frame, part, source);
                let region = Region {
                    method: methods.of(frame),
                    name,
                    address: address.wrapping_add(part.start as usize),
                    size: part.end - part.start,
                    lines: &memory.table,
                    source: path,
                };
                // Something is missing if an allocation was refused.
                if fallible::so_far().is_ok() {
                    send(&region);
                }
            }
        };
        let module = self.options.module.as_c_str();
        report(None, code.name, &|region| self.collector.load_code(region, module));
        for (index, call) in (0..).zip(code.inlined) {
            let parent = methods.of(call.parent);
            report(Some(index), call.name, &|region| self.collector.load_inlined(region, parent));
        }
        Ok(())
    }

    /// Adds a code to the list. Code whose first byte was in its range is gone from now on.
    fn remember(&self, code: &Code<'_>, methods: Methods) {
        self.with_loaded(|loaded| {
            let end = code.address.saturating_add(code.size);
            while let Some(gone) = loaded.first_from(&code.address).map(|(gone, _)| *gone)
                && gone < end
            {
                loaded.remove(&gone);
            }
            loaded.insert(code.address, Loaded { size: code.size, methods });
        });
    }

    /// Removes a code from the list, and tells the collector that it is gone. Returns its ids.
    fn forget(&self, address: u64, size: u64) -> Option<Methods> {
        let methods = self.with_loaded(|loaded| {
            let found = loaded.get(&address).filter(|code| code.size == size)?.methods;
            loaded.remove(&address);
            Some(found)
        })??;
        if let Ok(place) = usize::try_from(address) {
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            self.collector.unload_code(methods.first, place, size);
        }
        Some(methods)
    }

    fn with_loaded<R>(&self, act: impl FnOnce(&mut Map<u64, Loaded>) -> R) -> Option<R> {
        let loaded = self.loaded.as_ref()?;
        Some(act(&mut loaded.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Vtune {
    fn drop(&mut self) {
        let loaded = self.loaded.take();
        if self.lost.load(Relaxed) {
            std::mem::forget(loaded);
        }
    }
}

/// Memory for what the collector reads during a call.
#[derive(Debug, Default)]
struct Memory {
    name: Text,
    path: Text,
    table: Vec<TableLine>,
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // a list of one range is what is meant
mod tests {
    use std::sync::Arc;

    use jit_code::Inlined;

    use super::*;

    #[test]
    fn when_all_ids_are_used_it_gives_up() {
        static FEW: Ids = Ids::with_few();
        let said = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&said);
        let options = Options::new().reporter(move |why| {
            listener.lock().unwrap().push(why.to_owned());
        });
        let vtune = Vtune::with_collector(Collector::deaf(), options, &FEW).unwrap();
        let calls = [Inlined::new("inner", &[0..4])];
        vtune.load(&Code::at(0x1000, 16).inlined(&calls));
        assert!(!vtune.is_off());
        // One id is left, and this takes two.
        vtune.load(&Code::at(0x2000, 16).inlined(&calls));
        assert!(vtune.is_off());
        vtune.load(&Code::at(0x3000, 16));
        vtune.unload(0x1000, 16);
        let said = said.lock().unwrap();
        assert_eq!(said.as_slice(), ["VTune is passed no code: all method ids are used"]);
    }
}

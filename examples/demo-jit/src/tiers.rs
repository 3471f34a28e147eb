//! The JIT itself: functions are loaded, compiled anew at another tier in the same place, moved,
//! freed, and called.

use crate::announce::{Announcer, Placed};
use crate::arena::{Arena, Slot};
use crate::ast::{FunctionId, Program};
use crate::codegen::{Compiled, Compiler, Tier};
use crate::error::Error;
use crate::frame::FrameKind;
use crate::library::Library;
use crate::memory::MemoryKind;
use crate::native::{Printed, Table};
use crate::truth::CodeVersion;
use crate::unwind;

/// A program and its code.
pub(crate) struct Engine<'p> {
    program: &'p Program,
    compiler: Compiler,
    arena: Arena,
    table: Table,
    /// By function: where its code is.
    loaded: Vec<Option<Loaded>>,
    announcer: Announcer,
    /// Where code is run instead of in the arena.
    library: Option<Library>,
}

#[derive(Debug, Clone, Copy)]
struct Loaded {
    slot: Slot,
    /// Its number among the announced versions.
    version: usize,
}

impl<'p> Engine<'p> {
    pub(crate) fn new(
        program: &'p Program,
        frames: FrameKind,
        memory: MemoryKind,
        arena_size: usize,
        announcer: Announcer,
        library: Option<Library>,
    ) -> Result<Self, Error> {
        let functions = program.functions.len();
        Ok(Self {
            program,
            compiler: Compiler::new(frames)?,
            arena: Arena::new(memory, arena_size)?,
            table: Table::new(functions),
            loaded: vec![None; functions],
            announcer,
            library,
        })
    }

    /// Loads functions, in slots that have room for their code at each of `tiers`; the first is the
    /// one that is loaded. All are written at once.
    pub(crate) fn load(&mut self, functions: &[FunctionId], tiers: &[Tier]) -> Result<(), Error> {
        let mut placed = Vec::with_capacity(functions.len());
        for &id in functions {
            if self.loaded[id.0].is_some() {
                return Err(self.refuse(id, "is loaded already"));
            }
            let mut compiled = Vec::new();
            for tier in tiers {
                compiled.push(self.compiler.compile(self.program, id, *tier)?);
            }
            let size = compiled.iter().map(size).max().unwrap_or(0);
            placed.push((id, self.arena.allocate(size)?, compiled.swap_remove(0)));
        }
        self.place(&placed, tiers[0])
    }

    /// Compiles a function at another tier and puts the code where the old one is.
    pub(crate) fn replace(&mut self, id: FunctionId, tier: Tier) -> Result<(), Error> {
        let old = self.loaded(id)?;
        let compiled = self.compiler.compile(self.program, id, tier)?;
        if size(&compiled) > old.slot.size {
            return Err(Error::SlotTooSmall {
                function: self.name(id).to_owned(),
                size: size(&compiled),
                slot: old.slot.size,
            });
        }
        self.announcer.died(old.version);
        self.place(&[(id, old.slot, compiled)], tier)
    }

    /// Copies a function's code elsewhere; what it leaves behind traps.
    #[allow(unsafe_code)]
    pub(crate) fn relocate(&mut self, id: FunctionId) -> Result<(), Error> {
        let old = self.loaded(id)?;
        let slot = self.arena.allocate(old.slot.size)?;
        self.arena.copy(old.slot, slot)?;
        let address = self.arena.address(slot.offset);
        let memory = &self.arena.memory().bytes()[slot.offset..];
        let version = self.announcer.moved(old.version, address, memory);
        if self.library.is_none() {
            // SAFETY: The slot holds what `place` put into the old one, which is the function's code
            // and needs no change to run elsewhere: it has no relocations. Before `release` or another
            // `place` changes the slot, the entry is changed.
            unsafe { self.table.set(id, self.arena.memory(), slot.offset) };
        }
        self.arena.release(old.slot)?;
        self.loaded[id.0] = Some(Loaded { slot, version });
        Ok(())
    }

    /// Frees a function's code; its slot may be taken by another one.
    pub(crate) fn free(&mut self, id: FunctionId) -> Result<(), Error> {
        let old = self.loaded(id)?;
        self.table.clear(id);
        self.announcer.died(old.version);
        self.arena.release(old.slot)?;
        self.loaded[id.0] = None;
        Ok(())
    }

    /// Calls a function of one parameter.
    pub(crate) fn call(&self, id: FunctionId, argument: i64) -> Result<i64, Error> {
        if self.program.function(id).parameters != 1 {
            return Err(self.refuse(id, "is called from outside and must have one parameter"));
        }
        self.table
            .call(self.arena.memory(), id, argument)
            .ok_or_else(|| self.refuse(id, "called a function that is not loaded"))
    }

    /// What was printed since the last time.
    pub(crate) fn take_printed(&self) -> Printed {
        self.table.take_printed()
    }

    /// Every version of every code so far.
    pub(crate) fn versions(&self) -> &[CodeVersion] {
        self.announcer.versions()
    }

    pub(crate) fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    #[allow(unsafe_code)]
    fn place(&mut self, placed: &[(FunctionId, Slot, Compiled)], tier: Tier) -> Result<(), Error> {
        for (id, ..) in placed {
            self.table.clear(*id);
        }
        self.arena.fill(placed.iter().map(|(_, slot, compiled)| (*slot, parts(compiled))))?;
        for (id, slot, compiled) in placed {
            let placed = Placed {
                program: self.program,
                id: *id,
                tier,
                compiled,
                address: self.arena.address(slot.offset),
                code: &self.arena.memory().bytes()[slot.offset..][..compiled.bytes.len()],
            };
            let version = self.announcer.load(&placed)?;
            if let Some(library) = &self.library {
                let symbol = &self.announcer.versions()[version].symbol;
                let code = library.find(symbol, &compiled.bytes)?;
                // SAFETY: It is the same code, which needs no change to run elsewhere, and stays there.
                unsafe { self.table.set_elsewhere(*id, code) };
            } else {
                // SAFETY: `fill` has just put the function's code there, compiled from this program.
                // Whatever changes the slot later (`place`, `release`) changes the entry before.
                unsafe { self.table.set(*id, self.arena.memory(), slot.offset) };
            }
            self.loaded[id.0] = Some(Loaded { slot: *slot, version });
        }
        Ok(())
    }

    pub(crate) fn name(&self, id: FunctionId) -> &'p str {
        &self.program.function(id).name
    }

    /// A function that should always return the same did not.
    pub(crate) fn inconstant(&self, id: FunctionId) -> Error {
        self.refuse(id, "returned another value than before")
    }

    fn loaded(&self, id: FunctionId) -> Result<Loaded, Error> {
        self.loaded[id.0].ok_or_else(|| self.refuse(id, "is not loaded"))
    }

    fn refuse(&self, id: FunctionId, what: &'static str) -> Error {
        Error::Plan { function: self.name(id).to_owned(), what }
    }
}

/// What a code takes in its slot.
fn size(compiled: &Compiled) -> usize {
    unwind::offset_behind(compiled.bytes.len()) + compiled.unwind.size()
}

/// The code, and behind it the unwind tables.
fn parts(compiled: &Compiled) -> [(usize, &[u8]); 3] {
    let eh_frame = unwind::offset_behind(compiled.bytes.len());
    let header = eh_frame + compiled.unwind.eh_frame.len();
    [
        (0, &compiled.bytes),
        (eh_frame, &compiled.unwind.eh_frame),
        (header, &compiled.unwind.eh_frame_hdr),
    ]
}

#[cfg(test)]
mod tests;

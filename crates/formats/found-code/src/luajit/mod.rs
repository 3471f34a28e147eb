//! LuaJIT's traces.
//!
//! Each Lua state has a `jit_State`, and in it these fields, since 2.0: the address of the table of traces, the number from which a free entry is searched, and the
//! number of entries. Entry N refers to trace N; entry 0 is null. The table is found by these fields: it has all traces, and none that was freed, and reading it
//! again is cheap. There are none before the first trace.

mod layout;
mod trace;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use gdb_jit_list::ReadAt;

use crate::limits;
use crate::registry::{Context, Registry};
use layout::{LAYOUTS, Layout};
use trace::Trace;

/// How many entries that are no traces are seen before something is taken for another kind of table.
const WRONG: u32 = 8;
/// How many entries of a table cost as much to read as one structure.
const ENTRIES_AS_ONE: u64 = 32;
/// The most entries of a table.
const ENTRIES: u64 = 65_535;

/// The table of traces, as a `jit_State` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    address: u64,
    entries: u64,
}

/// The Lua states of a process.
#[derive(Debug, Default)]
pub struct States(Vec<State>);

/// A Lua state.
#[derive(Debug)]
struct State {
    /// Where its table is noted.
    at: u64,
    layout: &'static Layout,
    table: Table,
    /// The traces, by number: where they are, what they are, and the code's number.
    traces: BTreeMap<u32, (u64, Trace, u64)>,
}

impl Table {
    /// The size of the fields.
    pub const SIZE: usize = 16;

    /// The table of which these may be the fields.
    pub fn parse(first: u64, second: u64) -> Option<Self> {
        let (free, entries) = (second & u64::from(u32::MAX), second >> 32);
        let fits = (1..=ENTRIES).contains(&entries) && free <= entries;
        (fits && first != 0 && first.is_multiple_of(4)).then_some(Self { address: first, entries })
    }

    /// The objects that it refers to, by number.
    fn read(
        self,
        layout: &Layout,
        context: &Context<'_, impl ReadAt + ?Sized>,
    ) -> Option<Vec<u64>> {
        let width = u64::from(layout.reference);
        let size = self.entries.checked_mul(width)?;
        if !self.address.is_multiple_of(width) || !context.mapped.is_data(self.address, size) {
            return None;
        }
        // Most of what only looks like these fields has something at the beginning.
        let is_null = |bytes: &[u8]| layout.reference_at(bytes, 0) == 0;
        let mut first = [0; 8];
        let first = first.get_mut(..layout.reference.into())?;
        if context.memory.read_at(self.address, first) != first.len() || !is_null(first) {
            return None;
        }
        // Many that look like these fields may name one large table.
        if !context.examine(self.entries.checked_div(ENTRIES_AS_ONE)?) {
            return None;
        }
        let bytes = context.memory.bytes(self.address, size)?;
        let entries = bytes.chunks_exact(layout.reference.into());
        Some(entries.map(|entry| layout.reference_at(entry, 0)).collect())
    }
}

impl States {
    /// Reads the traces of all states that are known.
    pub fn poll(&mut self, context: &Context<'_, impl ReadAt + ?Sized>, codes: &mut Registry<'_>) {
        self.0.retain_mut(|state| {
            let fields: Option<[u8; Table::SIZE]> = context.memory.array(state.at);
            let table = fields.and_then(|fields| {
                let (first, second) = fields.split_at(8);
                Table::parse(crate::fields::u64_at(first, 0), crate::fields::u64_at(second, 0))
            });
            let is_there = table.is_some_and(|table| {
                state.table = table;
                state.read(context, codes, context.last, false)
            });
            if !is_there {
                state.traces.values().for_each(|(.., id)| codes.remove(*id));
            }
            is_there
        });
    }

    /// Examines what may be a state's table of traces, which is noted at `at`. Whether it is a new one.
    pub fn examine(
        &mut self,
        at: u64,
        table: Table,
        context: &Context<'_, impl ReadAt + ?Sized>,
        codes: &mut Registry<'_>,
        since: u64,
    ) -> bool {
        let is_known = |state: &State| state.at == at || state.table.address == table.address;
        if self.0.len() >= limits::STATES || self.0.iter().any(is_known) {
            return false;
        }
        for layout in &LAYOUTS {
            let mut state = State { at, layout, table, traces: BTreeMap::new() };
            if state.read(context, codes, since, true) && !state.traces.is_empty() {
                self.0.push(state);
                return true;
            }
        }
        false
    }
}

impl State {
    /// Reads the traces. Whether there is still a table.
    fn read(
        &mut self,
        context: &Context<'_, impl ReadAt + ?Sized>,
        codes: &mut Registry<'_>,
        since: u64,
        is_new: bool,
    ) -> bool {
        let Some(objects) = self.table.read(self.layout, context) else { return false };
        let surplus = self.traces.split_off(&u32::try_from(objects.len()).unwrap_or(u32::MAX));
        surplus.values().for_each(|(.., id)| codes.remove(*id));
        let mut wrong = 0;
        for (number, object) in (0..).zip(objects) {
            let known = self.traces.entry(number);
            if object == 0 {
                if let Entry::Occupied(known) = known {
                    codes.remove(known.remove().2);
                }
                continue;
            }
            if !context.examine(1) || (is_new && self.traces.is_empty() && wrong >= WRONG) {
                return !self.traces.is_empty();
            }
            if !self.read_trace(number, object, context, codes, since) {
                wrong = wrong.saturating_add(1);
            }
        }
        true
    }

    /// Reads one trace. Whether it is one.
    fn read_trace(
        &mut self,
        number: u32,
        object: u64,
        context: &Context<'_, impl ReadAt + ?Sized>,
        codes: &mut Registry<'_>,
        since: u64,
    ) -> bool {
        let Context { memory, mapped, .. } = context;
        let layout = self.layout;
        let trace = Trace::read(layout, *memory, mapped, object, number);
        match (self.traces.get(&number), trace) {
            (Some((at, known, _)), Some(trace)) if *at == object && *known == trace => return true,
            (Some((.., id)), _) => {
                codes.remove(*id);
                self.traces.remove(&number);
            }
            (None, _) => {}
        }
        let Some(trace) = trace else { return false };
        let Some(code) = trace.describe(layout, *memory, mapped, number) else { return false };
        if let Some(id) = codes.add(code, since) {
            self.traces.insert(number, (object, trace, id));
        }
        true
    }
}

//! Writes the unknown code that was collected in a part of the profile, function by function.

use std::io::Write;
use std::rc::Rc;

use super::contexts::UnknownContext;
use super::cost::{Call, Callee, Cost, Jump};
use super::piece::{Entry, Piece};
use super::pieces::pieces;
use super::recursion::Recursions;
use super::rows::{Lines, Rows};
use super::single_function::{Next, is_single_function, merge_by_address};
use super::{CopiedCode, Mode, Rewriter};
use crate::code_map::{CodeMap, Function, Owner};
use crate::context::split_part;
use crate::position::Columns;
use crate::write::Body;

/// Object, file and name of a function, as they are written.
type Identity = [Rc<[u8]>; 3];

/// What a function has at an address.
enum Item<'a> {
    Cost(&'a [u64]),
    Call(&'a Call, &'a [u64]),
    Entry(&'a Entry),
    Jump(&'a Jump),
}

/// The result of examining a context.
enum Division {
    /// It belongs to one function only.
    Single,
    Pieces(Vec<Piece>),
}

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Writes what was collected.
    pub(super) fn end_part(&mut self) {
        if !self.is_copying() {
            // The following lines belong to no function that was copied.
            self.cursor.in_function = false;
            self.mode = Mode::Copy(CopiedCode::Known);
        }
        let (contexts, rows) = self.contexts.take();
        let (contexts, rows) = self.write_contexts(contexts, rows);
        self.contexts.recycle(contexts, rows);
    }

    fn write_contexts(
        &mut self,
        mut contexts: Vec<UnknownContext>,
        mut rows: Rows,
    ) -> (Vec<UnknownContext>, Rows) {
        if contexts.is_empty() || !self.columns.has_instr() {
            return (contexts, rows);
        }
        let (events, ir, has_jumps) = (self.events, self.ir, self.summary.has_jumps);
        let map = &mut *self.naming.map;
        let spans = rows.by_context(contexts.len());
        let mut recursions = Recursions::new(&contexts);
        let mut all: Vec<Division> = Vec::with_capacity(contexts.len());
        for (number, (context, span)) in contexts.iter().zip(&spans).enumerate() {
            let lines = rows.lines(span);
            if is_single_function(context, lines, map) {
                rows.sort(span);
                let function = context.owner.as_ref().map(|owner| owner.function);
                for call in rows.lines(span).calls {
                    recursions.add_call(&contexts, number, function, call);
                }
                all.push(Division::Single);
                continue;
            }
            let pieces = pieces(context, lines, map, events, ir, has_jumps);
            for piece in &pieces {
                let function = piece.owner.as_ref().map(|owner| owner.function);
                for (call, _) in &piece.calls {
                    recursions.add_call(&contexts, number, function, call);
                }
            }
            all.push(Division::Pieces(pieces));
        }
        recursions.assign_levels(&mut contexts, self.naming.levels);
        let functions: Vec<Identity> =
            contexts.iter().map(|context| self.own_function(context)).collect();
        let divided = contexts.iter().zip(&spans).zip(&all).zip(&functions);
        for (((context, span), division), own) in divided {
            let lines = rows.lines(span);
            if context.owner.is_some() && !lines.costs.is_empty() {
                self.summary.contexts = self.summary.contexts.saturating_add(1);
            }
            match division {
                Division::Single => self.write_single_function(context, lines, own, &functions),
                Division::Pieces(pieces) => {
                    let entered = self.piece_functions(context, pieces, own);
                    for (piece, function) in pieces.iter().zip(&entered) {
                        self.count_piece(piece);
                        self.piece(piece, pieces.len() > 1, function, &entered, &functions);
                    }
                }
            }
        }
        self.cursor.mark_due();
        self.is_in_step = false;
        (contexts, rows)
    }

    /// The names of a context's own function.
    fn own_function(&mut self, context: &UnknownContext) -> Identity {
        let Some(owner) = &context.owner else {
            let name = self.naming.with_callers_named(&context.name);
            return [Rc::clone(&context.object), Rc::clone(&context.file), name.into()];
        };
        let Function { name, object, file } = self.naming.map.function(owner.function);
        let (level, callers) = (context.context.level, &context.context.callers);
        [object, file, self.naming.decorated(&name, level, callers).into()]
    }

    /// The names of the functions of a context's pieces.
    fn piece_functions(
        &mut self,
        context: &UnknownContext,
        pieces: &[Piece],
        own: &Identity,
    ) -> Vec<Identity> {
        let mut all = vec![own.clone()];
        // A function entered by a jump was called by the context's own function, as far as a name can express it.
        let mut callers = Vec::new();
        if self.naming.callers > 0 {
            let plain = match &context.owner {
                Some(owner) => self.naming.map.function(owner.function).name,
                None => split_part(&context.name).0.into(),
            };
            let parts = context.context.callers.split(|&byte| byte == b'\'').skip(1);
            for part in std::iter::once(&*plain).chain(parts).take(self.naming.callers) {
                callers.push(b'\'');
                callers.extend_from_slice(part);
            }
        }
        for owner in pieces.iter().skip(1).filter_map(|piece| piece.owner.as_ref()) {
            let Function { name, object, file } = self.naming.map.function(owner.function);
            let name = self.naming.decorated(&name, context.context.level, &callers);
            all.push([object, file, name.into()]);
        }
        all
    }

    fn count_piece(&mut self, piece: &Piece) {
        if let Some(owner) = &piece.owner {
            self.functions.insert(owner.function);
            for row in &piece.rows {
                self.summary.add_named(piece.values(row, self.events));
            }
        }
        let jumped = piece.entries.iter().map(|entry| entry.count).fold(0, u64::saturating_add);
        self.summary.entered_by_jump = self.summary.entered_by_jump.saturating_add(jumped);
    }

    /// Writes a context that belongs to one function only.
    fn write_single_function(
        &mut self,
        context: &UnknownContext,
        lines: Lines<'_>,
        function: &Identity,
        functions: &[Identity],
    ) {
        let owner = context.owner.as_ref().map(|owner| owner.function);
        self.functions.extend(owner);
        if lines.is_empty() {
            return;
        }
        let events = self.events;
        let mut sum = Vec::new();
        let map = &mut *self.naming.map;
        let mut writer = Writer::new(&mut self.out, self.columns, map, function, functions);
        for next in merge_by_address(lines) {
            match next {
                Next::Costs(costs) => {
                    let Some(Cost { address, line, values }) = costs.first() else { continue };
                    let mut values = lines.values(*values, events);
                    if let [_, _, ..] = costs {
                        sum.clear();
                        sum.resize(events, 0_u64);
                        costs
                            .iter()
                            .for_each(|cost| add(&mut sum, lines.values(cost.values, events)));
                        values = &sum;
                    }
                    if owner.is_some() {
                        self.summary.add_named(values);
                    }
                    writer.item(*address, *line, &Item::Cost(values), &[]);
                }
                Next::Call(call) => {
                    let values = lines.values(call.values, events);
                    writer.item(call.address, call.line, &Item::Call(call, values), &[]);
                }
                Next::Jump(jump) => {
                    writer.item(jump.address, jump.line, &Item::Jump(jump), &[]);
                }
            }
        }
    }

    /// Writes one function's piece. `entered` are the functions of the context's pieces, `functions` those of the
    /// part's contexts.
    fn piece(
        &mut self,
        piece: &Piece,
        is_one_of_several: bool,
        function: &Identity,
        entered: &[Identity],
        functions: &[Identity],
    ) {
        if piece.rows.is_empty() && piece.calls.is_empty() && piece.jumps.is_empty() {
            return;
        }
        let map = &mut *self.naming.map;
        let mut writer = Writer::new(&mut self.out, self.columns, map, function, functions);
        for (address, line, item) in items(piece, self.events, is_one_of_several) {
            writer.item(address, line, &item, entered);
        }
    }
}

fn add(sum: &mut [u64], values: &[u64]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
}

/// Writes the content of one function.
struct Writer<'a, M> {
    body: Body<'a>,
    lines: SourceLines<'a, M>,
    file: &'a Rc<[u8]>,
    /// The functions of the part's contexts.
    functions: &'a [Identity],
}

impl<'a, M: CodeMap> Writer<'a, M> {
    fn new(
        out: &'a mut Vec<u8>,
        columns: Columns,
        map: &'a mut M,
        [object, file, name]: &'a Identity,
        functions: &'a [Identity],
    ) -> Self {
        let body = Body::new(out, columns, object, file, name);
        Self { body, lines: SourceLines { map, at: None }, file, functions }
    }

    /// Writes what is at an address. `line` is its line in the profile; `entered` are the functions of the context's
    /// pieces.
    #[inline]
    fn item(&mut self, address: u64, line: u64, item: &Item<'_>, entered: &[Identity]) {
        let (line_file, line) = self.lines.place(address, line);
        // Without a source line, it stays in the function's file.
        self.body.file(line_file.as_ref().unwrap_or(self.file));
        let from = (address, line);
        match *item {
            Item::Cost(costs) => self.body.cost(address, line, costs),
            Item::Call(call, costs) => {
                let (callee, line) = match &call.callee {
                    Callee::Unknown(index) => {
                        let Some(callee) = self.functions.get(*index) else { return };
                        let line = self.lines.place(call.target, call.target_line).1;
                        (callee.each_ref(), line)
                    }
                    Callee::Known { object, file, name } => {
                        ([object, file, name], call.target_line)
                    }
                };
                let callee = callee.map(|text| &**text);
                self.body.call(callee, call.count, (call.target, line), from, costs);
            }
            Item::Entry(entry) => {
                let Some(callee) = entered.get(entry.to) else { return };
                let callee = callee.each_ref().map(|text| &**text);
                let target = (entry.target, self.lines.place(entry.target, 0).1);
                self.body.call(callee, entry.count, target, from, &entry.inclusive);
            }
            Item::Jump(jump) => {
                let target = (jump.target, self.lines.place(jump.target, 0).1);
                self.body.jump(jump.taken, jump.executed, target, from);
            }
        }
    }
}

/// Everything in a piece, sorted by address, with the line from the profile. At the same address, self cost comes
/// first.
fn items(piece: &Piece, events: usize, is_one_of_several: bool) -> Vec<(u64, u64, Item<'_>)> {
    let mut items: Vec<(u64, u64, Item<'_>)> = Vec::with_capacity(piece.rows.len());
    for row in &piece.rows {
        let costs = piece.values(row, events);
        // If a context had several functions, one may have no cost here.
        if !is_one_of_several || costs.iter().any(|&cost| cost > 0) {
            items.push((row.address, row.line, Item::Cost(costs)));
        }
    }
    for (call, costs) in &piece.calls {
        items.push((call.address, call.line, Item::Call(call, costs)));
    }
    for entry in &piece.entries {
        items.push((entry.address, entry.line, Item::Entry(entry)));
    }
    for jump in &piece.jumps {
        items.push((jump.address, jump.line, Item::Jump(jump)));
    }
    items.sort_by_key(|&(address, _, _)| address);
    items
}

/// Looks up source lines, mostly of one function after another.
struct SourceLines<'m, M> {
    map: &'m mut M,
    at: Option<Owner>,
}

impl<M: CodeMap> SourceLines<'_, M> {
    /// File and line of an address. If the map does not know it, the line from the profile.
    fn place(&mut self, address: u64, line: u64) -> (Option<Rc<[u8]>>, u64) {
        if !self.at.as_ref().is_some_and(|owner| owner.visible.contains(&address)) {
            self.at = self.map.at(address);
        }
        let place = self.at.as_ref().and_then(|owner| self.map.place(owner.function, address));
        match place {
            Some(place) => (Some(place.file), u64::from(place.line)),
            None => (None, line),
        }
    }
}

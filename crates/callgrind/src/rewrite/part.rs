//! What was collected of unknown code in a part of the profile, written function by function.

use std::io::Write;
use std::rc::Rc;

use super::collected::{Call, Callee, Collected, Jump};
use super::pieces::{Entry, Piece, pieces};
use super::recursion::recursions;
use super::{Copied, Mode, Rewriter};
use crate::context::split_part;
use crate::known::{CodeMap, Function, Owner};
use crate::write::Body;

/// Object, file and name of a function, as it is written.
type Identity = [Rc<[u8]>; 3];

/// What a function has at an address.
enum Item<'a> {
    Cost(&'a [u64]),
    Call(&'a Call, &'a [u64]),
    Entry(&'a Entry),
    Jump(&'a Jump),
}

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Writes what was collected.
    pub(super) fn end_part(&mut self) {
        if !self.is_copying() {
            // What follows is of no function that was copied.
            self.here.in_function = false;
            self.mode = Mode::Copy(Copied::Known);
        }
        let mut contexts = self.contexts.take();
        if contexts.is_empty() || !self.columns.has_instr() {
            return;
        }
        let (events, ir, has_jumps) = (self.events, self.ir, self.summary.has_jumps);
        let map = &mut *self.naming.map;
        let apart = contexts.iter().map(|context| pieces(context, map, events, ir, has_jumps));
        let all: Vec<Vec<Piece>> = apart.collect();
        recursions(&mut contexts, &all, self.naming.levels);
        let functions: Vec<Identity> =
            contexts.iter().map(|context| self.own_function(context)).collect();
        for ((context, pieces), own) in contexts.iter().zip(&all).zip(&functions) {
            if context.owner.is_some() && !context.costs.is_empty() {
                self.summary.contexts = self.summary.contexts.saturating_add(1);
            }
            let entered = self.piece_functions(context, pieces, own);
            for (piece, function) in pieces.iter().zip(&entered) {
                self.count_piece(piece);
                self.piece(piece, pieces.len() > 1, function, &entered, &functions);
            }
        }
        self.here.is_elsewhere();
        self.is_in_step = false;
    }

    /// A context's own function.
    fn own_function(&mut self, context: &Collected) -> Identity {
        let Some(owner) = &context.owner else {
            let name = self.naming.with_callers_named(&context.name);
            return [Rc::clone(&context.object), Rc::clone(&context.file), name.into()];
        };
        let Function { name, object, file } = self.naming.map.function(owner.function);
        let (level, callers) = (context.context.level, &context.context.callers);
        [object, file, self.naming.decorated(&name, level, callers).into()]
    }

    /// The functions of a context's pieces.
    fn piece_functions(
        &mut self,
        context: &Collected,
        pieces: &[Piece],
        own: &Identity,
    ) -> Vec<Identity> {
        let mut all = vec![own.clone()];
        // Who was entered by a jump was called by the context's own function, as far as a name can say it.
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

    /// Writes one function's piece. `entered` are those that a context's pieces are of, and `functions` those that its
    /// part's contexts are of.
    fn piece(
        &mut self,
        piece: &Piece,
        is_one_of_several: bool,
        [object, file, name]: &Identity,
        entered: &[Identity],
        functions: &[Identity],
    ) {
        if piece.rows.is_empty() && piece.calls.is_empty() && piece.jumps.is_empty() {
            return;
        }
        let mut lines = SourceLines { map: &mut *self.naming.map, at: None };
        let mut body = Body::new(&mut self.out, self.columns, object, file, name);
        for (address, line, item) in items(piece, self.events, is_one_of_several) {
            let (line_file, line) = lines.place(address, line);
            // Without a line of its own it stays in the function's file.
            body.file(line_file.as_deref().unwrap_or(file));
            let from = (address, line);
            match item {
                Item::Cost(costs) => body.cost(address, line, costs),
                Item::Call(call, costs) => {
                    let (callee, line) = match &call.callee {
                        Callee::Unknown(index) => {
                            let Some(callee) = functions.get(*index) else { continue };
                            let line = lines.place(call.target, call.target_line).1;
                            (callee.each_ref(), line)
                        }
                        Callee::Known { object, file, name } => {
                            ([object, file, name], call.target_line)
                        }
                    };
                    let callee = callee.map(|text| &**text);
                    body.call(callee, call.count, (call.target, line), from, costs);
                }
                Item::Entry(entry) => {
                    let Some(callee) = entered.get(entry.to) else { continue };
                    let callee = callee.each_ref().map(|text| &**text);
                    let target = (entry.target, lines.place(entry.target, 0).1);
                    body.call(callee, entry.count, target, from, &entry.inclusive);
                }
                Item::Jump(jump) => {
                    let target = (jump.target, lines.place(jump.target, 0).1);
                    body.jump(jump.taken, jump.executed, target, from);
                }
            }
        }
    }
}

/// All of a piece by address, with the line that the profile has; at one address the self cost first.
fn items(piece: &Piece, events: usize, is_one_of_several: bool) -> Vec<(u64, u64, Item<'_>)> {
    let mut items: Vec<(u64, u64, Item<'_>)> = Vec::with_capacity(piece.rows.len());
    for row in &piece.rows {
        let costs = piece.values(row, events);
        // Of what was several functions', one may have had nothing.
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

/// Asks for source lines, mostly of one function after another.
struct SourceLines<'m, M> {
    map: &'m mut M,
    at: Option<Owner>,
}

impl<M: CodeMap> SourceLines<'_, M> {
    /// File and line of an address; the line that the profile has where nobody knows it.
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

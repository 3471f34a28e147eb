//! The costs of a function's visits, in a ring of jumps that was entered once.
//!
//! How much each jump of the ring led to depends on when a cost arose: in the first visit of a function or in a later
//! one. Some instructions were executed in the last visit only, because no jump of the ring can be reached from them,
//! and others in all visits but the last, because the end cannot. The cost of an instruction is assumed to be the same
//! in each visit in which it can have been executed. So the result is exact if all visits cost the same,
//! except for the first and the last as described.

use super::piece::Piece;
use super::shares::Shares;
use super::walk::Member;

/// From here, the jump to the next function of the ring can be reached.
const GOES_ON: u8 = 1;
/// From here, the end of the ring can be reached.
const ENDS: u8 = 1 << 1;
/// Reached from where the context was entered.
const FROM_ENTRY: u8 = 1 << 2;
/// Reached from the first instruction of the function.
const FROM_START: u8 = 1 << 3;

/// Computes moments of costs: the sum of the costs of all visits, each multiplied by the visit's number from 0.
#[derive(Debug)]
pub(crate) struct Moments<'a> {
    shares: &'a Shares,
    pieces: &'a [Piece],
    /// Where the context was entered.
    entry: u64,
    events: usize,
    ir: usize,
    /// By instruction.
    marks: Vec<u8>,
    marked: Vec<usize>,
}

impl<'a> Moments<'a> {
    pub fn new(
        shares: &'a Shares,
        pieces: &'a [Piece],
        entry: u64,
        events: usize,
        ir: usize,
    ) -> Self {
        Self { shares, pieces, entry, events, ir, marks: Vec::new(), marked: Vec::new() }
    }

    /// Twice the moment of each event for a function's own cost. `None` for an event whose costs differ from one
    /// execution of an instruction to another, as cache misses do: these are not assumed to be the same in each visit.
    /// Instructions executed are, even where a loop or a called function executes more of them in one visit.
    pub fn of(&mut self, member: &Member) -> Vec<Option<u128>> {
        let Some(piece) = self.pieces.get(member.function) else { return Vec::new() };
        self.mark(member, piece);
        let mut moments = vec![Some(0_u128); self.events];
        for row in &piece.rows {
            let costs = piece.values(row, self.events);
            let executed = costs.get(self.ir).copied().unwrap_or(0);
            self.add(&mut moments, costs, executed, self.visits(member, row.address));
        }
        for (call, costs) in &piece.calls {
            self.add(&mut moments, costs, call.count, self.visits(member, call.address));
        }
        for index in self.marked.drain(..) {
            self.marks.get_mut(index).into_iter().for_each(|marks| *marks = 0);
        }
        moments
    }

    fn add(
        &self,
        moments: &mut [Option<u128>],
        costs: &[u64],
        count: u64,
        (first, last): (u64, u64),
    ) {
        let twice_mean = u128::from(first).saturating_add(u128::from(last));
        for (event, (moment, &cost)) in moments.iter_mut().zip(costs).enumerate() {
            let is_known = event == self.ir || first == last || cost == 0;
            if !is_known && cost.checked_rem(count) != Some(0) {
                *moment = None;
            } else if let Some(sum) = moment {
                *sum = sum.saturating_add(u128::from(cost).saturating_mul(twice_mean));
            }
        }
    }

    /// The first and the last visit in which the instruction at `address` can have been executed.
    fn visits(&self, member: &Member, address: u64) -> (u64, u64) {
        let end = member.visits.saturating_sub(1);
        let index = self.shares.index(address);
        let marks = index.and_then(|index| self.marks.get(index)).copied().unwrap_or(0);
        let is = |mark: u8| marks & mark != 0;
        let (mut first, mut last) = (0, end);
        if self.is_entered_inside(member) {
            match (is(FROM_ENTRY), is(FROM_START)) {
                (false, true) => first = 1,
                (true, false) => last = 0,
                _ => {}
            }
        }
        if member.is_last {
            match (is(GOES_ON), is(ENDS)) {
                (false, true) => first = end,
                (true, false) => last = last.min(end.saturating_sub(1)),
                _ => {}
            }
        }
        if first <= last { (first, last) } else { (0, end) }
    }

    /// Whether the first visit did not begin at the first instruction.
    fn is_entered_inside(&self, member: &Member) -> bool {
        member.function == 0 && member.is_first && self.start(member) != Some(self.entry)
    }

    fn start(&self, member: &Member) -> Option<u64> {
        self.pieces.get(member.function)?.owner.as_ref().map(|owner| owner.start)
    }

    /// Marks what is reached in the functions where visits differ.
    fn mark(&mut self, member: &Member, piece: &Piece) {
        let shares = self.shares;
        self.marks.resize(shares.instructions(), 0);
        if self.is_entered_inside(member) {
            let at = |address: Option<u64>| address.and_then(|address| shares.index(address));
            self.spread(member, FROM_ENTRY, at(Some(self.entry)).into_iter().collect());
            self.spread(member, FROM_START, at(self.start(member)).into_iter().collect());
        }
        if member.is_last {
            let (on, elsewhere): (Vec<_>, Vec<_>) =
                piece.entries.iter().partition(|entry| entry.to == member.next);
            let index = |address: u64| shares.index(address);
            let on = on.iter().filter_map(|entry| index(entry.address)).collect();
            let rows = piece.rows.iter().filter_map(|row| index(row.address));
            let mut ends: Vec<usize> = rows.filter(|&index| shares.is_end(index)).collect();
            ends.extend(elsewhere.iter().filter_map(|entry| index(entry.address)));
            self.spread(member, GOES_ON, on);
            self.spread(member, ENDS, ends);
        }
    }

    /// Marks instructions of the function, and those that they lead to or, for what can be reached, those that lead to
    /// them.
    fn spread(&mut self, member: &Member, mark: u8, mut waiting: Vec<usize>) {
        let shares = self.shares;
        while let Some(index) = waiting.pop() {
            let Some(marks) = self.marks.get_mut(index) else { continue };
            if *marks & mark != 0 || !shares.is_of(index, member.function) {
                continue;
            }
            *marks |= mark;
            self.marked.push(index);
            let next = match mark {
                GOES_ON | ENDS => shares.before(index),
                _ => shares.after(index),
            };
            waiting.extend(next.iter().map(|&(to, _)| to));
        }
    }
}

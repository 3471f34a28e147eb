//! The lines of unknown contexts, as they are read: all of a part in the same room, which the next part uses again.

use std::ops::Range;

use super::collected::{Call, Cost, Jump};

/// The lines of a part's contexts.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub costs: Vec<Cost>,
    pub calls: Vec<Call>,
    pub jumps: Vec<Jump>,
    /// The costs of what is told by line, one behind another.
    pub values: Vec<u64>,
    /// Where which context's lines begin; they end where the next begin.
    begun: Vec<Begun>,
}

/// Whose lines come next.
#[derive(Debug, Clone, Copy)]
struct Begun {
    context: usize,
    costs: usize,
    calls: usize,
    jumps: usize,
}

/// Which lines are a context's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Span {
    pub costs: Range<usize>,
    pub calls: Range<usize>,
    pub jumps: Range<usize>,
}

/// A context's lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// By address.
    pub costs: &'a [Cost],
    pub calls: &'a [Call],
    pub jumps: &'a [Jump],
    values: &'a [u64],
}

impl<'a> Lines<'a> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty() && self.calls.is_empty() && self.jumps.is_empty()
    }

    /// The costs that begin at `at`, an entry an event.
    pub fn values(&self, at: usize, events: usize) -> &'a [u64] {
        self.values.get(at..at.saturating_add(events)).unwrap_or_default()
    }
}

impl Rows {
    /// What comes is of the context with this number.
    pub fn begin(&mut self, context: usize) {
        if self.begun.last().is_none_or(|begun| begun.context != context) {
            let (costs, calls, jumps) = (self.costs.len(), self.calls.len(), self.jumps.len());
            self.begun.push(Begun { context, costs, calls, jumps });
        }
    }

    /// Forgets all lines, and keeps the room.
    pub fn clear(&mut self) {
        self.costs.clear();
        self.calls.clear();
        self.jumps.clear();
        self.values.clear();
        self.begun.clear();
    }

    /// Which lines are whose, of `contexts` contexts; the costs of each are put in order.
    pub fn by_context(&mut self, contexts: usize) -> Vec<Span> {
        let is_once = |spans: &mut [Span], index: usize, span: Span| match spans.get_mut(index) {
            Some(place)
                if place.costs.is_empty() && place.calls.is_empty() && place.jumps.is_empty() =>
            {
                *place = span;
                true
            }
            _ => false,
        };
        let mut spans = vec![Span::default(); contexts];
        let all = self.spans();
        if !all.into_iter().all(|(index, span)| is_once(&mut spans, index, span)) {
            // Somebody else's lines lie between.
            self.put_together();
            spans.fill(Span::default());
            for (index, span) in self.spans() {
                is_once(&mut spans, index, span);
            }
        }
        for span in &spans {
            let costs = self.costs.get_mut(span.costs.clone()).unwrap_or_default();
            if !costs.is_sorted_by_key(|cost| cost.address) {
                costs.sort_by_key(|cost| cost.address);
            }
        }
        spans
    }

    /// In the order in which they were read, those without lines left out.
    fn spans(&self) -> Vec<(usize, Span)> {
        let end = Begun {
            context: 0,
            costs: self.costs.len(),
            calls: self.calls.len(),
            jumps: self.jumps.len(),
        };
        let ends = self.begun.iter().skip(1).chain(std::iter::once(&end));
        let spans = self.begun.iter().zip(ends).map(|(begin, end)| {
            let span = Span {
                costs: begin.costs..end.costs,
                calls: begin.calls..end.calls,
                jumps: begin.jumps..end.jumps,
            };
            (begin.context, span)
        });
        spans
            .filter(|(_, span)| {
                !(span.costs.is_empty() && span.calls.is_empty() && span.jumps.is_empty())
            })
            .collect()
    }

    /// Moves the lines of each context together.
    fn put_together(&mut self) {
        let mut spans = self.spans();
        spans.sort_by_key(|&(context, _)| context);
        let mut together = Self { values: std::mem::take(&mut self.values), ..Self::default() };
        for (context, span) in spans {
            together.begin(context);
            together.costs.extend_from_slice(self.costs.get(span.costs).unwrap_or_default());
            together.calls.extend_from_slice(self.calls.get(span.calls).unwrap_or_default());
            together.jumps.extend_from_slice(self.jumps.get(span.jumps).unwrap_or_default());
        }
        *self = together;
    }

    /// Puts calls and jumps in the order of their addresses.
    pub fn sort(&mut self, span: &Span) {
        let calls = self.calls.get_mut(span.calls.clone()).unwrap_or_default();
        if !calls.is_sorted_by_key(|call| call.address) {
            calls.sort_by_key(|call| call.address);
        }
        let jumps = self.jumps.get_mut(span.jumps.clone()).unwrap_or_default();
        if !jumps.is_sorted_by_key(|jump| jump.address) {
            jumps.sort_by_key(|jump| jump.address);
        }
    }

    /// The lines of a span.
    pub fn lines(&self, span: &Span) -> Lines<'_> {
        Lines {
            costs: self.costs.get(span.costs.clone()).unwrap_or_default(),
            calls: self.calls.get(span.calls.clone()).unwrap_or_default(),
            jumps: self.jumps.get(span.jumps.clone()).unwrap_or_default(),
            values: &self.values,
        }
    }
}

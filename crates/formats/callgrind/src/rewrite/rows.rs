//! The lines of unknown contexts as they are read. All lines of a part are in the same memory, which the next part
//! reuses.

use std::ops::Range;

use super::cost::{Call, Cost, Jump};

/// The lines of a part's contexts.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub costs: Vec<Cost>,
    pub calls: Vec<Call>,
    pub jumps: Vec<Jump>,
    /// The costs of all lines, consecutively.
    pub values: Vec<u64>,
    /// Where the lines of each context begin; they end where the next begin.
    starts: Vec<ContextStart>,
}

/// The start of a context's lines.
#[derive(Debug, Clone, Copy)]
struct ContextStart {
    context: usize,
    costs: usize,
    calls: usize,
    jumps: usize,
}

/// The index ranges of a context's lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Span {
    pub costs: Range<usize>,
    pub calls: Range<usize>,
    pub jumps: Range<usize>,
}

/// A context's lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// Sorted by address.
    pub costs: &'a [Cost],
    pub calls: &'a [Call],
    pub jumps: &'a [Jump],
    values: &'a [u64],
}

impl<'a> Lines<'a> {
    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty() && self.calls.is_empty() && self.jumps.is_empty()
    }

    /// The costs that begin at `at`, one per event.
    pub fn values(&self, at: usize, events: usize) -> &'a [u64] {
        self.values.get(at..at.saturating_add(events)).unwrap_or_default()
    }
}

impl Rows {
    /// Records that the following lines belong to the context with this number.
    pub fn begin(&mut self, context: usize) {
        if self.starts.last().is_none_or(|start| start.context != context) {
            let (costs, calls, jumps) = (self.costs.len(), self.calls.len(), self.jumps.len());
            self.starts.push(ContextStart { context, costs, calls, jumps });
        }
    }

    /// Removes all lines, and keeps the memory.
    pub fn clear(&mut self) {
        self.costs.clear();
        self.calls.clear();
        self.jumps.clear();
        self.values.clear();
        self.starts.clear();
    }

    /// The lines of each of `contexts` contexts; sorts the costs of each.
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
            // Lines of another context are in between.
            self.make_contiguous();
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

    /// The spans in the order in which they were read, without empty ones.
    fn spans(&self) -> Vec<(usize, Span)> {
        let end = ContextStart {
            context: 0,
            costs: self.costs.len(),
            calls: self.calls.len(),
            jumps: self.jumps.len(),
        };
        let ends = self.starts.iter().skip(1).chain(std::iter::once(&end));
        let spans = self.starts.iter().zip(ends).map(|(begin, end)| {
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

    /// Makes the lines of each context contiguous.
    fn make_contiguous(&mut self) {
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

    /// Sorts calls and jumps by address.
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

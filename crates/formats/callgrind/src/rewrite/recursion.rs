//! Recursion levels of code that callgrind took for separate functions.

use super::contexts::UnknownContext;
use super::cost::{Call, Callee};

/// The calls between contexts, as far as recursion levels depend on them.
pub(super) struct Recursions {
    /// The lowest level from which a context's own function calls it.
    lowest: Vec<Option<u32>>,
    /// Whether other code calls it.
    is_elsewhere: Vec<bool>,
}

impl Recursions {
    pub fn new(contexts: &[UnknownContext]) -> Self {
        let elsewhere = contexts.iter().map(|context| context.is_called_from_elsewhere);
        Self { lowest: vec![None; contexts.len()], is_elsewhere: elsewhere.collect() }
    }

    /// Records a call from a function in the context `number`.
    pub fn add_call(
        &mut self,
        contexts: &[UnknownContext],
        number: usize,
        function: Option<u32>,
        call: &Call,
    ) {
        let Callee::Unknown(index) = call.callee else { return };
        let Some((context, callee)) = contexts.get(number).zip(contexts.get(index)) else { return };
        if index == number {
            return;
        }
        let callee = callee.owner.as_ref().map(|owner| owner.function);
        if callee.is_some() && callee == function {
            if let Some(lowest) = self.lowest.get_mut(index) {
                let level = context.context.level;
                *lowest = Some(lowest.map_or(level, |lowest| lowest.min(level)));
            }
        } else if let Some(elsewhere) = self.is_elsewhere.get_mut(index) {
            *elsewhere = true;
        }
    }

    /// Sets the recursion level of contexts that are entered in the middle of a function, and only by that function
    /// itself. callgrind takes them for separate functions and starts counting again.
    pub fn assign_levels(self, contexts: &mut [UnknownContext], levels: u32) {
        for ((context, caller), elsewhere) in
            contexts.iter_mut().zip(self.lowest).zip(self.is_elsewhere)
        {
            if let Some(caller) = caller.filter(|_| !elsewhere && !context.begins_function()) {
                context.context.level =
                    context.context.level.max(caller.saturating_add(1)).min(levels);
            }
        }
    }
}

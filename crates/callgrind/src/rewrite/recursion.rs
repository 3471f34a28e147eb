//! Levels of recursion of what callgrind took for functions of their own.

use super::collected::{Call, Callee, Collected};

/// Who is called by whom, as far as levels of recursion go.
pub(super) struct Recursions {
    /// The lowest level from which a context's own function calls it.
    lowest: Vec<Option<u32>>,
    /// Whether somebody else calls it.
    is_elsewhere: Vec<bool>,
}

impl Recursions {
    pub fn new(contexts: &[Collected]) -> Self {
        let elsewhere = contexts.iter().map(|context| context.is_called_from_elsewhere);
        Self { lowest: vec![None; contexts.len()], is_elsewhere: elsewhere.collect() }
    }

    /// A function, in the context `number`, calls.
    pub fn saw(
        &mut self,
        contexts: &[Collected],
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

    /// Gives contexts that are entered in a function's middle, and by nobody but that function itself, their level of
    /// recursion: callgrind, which takes them for functions of their own, begins to count anew.
    pub fn give(self, contexts: &mut [Collected], levels: u32) {
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

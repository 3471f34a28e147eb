//! Levels of recursion of what callgrind took for functions of their own.

use super::collected::{Callee, Collected};
use super::pieces::Piece;

/// Gives contexts that are entered in a function's middle, and by nobody but that function itself, their level of
/// recursion: callgrind, which takes them for functions of their own, begins to count anew.
pub(super) fn recursions(contexts: &mut [Collected], all: &[Vec<Piece>], levels: u32) {
    let mut callers: Vec<Option<u32>> = vec![None; contexts.len()];
    let mut is_elsewhere: Vec<bool> =
        contexts.iter().map(|context| context.is_called_from_elsewhere).collect();
    for (number, (context, pieces)) in contexts.iter().zip(all).enumerate() {
        for piece in pieces {
            let function = piece.owner.as_ref().map(|owner| owner.function);
            for (call, _) in &piece.calls {
                let Callee::Unknown(index) = call.callee else { continue };
                let Some(callee) = contexts.get(index) else { continue };
                if index == number {
                    continue;
                }
                let callee = callee.owner.as_ref().map(|owner| owner.function);
                if callee.is_some() && callee == function {
                    if let Some(lowest) = callers.get_mut(index) {
                        let level = context.context.level;
                        *lowest = Some(lowest.map_or(level, |lowest| lowest.min(level)));
                    }
                } else if let Some(elsewhere) = is_elsewhere.get_mut(index) {
                    *elsewhere = true;
                }
            }
        }
    }
    for ((context, caller), elsewhere) in contexts.iter_mut().zip(callers).zip(is_elsewhere) {
        if let Some(caller) = caller.filter(|_| !elsewhere && !context.begins_function()) {
            context.context.level = context.context.level.max(caller.saturating_add(1)).min(levels);
        }
    }
}

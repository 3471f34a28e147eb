//! DWARF expressions in unwind tables.

use gimli::{Encoding, EvaluationResult, Expression, UnwindExpression, Value};

use crate::tables::{Bytes, Kind, Tables};
use crate::{End, Registers, StackCopy};

/// Expressions of compilers and the C library have fewer steps.
const MOST_STEPS: u32 = 1000;

/// What an expression of the tables computes; `first` is on its stack at the beginning.
pub(crate) fn evaluate(
    tables: &Tables,
    kind: Kind,
    encoding: Encoding,
    expression: &UnwindExpression<usize>,
    first: Option<u64>,
    registers: &Registers,
    stack: StackCopy<'_>,
) -> Result<u64, End> {
    let found: Option<Expression<Bytes<'_>>> = match kind {
        Kind::EhFrame => tables.eh_frame().and_then(|section| expression.get(&section).ok()),
        Kind::DebugFrame => tables.debug_frame().and_then(|section| expression.get(&section).ok()),
    };
    let mut evaluation = found.ok_or(End::Unknown)?.evaluation(encoding);
    evaluation.set_max_iterations(MOST_STEPS);
    if let Some(first) = first {
        evaluation.set_initial_value(first);
    }
    let unknown = |_| End::Unknown;
    let mut result = evaluation.evaluate().map_err(unknown)?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0).ok_or(End::Unknown)?;
                evaluation.resume_with_register(Value::Generic(value)).map_err(unknown)?
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let word = stack.word(address)?;
                let bits = u32::from(size).saturating_mul(8).min(64);
                let kept = u64::MAX.checked_shr(u64::BITS.saturating_sub(bits)).unwrap_or(0);
                evaluation.resume_with_memory(Value::Generic(word & kept)).map_err(unknown)?
            }
            _ => return Err(End::Unknown),
        };
    }
    evaluation.value_result().and_then(|value| value.to_u64(u64::MAX).ok()).ok_or(End::Unknown)
}

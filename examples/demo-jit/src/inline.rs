//! Which calls the optimising tiers compile in place.

use crate::ast::{Expression, ExpressionKind, FunctionId, Position, Program, Statement};

/// A call in whose place its callee was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InlinedCall {
    pub(crate) callee: FunctionId,
    /// The call into whose callee it was inlined.
    pub(crate) parent: Option<u32>,
    /// Where the call stands.
    pub(crate) position: Position,
}

/// How many statements and expressions a callee may have.
const SIZE_MAX: usize = 20;
/// How many functions may be within one another.
const DEPTH_MAX: usize = 4;

/// Whether a call of `callee` is compiled in place, in the innermost of the functions `around`.
pub(crate) fn is_worth_it(program: &Program, callee: FunctionId, around: &[FunctionId]) -> bool {
    around.len() < DEPTH_MAX
        && !around.contains(&callee)
        && statements(&program.function(callee).body) <= SIZE_MAX
}

fn statements(list: &[Statement]) -> usize {
    let size = |statement: &Statement| match statement {
        Statement::Assign(_, _, value)
        | Statement::Return(_, value)
        | Statement::Evaluate(value) => expression(value),
        Statement::If(condition, then, otherwise) => {
            expression(condition) + statements(then) + statements(otherwise)
        }
        Statement::While(condition, body) => expression(condition) + statements(body),
    };
    list.iter().map(|statement| 1 + size(statement)).sum()
}

fn expression(value: &Expression) -> usize {
    1 + match &value.kind {
        ExpressionKind::Number(_) | ExpressionKind::Local(_) => 0,
        ExpressionKind::Unary(_, a) | ExpressionKind::Print(a) | ExpressionKind::Apply(_, a) => {
            expression(a)
        }
        ExpressionKind::Binary(_, a, b) | ExpressionKind::And(a, b) | ExpressionKind::Or(a, b) => {
            expression(a) + expression(b)
        }
        ExpressionKind::Call(_, arguments) => arguments.iter().map(expression).sum(),
    }
}

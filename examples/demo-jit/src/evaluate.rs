//! The language's meaning, by walking the tree: what every tier's code must agree with.

use crate::ast::{Expression, ExpressionKind, FunctionId, Program, Statement};
use crate::native::Printed;

/// Calls a function and returns its value; what it prints is added to `printed`.
///
/// # Panics
/// If the number of arguments is not that of the parameters.
pub fn evaluate(
    program: &Program,
    function: FunctionId,
    arguments: &[i64],
    printed: &mut Printed,
) -> i64 {
    let function = program.function(function);
    assert_eq!(arguments.len(), function.parameters, "arguments of {}", function.name);
    let mut locals = vec![0; function.locals];
    locals[..arguments.len()].copy_from_slice(arguments);
    Frame { program, locals, printed }.block(&function.body).unwrap_or(0)
}

struct Frame<'p, 'o> {
    program: &'p Program,
    locals: Vec<i64>,
    printed: &'o mut Printed,
}

impl Frame<'_, '_> {
    /// Runs the statements; a value means that one of them returned.
    fn block(&mut self, statements: &[Statement]) -> Option<i64> {
        statements.iter().find_map(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Option<i64> {
        match statement {
            Statement::Assign(_, local, value) => {
                self.locals[local.0] = self.expression(value);
                None
            }
            Statement::If(condition, then, otherwise) => {
                let taken = if self.expression(condition) != 0 { then } else { otherwise };
                self.block(taken)
            }
            Statement::While(condition, body) => {
                while self.expression(condition) != 0 {
                    if let Some(value) = self.block(body) {
                        return Some(value);
                    }
                }
                None
            }
            Statement::Return(_, value) => Some(self.expression(value)),
            Statement::Evaluate(value) => {
                self.expression(value);
                None
            }
        }
    }

    fn expression(&mut self, expression: &Expression) -> i64 {
        match &expression.kind {
            ExpressionKind::Number(number) => *number,
            ExpressionKind::Local(local) => self.locals[local.0],
            ExpressionKind::Unary(operator, a) => operator.of(self.expression(a)),
            ExpressionKind::Binary(operator, a, b) => {
                let a = self.expression(a);
                operator.of(a, self.expression(b))
            }
            ExpressionKind::And(a, b) => {
                i64::from(self.expression(a) != 0 && self.expression(b) != 0)
            }
            ExpressionKind::Or(a, b) => {
                i64::from(self.expression(a) != 0 || self.expression(b) != 0)
            }
            ExpressionKind::Call(callee, arguments) => {
                let arguments: Vec<i64> =
                    arguments.iter().map(|argument| self.expression(argument)).collect();
                evaluate(self.program, *callee, &arguments, self.printed)
            }
            ExpressionKind::Print(value) => {
                let value = self.expression(value);
                self.printed.push(value);
                value
            }
            ExpressionKind::Apply(callee, argument) => {
                let argument = self.expression(argument);
                evaluate(self.program, *callee, &[argument], self.printed)
            }
        }
    }
}

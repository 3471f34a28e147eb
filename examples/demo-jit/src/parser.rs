//! Tokens to the syntax tree, by recursive descent; names are resolved on the way.

use std::collections::HashMap;

use crate::ast::{
    BinaryOperator, Expression, ExpressionKind, Function, FunctionId, Local, Position, Program,
    Statement, UnaryOperator,
};
use crate::error::SyntaxError;
use crate::lexer::{self, Token, TokenKind};

/// What fits in registers beside the context pointer.
pub const PARAMETERS_MAX: usize = 5;
/// Deeper nesting is refused, so that hostile text cannot exhaust the stack.
const NESTING_MAX: usize = 200;
const KEYWORDS: [&str; 8] = ["fn", "let", "if", "else", "while", "return", "print", "apply"];

/// Reads a program.
///
/// # Errors
/// The first place where the text is not a program, and why.
pub fn parse(text: &str) -> Result<Program, SyntaxError> {
    let tokens = lexer::tokens(text)?;
    let signatures = signatures(&tokens)?;
    let mut parser = Parser {
        tokens: &tokens,
        next: 0,
        signatures: &signatures,
        scope: Vec::new(),
        locals: 0,
        nesting: 0,
    };
    let mut functions = Vec::new();
    while parser.peek() != TokenKind::End {
        functions.push(parser.function()?);
    }
    Ok(Program { functions })
}

struct Signature {
    id: FunctionId,
    parameters: usize,
}

/// Finds every `fn name(a, b)` beforehand: a call may stand above its callee.
fn signatures<'a>(tokens: &[Token<'a>]) -> Result<HashMap<&'a str, Signature>, SyntaxError> {
    let mut signatures = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        let (TokenKind::Word("fn"), Some(TokenKind::Word(name))) =
            (token.kind, tokens.get(at + 1).map(|name| name.kind))
        else {
            continue;
        };
        let parameters = tokens[at + 2..]
            .iter()
            .take_while(|token| token.kind != TokenKind::Symbol(")"))
            .filter(|token| matches!(token.kind, TokenKind::Word(_)))
            .count();
        let id = FunctionId(signatures.len());
        if signatures.insert(name, Signature { id, parameters }).is_some() {
            return Err(SyntaxError::new(
                tokens[at + 1].position,
                format!("the function {name} stands here a second time"),
            ));
        }
    }
    Ok(signatures)
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    next: usize,
    signatures: &'t HashMap<&'a str, Signature>,
    /// What is in scope, innermost last.
    scope: Vec<(&'a str, Local)>,
    locals: usize,
    nesting: usize,
}

/// From the loosest to the tightest.
const PRECEDENCE: [&[(&str, BinaryOperator)]; 7] = [
    &[("==", BinaryOperator::Equal), ("!=", BinaryOperator::NotEqual)],
    &[
        ("<", BinaryOperator::Less),
        ("<=", BinaryOperator::LessOrEqual),
        (">", BinaryOperator::Greater),
        (">=", BinaryOperator::GreaterOrEqual),
    ],
    &[("|", BinaryOperator::BitOr)],
    &[("^", BinaryOperator::BitXor)],
    &[("&", BinaryOperator::BitAnd)],
    &[("<<", BinaryOperator::ShiftLeft), (">>", BinaryOperator::ShiftRight)],
    &[("+", BinaryOperator::Add), ("-", BinaryOperator::Subtract)],
];
const TIGHTEST: [(&str, BinaryOperator); 3] = [
    ("*", BinaryOperator::Multiply),
    ("/", BinaryOperator::Divide),
    ("%", BinaryOperator::Remainder),
];

impl<'a> Parser<'_, 'a> {
    fn peek(&self) -> TokenKind<'a> {
        self.tokens[self.next].kind
    }

    fn position(&self) -> Position {
        self.tokens[self.next].position
    }

    /// Steps over the token; [`TokenKind::End`] stays the last.
    fn step(&mut self) -> Position {
        let position = self.position();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        position
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let taken = matches!(self.peek(), TokenKind::Symbol(found) if found == symbol);
        if taken {
            self.step();
        }
        taken
    }

    fn expect(&mut self, symbol: &'static str) -> Result<Position, SyntaxError> {
        let position = self.position();
        if self.takes(symbol) { Ok(position) } else { Err(self.unexpected(symbol)) }
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let found = match self.peek() {
            TokenKind::Word(word) => word.to_owned(),
            TokenKind::Number(number) => number.to_string(),
            TokenKind::Symbol(symbol) => symbol.to_owned(),
            TokenKind::End => "the end".to_owned(),
        };
        SyntaxError::new(self.position(), format!("expected {expected}, found {found}"))
    }

    fn name(&mut self) -> Result<&'a str, SyntaxError> {
        match self.peek() {
            TokenKind::Word(name) if !KEYWORDS.contains(&name) => {
                self.step();
                Ok(name)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    fn declare(&mut self, name: &'a str) -> Local {
        let local = Local(self.locals);
        self.locals += 1;
        self.scope.push((name, local));
        local
    }

    fn local(&self, name: &str, position: Position) -> Result<Local, SyntaxError> {
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        found
            .map(|(_, local)| *local)
            .ok_or_else(|| SyntaxError::new(position, format!("no variable is called {name}")))
    }

    fn function(&mut self) -> Result<Function, SyntaxError> {
        if self.peek() != TokenKind::Word("fn") {
            return Err(self.unexpected("fn"));
        }
        self.step();
        let position = self.position();
        let name = self.name()?;
        self.scope.clear();
        self.locals = 0;
        self.expect("(")?;
        while !self.takes(")") {
            if self.locals > 0 {
                self.expect(",")?;
            }
            if self.locals == PARAMETERS_MAX {
                return Err(SyntaxError::new(
                    self.position(),
                    format!("a function has at most {PARAMETERS_MAX} parameters"),
                ));
            }
            let parameter = self.name()?;
            self.declare(parameter);
        }
        let parameters = self.locals;
        let (body, end) = self.block()?;
        Ok(Function { name: name.to_owned(), position, end, parameters, locals: self.locals, body })
    }

    /// A block and where its closing brace stands.
    fn block(&mut self) -> Result<(Vec<Statement>, Position), SyntaxError> {
        self.enter()?;
        self.expect("{")?;
        let outer = self.scope.len();
        let mut statements = Vec::new();
        while self.peek() != TokenKind::Symbol("}") {
            statements.push(self.statement()?);
        }
        self.scope.truncate(outer);
        self.nesting -= 1;
        Ok((statements, self.step()))
    }

    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(SyntaxError::new(self.position(), "nested too deeply".to_owned()));
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<Statement, SyntaxError> {
        let position = self.position();
        let statement = match self.peek() {
            TokenKind::Word("if") => return self.conditional(),
            TokenKind::Word("while") => {
                self.step();
                let condition = self.expression()?;
                return Ok(Statement::While(condition, self.block()?.0));
            }
            TokenKind::Word("return") => {
                self.step();
                Statement::Return(position, self.expression()?)
            }
            TokenKind::Word("let") => {
                self.step();
                let name = self.name()?;
                self.expect("=")?;
                let value = self.expression()?;
                Statement::Assign(position, self.declare(name), value)
            }
            TokenKind::Word(name) if self.assigns() => {
                let local = self.local(name, position)?;
                self.step();
                self.expect("=")?;
                Statement::Assign(position, local, self.expression()?)
            }
            _ => Statement::Evaluate(self.expression()?),
        };
        self.expect(";")?;
        Ok(statement)
    }

    fn assigns(&self) -> bool {
        self.tokens.get(self.next + 1).map(|token| token.kind) == Some(TokenKind::Symbol("="))
    }

    fn conditional(&mut self) -> Result<Statement, SyntaxError> {
        self.step();
        let condition = self.expression()?;
        let then = self.block()?.0;
        let mut otherwise = Vec::new();
        if self.peek() == TokenKind::Word("else") {
            self.step();
            otherwise = if self.peek() == TokenKind::Word("if") {
                self.enter()?;
                let nested = self.conditional()?;
                self.nesting -= 1;
                vec![nested]
            } else {
                self.block()?.0
            };
        }
        Ok(Statement::If(condition, then, otherwise))
    }

    fn expression(&mut self) -> Result<Expression, SyntaxError> {
        self.enter()?;
        let mut left = self.conjunction()?;
        while self.peek() == TokenKind::Symbol("||") {
            let position = self.step();
            let right = self.conjunction()?;
            left =
                Expression { position, kind: ExpressionKind::Or(Box::new(left), Box::new(right)) };
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expression, SyntaxError> {
        let mut left = self.binary(0)?;
        while self.peek() == TokenKind::Symbol("&&") {
            let position = self.step();
            let right = self.binary(0)?;
            left =
                Expression { position, kind: ExpressionKind::And(Box::new(left), Box::new(right)) };
        }
        Ok(left)
    }

    fn binary(&mut self, level: usize) -> Result<Expression, SyntaxError> {
        let Some(operators) = PRECEDENCE.get(level) else {
            return self.chain(&TIGHTEST, Self::unary);
        };
        self.chain(operators, |parser| parser.binary(level + 1))
    }

    fn chain(
        &mut self,
        operators: &[(&str, BinaryOperator)],
        operand: impl Fn(&mut Self) -> Result<Expression, SyntaxError>,
    ) -> Result<Expression, SyntaxError> {
        let mut left = operand(self)?;
        while let TokenKind::Symbol(symbol) = self.peek() {
            let Some((_, operator)) = operators.iter().find(|(known, _)| *known == symbol) else {
                break;
            };
            let position = self.step();
            let right = operand(self)?;
            let kind = ExpressionKind::Binary(*operator, Box::new(left), Box::new(right));
            left = Expression { position, kind };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, SyntaxError> {
        let operator = match self.peek() {
            TokenKind::Symbol("-") => UnaryOperator::Negate,
            TokenKind::Symbol("!") => UnaryOperator::Not,
            _ => return self.primary(),
        };
        self.enter()?;
        let position = self.step();
        let operand = self.unary()?;
        self.nesting -= 1;
        Ok(Expression { position, kind: ExpressionKind::Unary(operator, Box::new(operand)) })
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        let position = self.position();
        let kind = match self.peek() {
            TokenKind::Number(number) => {
                self.step();
                ExpressionKind::Number(number)
            }
            TokenKind::Symbol("(") => {
                self.step();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            TokenKind::Word("print") => {
                self.step();
                self.expect("(")?;
                let value = self.expression()?;
                self.expect(")")?;
                ExpressionKind::Print(Box::new(value))
            }
            TokenKind::Word("apply") => {
                self.step();
                self.apply()?
            }
            _ => {
                let name = self.name()?;
                if self.peek() == TokenKind::Symbol("(") {
                    self.call(name, position)?
                } else {
                    ExpressionKind::Local(self.local(name, position)?)
                }
            }
        };
        Ok(Expression { position, kind })
    }

    fn callee(
        &self,
        name: &str,
        arguments: usize,
        position: Position,
    ) -> Result<FunctionId, SyntaxError> {
        let signature = self
            .signatures
            .get(name)
            .ok_or_else(|| SyntaxError::new(position, format!("no function is called {name}")))?;
        if signature.parameters != arguments {
            let parameters = signature.parameters;
            return Err(SyntaxError::new(
                position,
                format!("{name} takes {parameters} arguments, not {arguments}"),
            ));
        }
        Ok(signature.id)
    }

    fn apply(&mut self) -> Result<ExpressionKind, SyntaxError> {
        self.expect("(")?;
        let position = self.position();
        let name = self.name()?;
        let callee = self.callee(name, 1, position)?;
        self.expect(",")?;
        let argument = self.expression()?;
        self.expect(")")?;
        Ok(ExpressionKind::Apply(callee, Box::new(argument)))
    }

    fn call(&mut self, name: &str, position: Position) -> Result<ExpressionKind, SyntaxError> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.expression()?);
        }
        let callee = self.callee(name, arguments.len(), position)?;
        Ok(ExpressionKind::Call(callee, arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_bind_as_in_rust() {
        let program = parse("fn f(a) { return a + 2 * 3 == 7 && a < 1 << 2; }").unwrap();
        let Statement::Return(_, value) = &program.functions[0].body[0] else { panic!() };
        let ExpressionKind::And(left, right) = &value.kind else { panic!("{value:?}") };
        assert!(matches!(left.kind, ExpressionKind::Binary(BinaryOperator::Equal, ..)));
        assert!(matches!(right.kind, ExpressionKind::Binary(BinaryOperator::Less, ..)));
        assert_eq!(value.position, Position { line: 1, column: 33 });
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, expected) in [
            ("fn f() {\n return x; }", "2:9: no variable is called x"),
            ("fn f() { return g(); }", "1:17: no function is called g"),
            ("fn f(a) { return f(); }", "1:18: f takes 1 arguments, not 0"),
            ("fn f() { return 1 }", "1:19: expected ;, found }"),
            ("fn f() {", "2:1: expected a name, found the end"),
            ("fn f() {} fn f() {}", "1:14: the function f stands here a second time"),
            ("fn f(a, b, c, d, e, g) {}", "1:21: a function has at most 5 parameters"),
            ("fn f() { { let a = 1; } }", "1:10: expected a name, found {"),
            ("let", "1:1: expected fn, found let"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        for deep in ["(", "-", "if 1 {", "f("] {
            let text = format!("fn f(a) {{ {} }}", deep.repeat(100_000));
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.ends_with("nested too deeply"), "{error}");
        }
    }

    #[test]
    fn a_variable_ends_with_its_block() {
        let error = parse("fn f() { if 1 { let a = 1; } return a; }").unwrap_err();
        assert_eq!(error.to_string(), "1:37: no variable is called a");
    }
}

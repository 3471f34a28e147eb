//! The syntax tree. Names are resolved already: a local is a slot number, a call names a function.

use std::fmt;

/// A place in the source text; both numbers count from 1, as in DWARF. Columns count bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The byte within the line.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A function's index in [`Program::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub usize);

/// A parameter or variable of one function; the parameters come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Local(pub usize);

/// A whole source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The functions in the order of the text.
    pub functions: Vec<Function>,
}

impl Program {
    /// Finds a function by name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<FunctionId> {
        self.functions.iter().position(|function| function.name == name).map(FunctionId)
    }

    /// The function with this index.
    ///
    /// # Panics
    /// If the index comes from another program.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0]
    }
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, unique in the program.
    pub name: String,
    /// Where its name stands.
    pub position: Position,
    /// Where its closing brace stands.
    pub end: Position,
    /// How many of the locals are parameters.
    pub parameters: usize,
    /// How many locals there are, parameters included.
    pub locals: usize,
    /// What it does. Falling off the end returns 0.
    pub body: Vec<Statement>,
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `let x = value;` and `x = value;`
    Assign(Position, Local, Expression),
    /// `if condition { … } else { … }`
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// `while condition { … }`
    While(Expression, Vec<Statement>),
    /// `return value;`
    Return(Position, Expression),
    /// An expression whose value is dropped.
    Evaluate(Expression),
}

/// One expression; every value is an `i64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// Where its operator, name or number stands.
    pub position: Position,
    /// What it computes.
    pub kind: ExpressionKind,
}

/// What an expression computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpressionKind {
    /// A constant.
    Number(i64),
    /// A local's value.
    Local(Local),
    /// `-a`, `!a`
    Unary(UnaryOperator, Box<Expression>),
    /// `a + b` and the like; both sides are evaluated, left first.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// `a && b`: 0 or 1; `b` is evaluated only where `a` is not 0.
    And(Box<Expression>, Box<Expression>),
    /// `a || b`: 0 or 1; `b` is evaluated only where `a` is 0.
    Or(Box<Expression>, Box<Expression>),
    /// `f(a, …)`
    Call(FunctionId, Vec<Expression>),
    /// `print(a)`: hands the value to the host and returns it.
    Print(Box<Expression>),
    /// `apply(f, a)`: the host calls `f(a)`, so that the stack goes through native code.
    Apply(FunctionId, Box<Expression>),
}

/// An operator with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-a`, wrapping.
    Negate,
    /// `!a`: 1 for 0, else 0.
    Not,
}

impl UnaryOperator {
    /// The operator's meaning.
    #[must_use]
    pub fn of(self, a: i64) -> i64 {
        match self {
            Self::Negate => a.wrapping_neg(),
            Self::Not => i64::from(a == 0),
        }
    }
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`, wrapping.
    Add,
    /// `-`, wrapping.
    Subtract,
    /// `*`, wrapping.
    Multiply,
    /// `/`, towards zero; 0 where the divisor is 0; wrapping for the one overflow.
    Divide,
    /// `%`, with the dividend's sign; 0 where the divisor is 0.
    Remainder,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`, by the count modulo 64.
    ShiftLeft,
    /// `>>`, arithmetic, by the count modulo 64.
    ShiftRight,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl BinaryOperator {
    /// The operator's meaning; comparisons give 0 or 1.
    #[must_use]
    pub fn of(self, a: i64, b: i64) -> i64 {
        // The low six bits alone count, as on the machine.
        let count = (b & 63) as u32;
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Subtract => a.wrapping_sub(b),
            Self::Multiply => a.wrapping_mul(b),
            Self::Divide if b == 0 => 0,
            Self::Divide => a.wrapping_div(b),
            Self::Remainder if b == 0 => 0,
            Self::Remainder => a.wrapping_rem(b),
            Self::BitAnd => a & b,
            Self::BitOr => a | b,
            Self::BitXor => a ^ b,
            Self::ShiftLeft => a << count,
            Self::ShiftRight => a >> count,
            Self::Equal => i64::from(a == b),
            Self::NotEqual => i64::from(a != b),
            Self::Less => i64::from(a < b),
            Self::LessOrEqual => i64::from(a <= b),
            Self::Greater => i64::from(a > b),
            Self::GreaterOrEqual => i64::from(a >= b),
        }
    }
}

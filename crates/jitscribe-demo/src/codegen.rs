//! The syntax tree to machine code, by Cranelift.
//!
//! The code is position-independent without relocations: every function takes the address of a
//! table of pointers (see [`crate::native`]) as a hidden first argument and calls through it, so
//! that a function may be replaced, moved or freed without touching its callers.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, Function as Ir, InstBuilder, MemFlagsData, SigRef, Signature,
    SourceLoc, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use serde::{Deserialize, Serialize};

use crate::ast::{
    BinaryOperator, Expression, ExpressionKind, Function, FunctionId, Local, Position, Program,
    Statement, UnaryOperator,
};
use crate::error::Error;
use crate::frame::{self, FrameKind};
use crate::native::{TABLE_APPLY, TABLE_FUNCTIONS, TABLE_PRINT};
use crate::parser::PARAMETERS_MAX;
use crate::unwind::{self, EhFrame};

/// How hard the compiler tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Quick to compile: no optimisation, one pass of register allocation.
    Baseline,
    /// Optimised for speed.
    Speed,
    /// Optimised for speed and size.
    Compact,
}

impl Tier {
    /// All of them, in the order of effort.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Speed, Self::Compact];

    /// The tier's name, which prefixes the symbols of its code: `speed::fib`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Speed => "speed",
            Self::Compact => "compact",
        }
    }
}

/// From `offset` on, the code belongs to `position`, up to the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) offset: u32,
    pub(crate) position: Position,
}

/// A function's machine code and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) bytes: Vec<u8>,
    /// By offset; the first is at 0, neighbours differ in position.
    pub(crate) rows: Vec<Row>,
    pub(crate) unwind: EhFrame,
}

/// Compiles functions at every tier.
pub(crate) struct Compiler {
    tiers: Vec<OwnedTargetIsa>,
    frames: FrameKind,
    builder: FunctionBuilderContext,
}

impl Compiler {
    pub(crate) fn new(frames: FrameKind) -> Result<Self, Error> {
        let tiers = Tier::ALL.iter().map(|tier| target(*tier, frames)).collect::<Result<_, _>>()?;
        Ok(Self { tiers, frames, builder: FunctionBuilderContext::new() })
    }

    pub(crate) fn compile(
        &mut self,
        program: &Program,
        id: FunctionId,
        tier: Tier,
    ) -> Result<Compiled, Error> {
        let function = program.function(id);
        let failed = |cause: String| Error::Compile { what: function.name.clone(), cause };
        let isa = &self.tiers[tier as usize];
        let mut ir =
            Ir::with_name_signature(UserFuncName::default(), signature(function.parameters));
        let target = isa.frontend_config();
        let positions = Lowering::lower(&mut ir, &mut self.builder, function, target);
        let mut context = Context::for_function(ir);
        let code = context
            .compile(isa.as_ref(), &mut ControlPlane::default())
            .map_err(|error| failed(format!("{error:?}")))?;
        if !code.buffer.relocs().is_empty() {
            return Err(failed("its code needs relocations".to_owned()));
        }
        let exit = SourceLoc::new(positions.len() as u32 - 1);
        let frame = frame::apply(isa.as_ref(), code, exit, self.frames)
            .map_err(|what| Error::Frame { function: function.name.clone(), what })?;
        let unwind = unwind::eh_frame(frame.bytes.len(), &frame.rows)
            .map_err(|error| failed(error.to_string()))?;
        let ranges = code.buffer.get_srclocs_sorted().iter();
        let rows = rows(function.position, ranges.map(|range| (range.start, range.loc)), positions);
        Ok(Compiled { bytes: frame.bytes, rows, unwind })
    }
}

/// The compiler's source ranges as a table; the prologue belongs to the function's name.
fn rows(
    start: Position,
    ranges: impl Iterator<Item = (u32, SourceLoc)>,
    positions: Vec<Position>,
) -> Vec<Row> {
    let mut rows = vec![Row { offset: 0, position: start }];
    for (offset, place) in ranges {
        let Some(&position) = positions.get(place.bits() as usize) else { continue };
        match rows.last_mut() {
            Some(last) if last.position == position => {}
            Some(last) if last.offset == offset => last.position = position,
            _ => rows.push(Row { offset, position }),
        }
    }
    rows.dedup_by_key(|row| row.position);
    rows
}

fn target(tier: Tier, frames: FrameKind) -> Result<OwnedTargetIsa, Error> {
    let failed = |cause: String| Error::Compile { what: "for this machine".to_owned(), cause };
    let optimise = match tier {
        Tier::Baseline => [("opt_level", "none"), ("regalloc_algorithm", "single_pass")],
        Tier::Speed => [("opt_level", "speed"), ("regalloc_algorithm", "backtracking")],
        Tier::Compact => [("opt_level", "speed_and_size"), ("regalloc_algorithm", "backtracking")],
    };
    let keep = if frames == FrameKind::Pointer { "true" } else { "false" };
    let mut flags = settings::builder();
    for (name, value) in optimise.into_iter().chain([("preserve_frame_pointers", keep)]) {
        flags.set(name, value).map_err(|error| failed(error.to_string()))?;
    }
    cranelift_native::builder()
        .map_err(|cause| failed(cause.to_owned()))?
        .finish(settings::Flags::new(flags))
        .map_err(|error| failed(error.to_string()))
}

/// The table's address, then the language's parameters; all are 64 bits wide.
fn signature(parameters: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params = vec![AbiParam::new(types::I64); parameters + 1];
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// One function on its way to Cranelift's IR.
struct Lowering<'b> {
    builder: FunctionBuilder<'b>,
    table: Value,
    locals: Vec<Variable>,
    /// Imported signatures by number of parameters.
    signatures: [Option<SigRef>; PARAMETERS_MAX + 1],
    /// The only block that returns.
    exit: Block,
    /// What the numbers in the source locations stand for.
    positions: Vec<Position>,
}

impl<'b> Lowering<'b> {
    fn lower(
        ir: &'b mut Ir,
        context: &'b mut FunctionBuilderContext,
        function: &Function,
        target: TargetFrontendConfig,
    ) -> Vec<Position> {
        let mut builder = FunctionBuilder::new(ir, context);
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        let exit = builder.create_block();
        let result = builder.append_block_param(exit, types::I64);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let locals = (0..function.locals).map(|_| builder.declare_var(types::I64)).collect();
        let table = builder.block_params(entry)[0];
        let mut lowering = Self {
            builder,
            table,
            locals,
            signatures: [None; PARAMETERS_MAX + 1],
            exit,
            positions: Vec::new(),
        };
        lowering.at(function.position);
        for parameter in 0..function.parameters {
            let value = lowering.builder.block_params(entry)[parameter + 1];
            lowering.builder.def_var(lowering.locals[parameter], value);
        }
        lowering.block(&function.body);
        lowering.at(function.end);
        let zero = lowering.builder.ins().iconst(types::I64, 0);
        lowering.builder.ins().jump(exit, &[BlockArg::Value(zero)]);
        lowering.builder.switch_to_block(exit);
        lowering.builder.seal_block(exit);
        // A number of its own, though the position is known: the epilogue is found by it.
        lowering.positions.push(function.end);
        lowering.at(function.end);
        lowering.builder.ins().return_(&[result]);
        let positions = lowering.positions;
        lowering.builder.finalize(target);
        positions
    }

    /// What is emitted next belongs to this place.
    fn at(&mut self, position: Position) {
        if self.positions.last() != Some(&position) {
            self.positions.push(position);
        }
        let number = self.positions.len() as u32 - 1;
        self.builder.set_srcloc(SourceLoc::new(number));
    }

    fn variable(&self, local: Local) -> Variable {
        self.locals[local.0]
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Assign(position, local, value) => {
                let value = self.expression(value);
                self.at(*position);
                self.builder.def_var(self.variable(*local), value);
            }
            Statement::Evaluate(value) => {
                self.expression(value);
            }
            Statement::Return(position, value) => {
                let value = self.expression(value);
                self.at(*position);
                self.builder.ins().jump(self.exit, &[BlockArg::Value(value)]);
                // What follows a return is never reached, but must go somewhere.
                let unreached = self.builder.create_block();
                self.builder.switch_to_block(unreached);
                self.builder.seal_block(unreached);
            }
            Statement::If(condition, then, otherwise) => self.conditional(
                condition,
                |lowering| lowering.block(then),
                |lowering| lowering.block(otherwise),
            ),
            Statement::While(condition, body) => self.repeat(condition, body),
        }
    }

    fn conditional(
        &mut self,
        condition: &Expression,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let [yes, no, after] = std::array::from_fn(|_| self.builder.create_block());
        let value = self.expression(condition);
        self.at(condition.position);
        self.builder.ins().brif(value, yes, &[], no, &[]);
        self.builder.switch_to_block(yes);
        self.builder.seal_block(yes);
        then(self);
        self.builder.ins().jump(after, &[]);
        self.builder.switch_to_block(no);
        self.builder.seal_block(no);
        otherwise(self);
        self.builder.ins().jump(after, &[]);
        self.builder.switch_to_block(after);
        self.builder.seal_block(after);
    }

    fn repeat(&mut self, condition: &Expression, body: &[Statement]) {
        let [head, inside, after] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let value = self.expression(condition);
        self.at(condition.position);
        self.builder.ins().brif(value, inside, &[], after, &[]);
        self.builder.switch_to_block(inside);
        self.builder.seal_block(inside);
        self.block(body);
        self.builder.ins().jump(head, &[]);
        self.builder.seal_block(head);
        self.builder.switch_to_block(after);
        self.builder.seal_block(after);
    }

    fn expression(&mut self, expression: &Expression) -> Value {
        let position = expression.position;
        match &expression.kind {
            ExpressionKind::Number(number) => {
                self.at(position);
                self.builder.ins().iconst(types::I64, *number)
            }
            ExpressionKind::Local(local) => self.builder.use_var(self.variable(*local)),
            ExpressionKind::Unary(operator, a) => {
                let a = self.expression(a);
                self.at(position);
                match operator {
                    UnaryOperator::Negate => self.builder.ins().ineg(a),
                    UnaryOperator::Not => self.compare_with(IntCC::Equal, a, 0),
                }
            }
            ExpressionKind::Binary(operator, a, b) => {
                let a = self.expression(a);
                let b = self.expression(b);
                self.at(position);
                self.binary(*operator, a, b)
            }
            ExpressionKind::And(a, b) => self.short_circuit(position, a, b, false),
            ExpressionKind::Or(a, b) => self.short_circuit(position, a, b, true),
            ExpressionKind::Call(callee, arguments) => {
                let arguments: Vec<Value> =
                    arguments.iter().map(|argument| self.expression(argument)).collect();
                self.at(position);
                self.call(TABLE_FUNCTIONS + callee.0, &arguments)
            }
            ExpressionKind::Print(value) => {
                let value = self.expression(value);
                self.at(position);
                self.call(TABLE_PRINT, &[value])
            }
            ExpressionKind::Apply(callee, argument) => {
                let argument = self.expression(argument);
                self.at(position);
                let callee = self.builder.ins().iconst(types::I64, callee.0 as i64);
                self.call(TABLE_APPLY, &[callee, argument])
            }
        }
    }

    /// Calls what the table names.
    fn call(&mut self, entry: usize, arguments: &[Value]) -> Value {
        let builder = &mut self.builder;
        let signature = *self.signatures[arguments.len()]
            .get_or_insert_with(|| builder.import_signature(signature(arguments.len())));
        let flags = MemFlagsData::trusted();
        let callee = builder.ins().load(types::I64, flags, self.table, entry as i32 * 8);
        let arguments: Vec<Value> =
            std::iter::once(self.table).chain(arguments.iter().copied()).collect();
        let call = builder.ins().call_indirect(signature, callee, &arguments);
        builder.inst_results(call)[0]
    }

    fn short_circuit(
        &mut self,
        position: Position,
        a: &Expression,
        b: &Expression,
        or: bool,
    ) -> Value {
        let result = self.builder.declare_var(types::I64);
        let a_or_b = |lowering: &mut Self| {
            let b = lowering.expression(b);
            lowering.at(position);
            let truth = lowering.compare_with(IntCC::NotEqual, b, 0);
            lowering.builder.def_var(result, truth);
        };
        let decided = |lowering: &mut Self| {
            lowering.at(position);
            let truth = lowering.builder.ins().iconst(types::I64, i64::from(or));
            lowering.builder.def_var(result, truth);
        };
        if or {
            self.conditional(a, decided, a_or_b);
        } else {
            self.conditional(a, a_or_b, decided);
        }
        self.builder.use_var(result)
    }

    fn compare(&mut self, condition: IntCC, a: Value, b: Value) -> Value {
        let truth = self.builder.ins().icmp(condition, a, b);
        self.builder.ins().uextend(types::I64, truth)
    }

    fn compare_with(&mut self, condition: IntCC, a: Value, b: i64) -> Value {
        let b = self.builder.ins().iconst(types::I64, b);
        self.compare(condition, a, b)
    }

    fn binary(&mut self, operator: BinaryOperator, a: Value, b: Value) -> Value {
        let condition = match operator {
            BinaryOperator::Add => return self.builder.ins().iadd(a, b),
            BinaryOperator::Subtract => return self.builder.ins().isub(a, b),
            BinaryOperator::Multiply => return self.builder.ins().imul(a, b),
            BinaryOperator::Divide => return self.divide(a, b),
            BinaryOperator::Remainder => {
                // What 0 and -1 leave is 0, as 1 does.
                let divisor = self.harmless(b);
                return self.builder.ins().srem(a, divisor);
            }
            BinaryOperator::BitAnd => return self.builder.ins().band(a, b),
            BinaryOperator::BitOr => return self.builder.ins().bor(a, b),
            BinaryOperator::BitXor => return self.builder.ins().bxor(a, b),
            BinaryOperator::ShiftLeft => return self.builder.ins().ishl(a, b),
            BinaryOperator::ShiftRight => return self.builder.ins().sshr(a, b),
            BinaryOperator::Equal => IntCC::Equal,
            BinaryOperator::NotEqual => IntCC::NotEqual,
            BinaryOperator::Less => IntCC::SignedLessThan,
            BinaryOperator::LessOrEqual => IntCC::SignedLessThanOrEqual,
            BinaryOperator::Greater => IntCC::SignedGreaterThan,
            BinaryOperator::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
        };
        self.compare(condition, a, b)
    }

    /// The divisor, or 1 where the machine would trap on it: 0, and -1 under the least number.
    fn harmless(&mut self, b: Value) -> Value {
        let one = self.builder.ins().iconst(types::I64, 1);
        let two = self.builder.ins().iconst(types::I64, 2);
        let above = self.builder.ins().iadd(b, one);
        let traps = self.builder.ins().icmp(IntCC::UnsignedLessThan, above, two);
        self.builder.ins().select(traps, one, b)
    }

    fn divide(&mut self, a: Value, b: Value) -> Value {
        let divisor = self.harmless(b);
        let quotient = self.builder.ins().sdiv(a, divisor);
        // Times b undoes the stand-in: a / 1 becomes a * 0 or a * -1.
        let same = self.builder.ins().icmp(IntCC::Equal, divisor, b);
        let mended = self.builder.ins().imul(a, b);
        self.builder.ins().select(same, quotient, mended)
    }
}

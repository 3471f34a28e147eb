//! The syntax tree to machine code, by Cranelift.
//!
//! The code is position-independent without relocations: every function takes the address of a
//! table of pointers (see [`crate::native`]) as a hidden first argument and calls through it, so
//! that a function may be replaced, moved or freed without touching its callers.

use std::mem;

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, Function as Ir, InstBuilder, MemFlagsData, SigRef, Signature,
    SourceLoc, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetFrontendConfig};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, Final, MachSrcLoc};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use jitscribe_cranelift::{Announcement, Listing};
use serde::{Deserialize, Serialize};

use crate::ast::{
    BinaryOperator, Expression, ExpressionKind, Function, FunctionId, Local, Position, Program,
    Statement, UnaryOperator,
};
use crate::error::Error;
use crate::frame::{self, FrameKind, FrameRow};
use crate::inline::{self, InlinedCall};
use crate::native::{TABLE_APPLY, TABLE_FUNCTIONS, TABLE_PRINT};
use crate::parser::PARAMETERS_MAX;
use crate::unwind::{self, EhFrame};

/// How hard the compiler tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Quick to compile: no optimisation, one pass of register allocation.
    Baseline,
    /// Optimised for speed, with small callees inlined.
    Speed,
    /// Optimised for speed and size, with small callees inlined.
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

/// What a source location stands for: a position, and the inlined call whose callee it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    /// Its number in [`Compiled::calls`].
    pub(crate) call: Option<u32>,
}

/// From `offset` on, the code belongs to `place`, up to the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) offset: u32,
    pub(crate) place: Place,
}

/// A function's machine code and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) bytes: Vec<u8>,
    /// By offset; the first is at 0, neighbours differ in place.
    pub(crate) rows: Vec<Row>,
    /// The frame's states, and the same as tables.
    pub(crate) frame: Vec<FrameRow>,
    pub(crate) unwind: EhFrame,
    /// What Cranelift says of it.
    pub(crate) announcement: Announcement<'static>,
    pub(crate) listing: Listing,
    /// What the numbers in its source locations stand for.
    pub(crate) places: Vec<Place>,
    /// The calls that were inlined, a caller before what was inlined into it.
    pub(crate) calls: Vec<InlinedCall>,
}

impl Compiled {
    /// What a source location stands for.
    pub(crate) fn place(&self, loc: SourceLoc) -> Option<Place> {
        self.places.get(loc.bits() as usize).copied()
    }
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
        let lowered = Lowering::lower(&mut ir, &mut self.builder, program, id, tier, target);
        let Lowered { places, calls } = lowered;
        let listing = Listing::number(&mut ir);
        let mut context = Context::for_function(ir);
        let code = context
            .compile(isa.as_ref(), &mut ControlPlane::default())
            .map_err(|error| failed(format!("{error:?}")))?;
        if !code.buffer.relocs().is_empty() {
            return Err(failed("its code needs relocations".to_owned()));
        }
        let exit = SourceLoc::new(places.len() as u32 - 1);
        let is_exit = |loc| listing.source(loc) == exit;
        let frame = frame::apply(isa.as_ref(), code, is_exit, self.frames)
            .map_err(|what| Error::Frame { function: function.name.clone(), what })?;
        let unwind = unwind::eh_frame(frame.bytes.len(), &frame.rows)
            .map_err(|error| failed(error.to_string()))?;
        let announcement = Announcement::listed(isa.as_ref(), code, &listing);
        let mut compiled = Compiled {
            bytes: frame.bytes,
            rows: Vec::new(),
            frame: frame.rows,
            unwind,
            announcement,
            listing,
            places,
            calls,
        };
        let ranges = code.buffer.get_srclocs_sorted().iter();
        let source = |range: &MachSrcLoc<Final>| compiled.listing.source(range.loc);
        let known = ranges.filter_map(|range| Some((range.start, compiled.place(source(range))?)));
        compiled.rows = rows(Place { position: function.position, call: None }, known);
        Ok(compiled)
    }
}

/// The compiler's source ranges as a table; the prologue belongs to the function's name.
fn rows(start: Place, ranges: impl Iterator<Item = (u32, Place)>) -> Vec<Row> {
    let mut rows = vec![Row { offset: 0, place: start }];
    for (offset, place) in ranges {
        match rows.last_mut() {
            Some(last) if last.place == place => {}
            Some(last) if last.offset == offset => last.place = place,
            _ => rows.push(Row { offset, place }),
        }
    }
    rows.dedup_by_key(|row| row.place);
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

/// One function on its way to Cranelift's IR, with what is inlined into it.
struct Lowering<'b> {
    builder: FunctionBuilder<'b>,
    program: &'b Program,
    inlines: bool,
    table: Value,
    /// Imported signatures by number of parameters.
    signatures: [Option<SigRef>; PARAMETERS_MAX + 1],
    /// The function whose body is being lowered.
    body: Body,
    /// The functions around, from the outermost to this one.
    around: Vec<FunctionId>,
    /// What the numbers in the source locations stand for.
    places: Vec<Place>,
    calls: Vec<InlinedCall>,
}

/// A function's body: the one that is compiled, or one that stands in place of a call.
struct Body {
    locals: Vec<Variable>,
    /// Where its `return` leads.
    exit: Block,
    /// The call in whose place it stands.
    call: Option<u32>,
}

impl Body {
    /// With the value that it returns.
    fn new(
        builder: &mut FunctionBuilder<'_>,
        function: &Function,
        call: Option<u32>,
    ) -> (Self, Value) {
        let locals = (0..function.locals).map(|_| builder.declare_var(types::I64)).collect();
        let exit = builder.create_block();
        let result = builder.append_block_param(exit, types::I64);
        (Self { locals, exit, call }, result)
    }
}

/// What lowering leaves besides the IR.
struct Lowered {
    places: Vec<Place>,
    calls: Vec<InlinedCall>,
}

impl<'b> Lowering<'b> {
    fn lower(
        ir: &'b mut Ir,
        context: &'b mut FunctionBuilderContext,
        program: &'b Program,
        id: FunctionId,
        tier: Tier,
        target: TargetFrontendConfig,
    ) -> Lowered {
        let function = program.function(id);
        let mut builder = FunctionBuilder::new(ir, context);
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let table = builder.block_params(entry)[0];
        let arguments = builder.block_params(entry)[1..].to_vec();
        let (body, result) = Body::new(&mut builder, function, None);
        let mut lowering = Self {
            builder,
            program,
            inlines: tier != Tier::Baseline,
            table,
            signatures: [None; PARAMETERS_MAX + 1],
            body,
            around: vec![id],
            places: Vec::new(),
            calls: Vec::new(),
        };
        lowering.body(function, &arguments);
        // A number of its own, though the position is known: the epilogue is found by it.
        lowering.places.push(Place { position: function.end, call: None });
        lowering.at(function.end);
        lowering.builder.ins().return_(&[result]);
        let Self { builder, places, calls, .. } = lowering;
        builder.finalize(target);
        Lowered { places, calls }
    }

    /// Lowers the body that [`Self::body`] is for, and goes on where it returns to.
    fn body(&mut self, function: &Function, arguments: &[Value]) {
        self.at(function.position);
        for (local, value) in arguments.iter().enumerate() {
            self.builder.def_var(self.body.locals[local], *value);
        }
        self.block(&function.body);
        self.at(function.end);
        let zero = self.builder.ins().iconst(types::I64, 0);
        self.builder.ins().jump(self.body.exit, &[BlockArg::Value(zero)]);
        self.builder.switch_to_block(self.body.exit);
        self.builder.seal_block(self.body.exit);
    }

    /// Puts the callee in place of its call.
    fn inline(&mut self, callee: FunctionId, position: Position, arguments: &[Value]) -> Value {
        let function = self.program.function(callee);
        let number = self.calls.len() as u32;
        self.calls.push(InlinedCall { callee, parent: self.body.call, position });
        let (body, result) = Body::new(&mut self.builder, function, Some(number));
        let outer = mem::replace(&mut self.body, body);
        self.around.push(callee);
        self.body(function, arguments);
        self.around.pop();
        self.body = outer;
        self.at(position);
        result
    }

    /// What is emitted next belongs to this place.
    fn at(&mut self, position: Position) {
        let place = Place { position, call: self.body.call };
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
        let number = self.places.len() as u32 - 1;
        self.builder.set_srcloc(SourceLoc::new(number));
    }

    fn variable(&self, local: Local) -> Variable {
        self.body.locals[local.0]
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
                self.builder.ins().jump(self.body.exit, &[BlockArg::Value(value)]);
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
                if self.inlines && inline::is_worth_it(self.program, *callee, &self.around) {
                    return self.inline(*callee, position, &arguments);
                }
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

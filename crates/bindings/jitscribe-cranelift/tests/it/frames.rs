//! The announced frames are those that Cranelift describes, and those at the end of each epilogue are
//! correct, too.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, Signature, SourceLoc, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, unwind::UnwindInfo};
use cranelift_codegen::settings::{Configurable, Flags};
use cranelift_codegen::{Context, isa, settings};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use gimli::write::{Address, EhFrame, EndianVec, FrameTable};
use gimli::{
    BaseAddresses, CfaRule, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
};
use jitscribe_cranelift::Announcement;
use unwind_info::{Machine, Unwind, behind_code, offset_behind};

const CODE: u64 = 0x10_0000;

fn target(name: &str, settings: &[(&str, &str)]) -> OwnedTargetIsa {
    let mut flags = settings::builder();
    for (name, value) in settings {
        flags.set(name, value).unwrap();
    }
    isa::lookup_by_name(name).unwrap().finish(Flags::new(flags)).unwrap()
}

/// A function with `values` numbers that are live across a call; for 0, a function that calls nothing.
fn function(isa: &OwnedTargetIsa, values: usize) -> Function {
    let mut function = Function::new();
    function.signature = Signature::new(CallConv::SystemV);
    function.signature.params.push(AbiParam::new(types::I64));
    function.signature.returns.push(AbiParam::new(types::I64));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut function, &mut context);
    let [block, more, last] = std::array::from_fn(|_| builder.create_block());
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.set_srcloc(SourceLoc::new(1));
    let argument = builder.block_params(block)[0];
    let mut kept = vec![argument];
    for number in 0..values {
        let next = builder.ins().imul_imm_s(kept[number], number as i64 + 3);
        kept.push(next);
    }
    if values > 0 {
        let signature = builder.import_signature(Signature::new(CallConv::SystemV));
        builder.ins().call_indirect(signature, argument, &[]);
    }
    builder.ins().brif(argument, more, &[], last, &[]);
    // Two returns, so that code follows the first one.
    for block in [more, last] {
        builder.switch_to_block(block);
        let mut sum = builder.ins().iconst(types::I64, if block == more { 7 } else { 9 });
        for value in &kept {
            sum = builder.ins().bxor(sum, *value);
        }
        builder.ins().return_(&[sum]);
    }
    builder.seal_all_blocks();
    builder.finalize(isa.frontend_config());
    function
}

/// The caller's frame, and the location of its registers.
type State = (CfaRule<usize>, Vec<(Register, RegisterRule<usize>)>);

/// The states that an `.eh_frame` at `at` describes, by offset.
fn states(section: &[u8], at: u64, size: u64) -> Vec<State> {
    let section = gimli::read::EhFrame::new(section, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(at);
    let mut context = UnwindContext::new();
    (CODE..CODE + size)
        .map(|address| {
            let cie = gimli::read::EhFrame::cie_from_offset;
            let row = section.unwind_info_for_address(&bases, &mut context, address, cie).unwrap();
            let mut registers: Vec<_> = row.registers().cloned().collect();
            registers.sort_by_key(|(register, _)| register.0);
            (row.cfa().clone(), registers)
        })
        .collect()
}

/// The states according to Cranelift's own encoder.
fn by_cranelift(isa: &OwnedTargetIsa, context: &Context, size: u64) -> Vec<State> {
    let compiled = context.compiled_code().unwrap();
    let Some(UnwindInfo::SystemV(info)) = compiled.create_unwind_info(isa.as_ref()).unwrap() else {
        panic!("no unwind info")
    };
    let mut table = FrameTable::default();
    let cie = table.add_cie(isa.create_systemv_cie().unwrap());
    table.add_fde(cie, info.to_fde(Address::Constant(CODE)));
    let mut section = EhFrame(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut section).unwrap();
    states(section.slice(), 0, size)
}

/// The states according to the announcement.
fn by_us(isa: &OwnedTargetIsa, context: &Context, size: u64) -> Vec<State> {
    let announcement = Announcement::of(isa.as_ref(), context.compiled_code().unwrap());
    let rows = announcement.frame().unwrap();
    let machine = if isa.name() == "x64" { Machine::X86_64 } else { Machine::Aarch64 };
    let mut tables = Vec::new();
    behind_code(machine, size, &Unwind::Rows(&rows), &mut tables).unwrap();
    states(&tables, CODE + offset_behind(size).unwrap(), size)
}

fn compiled(isa: &OwnedTargetIsa, values: usize) -> Context {
    let mut context = Context::for_function(function(isa, values));
    context.compile(isa.as_ref(), &mut ControlPlane::default()).unwrap();
    context
}

/// Offsets of all `ret` instructions. A search for the bytes is enough, because on both machines they do not
/// occur elsewhere in these functions.
fn returns(isa: &OwnedTargetIsa, code: &[u8]) -> Vec<usize> {
    let ret: &[u8] = if isa.name() == "x64" { &[0x5d, 0xc3] } else { &[0xc0, 0x03, 0x5f, 0xd6] };
    let skip = if isa.name() == "x64" { 1 } else { 0 };
    let found = code.windows(ret.len()).enumerate().filter(|(_, bytes)| *bytes == ret);
    found.map(|(at, _)| at + skip).collect()
}

#[test]
fn frames_are_those_of_cranelift_and_epilogues_are_right_too() {
    for (name, settings) in [
        ("x86_64", &[("opt_level", "speed")][..]),
        ("x86_64", &[("opt_level", "none"), ("preserve_frame_pointers", "true")]),
        ("aarch64", &[("opt_level", "speed")]),
        ("aarch64", &[("opt_level", "none"), ("preserve_frame_pointers", "true")]),
    ] {
        let isa = target(name, settings);
        for values in [0, 3, 30] {
            let context = compiled(&isa, values);
            let code = context.compiled_code().unwrap().code_buffer();
            let size = code.len() as u64;
            let (theirs, ours) = (by_cranelift(&isa, &context, size), by_us(&isa, &context, size));
            let returns = returns(&isa, code);
            let length = if name == "x86_64" { 1 } else { 4 };
            let entry = &theirs[0];
            let has_frame = theirs.iter().any(|state| state != entry);
            // Only leaf functions on aarch64 may have no frame.
            assert!(has_frame || (values == 0 && name == "aarch64"));
            for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
                let on_return = returns.iter().any(|ret| (*ret..ret + length).contains(&at));
                let expected = if on_return { entry } else { theirs };
                assert_eq!(ours, expected, "{name}, {values} values, at {at}");
            }
            if has_frame {
                assert!(!returns.is_empty() && theirs[returns[0]] != *entry);
            }
        }
    }
}

#[test]
fn nothing_is_said_of_frames_that_cranelift_was_told_not_to_describe() {
    let isa = target("x86_64", &[("unwind_info", "false")]);
    let context = compiled(&isa, 3);
    assert!(Announcement::of(isa.as_ref(), context.compiled_code().unwrap()).frame().is_none());
}
